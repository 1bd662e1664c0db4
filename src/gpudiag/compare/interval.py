"""The iteration's time without the profiler, and the bounds of the ratio of two such times.

Three things part a recorded time from the true one:
- a run differs from the next. Its spread is estimated from the repeats; the usual spread counts as some further
  observations, so that a single recording has an interval too (Student's t, on logarithms);
- the profiler slows the host: the true time lies between the recorded one and what is left without that, and is never
  below the time in which the GPU works. It may have slowed one side and not the other;
- kernels may run somewhat faster or slower when recorded. Where both sides do the same this cancels, so only a part of
  the change is in doubt.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from gpudiag.model import Loop, Ratio

Settings = Mapping[str, float]

# Student's t, two-sided 95 %, for 1 to 30 degrees of freedom; beyond, the normal quantile is near enough.
_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_NORMAL95 = 1.960


@dataclass(frozen=True)
class Measured:
    """One side's time of an iteration. `shrink`: what the profiler may have added at most, as a factor of 1 or less."""

    logs: tuple[float, ...]
    shrink: float
    margin: float
    doubt: float
    """The part of its time in which kernels, recorded, may be faster or slower than unrecorded ones."""
    recorded: bool

    @property
    def ms(self) -> float:
        return math.exp(fmean(self.logs))

    def of_part(self, factor: float) -> Measured:
        """The time of one part in so many of an iteration."""
        return replace(self, logs=tuple(log - math.log(factor) for log in self.logs))

    @property
    def least_ms(self) -> float:
        return self.ms * self.shrink * math.exp(-self.margin)

    @property
    def most_ms(self) -> float:
        return self.ms * math.exp(self.margin)


def busy_share(loop: Loop) -> float:
    """The part of an iteration in which the GPU does anything."""
    return min(1.0, sum(share for category, share in loop.budget.items() if not category.startswith("idle")))


def measured(loops: Sequence[Loop], given_ms: Sequence[float], settings: Settings) -> Measured | None:
    """The same loop of each of a side's reports; given_ms: unprofiled times. None: the reports hold no usable time."""
    known = tuple(given_ms) or tuple(loop.iteration_ms_unprofiled or 0.0 for loop in loops)
    if not loops or any(not math.isfinite(loop.iteration_ms) or loop.iteration_ms <= 0 for loop in loops):
        return None
    if all(math.isfinite(time) and time > 0 for time in known):
        ms = math.exp(fmean(map(math.log, known)))
        busy = min(1.0, fmean(busy_share(loop) * loop.iteration_ms for loop in loops) / ms)
        margin = settings["diff_timed_gpu"] * busy + settings["diff_timed_host"] * (1 - busy)
        return Measured(tuple(map(math.log, known)), 1.0, margin, 0.0, recorded=False)
    return Measured(
        logs=tuple(math.log(loop.iteration_ms) for loop in loops),
        shrink=math.exp(fmean(math.log(least_share(loop, settings)) for loop in loops)),
        margin=fmean(_margin(loop, settings) for loop in loops),
        doubt=fmean(busy_share(loop) for loop in loops),
        recorded=True,
    )


def least_share(loop: Loop, settings: Settings) -> float:
    """The least part of the recorded time that the iteration takes without the profiler.

    Communication is no floor as computing and copying are: a kernel that exchanges data also waits for a slowed peer.
    """
    idle = {category: share for category, share in loop.budget.items() if category.startswith("idle")}
    least = settings["diff_least_host"]
    if sum(idle.values()) > 0:
        other = idle.get("idle_other", 0.0) / sum(idle.values())
        least += other * (settings["diff_least_driver"] - least)
    calls = loop.calls if loop.thread_calls is None else loop.thread_calls
    host = max(0.0, 1 - calls * settings["replay_call_ns"] / 1e6 / loop.iteration_ms) * least
    working = busy_share(loop) - loop.budget.get("exposed_communication", 0.0)
    return min(1.0, max(working, host, 1 / settings["diff_most_slowed"]))


def _margin(loop: Loop, settings: Settings) -> float:
    copy = min(1.0, loop.budget.get("exposed_copy", 0.0))
    busy = busy_share(loop)
    return (
        settings["diff_gpu"] * max(0.0, busy - copy)
        + settings["diff_copy"] * copy
        + settings["diff_host"] * max(0.0, 1 - busy)
    )


def ratio(base: Measured, head: Measured, settings: Settings) -> Ratio:
    """Head's time over base's. Swapping the sides gives the inverse."""
    change = fmean(head.logs) - fmean(base.logs)
    half = _spread(base, head, settings["diff_prior"])
    unlike = settings["diff_unlike"] * (base.doubt + head.doubt) / 2 * min(1.0, abs(change))
    return Ratio(
        value=math.exp(change),
        low=math.exp(change - half - unlike) * head.shrink,
        high=math.exp(change + half + unlike) / base.shrink,
    )


def _spread(base: Measured, head: Measured, prior: float) -> float:
    """Half the interval of the change that runs differing from one another leave."""
    usual = (base.margin + head.margin) / (_t95(prior) * math.sqrt(2))
    squares = sum((log - fmean(side.logs)) ** 2 for side in (base, head) for log in side.logs)
    freedom = prior + len(base.logs) + len(head.logs) - 2
    deviation = math.sqrt((prior * usual**2 + squares) / freedom)
    return _t95(freedom) * deviation * math.sqrt(1 / len(base.logs) + 1 / len(head.logs))


def _t95(freedom: float) -> float:
    return _T95[max(1, int(freedom)) - 1] if freedom < len(_T95) + 1 else _NORMAL95


def joined(parts: Sequence[tuple[float, float, Ratio]]) -> Ratio:
    """Several loops together. Each part: base's and head's time of all its iterations, and its ratio."""
    base, head = sum(part[0] for part in parts), sum(part[1] for part in parts)
    change = math.log(head / base)
    weights = [(part[0] / base + part[1] / head) / 2 for part in parts]
    below = sum(w * math.log(part[2].value / part[2].low) for w, part in zip(weights, parts, strict=True))
    above = sum(w * math.log(part[2].high / part[2].value) for w, part in zip(weights, parts, strict=True))
    return Ratio(value=math.exp(change), low=math.exp(change - below), high=math.exp(change + above))
