"""A time as people write it: a number and its unit."""

from __future__ import annotations

import re

from gpudiag.errors import GpudiagError

UNITS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
LONGEST = 24 * 3600 * UNITS["s"]
"""No iteration takes longer than a day: a time above is a slip of the unit."""


def read(text: str) -> float | None:
    """A number and a unit in ns; None where it is not that."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(ns|us|µs|ms|s)", text, re.ASCII)
    return float(match[1]) * UNITS[match[2]] if match else None


def nanoseconds(text: str) -> float:
    """`3.57ms` is 3,570,000. Raises GpudiagError where there is no number, no unit, or more than a day."""
    time = read(text)
    if not time:
        raise GpudiagError(f"{text!r} is not like 3.57ms or decode_token=3.57ms (ns, us, ms or s).")
    if time > LONGEST:
        raise GpudiagError(f"{text!r} is longer than a day: is the unit right?")
    return time
