"""Measure how long gpudiag takes and how much memory it needs."""
