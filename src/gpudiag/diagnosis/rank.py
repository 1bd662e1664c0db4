"""Outcomes → one ordered list of findings, priced together so that no microsecond is promised twice."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb

from gpudiag.diagnosis import kernels, loop_names, order, phases
from gpudiag.diagnosis.source_location import LOOKED_AT, places
from gpudiag.evaluate.engine import Evaluation, plain
from gpudiag.evaluate.rule_sentences import message, title
from gpudiag.library.catalogue import Library
from gpudiag.model import (
    EvidenceItem,
    EvidenceLabel,
    Finding,
    Fired,
    Framework,
    Gain,
    Loop,
    Place,
    Remedy,
    RemedyGain,
    Row,
    Rule,
)
from gpudiag.model.vocabulary import FRAMEWORKS
from gpudiag.replay import bounds
from gpudiag.replay.gains import GainCalculator, gain
from gpudiag.replay.priced_finding import PricedFinding
from gpudiag.text import former_evidence, iteration_words
from gpudiag.text.stated import choosing, stated, summed
from gpudiag.text.template_rows import totals

Connection = duckdb.DuckDBPyConnection

_LOOKS = 100  # rows whose lines are looked for, shared out by rank: hundreds of findings would take minutes
NOT_EVIDENCE = {
    "loop",
    "share",
    "share_low",
    "share_high",
    "recoverable",
    "recoverable_low",
    "recoverable_high",
    "nvtx_path",
    "api_calls",
    "added_between_ns",
    "gpu_ops",
    "ranges",
    "profiles",
    "idle_intervals",
    "remedies",
    "how_often",
    "pool",
    "tiny",
}
_PLACES = EvidenceItem(label="places", unit="count")
_PYTHON = frozenset(key for key, words in FRAMEWORKS.items() if words.in_python)


def rank(
    con: Connection,
    evaluation: Evaluation,
    library: Library,
    loops: Sequence[Loop],
    frameworks: Sequence[Framework],
    ledger: GainCalculator | None = None,
) -> tuple[list[Finding], list[Finding]]:
    """Return findings worth acting on, the most important first; and those below the reporting gate."""
    settings = library.setting_values
    ledger = ledger or GainCalculator(con, settings, loops)
    worth: list[PricedFinding] = []
    minor: list[PricedFinding] = []
    for item in _price_all(ledger, evaluation.fired, loops):
        (worth if _worth_listing(item, settings) else minor).append(item)
    ordered = order.by_worth(ledger, worth, minor, settings)
    minor.sort(key=lambda item: (-item.share * item.weight, item.rule.code))
    rows_of_loops = {loop.id: loop.model_dump() for loop in loops}

    def finding(number: int, item: PricedFinding, left: Sequence[float]) -> Finding:
        own = ledger.of_remedies(item)
        remedies = _remedies(item.rule, item.rows, library, frameworks, own)
        above = [other for other, *_ in ordered[: number - 1]]
        made = _finding(con, number, item, left, evaluation, remedies, rows_of_loops)
        made = made.model_copy(update={"references": _references(item.rule, frameworks)})
        if number > len(ordered):
            return made
        cause = order.cause(item, above, settings["same_time_share"])
        return made.model_copy(
            update={
                "after": tuple(o.rule.code for o in above if o.key == item.key and o.rule.code in item.rule.after),
                "caused_by": above.index(cause) + 1 if cause else None,
                "phase": phases.of_finding(con, item, settings["phase_part"]),
                "process": phases.process_of(con, item, settings["phase_part"]),
            }
        )

    findings = [finding(number, item, left) for number, (item, *left) in enumerate(ordered, 1)]
    small = [finding(number, item, (1.0, 1 - item.own_share)) for number, item in enumerate(minor, len(ordered) + 1)]
    return marked(findings, settings), marked(small, settings)


def marked(findings: Iterable[Finding], settings: Mapping[str, float]) -> list[Finding]:
    """The findings, those whose gain may be next to nothing marked as uncertain: pages then say `perhaps`."""
    return [
        finding.model_copy(update={"gain": finding.gain.model_copy(update={"uncertain": True})})
        if _uncertain(finding.gain, settings)
        else finding
        for finding in findings
    ]


def _uncertain(gain: Gain, settings: Mapping[str, float]) -> bool:
    if gain.kind != "expected" or gain.interval is None:
        return False
    least, most = gain.interval
    return least < settings["range_first"] and most - least > settings["wide_interval"]


def _price_all(ledger: GainCalculator, fired: Sequence[Fired], loops: Sequence[Loop]) -> list[PricedFinding]:
    totals = dict(ledger.con.execute("select loop, total_ns from loop_facts").fetchall())
    by_id = {loop.id: loop for loop in loops}
    result: list[PricedFinding] = []
    for outcome in fired:
        grouped: dict[int | None, list[Row]] = defaultdict(list)
        for row in kernels.placed(ledger.con, outcome.rows):
            grouped[row.get("loop")].append(row)
        for loop, rows in grouped.items():
            if loop is None:
                result.append(_price_kernels(outcome.rule, rows, beside_loops=bool(loops)))
            elif loop in by_id:
                result.append(ledger.item(outcome.rule, rows, by_id[loop], float(totals.get(loop, 0.0))))
    return result


def _price_kernels(rule: Rule, rows: list[Row], beside_loops: bool) -> PricedFinding:
    """Profiled kernels: `share` is a kernel's part of the profiled time, `recoverable` the part of it that could go.

    beside_loops: a timeline is given too and shows none of these kernels in its loops, so they do not matter to them.
    """
    claim: bounds.Claim = {}
    for index, row in enumerate(rows):
        claim[f"kernel:{index}"] = float(row.get("share") or 0.0) * float(row.get("recoverable") or 0.0)
    rows.sort(key=lambda row: -float(row.get("share") or 0.0) * float(row.get("recoverable") or 0.0))
    return PricedFinding(rule, rows, None, 1.0, claim, 0.0 if beside_loops else 1.0)


def _worth_listing(item: PricedFinding, settings: Mapping[str, float]) -> bool:
    assert item.rule.price is not None
    if item.untested:
        return True
    sure = item.expected or item.rule.price.kind == "lower_bound"
    gate = settings["min_share_expected" if sure else "min_share_bound"]
    if item.loop is None and item.weight:  # which kernels were profiled is chance: each counts by itself
        least = settings["kernel_section_share"]
        return any(_part(row, "share") >= least and _part(row, "recoverable") >= gate for row in item.rows)
    settled = item.price.settled if item.price else None
    # What is left of a gain once the profiler's own cost is taken out.
    share = item.share if settled is None else min(item.share, 1 - settled)
    return share * item.weight >= gate


def _part(row: Row, name: str) -> float:
    return float(row.get(name) or 0.0)


def _finding(
    con: Connection,
    rank_number: int,
    item: PricedFinding,
    left: Sequence[float],
    evaluation: Evaluation,
    remedies: Sequence[Remedy],
    loop_rows: Mapping[int, Row],
) -> Finding:
    rule, loop = item.rule, item.loop
    rows = [{**row, "loop": loop.id} if loop else row for row in item.rows]
    looked_at = max(1, min(LOOKED_AT, _LOOKS // rank_number))
    where = places(con, rule, rows, loop.id if loop else None, looked_at)
    reasons = [r for r in (rule.confidence_reason, *evaluation.weakened.get(rule.code, ())) if r]
    confidence = "low" if evaluation.weakened.get(rule.code) else rule.confidence
    evidence, loop_row = _evidence(rule, item.rows), loop_rows.get(loop.id) if loop else None
    return Finding(
        rank=rank_number, code=rule.code, id=rule.id, status=rule.status,
        title=title(rule, rows, loop_rows),
        severity=rule.severity, confidence=confidence, confidence_reason=" ".join(dict.fromkeys(reasons)) or None,
        fingerprint=fingerprint(rule, loop, where),
        gain=gain(item, left[1], left[0]),
        where=where, evidence=evidence, evidence_labels=_labels(rule, rows, loop_row, evidence),
        message=message(rule, rows, loop_rows),
        **_authored(rule, loop),
        remedies=tuple(remedies),
    )  # fmt: skip


def _authored(rule: Rule, loop: Loop | None) -> dict[str, Any]:
    """Return what the rule says of every program, in words of the run where nothing repeats."""
    texts = {name: getattr(rule, name) for name in ("why", "question", "not_a_problem_when", "check")}
    if loop is None or loop.source != "unknown":
        return texts
    return {name: iteration_words.of_run(text) if text else text for name, text in texts.items()}


def _evidence(rule: Rule, rows: Sequence[Row]) -> dict[str, object]:
    """The worst row's figures, how many places there are, and of several the sums that the message tells."""
    facts = {key: plain(value) for key, value in rows[0].items() if key not in NOT_EVIDENCE and value is not None}
    if len(rows) == 1:
        return {"places": 1, **facts}
    sums = totals(rows)
    summary = {key: sums[key] for key in sorted(summed(rule.message)) if key in sums and key in facts}
    return {"places": len(rows), **facts, **({"totals": summary} if summary else {})}


def _labels(
    rule: Rule, rows: Sequence[Row], loop: Row | None, evidence: Mapping[str, object]
) -> dict[str, EvidenceLabel]:
    """The label and unit of each figure that the rule declares, and whether its message states the figure."""
    if rule.evidence is None:
        return {}
    items = {"places": _PLACES, **rule.evidence}
    known = {key: items[key] or former_evidence.guess(key, evidence[key]) for key in evidence if key in items}
    prints, chooses = stated(rule.message, rule, rows, loop), choosing(rule.message)
    return {
        key: EvidenceLabel(
            label=item.label, unit=item.unit, in_message=key in prints or (item.unit == "yes_no" and key in chooses)
        )
        for key, item in known.items()
        if item
    }


def _remedies(
    rule: Rule,
    rows: Sequence[Row],
    library: Library,
    frameworks: Sequence[Framework],
    gains: Mapping[str, RemedyGain],
) -> tuple[Remedy, ...]:
    """Each remedy for the first framework seen that it has a section for, else in general; never another's code.

    Where the worst row says which remedies its evidence allows, only those, in its order.
    """
    python: tuple[Framework, ...] = ("python",) if _PYTHON & {*frameworks} else ()
    known: tuple[Framework, ...] = (*frameworks, *python, "any")
    result: list[Remedy] = []
    for name in rows[0].get("remedies") or rule.remedies:
        text = library.remedies.get(name)
        if text is None or name not in rule.remedies:
            continue
        framework: Framework = next((f for f in known if f in text.sections), "any")
        result.append(text.remedy(framework, gains.get(name)))
    return tuple(result)


def _references(rule: Rule, frameworks: Sequence[Framework]) -> tuple[str, ...]:
    """Return what the rule names to read, without pages of frameworks that are not used, where those used are known."""
    other = [words.docs for name, words in FRAMEWORKS.items() if words.docs and name not in frameworks]
    begin = tuple(f"https://{docs}/" for docs in other) if frameworks else ()
    return tuple(link for link in rule.references if not link.startswith(begin))


def fingerprint(rule: Rule, loop: Loop | None, where: Sequence[Place]) -> str:
    """Stable over runs: no times, no line numbers, no order."""
    sites = sorted(
        {f"{(p.file or '').rsplit('/', 1)[-1]}:{p.function or ''}:{p.nvtx or ''}:{p.kernel or ''}" for p in where}
    )
    text = "|".join([rule.code, loop_names.stable(loop) if loop else "", *sites])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
