"""Findings that hide one another: a cause reported on one side only, though the time that it is about is on both.

A wait for a result hides that launches are slow: they are sent while the host would wait anyway. With the wait gone
the launches are reported, and nothing about them is new. What tells is the part of the time budget that a cause is
about: it must have moved by a good part of what the fix is worth, else the cause was there all along.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gpudiag import budgetparts
from gpudiag.model import Finding, Loop


class Behind(NamedTuple):
    """Time of an iteration, as recorded, that a cause is about, and what its fix is worth there."""

    base_ms: float
    head_ms: float
    worth_ms: float


def behind(finding: Finding, own: Loop | None, base: Loop | None, head: Loop | None) -> Behind | None:
    """None where no part of the budget stands for the cause. own: the loop of base or head that it was found in."""
    parts = budgetparts.of(finding.code)
    gain = finding.gain
    if own is None or base is None or head is None or not parts or gain.kind == "test_needed":
        return None
    return Behind(_ms(base, parts), _ms(head, parts), gain.share * own.iteration_ms)


def remains(time: Behind | None, before_ms: float, after_ms: float, settings: Mapping[str, float]) -> bool:
    """Whether the time behind a cause that was reported at before_ms is still, or was already, there at after_ms."""
    if time is None or before_ms <= 0 or time.worth_ms <= 0:
        return False
    due = settings["diff_masked"] * min(time.worth_ms, before_ms)
    return after_ms >= due and before_ms - after_ms < due


def _ms(loop: Loop, parts: tuple[str, ...]) -> float:
    return sum(loop.budget.get(part, 0.0) for part in parts) * loop.iteration_ms
