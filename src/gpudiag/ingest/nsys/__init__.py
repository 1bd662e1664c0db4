"""Nsight Systems reports and exports as canonical tables."""
