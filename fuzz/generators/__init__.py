"""Generators of damaged inputs, one for each kind of file."""
