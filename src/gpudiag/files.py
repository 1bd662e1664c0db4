"""A file of ours that somebody names, as a configuration or a report: read whole, unless it is none or too large."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

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


def json_content(path: Path, largest: int, what: str) -> Any:
    """Parse the file as strict JSON. Raises ValueError for NaN and infinities, which other readers reject."""
    return json.loads(content(path, largest, what), parse_constant=_no_number)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
