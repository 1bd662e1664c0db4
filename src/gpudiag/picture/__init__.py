"""What a page draws of a capture: timelines of a turn and of the run, and the turn after the first fix."""
