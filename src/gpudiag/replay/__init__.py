"""What a fix is worth. Today by interval arithmetic over the recorded timeline, as upper bounds (bounds.py)."""
