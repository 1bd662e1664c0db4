"""One loop in both sides: its time before and after, where the time went, and what its kernels did."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from gpudiag.comparison import interval, kernels, sentences, verdict
from gpudiag.comparison.interval import Measured, Settings
from gpudiag.comparison.pairing import Pair
from gpudiag.model import BudgetChange, Loop, LoopChange, Times

Given = Mapping[str, Sequence[float]]
"""Loop name, or "" for the longest loop → unprofiled times of an iteration in ms."""


def change(
    pair: Pair, repeats: tuple[Sequence[Loop], Sequence[Loop]], given: tuple[Sequence[float], Sequence[float]],
    settings: Settings,
) -> LoopChange | None:  # fmt: skip
    """None where a side holds no usable time. repeats: this loop in every report of base and of head."""
    base = interval.measured(repeats[0], given[0], settings)
    head = interval.measured(repeats[1], given[1], settings)
    if base is None or head is None:
        return None
    ratio = interval.ratio(base, head, settings)
    same = kernels.same_work(pair.base, pair.head, settings)
    if same and not _as_busy(pair, settings):
        same = False
    state = verdict.state(ratio, same_work=same is True, settings=settings)
    sides = _times(pair.base, base, repeats[0], settings), _times(pair.head, head, repeats[1], settings)
    host_bound = any(side.host_bound for side in sides)
    changed, unchanged = kernels.changes(pair.base, pair.head, settings)
    return LoopChange(
        name=pair.base.name, head_name=pair.head.name, matched_by=pair.how, state=state, ratio=ratio,
        text=sentences.loop(pair.base.name, state, ratio, (base, head), same_work=same, host_bound=host_bound),
        share_of_span=pair.base.share_of_span, same_work=same, host_bound=host_bound,
        base=sides[0], head=sides[1],
        budget=_budget(pair), kernels=changed, same_kernels=unchanged,
    )  # fmt: skip


def _as_busy(pair: Pair, settings: Settings) -> bool:
    """Kernels only: copies take what the host's memory lets them."""
    one, other = (max(loop.budget.get("compute", 0.0) * loop.iteration_ms, 1e-6) for loop in (pair.base, pair.head))
    return abs(math.log(one / other)) <= settings["diff_same_busy"]


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


def _budget(pair: Pair) -> tuple[BudgetChange, ...]:
    """In the order of the budget's definition; categories that neither side spends time in are left out."""
    order = dict.fromkeys((*pair.base.budget, *pair.head.budget))
    rows = [
        BudgetChange(
            category=category,
            base_ms=pair.base.budget.get(category, 0.0) * pair.base.iteration_ms,
            head_ms=pair.head.budget.get(category, 0.0) * pair.head.iteration_ms,
        )
        for category in order
    ]
    least = sentences.LITTLE
    return tuple(
        row for row in rows
        if row.base_ms >= least * pair.base.iteration_ms or row.head_ms >= least * pair.head.iteration_ms
    )  # fmt: skip
