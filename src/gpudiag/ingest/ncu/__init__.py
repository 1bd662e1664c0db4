"""Nsight Compute reports and CSV pages as canonical tables."""
