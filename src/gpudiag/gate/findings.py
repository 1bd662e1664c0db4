"""Each finding of a report: does it fail, is it known, suppressed or allowed, or below the limits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from gpudiag.gate import baseline as baselines
from gpudiag.gate.config import Config, Findings
from gpudiag.gate.result import Baseline, FindingCheck, KnownFinding
from gpudiag.model import SEVERITIES, Finding, Report
from gpudiag.text.format import pct


def check_findings(
    config: Config, report: Report, baseline: Baseline | None, settings: Mapping[str, float], today: date
) -> tuple[FindingCheck, ...]:
    """Every finding of the report, in its order."""
    familiar = baselines.matched(report, baseline or Baseline())
    checks = []
    for index, finding in enumerate(report.findings):
        before = familiar.get(index)
        state, reason = _judged(finding, report, config.findings, before, baseline is not None, settings, today)
        checks.append(
            FindingCheck.model_validate(
                {
                    "state": state,
                    "reason": reason,
                    **{key: getattr(finding, key) for key in ("rank", "code", "title", "severity", "fingerprint")},
                    "loop": baselines.loop_name(finding, report),
                    "worth": baselines.worth(finding, report),
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
    before: KnownFinding | None,
    with_baseline: bool,
    settings: Mapping[str, float],
    today: date,
) -> tuple[str, str]:
    """State and reason. What a person wrote down comes before what is measured."""
    if finding.status == "deprecated":
        return "passed", "its rule is deprecated"
    if finding.code in gate.allow:
        return "allowed", f"{finding.code} is allowed"
    matching = [one for one in gate.suppress if any(baselines.covers(one, finding))]
    mine = baselines.live(matching, today)
    covered = [any(place) for place in zip(*(baselines.covers(one, finding) for one in mine), strict=True)]
    if covered and all(covered):
        reasons = dict.fromkeys(f"{one.reason.rstrip('.')} (until {one.until})" for one in mine)
        return "suppressed", "; ".join(reasons)
    reached = _reached(finding, report, gate, with_baseline)
    if not reached:
        return "passed", _passes(finding, gate)
    if before:
        now = baselines.worth(finding, report)
        if not baselines.grew(now, before.worth, settings):
            return "known", f"known since {before.since}"
        return "failed", f"known since {before.since}, but it grew from {pct(before.worth)} to {pct(now)}; {reached}"
    over = max((one.until for one in matching if one not in mine), default=None)
    expired = f"its suppression expired on {over}; " if over else ""
    partly = f"; suppressed at {sum(covered)} of its {len(covered)} places only" if covered else ""
    return "failed", f"{expired}{'not in the baseline; ' if with_baseline else ''}{reached}{partly}"


def _reached(finding: Finding, report: Report, gate: Findings, with_baseline: bool) -> str:
    """The limit that the finding goes beyond, in words; empty if none. A baseline alone lets nothing new pass."""
    if gate.fail_on is None and gate.max_gain is None:
        return "no new finding may appear" if with_baseline else ""
    if gate.fail_on is not None and SEVERITIES.index(finding.severity) >= SEVERITIES.index(gate.fail_on):
        return f'severity {finding.severity}, and `fail_on = "{gate.fail_on}"`'
    worth = baselines.worth(finding, report)
    if gate.max_gain is not None and worth is not None and worth > gate.max_gain:
        return f"worth {pct(worth)}, and `max_gain` is {pct(gate.max_gain)}"
    return ""


def _passes(finding: Finding, gate: Findings) -> str:
    if gate.fail_on is None and gate.max_gain is None:
        return "no limit on findings is set"
    if gate.max_gain is not None and finding.gain.kind == "test_needed":
        return "only an experiment can tell what it is worth, so `max_gain` cannot judge it"
    return "below the limits"


def accepted(
    config: Config, report: Report, before: Baseline, settings: Mapping[str, float], today: date
) -> tuple[KnownFinding, ...]:
    """Every finding that would fail, and those known that are still there; nothing suppressed, allowed or below the
    limits.
    """
    checks = check_findings(config, report, before, settings, today)
    familiar = baselines.matched(report, before)
    kept = []
    for index, (finding, check) in enumerate(zip(report.findings, checks, strict=True)):
        entry = familiar.get(index)
        if check.state in ("failed", "known") or (check.state == "passed" and entry):
            grown = baselines.grew(check.worth, check.known_worth, settings)
            kept.append(baselines.entry(finding, report, entry, grown, today))
    return tuple(kept)
