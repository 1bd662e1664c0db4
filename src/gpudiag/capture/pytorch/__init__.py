"""Hooks that Python loads at the start of a PyTorch program: one times its steps, the other records some of them."""
