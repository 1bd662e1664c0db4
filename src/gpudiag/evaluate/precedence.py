"""Precedence: a finding gives way to those that name the cause more closely, and to what was not recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpudiag.evaluate.rule_sentences import by_loop
from gpudiag.evaluate.suppression import less
from gpudiag.model import Clear, Fired, NotEvaluated, Outcome, Row
from gpudiag.text.format import clause


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


def unless_forbidden(outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
    """The outcomes, but not evaluated where a hygiene rule leaves too little for those that it weakens."""
    reasons = {
        code: f"{clause(note.rule.title)} ({note.rule.code})"
        for note in outcomes
        if isinstance(note, Fired) and any(row.get("forbids_findings") is True for row in note.rows)
        for code in note.rule.weakens
    }
    return [
        NotEvaluated(rule=outcome.rule, reason=reasons[outcome.rule.code])
        if outcome.rule.code in reasons and isinstance(outcome, Fired | Clear)
        else outcome
        for outcome in outcomes
    ]


def forbidding(hygiene: Fired, what: str) -> list[list[Row]]:
    """Rows, by loop, that leave too little to call a timeline healthy, or to find anything in it."""
    groups = by_loop(hygiene.rows).values()
    return [rows for rows in groups if any(row.get(what) is True for row in rows)]
