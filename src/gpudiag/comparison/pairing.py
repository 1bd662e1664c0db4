"""Which loop of head is which of base: by NVTX path, by name, else by the kernels that both run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from gpudiag.comparison import kernels
from gpudiag.model import Loop, Report

How = Literal["nvtx", "name", "kernels"]

COMMON = 0.5  # of both sides' kernel time: a loop that shares less is recognised by its name only
SAME_COUNT = 0.1  # a turn of one with a tenth more launches than one of the other is still the same piece of work


class Pair(NamedTuple):
    base: Loop
    head: Loop
    how: How


def paired(base: Report, head: Report) -> list[Pair]:
    """Each loop at most once, longest first."""
    found: list[Pair] = []
    for how in ("nvtx", "name", "kernels"):
        for loop in base.run.loops:
            if any(pair.base is loop for pair in found):
                continue
            free = [other for other in head.run.loops if not any(pair.head is other for pair in found)]
            other = _partner(loop, free, how)
            if other:
                found.append(Pair(loop, other, how))
    return sorted(found, key=lambda pair: -pair.base.share_of_span)


def _partner(loop: Loop, free: Sequence[Loop], how: str) -> Loop | None:
    if how == "nvtx":
        same = [o for o in free if loop.source == o.source == "nvtx" and _path(o) == _path(loop)]
    elif how == "name":
        # A loop found by its period is named after one of its kernels: that alone does not say how much a turn holds.
        same = [o for o in free if o.name == loop.name and o.source == loop.source and _alike(loop, o)]
    else:
        same = [o for o in free if "period" in (loop.source, o.source) and loop.kernels and _alike(loop, o)]
    return min(same, key=lambda o: abs(o.share_of_span - loop.share_of_span)) if same else None


def _path(loop: Loop) -> str:
    return loop.nvtx_path or loop.name


def _alike(loop: Loop, other: Loop) -> bool:
    """Whether a turn of each is the same piece of work, as far as kernels tell. Named loops need no kernels."""
    if loop.source == other.source == "nvtx":
        return True
    if loop.source == other.source == "unknown":  # all the work: comparable where it is the same work
        return _same_turn(loop, other) and loop.iterations == other.iterations
    return _same_turn(loop, other)


def _same_turn(loop: Loop, other: Loop) -> bool:
    return common_share(loop, other) >= COMMON and _near(loop.launches, other.launches)


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= SAME_COUNT * max(one, other)


def common_share(loop: Loop, other: Loop) -> float:
    """The part of kernel time spent in kernels that both run, on the side where that is less; also those of which only
    template arguments changed.
    """
    names = [{kernel.name for kernel in side.kernels if not kernel.others} for side in (loop, other)]
    moved = kernels.renamed(names[0] - names[1], names[1] - names[0])
    common = names[0] & names[1] | moved.keys() | set(moved.values())
    parts = []
    for side in (loop, other):
        total = sum(kernel.ms for kernel in side.kernels)
        parts.append(sum(kernel.ms for kernel in side.kernels if kernel.name in common) / total if total > 0 else 0.0)
    return min(parts)
