"""Precedence: a finding gives way to those that name the cause more closely."""

from __future__ import annotations

from collections.abc import Iterable

from gpudiag.evaluate.suppression import less
from gpudiag.model import Clear, Fired, Row


def give_way(finding: Fired, others: Iterable[Fired]) -> Fired | Clear:
    """The finding without the profiled kernels and loops of which one of the rules that it yields to speaks.

    It does not matter whether those give way themselves, to another rule or to a suppressor: so no order does.
    """
    profiles: set[int] = set()
    loops: set[int | None] = set()
    for row in (row for other in others for row in other.rows):
        if row.get("profiles"):
            profiles.update(row["profiles"])
        else:
            loops.add(row.get("loop"))
    rows: list[Row] = []
    for row in finding.rows:
        left = less(row, {"profiles": profiles}, finding.rule) if row.get("profiles") else row
        if left is not None and (row.get("profiles") or row.get("loop") not in loops):
            rows.append(left)
    if not rows:
        return Clear(rule=finding.rule, gaps=finding.gaps)
    return Fired(rule=finding.rule, rows=tuple(rows), gaps=finding.gaps)
