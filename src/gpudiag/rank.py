"""Outcomes → one ordered list of findings, priced together so that no microsecond is promised twice."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb

from gpudiag.evaluate import Evaluation, message, plain
from gpudiag.library import Library
from gpudiag.model import (
    SEVERITIES,
    Basis,
    Finding,
    Fired,
    Framework,
    Gain,
    GainKind,
    Loop,
    Place,
    Remedy,
    Row,
    Rule,
)
from gpudiag.replay import bounds
from gpudiag.templating import render
from gpudiag.where import places

Connection = duckdb.DuckDBPyConnection

_NOT_EVIDENCE = {
    "loop",
    "share",
    "recoverable",
    "nvtx_path",
    "callsite",
    "api_calls",
    "gpu_ops",
    "ranges",
    "profiles",
    "pieces",
}


@dataclass(slots=True)
class _Priced:
    """One (code, loop) with what it claims; `weight` is the loop's part of the steady time."""

    rule: Rule
    rows: list[Row]
    loop: Loop | None
    total_ns: float
    claim: bounds.Claim
    weight: float

    @property
    def share(self) -> float:
        return bounds.measure(self.claim, self.total_ns)


def rank(
    con: Connection, evaluation: Evaluation, library: Library, loops: Sequence[Loop], frameworks: Sequence[Framework]
) -> tuple[list[Finding], list[Finding]]:
    """Findings worth acting on, first things first, and those that fired but fall below the reporting gate."""
    priced = _price_all(con, evaluation.fired, loops)
    settings = library.setting_values
    worth: list[_Priced] = []
    minor: list[_Priced] = []
    for item in priced:
        (worth if _worth_listing(item, settings) else minor).append(item)
    ordered = _order(worth, {severity: settings[f"weight_{severity}"] for severity in SEVERITIES})
    minor.sort(key=lambda item: (-item.share * item.weight, item.rule.code))
    cumulative: dict[int | None, bounds.Claim] = {}
    rows_of_loops = {loop.id: loop.model_dump() for loop in loops}
    findings = [
        _finding(con, n, item, evaluation, library, frameworks, cumulative, rows_of_loops)
        for n, item in enumerate(ordered, 1)
    ]
    start = len(ordered) + 1
    small = [
        _finding(con, n, item, evaluation, library, frameworks, {}, rows_of_loops)
        for n, item in enumerate(minor, start)
    ]
    return findings, small


def _price_all(con: Connection, fired: Sequence[Fired], loops: Sequence[Loop]) -> list[_Priced]:
    totals = dict(con.execute("select loop, total_ns from loop_facts").fetchall())
    by_id = {loop.id: loop for loop in loops}
    result: list[_Priced] = []
    for outcome in fired:
        grouped: dict[int | None, list[Row]] = defaultdict(list)
        for row in outcome.rows:
            grouped[row.get("loop")].append(row)
        for loop, rows in grouped.items():
            if loop is None:
                result.append(_price_kernels(outcome.rule, rows))
            elif loop in by_id:
                total = float(totals.get(loop, 0.0))
                claim = bounds.claim(con, outcome.rule, rows, loop, total)
                result.append(_Priced(outcome.rule, rows, by_id[loop], total, claim, by_id[loop].share_of_span))
    return result


def _price_kernels(rule: Rule, rows: list[Row]) -> _Priced:
    """Profiled kernels: `share` is a kernel's part of the profiled time, `recoverable` the part of it that could go."""
    claim: bounds.Claim = {}
    for index, row in enumerate(rows):
        claim[f"kernel:{index}"] = float(row.get("share") or 0.0) * float(row.get("recoverable") or 0.0)
    rows.sort(key=lambda row: -float(row.get("share") or 0.0) * float(row.get("recoverable") or 0.0))
    return _Priced(rule, rows, None, 1.0, claim, 1.0)


def _worth_listing(item: _Priced, settings: Mapping[str, float]) -> bool:
    assert item.rule.price is not None
    if item.rule.price.kind == "test_needed":
        return True
    return item.share * item.weight >= settings["min_share_bound"]


def _order(items: list[_Priced], weights: Mapping[str, float]) -> list[_Priced]:
    """Greedy: each next finding is the one worth most after those before it, weighed by severity."""
    left = list(items)
    taken: dict[int | None, bounds.Claim] = defaultdict(dict)
    ordered: list[_Priced] = []
    while left:
        best = max(left, key=lambda item: _key(item, taken, weights[item.rule.severity]))
        left.remove(best)
        ordered.append(best)
        bounds.merge(taken[best.loop.id if best.loop else None], best.claim)
    return ordered


def _key(
    item: _Priced, taken: Mapping[int | None, bounds.Claim], severity_weight: float
) -> tuple[bool, float, float, int, str]:
    assert item.rule.price is not None
    before = taken.get(item.loop.id if item.loop else None, {})
    merged = dict(before)
    bounds.merge(merged, item.claim)
    marginal = bounds.measure(merged, item.total_ns) - bounds.measure(before, item.total_ns)
    weight = item.weight * severity_weight
    measured = item.rule.price.kind != "test_needed"
    # A finding whose whole claim is already taken still ranks by what it would be worth alone.
    return measured, marginal * weight, item.share * weight, SEVERITIES.index(item.rule.severity), item.rule.code


def _finding(
    con: Connection,
    rank_number: int,
    item: _Priced,
    evaluation: Evaluation,
    library: Library,
    frameworks: Sequence[Framework],
    cumulative: dict[int | None, bounds.Claim],
    loop_rows: Mapping[int, Row],
) -> Finding:
    rule, loop = item.rule, item.loop
    rows = [{**row, "loop": loop.id} if loop else row for row in item.rows]
    where = places(con, rule, rows, loop.id if loop else None)
    reasons = [r for r in (rule.confidence_reason, *evaluation.weakened.get(rule.code, ())) if r]
    confidence = "low" if evaluation.weakened.get(rule.code) else rule.confidence
    key = loop.id if loop else None
    before = cumulative.setdefault(key, {})
    bounds.merge(before, item.claim)
    return Finding(
        rank=rank_number, code=rule.code, id=rule.id, status=rule.status,
        title=render(rule.title, rule, rows, loop_rows.get(loop.id) if loop else None),
        severity=rule.severity, confidence=confidence, confidence_reason=" ".join(dict.fromkeys(reasons)) or None,
        fingerprint=_fingerprint(rule, loop, where),
        gain=_gain(item, before),
        where=where, evidence=_evidence(item.rows), message=message(rule, rows, loop_rows),
        why=rule.why, not_a_problem_when=rule.not_a_problem_when, check=rule.check,
        remedies=_remedies(rule, library, frameworks), references=rule.references,
    )  # fmt: skip


def _gain(item: _Priced, taken: bounds.Claim) -> Gain:
    """Prices are bounds by interval arithmetic until the timeline is re-simulated, and are labelled so.

    taken: what this finding and those before it claim together.
    """
    price = item.rule.price
    assert price is not None
    basis: Basis = "loop" if item.loop else "kernel"
    loop = item.loop.id if item.loop else None
    if price.kind == "test_needed":
        return Gain(kind="test_needed", basis=basis, loop=loop, test=price.test)
    if item.loop:
        traced = item.loop.iteration_ms
        before = item.loop.iteration_ms_unprofiled or traced
        idle = _idle_scale(item.loop)
        after = max(0.0, before - traced * _removed(item.claim, item.total_ns, idle))
        cumulative = max(0.0, before - traced * _removed(taken, item.total_ns, idle))
        share = 1 - after / before
    else:
        worst = item.rows[0]
        share = float(worst.get("recoverable") or 0.0)
        before = float(worst.get("duration_ns") or 0.0) / 1e6
        cumulative = None
        after = before * (1 - share)
    kind: GainKind = "lower_bound" if price.kind == "lower_bound" else "upper_bound"
    return Gain(
        kind=kind, basis=basis, loop=loop, before_ms=before, after_ms=after, low_ms=after, high_ms=before,
        speedup=before / after if after > 0 else None, share=share, cumulative_after_ms=cumulative,
    )  # fmt: skip


def _idle_scale(loop: Loop) -> float:
    """How much of the traced idle time is left without the profiler, which slows only the host."""
    if loop.iteration_ms_unprofiled is None:
        return 1.0
    idle = loop.iteration_ms * sum(share for kind, share in loop.budget.items() if kind.startswith("idle"))
    return max(0.0, min(1.0, 1 - (loop.iteration_ms - loop.iteration_ms_unprofiled) / idle)) if idle > 0 else 1.0


def _removed(claim: bounds.Claim, total_ns: float, idle_scale: float) -> float:
    """The part of the traced loop that a claim removes once idle time is scaled; busy time is not the profiler's."""
    if total_ns <= 0:
        return 0.0
    idle = sum(ns for key, ns in claim.items() if not key.startswith("op:"))
    return min(1.0, (sum(claim.values()) - idle * (1 - idle_scale)) / total_ns)


def _evidence(rows: Sequence[Row]) -> dict[str, object]:
    """The worst row's figures, and how many places there are."""
    facts = {key: plain(value) for key, value in rows[0].items() if key not in _NOT_EVIDENCE and value is not None}
    return {"places": len(rows), **facts}


def _remedies(rule: Rule, library: Library, frameworks: Sequence[Framework]) -> tuple[Remedy, ...]:
    """Each remedy for the first framework seen that it has a section for, else in general; never another's code."""
    result: list[Remedy] = []
    for name in rule.remedies:
        text = library.remedies.get(name)
        if text is None:
            continue
        framework: Framework = next((f for f in (*frameworks, "any") if f in text.sections), "any")
        section = text.sections.get(framework, "")
        body = f"{text.intro}\n\n{section}".strip()
        result.append(Remedy(id=text.id, title=text.title, framework=framework, text=body))
    return tuple(result)


def _fingerprint(rule: Rule, loop: Loop | None, where: Sequence[Place]) -> str:
    """Stable over runs: no times, no line numbers, no order."""
    sites = sorted(
        {f"{(p.file or '').rsplit('/', 1)[-1]}:{p.function or ''}:{p.nvtx or ''}:{p.kernel or ''}" for p in where}
    )
    text = "|".join([rule.code, (loop.nvtx_path or loop.name) if loop else "", *sites])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
