"""A report against a configuration: the whole check, and the baseline that would let it pass."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from datetime import date

from gpudiag import __version__
from gpudiag.gate import baseline as baselines
from gpudiag.gate import findings
from gpudiag.gate.baseline import absent, doubted
from gpudiag.gate.budgets import check_budgets
from gpudiag.gate.config import Config, Findings
from gpudiag.gate.result import Baseline, CheckResult, UnknownRule
from gpudiag.model import Report, Tool


def check(
    report: Report,
    config: Config,
    baseline: Baseline | None,
    settings: Mapping[str, float],
    budget_parts: Mapping[str, Sequence[str]],
    today: date,
    *,
    files: Sequence[str] = (),
    config_name: str | None = None,
    baseline_name: str | None = None,
    codes: Collection[str] = (),
) -> CheckResult:
    """Check the report and return what was checked and what failed. today: the day on which suppressions are looked at;
    codes: of all rules there are, if the configuration's are to be looked up; budget_parts: by a rule's code, the parts
    of the time budget that its findings explain.
    """
    baselines.tell_former(report, baseline or Baseline())
    budgets = check_budgets(config, report, settings)
    judged = findings.check_findings(config, report, baseline, settings, today)
    missing = absent(report, baseline or Baseline())
    strict = config.missing == "fail"
    unchecked = report.verdict.state == "cannot_tell" or any(one.state == "unknown" for one in budgets)
    failed = any(one.state == "broken" for one in budgets) or any(one.state == "failed" for one in judged)
    passed = not (failed or (strict and unchecked))
    everything = (*report.findings, *report.minor)
    notice = settings["suppression_notice_days"]
    return CheckResult(
        tool=Tool(version=__version__),
        passed=passed,
        files=tuple(files),
        config=config_name,
        baseline=baseline_name,
        verdict=report.verdict,
        unchecked_fails=strict,
        budgets=budgets,
        findings=judged,
        gone=tuple(
            doubted(entry, report, budget_parts.get(entry.code, ()), settings, failed=not passed)
            for entry in missing.gone
        ),
        unseen=missing.unseen,
        suppressions=tuple(baselines.remarkable(config.findings.suppress, everything, today, notice)),
        unknown_rules=_unknown_rules(config.findings, {*codes, *(one.code for one in everything)} if codes else ()),
        not_evaluated=len(report.not_evaluated),
    )


def updated_baseline(
    report: Report,
    config: Config,
    before: Baseline | None,
    settings: Mapping[str, float],
    budget_parts: Mapping[str, Sequence[str]],
    today: date,
) -> Baseline:
    """The baseline with which no finding of this report fails. What may only be hidden stays in it."""
    before = before or Baseline()
    missing = absent(report, before)
    failed = not check(report, config, before, settings, budget_parts, today).passed
    hidden = [
        entry
        for entry in missing.gone
        if doubted(entry, report, budget_parts.get(entry.code, ()), settings, failed=failed).doubt != "none"
    ]
    kept = findings.accepted(config, report, before, settings, today)
    return baselines.ordered((*kept, *missing.unseen, *missing.small, *hidden))


def pruned_baseline(report: Report, before: Baseline) -> Baseline:
    """The baseline without what is gone; nothing else changes."""
    gone = absent(report, before).gone
    return Baseline(findings=tuple(one for one in before.findings if not any(one is other for other in gone)))


def _unknown_rules(gate: Findings, codes: Collection[str]) -> tuple[UnknownRule, ...]:
    named = [("findings.allow", code) for code in gate.allow]
    named += [("findings.suppress", one.code) for one in gate.suppress]
    return tuple(
        UnknownRule.model_validate({"key": key, "code": code, "meant": difflib.get_close_matches(code, codes)})
        for key, code in dict.fromkeys(named)
        if codes and code not in codes
    )
