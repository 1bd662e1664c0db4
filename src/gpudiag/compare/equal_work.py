"""The ratio of work between an iteration of head and one of base, from the kernels that both run.

Two loops of one name may hold different amounts of work: a batch was unrolled, several iterations became one, or a
program without annotations was recognised by another repetition. Times of unequal work say nothing; times of equal
work do. A kernel's work is the threads that it starts: four launches of a quarter of the threads are the same work.
Where only threads differ and not launches, a kernel may have been reshaped and not given more to do: then it is only
sure where the bytes that are copied, or the work of both recordings as a whole, say the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpudiag.compare.parts import kernel_times
from gpudiag.model import KernelUse, Loop

Settings = Mapping[str, float]
_Weighted = Sequence[tuple[float, float]]
"""A ratio, and the part of the kernel time that it speaks for."""


class Work(NamedTuple):
    """factor: head's work of an iteration over base's; None where that is not known.

    sure: no kernel need have been reshaped to explain it. launches: head's launches over base's, where kernels agree.
    resplit: both recordings hold as much work in all, in other portions.
    """

    factor: float | None = None
    sure: bool = False
    launches: float | None = None
    resplit: bool = False

    def readings(self, *, annotated: bool) -> tuple[float, ...]:
        """The factors by which an iteration of head may be more work; one where there is no doubt.

        An annotated iteration is what its author says it is: unless the same work was only split in another way, more
        of it may be what made it slower.
        """
        if self.factor is None or self.factor == 1.0:
            return (1.0,)
        return (self.factor,) if self.resplit or (self.sure and not annotated) else (1.0, self.factor)


class _Common(NamedTuple):
    base: KernelUse
    head: KernelUse
    base_share: float
    head_share: float

    @property
    def weight(self) -> float:
        return (self.base_share + self.head_share) / 2


def compared(base: Loop, head: Loop, settings: Settings) -> Work:
    """The work of an iteration of each. Swapping the sides inverts the factor."""
    shared = _common(base, head)
    known = min(sum(one.base_share for one in shared), sum(one.head_share for one in shared))
    if known < settings["diff_common_work"] or not shared:
        return Work()
    launches = _agreed([(one.head.launches / one.base.launches, one.weight) for one in shared], settings)
    volumes = _volumes(shared, settings)
    if volumes is None:
        return Work(launches, sure=True, launches=launches) if launches == 1.0 else Work(launches=launches)
    total = volumes * head.iterations / base.iterations
    resplit = abs(math.log(total)) <= math.log1p(settings["diff_total_work"])
    alike = launches is not None and abs(math.log(launches / volumes)) <= math.log1p(settings["diff_same_work"])
    sure = volumes == 1.0 or alike or resplit or _bytes_agree(base, head, volumes, settings)
    return Work(volumes, sure, launches, resplit)


def bytes_equal(base: Loop, head: Loop, settings: Settings) -> bool:
    """Return whether an iteration of both copies as many bytes, and any at all."""
    return _bytes_agree(base, head, 1.0, settings)


def _common(base: Loop, head: Loop) -> list[_Common]:
    """Kernels that both run, perhaps with other template arguments."""
    before, after = ({use.name: use for use in loop.kernels if not use.others} for loop in (base, head))
    moved = kernel_times.renamed(before.keys() - after.keys(), after.keys() - before.keys())
    totals = [sum(use.ms for use in loop.kernels) for loop in (base, head)]
    found = []
    for name, use in before.items():
        other = after.get(moved.get(name, name))
        if other and use.launches > 0 and other.launches > 0 and all(total > 0 for total in totals):
            found.append(_Common(use, other, use.ms / totals[0], other.ms / totals[1]))
    return found


def _volumes(shared: Sequence[_Common], settings: Settings) -> float | None:
    """Threads, where both reports count them; else launches, where each takes about as long on both sides."""
    ratios = []
    for one in shared:
        base, head, weight = one.base, one.head, one.weight
        if base.threads and head.threads:
            ratios.append((head.threads / base.threads, weight))
        elif base.ms > 0 and head.ms > 0:
            more = head.launches / base.launches
            longer = head.ms / base.ms / more
            like = abs(math.log(longer)) <= math.log(settings["diff_like_launch"])
            ratios.append((more, weight if like else 0.0))
    known = sum(weight for _, weight in ratios)
    if known < settings["diff_agreed_work"] * sum(one.weight for one in shared):
        return None
    return _agreed([pair for pair in ratios if pair[1] > 0], settings)


def _agreed(ratios: _Weighted, settings: Settings) -> float | None:
    """The ratio that most of the kernel time agrees on, whole where it is nearly whole; None where there is none."""
    total = sum(weight for _, weight in ratios)
    if total <= 0:
        return None
    near = math.log1p(settings["diff_same_work"])
    logs = sorted((math.log(ratio), weight) for ratio, weight in ratios)
    middle = (_median(logs, total) - _median([(-log, weight) for log, weight in reversed(logs)], total)) / 2
    if sum(weight for log, weight in logs if abs(log - middle) <= near) < settings["diff_agreed_work"] * total:
        return None
    size = math.exp(abs(middle))
    if size <= 1 + settings["diff_same_work"]:
        return 1.0
    whole = round(size)
    size = float(whole) if abs(size / whole - 1) <= settings["diff_same_counts"] else size
    return size if middle > 0 else 1 / size


def _median(logs: _Weighted, total: float) -> float:
    """The lower weighted median."""
    passed = 0.0
    for log, weight in logs:
        passed += weight
        if passed >= total / 2:
            return log
    return logs[-1][0]


def _bytes_agree(base: Loop, head: Loop, factor: float, settings: Settings) -> bool:
    if not base.copied_bytes or not head.copied_bytes:
        return False
    return abs(math.log(head.copied_bytes / base.copied_bytes / factor)) <= math.log1p(settings["diff_same_work"])
