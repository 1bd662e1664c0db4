"""The promise on real captures. First findings, places and false alarms are the scorecard's (docs/accuracy.json)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from captures import labelled, report_of
from evaluation.corpus import Case
from evaluation.packed import page, stem
from evaluation.scoring import score
from gpudiag.model import Finding, Report

pytestmark = pytest.mark.capture


@pytest.mark.parametrize("case", labelled("slow"), ids=str)
def test_fixes_are_in_the_programs_own_framework(case: Case) -> None:
    findings = report_of(*case.captures).findings
    stack = {"cuda": {"cuda", "any"}}.get(case.stack, {case.stack, "any"})
    if case.kernel_page:
        stack |= {"cuda", "any"}  # a kernel profile does not say what launched it
    assert {remedy.framework for finding in findings[:1] for remedy in finding.remedies} <= stack


@pytest.mark.parametrize("case", labelled("fixed"), ids=str)
def test_the_cause_is_gone_or_far_smaller_once_fixed(case: Case) -> None:
    for slow in labelled("slow"):
        fixed_by = slow.expect.get("fixed_by") or []
        if slow.slug != case.slug or case.variant not in (fixed_by if isinstance(fixed_by, list) else [fixed_by]):
            continue
        top = slow.expect["top"]
        before = claimed(report_of(*slow.captures), top)
        captures = case.captures
        if slow.kernel_page:
            captures = tuple(page(path.with_name(f"{stem(path)}.raw.csv")) for path in captures)
        after = claimed(report_of(*captures), top)
        assert after <= before / 2, f"{top} claimed {before:.3g} ms before the fix and still {after:.3g} ms after it"


def claimed(report: Report, code: str) -> float:
    """The time of a recorded iteration (of a kernel: of a launch) that findings with this code say could go (ms)."""
    recorded: Mapping[int | None, float] = {loop.id: loop.iteration_ms for loop in report.run.loops}
    return max((saved(finding, recorded) for finding in report.findings if finding.code == code), default=0.0)


def saved(finding: Finding, recorded: Mapping[int | None, float]) -> float:
    gain = finding.gain
    before = recorded.get(gain.loop, gain.before_ms)
    return gain.share * before if before is not None else 0.0


@pytest.mark.parametrize("case", labelled("healthy"), ids=str)
def test_healthy_programs_stay_quiet(case: Case) -> None:
    report = report_of(*case.captures)
    advice = [finding for finding in report.findings if finding.gain.kind == "test_needed"]  # "is FP64 needed?"
    assert report.verdict.state == ("problems" if advice else "healthy")
    assert score(case, report).alarms == ()
