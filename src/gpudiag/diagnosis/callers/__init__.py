"""Callers of a finding's calls: lines and operators of a framework; and what the host did in unexplained time."""
