"""The one error that users see. Apart from `model`, so that reading a file need not load the report's vocabulary."""

from __future__ import annotations


class GpudiagError(Exception):
    """Something the user can act on: one sentence that names the file and the next thing to try."""
