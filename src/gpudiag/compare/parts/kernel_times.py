"""Kernels of a loop in both sides: new, gone, launched more often, or slower."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from gpudiag.model import KernelChange, KernelUse, Loop

EVEN = 1e-3  # rounding: launches of an iteration that differ by less come from counting whole iterations


def stem(name: str) -> str:
    """The function's own name: no template arguments, parameters, namespaces or return type."""
    bare = re.sub(r"\(anonymous namespace\)|<unnamed>", "", name)
    head = re.split(r"[<(]", bare, maxsplit=1)[0].strip()
    return head.split(" ")[-1].rsplit("::", 1)[-1]


def renamed(gone: Iterable[str], new: Iterable[str]) -> dict[str, str]:
    """Base's name → head's, where exactly one of each side has that stem: template arguments changed."""
    before, after = _once(gone), _once(new)
    return {before[short]: after[short] for short in before.keys() & after.keys()}


def _once(names: Iterable[str]) -> dict[str, str]:
    """Stem → the one name that has it."""
    known = list(names)
    counts = Counter(map(stem, known))
    return {stem(name): name for name in known if stem(name) and counts[stem(name)] == 1}


def changes(base: Loop, head: Loop, settings: Mapping[str, float]) -> tuple[tuple[KernelChange, ...], int]:
    """Kernels whose time in an iteration changed, largest first, and how many did not."""
    before, after = _named(base), _named(head)
    moved = renamed(before.keys() - after.keys(), after.keys() - before.keys())
    found = [_change(name, before.get(name), after.get(moved.get(name, name)), moved.get(name)) for name in before]
    taken = set(before) | set(moved.values())
    found += [_change(name, None, use, None) for name, use in after.items() if name not in taken]
    listed = [change for change in found if not _unlisted(change, base, head)]
    least = settings["diff_kernel_share"] * min(base.iteration_ms, head.iteration_ms)
    noise = settings["diff_kernel_noise"]
    summary = [c for c in listed if abs(c.head_ms - c.base_ms) >= max(least, noise * min(c.base_ms, c.head_ms))]
    summary.sort(key=lambda c: (-abs(c.head_ms - c.base_ms), c.name))
    return tuple(summary), len(listed) - len(summary)


def _named(loop: Loop) -> dict[str, KernelUse]:
    return {use.name: use for use in loop.kernels if not use.others and math.isfinite(use.ms)}


def _change(name: str, base: KernelUse | None, head: KernelUse | None, new_name: str | None) -> KernelChange:
    if base is None or head is None:
        state: Literal["new", "gone"] = "new" if base is None else "gone"
        none = KernelUse(name=name, launches=0.0, ms=0.0)
        base, head = base or none, head or none
        return KernelChange(
            name=name, state=state, base_launches=base.launches, head_launches=head.launches,
            base_ms=base.ms, head_ms=head.ms, by_count_ms=head.ms - base.ms, by_duration_ms=0.0,
        )  # fmt: skip
    parts = _split(base, head)
    return KernelChange(
        name=name, renamed=new_name, state="changed",
        base_launches=base.launches, head_launches=head.launches, base_ms=base.ms, head_ms=head.ms,
        by_count_ms=parts[0] if parts else None, by_duration_ms=parts[1] if parts else None,
    )  # fmt: skip


def _split(base: KernelUse, head: KernelUse) -> tuple[float, float] | None:
    """The change as more launches at the old duration, and all launches at the new one instead."""
    if base.launches <= 0 or head.launches <= 0:
        return None
    more = head.launches - base.launches
    if abs(more) <= EVEN * base.launches:
        return 0.0, head.ms - base.ms
    by_count = more * base.ms / base.launches
    return by_count, head.ms - base.ms - by_count


def _unlisted(change: KernelChange, base: Loop, head: Loop) -> bool:
    """Return whether the other side may run the kernel too, among those that its report only counts together."""
    if change.state == "changed":
        return False
    other = head if change.state == "gone" else base
    return any(use.others and use.ms >= max(change.base_ms, change.head_ms) for use in other.kernels)


def same_work(base: Loop, head: Loop, settings: Mapping[str, float]) -> bool | None:
    """Return whether both sides make as many CUDA calls and start the same kernels as often. None: one side lacks the
    counts.
    """
    close, even, few = settings["diff_same_counts"], settings["diff_same_calls"], settings["diff_few_calls"]
    counted = _counted(base), _counted(head)
    counts = {"launches": (base.launches, head.launches), "calls": (base.calls, head.calls)}
    for what, (one, other) in counts.items():
        if what in counted[0] & counted[1] and abs(one - other) > max(few, even * max(one, other)):
            return False
    if counted[0] != counted[1] or not counted[0]:
        return None
    before, after = _named(base), _named(head)
    named = before.keys() | after.keys()
    alike = sum(_ms(before, name) + _ms(after, name) for name in named if _as_often(before, after, name, close))
    total = sum(_ms(before, name) + _ms(after, name) for name in named)
    return alike >= (1 - close) * total


def _counted(loop: Loop) -> set[str]:
    """Name what the report counts of the loop's work: older reports, and recordings without CUDA calls, lack some."""
    idle = not loop.budget.get("compute")  # then there may be no kernels
    counted = {"launches"} if loop.launches or (idle and loop.calls) else set()
    counted |= {"calls"} if loop.calls else set()
    return counted | ({"kernels"} if loop.kernels or (idle and loop.calls) else set())


def _as_often(before: Mapping[str, KernelUse], after: Mapping[str, KernelUse], name: str, close: float) -> bool:
    if name not in before or name not in after:
        return False
    one, other = before[name].launches, after[name].launches
    return abs(one - other) <= max(EVEN, close * max(one, other))


def _ms(uses: Mapping[str, KernelUse], name: str) -> float:
    return uses[name].ms if name in uses else 0.0


def in_common(base: Sequence[KernelUse], head: Sequence[KernelUse]) -> bool:
    """Return whether any kernel of one runs in the other, perhaps with other template arguments."""
    return bool({stem(use.name) for use in base if not use.others} & {stem(use.name) for use in head if not use.others})
