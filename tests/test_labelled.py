"""The promise on real captures: the planted cause comes first, healthy programs stay quiet, and the place is right."""

from __future__ import annotations

import pytest

from captures import Labelled, labelled, line_of, report_of
from gpudiag.model import Report

ABOVE = 0.05  # design §6: a finding counts as above 5 % when its share of the loop times the loop's part exceeds this


def worth(report: Report) -> list[str]:
    """Codes of findings above 5 % of the steady state, in rank order."""
    parts = {loop.id: loop.share_of_span for loop in report.run.loops}
    return [f.code for f in report.findings if f.gain.share * parts.get(f.gain.loop or 0, 1.0) > ABOVE]


@pytest.mark.parametrize("case", labelled("slow"), ids=str)
def test_the_planted_cause_is_ranked_first(case: Labelled) -> None:
    first = report_of(case.capture).findings[0]
    assert first.code in [case.expect["top"], *case.expect.get("alternates", [])]


@pytest.mark.parametrize("case", labelled("slow"), ids=str)
def test_fixes_are_in_the_programs_own_framework(case: Labelled) -> None:
    report = report_of(case.capture)
    stack = {"cuda": {"cuda", "any"}}.get(case.stack, {case.stack, "any"})
    if case.capture.name.endswith(".csv.xz"):
        stack |= {"cuda", "any"}  # a kernel profile does not say what launched it
    assert {remedy.framework for remedy in report.findings[0].remedies} <= stack


@pytest.mark.parametrize("case", labelled("slow"), ids=str)
def test_nothing_is_said_that_must_not_be(case: Labelled) -> None:
    said = {finding.code for finding in report_of(case.capture).findings}
    assert not said & set(case.expect.get("must_not", []))


@pytest.mark.parametrize("case", labelled("fixed"), ids=str)
def test_the_cause_is_gone_or_far_smaller_once_fixed(case: Labelled) -> None:
    for slow in labelled("slow"):
        fixed_by = slow.expect["fixed_by"]
        if slow.slug != case.slug or case.variant not in (fixed_by if isinstance(fixed_by, list) else [fixed_by]):
            continue
        top = slow.expect["top"]
        before = next((f.gain.share for f in report_of(slow.capture).findings if f.code == top), 0.0)
        capture = case.capture
        if slow.capture.name.endswith(".csv.xz"):
            capture = capture.with_name(capture.name.replace("sqlite.xz", "raw.csv.xz"))
        after = max((f.gain.share for f in report_of(capture).findings if f.code == top), default=0.0)
        assert after <= before / 2, f"{top} claimed {before:.0%} before the fix and still {after:.0%} after it"


@pytest.mark.parametrize("case", labelled("healthy"), ids=str)
def test_healthy_programs_stay_quiet(case: Labelled) -> None:
    report = report_of(case.capture)
    assert report.verdict.state == "healthy"
    assert worth(report) == []


def with_samples() -> list[Labelled]:
    """Slow variants whose planted line is Python and whose cause is on the host, so that samples can name the line."""
    cases = labelled("slow")
    return [c for c in cases if c.expect["place"]["file"].endswith(".py") and c.expect["top"][0] in "HSADM"]


@pytest.mark.parametrize("case", with_samples(), ids=str)
def test_the_first_finding_points_at_the_planted_lines(case: Labelled) -> None:
    place = case.expect["place"]
    wanted = line_of(place)
    named = [p for p in report_of(case.capture).findings[0].where if p.line is not None]
    assert named, "no line was named"
    assert named[0].file is not None and named[0].file.endswith(place["file"])
    assert named[0].function in place.get("functions", []) or abs((named[0].line or 0) - wanted) <= 8
