"""A part of a capture: which, and the canonical tables reduced to it."""
