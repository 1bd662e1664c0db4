"""Match the loops of head with those of base: by NVTX path, by name or marker, else by the kernels that both run.

Only annotated loops are matched whatever they do. Of others an iteration of each has to be comparable work: the same,
or so many times as much as the kernels of both agree on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from gpudiag.compare import equal_work
from gpudiag.compare.equal_work import Settings, Work
from gpudiag.compare.parts import kernel_times
from gpudiag.model import Loop, Report

How = Literal["nvtx", "name", "kernels"]


class Pair(NamedTuple):
    base: Loop
    head: Loop
    how: How
    work: Work


def paired(base: Report, head: Report, settings: Settings) -> list[Pair]:
    """Each loop at most once, longest first."""
    found: list[Pair] = []
    for how in ("nvtx", "name", "kernels"):
        for loop in base.run.loops:
            if any(pair.base is loop for pair in found):
                continue
            free = [other for other in head.run.loops if not any(pair.head is other for pair in found)]
            other = _partner(loop, free, how, settings)
            if other:
                found.append(Pair(loop, other, how, equal_work.compared(loop, other, settings)))
    return sorted(found, key=lambda pair: -pair.base.share_of_span)


def _partner(loop: Loop, free: Sequence[Loop], how: str, settings: Settings) -> Loop | None:
    if how == "nvtx":
        same = [o for o in free if loop.source == o.source == "nvtx" and _path(o) == _path(loop)]
    elif how == "name":
        # A loop found by its period is known by one of its kernels: that alone does not say what an iteration holds.
        named = [o for o in free if (o.marker or o.name) == (loop.marker or loop.name) and o.source == loop.source]
        same = [o for o in named if loop.source == "nvtx" or comparable(loop, o, settings)]
    else:
        guessed = [o for o in free if "period" in (loop.source, o.source) and loop.kernels]
        same = [o for o in guessed if comparable(loop, o, settings)]
    return min(same, key=lambda o: _distance(loop, o, settings)) if same else None


def _distance(loop: Loop, other: Loop, settings: Settings) -> tuple[float, float]:
    """Return how unlike two loops are: equal work comes first, then an equal part of the run."""
    factor = equal_work.compared(loop, other, settings).factor
    return abs(math.log(factor)) if factor else math.inf, abs(other.share_of_span - loop.share_of_span)


def _path(loop: Loop) -> str:
    return loop.nvtx_path or loop.name


def comparable(loop: Loop, other: Loop, settings: Settings) -> bool:
    """Return whether the kernels of two loops show how much work an iteration of each is. All work where nothing
    repeats is only comparable where it is the same.
    """
    found = equal_work.compared(loop, other, settings)
    if found.factor is None:
        return False
    due = loop.launches * (found.launches or found.factor)
    near = abs(other.launches - due) <= settings["diff_same_work"] * max(other.launches, due)
    if loop.source == other.source == "unknown":
        return near and found.factor == 1.0 and loop.iterations == other.iterations
    return near or found.launches is None


def common_share(loop: Loop, other: Loop) -> float:
    """The part of kernel time spent in kernels that both run, on the side where that is less; also those of which only
    template arguments changed.
    """
    names = [{kernel.name for kernel in side.kernels if not kernel.others} for side in (loop, other)]
    moved = kernel_times.renamed(names[0] - names[1], names[1] - names[0])
    common = names[0] & names[1] | moved.keys() | set(moved.values())
    parts = []
    for side in (loop, other):
        total = sum(kernel.ms for kernel in side.kernels)
        parts.append(sum(kernel.ms for kernel in side.kernels if kernel.name in common) / total if total > 0 else 0.0)
    return min(parts)
