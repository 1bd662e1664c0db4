"""A report against a configuration: the whole check, and the baseline that would let it pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from gpudiag import __version__
from gpudiag.gate import findings, known, suppression
from gpudiag.gate.budgets import check_budgets
from gpudiag.gate.config import Config
from gpudiag.gate.result import Baseline, CheckResult
from gpudiag.model import Report, Tool


def check(
    report: Report,
    config: Config,
    baseline: Baseline | None,
    settings: Mapping[str, float],
    today: date,
    *,
    files: Sequence[str] = (),
    config_name: str | None = None,
    baseline_name: str | None = None,
) -> CheckResult:
    """What was checked and what failed. today: the day on which suppressions are looked at."""
    budgets = check_budgets(config, report)
    judged = findings.check_findings(config, report, baseline, settings, today)
    gone, unseen, _ = findings.absent(report, baseline or Baseline())
    strict = config.missing == "fail"
    unchecked = report.verdict.state == "cannot_tell" or any(one.state == "unknown" for one in budgets)
    failed = any(one.state == "broken" for one in budgets) or any(one.state == "failed" for one in judged)
    everything = (*report.findings, *report.minor)
    return CheckResult(
        tool=Tool(version=__version__),
        passed=not (failed or (strict and unchecked)),
        files=tuple(files),
        config=config_name,
        baseline=baseline_name,
        verdict=report.verdict,
        unchecked_fails=strict,
        budgets=budgets,
        findings=judged,
        gone=gone,
        unseen=unseen,
        suppressions=tuple(suppression.idle(config.findings.suppress, everything, today)),
        not_evaluated=len(report.not_evaluated),
    )


def updated_baseline(
    report: Report, config: Config, before: Baseline | None, settings: Mapping[str, float], today: date
) -> Baseline:
    """The baseline with which no finding of this report fails."""
    return known.ordered(findings.updated(config, report, before or Baseline(), settings, today))
