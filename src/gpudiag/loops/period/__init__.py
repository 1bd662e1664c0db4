"""Loops without annotations: from what repeats in the order of GPU operations."""
