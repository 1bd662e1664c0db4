"""Kernels that Nsight Compute measured in both sides: one launch before and after."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal

from gpudiag.compare import change_state
from gpudiag.compare.interval import Measured, joined, ratio
from gpudiag.compare.parts.kernel_times import renamed
from gpudiag.model import Kernel, ProfileChange, Ratio, Report

FACTS = (
    "limit", "dram_pct", "sm_pct", "achieved_occupancy_pct", "theoretical_occupancy_pct", "registers", "shared_own",
    "waves", "precision", "floor_ms",
)  # fmt: skip
How = Literal["name", "template", "only one"]
Key = tuple[str, int | None, int | None]
"""Name, blocks, threads a block: another size of launch is other work."""
Kernels = dict[Key, list[Kernel]]


def changes(base: Sequence[Report], head: Sequence[Report], settings: Mapping[str, float]) -> tuple[ProfileChange, ...]:
    """Matched kernels first, longest first; then new and gone ones. Reports of a side are repeats."""
    before, after = _kernels(base), _kernels(head)
    partners = _partners(before, after)
    found = [_both(before[one], after[other], how, settings) for one, (other, how) in partners.items()]
    found.sort(key=lambda change: -(change.base_ms or 0))
    taken = {other for other, _ in partners.values()}
    new = [_alone("new", kernels) for key, kernels in after.items() if key not in taken]
    gone = [_alone("gone", kernels) for key, kernels in before.items() if key not in partners]
    return (*found, *new, *gone)


def _kernels(reports: Sequence[Report]) -> Kernels:
    found: Kernels = {}
    for report in reports:
        for kernel in report.run.kernels:
            if math.isfinite(kernel.duration_ms) and kernel.duration_ms > 0:
                found.setdefault((kernel.name, kernel.grid, kernel.block), []).append(kernel)
    return found


def _partners(before: Kernels, after: Kernels) -> dict[Key, tuple[Key, How]]:
    """Base's kernel → head's. A fix may change a kernel's size, template arguments or name; whether it did, or these
    are two kernels, is only clear where nothing else is left over.
    """
    found: dict[Key, tuple[Key, How]] = {key: (key, "name") for key in before if key in after}
    gone, new = [key for key in before if key not in found], [key for key in after if key not in before]
    named = {name: (key, other) for name, key in _once(gone).items() if (other := _once(new).get(name))}
    guessed: dict[Key, tuple[Key, How]] = {key: (other, "name") for key, other in named.values()}
    moved = renamed([key[0] for key in gone if key not in guessed], [key[0] for key in new if key[0] not in named])
    guessed |= {key: (other, "template") for key in gone for other in new if moved.get(key[0]) == other[0]}
    if not guessed and len(before) == len(after) == 1 and gone:
        guessed = {gone[0]: (new[0], "only one")}
    return found | guessed if len(guessed) == len(gone) == len(new) else found


def _once(keys: Sequence[Key]) -> dict[str, Key]:
    """Name → the one kernel that has it."""
    names = [key[0] for key in keys]
    return {key[0]: key for key in keys if names.count(key[0]) == 1}


def _both(before: Sequence[Kernel], after: Sequence[Kernel], how: How, settings: Mapping[str, float]) -> ProfileChange:
    between = ratio(_measured(before, settings), _measured(after, settings), settings)
    state = change_state.state(between, same_work=True, settings=settings)
    return ProfileChange(
        name=before[0].name, head_name=after[0].name, matched_by=how, ratio=between,
        state="noise" if state == "cannot_tell" else state,
        base_ms=_ms(before), head_ms=_ms(after), base_facts=_facts(before[0]), head_facts=_facts(after[0]),
    )  # fmt: skip


def _measured(kernels: Sequence[Kernel], settings: Mapping[str, float]) -> Measured:
    """The margin covers what launches of one profile differ by."""
    ranges = [math.log(k.range_ms[1] / k.range_ms[0]) / 2 for k in kernels if k.range_ms and min(k.range_ms) > 0]
    margin = max(settings["diff_gpu"], fmean(ranges) if ranges else 0.0)
    logs = tuple(math.log(kernel.duration_ms) for kernel in kernels)
    return Measured(logs=logs, shrink=1.0, margin=margin, doubt=1.0, recorded=True)


def _ms(kernels: Sequence[Kernel]) -> float:
    return math.exp(fmean(math.log(kernel.duration_ms) for kernel in kernels))


def _facts(kernel: Kernel) -> dict[str, float | str | None]:
    facts: dict[str, float | str | None] = {"grid": kernel.grid, "block": kernel.block} if kernel.grid else {}
    for key in FACTS:
        value = kernel.facts.get(key)
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            facts[key] = value
    return facts


def _alone(state: Literal["new", "gone"], kernels: Sequence[Kernel]) -> ProfileChange:
    name, facts = kernels[0].name, _facts(kernels[0])
    if state == "new":
        return ProfileChange(name=name, state="new", head_ms=_ms(kernels), head_facts=facts)
    return ProfileChange(name=name, state="gone", base_ms=_ms(kernels), base_facts=facts)


def one_sided(changes: Sequence[ProfileChange]) -> list[str]:
    """Return what the verdict leaves out."""
    counts = [sum(change.state == state for change in changes) for state in ("gone", "new")]
    if not any(counts):
        return []
    said = f"{counts[0]} measured only before, {counts[1]} only now"
    return [f"The verdict is about kernels measured at one launch size on both sides. {said}: a timeline tells of all."]


def together(changes: Sequence[ProfileChange]) -> Ratio | None:
    """All kernels in both, one launch each."""
    parts = [(c.base_ms, c.head_ms, c.ratio) for c in changes if c.ratio and c.base_ms and c.head_ms]
    return joined(parts) if parts else None
