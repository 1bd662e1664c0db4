"""Callers of a finding's calls: the operators of a framework."""
