"""Between which values a threshold of the comparison makes sense."""

from __future__ import annotations

from collections.abc import Mapping

from gpudiag.errors import GpudiagError

PREFIX = "diff_"
SHARE = (0.0, 1.0)
RANGES = {
    "diff_least": (0.0, 0.9),  # no change is as large as all of the time
    "diff_most_slowed": (1.0, 1000.0),  # the profiler makes no program faster
    "diff_prior": (1.0, 1000.0),  # without any, one recording a side has no interval
}
"""All others are shares."""


def check(settings: Mapping[str, float]) -> None:
    """Raises GpudiagError for a threshold of the comparison that lies outside its range."""
    for name, value in settings.items():
        low, high = RANGES.get(name, SHARE)
        if name.startswith(PREFIX) and not low <= value <= high:
            raise GpudiagError(f"settings.{name}={value:g} makes no sense: give {low:g} to {high:g}.")
