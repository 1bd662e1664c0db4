"""A file that somebody names as configuration or baseline: read whole, unless it is none or far too large."""

from __future__ import annotations

import stat
from pathlib import Path

from gpudiag.errors import GpudiagError


def content(path: Path, largest: int, what: str) -> bytes:
    """At most `largest` bytes. Raises GpudiagError, and OSError where it cannot be read at all.

    A pipe might never end, and a device tells no size: only regular files are opened.
    """
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise GpudiagError(f"{path} is a folder: name the {what} in it.")
    if not stat.S_ISREG(mode):
        raise GpudiagError(f"{path} is a pipe or a device: give the {what} as a file.")
    with path.open("rb") as file:
        found = file.read(largest + 1)
    if len(found) > largest:
        raise GpudiagError(f"{path} is too large for a {what}.")
    return found
