"""What an interval of the change means: regression, improvement, noise, or that it cannot be told."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from gpudiag.model import DiffState, Ratio

Settings = Mapping[str, float]


def state(ratio: Ratio, *, same_work: bool, settings: Settings) -> DiffState:
    """A change is one when the whole interval is on its side, and its size is worth a word.

    Otherwise it is noise where the interval is narrow, or where both sides do the same work and thus nothing but the
    times speaks for a change; else it cannot be told.
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
