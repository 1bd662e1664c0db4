"""Suppressions: which places of which findings they accept, and for how long."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from fnmatch import fnmatchcase

from gpudiag.gate.config import Suppression
from gpudiag.gate.result import SuppressionCheck
from gpudiag.model import Finding, Place


def covers(one: Suppression, finding: Finding) -> list[bool]:
    """For each place of the finding whether the suppression accepts it; a finding without places has one, unknown."""
    if one.code != finding.code:
        return [False] * max(1, len(finding.where))
    if one.place is None:
        return [True] * max(1, len(finding.where))
    return [_at(one.place, place) for place in finding.where] or [False]


def live(suppressions: Sequence[Suppression], today: date) -> list[Suppression]:
    return [one for one in suppressions if today <= one.until]


def remarkable(
    suppressions: Sequence[Suppression], findings: Sequence[Finding], today: date, notice: float
) -> list[SuppressionCheck]:
    """Those that expired, those that match nothing, and those whose last day is at most `notice` days away."""
    told: list[SuppressionCheck] = []
    for one in suppressions:
        used = any(any(covers(one, finding)) for finding in findings)
        left = (one.until - today).days
        state = "expired" if left < 0 else "unused" if not used else "expiring" if left <= notice else ""
        if state:
            facts = {"state": state, "code": one.code, "place": one.place, "until": one.until, "reason": one.reason}
            told.append(SuppressionCheck.model_validate(facts))
    return told


def _at(pattern: str, place: Place) -> bool:
    """A file by its path or the end of it, a range or a kernel by its name."""
    file = (place.file or "").replace("\\", "/")
    names = [name for name in (file, place.nvtx, place.kernel) if name]
    if any(pattern == name or fnmatchcase(name, pattern) for name in names):
        return True
    return bool(file) and (file.endswith(f"/{pattern}") or fnmatchcase(file, f"*/{pattern}"))
