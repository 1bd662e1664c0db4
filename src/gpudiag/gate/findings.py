"""Each finding of a report: does it fail, is it known, suppressed or allowed, or below the limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from gpudiag.gate import known, suppression
from gpudiag.gate.config import Config, Findings, Suppression
from gpudiag.gate.result import Baseline, FindingCheck, KnownFinding
from gpudiag.model import SEVERITIES, Finding, Report
from gpudiag.templating import pct


def check_findings(
    config: Config, report: Report, baseline: Baseline | None, settings: Mapping[str, float], today: date
) -> tuple[FindingCheck, ...]:
    """Every finding of the report, in its order."""
    familiar = known.matched(report, baseline or Baseline())
    accepted = suppression.live(config.findings.suppress, today)
    checks = []
    for index, finding in enumerate(report.findings):
        before = familiar.get(index)
        state, reason = _judged(finding, report, config.findings, accepted, before, baseline is not None, settings)
        checks.append(
            FindingCheck.model_validate(
                {
                    "state": state,
                    "reason": reason,
                    **{key: getattr(finding, key) for key in ("rank", "code", "title", "severity", "fingerprint")},
                    "loop": known.loop_name(finding, report),
                    "worth": known.worth(finding, report),
                    "gain": finding.gain.kind,
                    "basis": finding.gain.basis,
                    "where": finding.where,
                    "since": before.since if before else None,
                    "known_worth": before.worth if before else None,
                }
            )
        )
    return tuple(checks)


def _judged(
    finding: Finding,
    report: Report,
    gate: Findings,
    accepted: Sequence[Suppression],
    before: KnownFinding | None,
    with_baseline: bool,
    settings: Mapping[str, float],
) -> tuple[str, str]:
    """State and reason. What a person wrote down comes before what is measured."""
    if finding.status == "deprecated":
        return "passed", "its rule is deprecated"
    if finding.code in gate.allow:
        return "allowed", f"{finding.code} is allowed"
    mine = [one for one in accepted if any(suppression.covers(one, finding))]
    covered = [any(place) for place in zip(*(suppression.covers(one, finding) for one in mine), strict=True)]
    if covered and all(covered):
        reasons = dict.fromkeys(f"{one.reason.rstrip('.')} (until {one.until})" for one in mine)
        return "suppressed", "; ".join(reasons)
    reached = _reached(finding, report, gate, with_baseline)
    if not reached:
        return "passed", _passes(finding, gate)
    if before:
        now = known.worth(finding, report)
        if not known.grew(now, before.worth, settings):
            return "known", f"known since {before.since}"
        return "failed", f"known since {before.since}, but it grew from {pct(before.worth)} to {pct(now)}; {reached}"
    partly = f"; suppressed at {sum(covered)} of its {len(covered)} places only" if covered else ""
    return "failed", f"{'not in the baseline; ' if with_baseline else ''}{reached}{partly}"


def _reached(finding: Finding, report: Report, gate: Findings, with_baseline: bool) -> str:
    """The limit that the finding goes beyond, in words; empty if none. A baseline alone lets nothing new pass."""
    if gate.fail_on is None and gate.max_gain is None:
        return "no new finding may appear" if with_baseline else ""
    if gate.fail_on is not None and SEVERITIES.index(finding.severity) >= SEVERITIES.index(gate.fail_on):
        return f'severity {finding.severity}, and `fail_on = "{gate.fail_on}"`'
    worth = known.worth(finding, report)
    if gate.max_gain is not None and worth is not None and worth > gate.max_gain:
        return f"worth {pct(worth)}, and `max_gain` is {pct(gate.max_gain)}"
    return ""


def _passes(finding: Finding, gate: Findings) -> str:
    if gate.fail_on is None and gate.max_gain is None:
        return "no limit on findings is set"
    if gate.max_gain is not None and finding.gain.kind == "test_needed":
        return "only an experiment can tell what it is worth, so `max_gain` cannot judge it"
    return "below the limits"


def updated(
    config: Config, report: Report, before: Baseline, settings: Mapping[str, float], today: date
) -> tuple[KnownFinding, ...]:
    """What the baseline should hold: every finding that would fail, those known that are still there or were not
    looked for; nothing suppressed, allowed or below the limits.
    """
    checks = check_findings(config, report, before, settings, today)
    familiar = known.matched(report, before)
    kept = []
    for index, (finding, check) in enumerate(zip(report.findings, checks, strict=True)):
        entry = familiar.get(index)
        if check.state in ("failed", "known") or (check.state == "passed" and entry):
            grown = known.grew(check.worth, check.known_worth, settings)
            kept.append(known.entry(finding, report, entry, grown, today))
    _, unseen, small = absent(report, before)
    return (*kept, *unseen, *small)


def absent(
    report: Report, baseline: Baseline
) -> tuple[tuple[KnownFinding, ...], tuple[KnownFinding, ...], tuple[KnownFinding, ...]]:
    """Known findings that the report does not list: gone; not looked for; there, but too small to be listed."""
    listed = known.matched(report, baseline)
    small = tuple(entry for index, entry in listed.items() if index >= len(report.findings))
    rest = [entry for entry in baseline.findings if not any(entry is other for other in listed.values())]
    blind = {item.code for item in report.not_evaluated} | {item.code for item in report.suppressed}
    gone = tuple(entry for entry in rest if entry.code not in blind and report.verdict.state != "cannot_tell")
    unseen = tuple(entry for entry in rest if entry not in gone)
    return gone, unseen, small
