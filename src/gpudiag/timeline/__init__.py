"""Timelines that a page draws: an iteration, the run, and the iteration after the first fix."""
