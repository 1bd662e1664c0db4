"""One loop in both sides: its time before and after, where the time went, and what its kernels did."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpudiag.compare import change_state, equal_work, interval, sentences
from gpudiag.compare.interval import Measured, Settings
from gpudiag.compare.loop_matching import Pair
from gpudiag.compare.parts import kernel_times, time_parts
from gpudiag.model import DiffState, Loop, LoopChange, Ratio, Times

Given = Mapping[str, Sequence[float]]
"""Loop name, or "" for the longest loop → unprofiled times of an iteration in ms."""


class _Reading(NamedTuple):
    """The times, if an iteration of head is so many times the work of one of base."""

    factor: float
    ratio: Ratio
    state: DiffState


def change(
    pair: Pair, repeats: tuple[Sequence[Loop], Sequence[Loop]], given: tuple[Sequence[float], Sequence[float]],
    settings: Settings, *, causes_differ: bool = False,
) -> LoopChange | None:  # fmt: skip
    """None where a side holds no usable time. repeats: this loop in every report of base and of head; causes_differ:
    a finding came to it or went, so that both sides do not do the same work.
    """
    base = interval.measured(repeats[0], given[0], settings)
    head = interval.measured(repeats[1], given[1], settings)
    if base is None or head is None:
        return None
    same = False if causes_differ else _same_work(pair, settings)
    readings = []
    factors = pair.work.readings(annotated=pair.how == "nvtx")
    for factor in factors:
        ratio = interval.ratio(base, head.of_part(factor), settings)
        readings.append(_Reading(factor, ratio, change_state.state(ratio, same_work=same is True, settings=settings)))
    summary = _together(readings)
    total = _total(pair, summary, settings)
    if total is not None:  # the recordings as a whole are another reading
        summary = _together([summary, _Reading(1.0, Ratio(value=total, low=total, high=total), "cannot_tell")])
        factors = (*factors, pair.base.iterations / pair.head.iterations)
    sides = _times(pair.base, base, repeats[0], settings), _times(pair.head, head, repeats[1], settings)
    changed, unchanged = kernel_times.changes(pair.base, pair.head, settings)
    found = LoopChange(
        name=pair.base.name, head_name=pair.head.name, matched_by=pair.how, state=summary.state, ratio=summary.ratio,
        text="", share_of_span=pair.base.share_of_span,
        work=pair.work.factor, ratio_of="iteration" if summary.factor == 1.0 else "equal work",
        same_work=same, host_bound=any(side.host_bound for side in sides), base=sides[0], head=sides[1],
        budget=time_parts.budget(pair.base, pair.head),
        tree=time_parts.leaves(repeats, factors, settings, quiet=summary.state == "noise"),
        kernels=changed, same_kernels=unchanged,
    )  # fmt: skip
    repeated = "unknown" not in (pair.base.source, pair.head.source)
    text = sentences.loop(found, repeated=repeated, other_portions=total is not None)
    return found.model_copy(update={"text": text})


def _together(readings: Sequence[_Reading]) -> _Reading:
    """The one reading, or what both agree on; where they do not, an interval that holds both."""
    first = readings[0]
    if len({reading.state for reading in readings}) == 1:
        return first
    low, high = min(r.ratio.low for r in readings), max(r.ratio.high for r in readings)
    return first._replace(ratio=first.ratio.model_copy(update={"low": low, "high": high}), state="cannot_tell")


def _total(pair: Pair, summary: _Reading, settings: Settings) -> float | None:
    """The ratio of both recordings as a whole, where an iteration may be another portion of the work: nothing shows
    that it is not, many more or fewer were recorded, and the whole says the opposite of what the iterations do.
    """
    if pair.work.factor is not None or summary.state not in ("improvement", "regression"):
        return None
    if equal_work.bytes_equal(pair.base, pair.head, settings):
        return None
    counts = math.log(pair.head.iterations / pair.base.iterations)
    total = counts + math.log(summary.ratio.value)
    against = total * math.log(summary.ratio.value) < 0
    return math.exp(total) if against and abs(counts) >= math.log(settings["diff_other_count"]) else None


def _same_work(pair: Pair, settings: Settings) -> bool | None:
    """Return whether an iteration does the same work on both sides; None where a report lacks the counts."""
    if pair.work.factor not in (None, 1.0):
        return False
    same = kernel_times.same_work(pair.base, pair.head, settings)
    return same and _as_busy(pair, settings) and _as_many_bytes(pair, settings)


def _as_busy(pair: Pair, settings: Settings) -> bool:
    """Kernels only: copies take what the host's memory lets them."""
    one, other = (max(loop.budget.get("compute", 0.0) * loop.iteration_ms, 1e-6) for loop in (pair.base, pair.head))
    return abs(math.log(one / other)) <= settings["diff_same_busy"]


def _as_many_bytes(pair: Pair, settings: Settings) -> bool:
    one, other = pair.base.copied_bytes, pair.head.copied_bytes
    return one is None or other is None or abs(one - other) <= settings["diff_same_counts"] * max(one, other)


def _busy_ms(loop: Loop) -> float:
    return interval.busy_share(loop) * loop.iteration_ms


def _times(loop: Loop, side: Measured, repeats: Sequence[Loop], settings: Settings) -> Times:
    unprofiled = () if side.recorded else tuple(map(math.exp, side.logs))
    return Times(
        ms=side.ms, least_ms=side.least_ms, most_ms=side.most_ms,
        recorded_ms=tuple(each.iteration_ms for each in repeats), unprofiled_ms=unprofiled,
        host_bound=side.shrink < 1 - settings["diff_host_bound"],
        busy_ms=_busy_ms(loop), iterations=loop.iterations, launches=loop.launches, calls=loop.calls,
    )  # fmt: skip
