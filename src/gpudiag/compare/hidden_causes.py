"""Causes that came or went together with the time: what a recording alone leaves open, both together tell.

The profiler may have added as much as a loop's recorded time changed. But where a cause that was reported before is not
found any more, and the time is shorter by what its fix may have saved, the change is more than chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpudiag.compare import sentences
from gpudiag.compare.loop_matching import Pair
from gpudiag.compare.parts import time_parts
from gpudiag.model import Finding, FindingChange, Loop, LoopChange
from gpudiag.model.vocabulary import LEAVES

BudgetParts = Mapping[str, Sequence[str]]
"""Code of a rule → the parts of the time budget that its findings explain."""


def beyond_noise(
    pair: Pair, findings: Sequence[FindingChange], parts: BudgetParts, settings: Mapping[str, float]
) -> list[FindingChange]:
    """Return the findings without those that came to this loop or left it while the time that they are about moved by
    no more than recordings differ: they only crossed a threshold. Reports without a time tree cannot tell.
    """
    leaves = time_parts.leaves(((pair.base,), (pair.head,)), (1.0,), settings, quiet=False)
    moved = {LEAVES[leaf.leaf].part for leaf in leaves if leaf.changed and leaf.leaf in LEAVES}
    names = {"gone": pair.base.name, "new": pair.head.name}
    return [
        one
        for one in findings
        if not (leaves and parts.get(one.code) and names.get(one.state, "") == one.loop)
        or moved.intersection(parts[one.code])
    ]


def changed(pair: Pair, findings: Sequence[FindingChange]) -> bool:
    """Return whether a cause came to this loop or left it: then both sides do not do the same work."""
    names = {"gone": pair.base.name, "new": pair.head.name}  # each side calls its loops in its own way
    return any(one.loop is not None and names.get(one.state) == one.loop for one in findings)


def credited(change: LoopChange, findings: Sequence[FindingChange], settings: Mapping[str, float]) -> LoopChange:
    """The loop's verdict with what its causes say, where its times alone cannot tell."""
    if change.state != "cannot_tell" or change.work not in (None, 1.0):
        return change
    least = 1 - settings["diff_cause"]
    if change.ratio.value <= least:
        state, ours, theirs = "improvement", "gone", "new"
    elif change.ratio.value >= 1 / least:
        state, ours, theirs = "regression", "new", "gone"
    else:
        return change
    causes = [one for one in _of(change, findings, ours) if _explains(one, change, settings)]
    if not causes or _of(change, findings, theirs):
        return change
    summary = change.model_copy(update={"state": state, "causes": tuple(one.code for one in causes)})
    return summary.model_copy(update={"text": sentences.with_cause(summary, causes)})


def _of(change: LoopChange, findings: Sequence[FindingChange], state: str) -> list[FindingChange]:
    """Findings of the loop in that state, those worth most first."""
    name = change.name if state == "gone" else change.head_name
    found = [one for one in findings if one.state == state and one.loop == name]
    return sorted(found, key=lambda one: -max(one.base_share or 0.0, one.head_share or 0.0))


def _explains(cause: FindingChange, change: LoopChange, settings: Mapping[str, float]) -> bool:
    """Return whether its fix was expected to save a good part of the change; one of unknown gain may."""
    share = cause.base_share if cause.state == "gone" else cause.head_share
    moved = 1 - min(change.ratio.value, 1 / change.ratio.value)
    return share is None or share >= settings["diff_cause_part"] * moved


class Behind(NamedTuple):
    """Time of an iteration, as recorded, that a cause is about, and what its fix is worth there."""

    base_ms: float
    head_ms: float
    worth_ms: float


def behind(
    finding: Finding, parts: Sequence[str], own: Loop | None, base: Loop | None, head: Loop | None
) -> Behind | None:
    """None where no part of the budget stands for the cause. parts: of the budget, those that its rule explains; own:
    the loop of base or head that it was found in.
    """
    gain = finding.gain
    if own is None or base is None or head is None or not parts or gain.kind == "test_needed":
        return None
    return Behind(_ms(base, parts), _ms(head, parts), gain.share * own.iteration_ms)


def remains(time: Behind | None, before_ms: float, after_ms: float, settings: Mapping[str, float]) -> bool:
    """Return whether the time behind a cause that was reported at before_ms is also there at after_ms."""
    if time is None or before_ms <= 0 or time.worth_ms <= 0:
        return False
    due = settings["diff_masked"] * min(time.worth_ms, before_ms)
    return after_ms >= due and before_ms - after_ms < due


def _ms(loop: Loop, parts: Sequence[str]) -> float:
    return sum(loop.budget.get(part, 0.0) for part in parts) * loop.iteration_ms
