"""Classes of a change by its interval, and the range in which the comparison's thresholds make sense."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from gpudiag.errors import GpudiagError
from gpudiag.model import DiffState, Ratio

PREFIX = "diff_"
SHARE = (0.0, 1.0)
RANGES = {
    "diff_cause": (0.0, 0.9),  # no change is as large as all of the time
    "diff_least": (0.0, 0.9),  # no change is as large as all of the time
    "diff_most_slowed": (1.0, 1000.0),  # the profiler makes no program faster
    "diff_stacks_most_slowed": (1.0, 1000.0),
    "diff_few_calls": (0.0, 1000.0),  # calls of an iteration
    "diff_like_launch": (1.0, 1000.0),  # a factor
    "diff_other_count": (1.0, 1000.0),  # likewise
    "diff_prior": (1.0, 1000.0),  # without any, one recording a side has no interval
}
"""All others are shares."""


def check(settings: Mapping[str, float]) -> None:
    """Raises GpudiagError for a threshold of the comparison that lies outside its range."""
    for name, value in settings.items():
        low, high = RANGES.get(name, SHARE)
        if name.startswith(PREFIX) and not low <= value <= high:
            raise GpudiagError(f"settings.{name}={value:g} makes no sense: give {low:g} to {high:g}.")


Settings = Mapping[str, float]


def state(ratio: Ratio, *, same_work: bool, settings: Settings) -> DiffState:
    """A change is one when the whole interval is on its side, and its size is worth a word.

    Otherwise it is noise where the interval is narrow, or where both sides do the same work and thus nothing but the
    times speaks for a change; else it cannot be known.
    """
    least = -math.log(1 - settings["diff_least"])
    change = math.log(ratio.value)
    if ratio.high < 1:
        return "improvement" if change <= -least else "noise"
    if ratio.low > 1:
        return "regression" if change >= least else "noise"
    narrow = math.log(1 + settings["diff_narrow"])
    if same_work or (math.log(ratio.high) <= narrow and math.log(ratio.low) >= -narrow):
        return "noise"
    return "cannot_tell"


def whole(together: DiffState, parts: Iterable[DiffState]) -> DiffState:
    """Of all loops or kernels: of their sum, unless only one of them says anything. A regression comes first."""
    if together in ("regression", "improvement"):
        return together
    states = set(parts)
    return "regression" if "regression" in states else "improvement" if "improvement" in states else together
