"""What is listed before what it needs, and how much of a bound counts. Synthetic."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpudiag.diagnosis import run_summary
from gpudiag.diagnosis.order import by_worth
from gpudiag.diagnosis.rank import rank
from gpudiag.evaluate.engine import Evaluation
from gpudiag.model import Finding, Fired, Loop, Row, Rule
from gpudiag.replay.estimate import Estimate
from gpudiag.replay.gains import AppliedFixes
from gpudiag.replay.priced_finding import PricedFinding
from ranking import VIEWS, program, rule
from timelines import Case, library, opened

EXPECTED: dict[str, Any] = {
    "price": {"kind": "expected", "on": "idle_intervals", "expected": ["to_workers"], "high": ["drop_range"]}
}


def found(*fired: tuple[Rule, list[int]], case: Case | None = None, share: float = 0.0) -> list[Finding]:
    with opened(case or program(), *VIEWS, "loop_tree") as con:
        run = run_summary.run(con, library().setting_values, {})
        rows: list[list[Row]] = [[{"loop": 0, "idle_intervals": numbers, "share": share}] for _, numbers in fired]
        outcomes = tuple(Fired(rule=one, rows=tuple(own)) for (one, _), own in zip(fired, rows, strict=True))
        return rank(con, Evaluation(outcomes=outcomes), library(), run.loops, run.frameworks)[0]


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def test_what_a_fix_needs_comes_before_it() -> None:
    needs, needed = rule("A01", after=("B01",)), rule("B01")
    findings = found((needs, [0, 1, 2, 3]), (needed, [4, 5]), (rule("C01"), [6, 7, 8]))
    assert codes(findings) == ["B01", "A01", "C01"]
    assert [finding.after for finding in findings] == [(), ("B01",), ()]


class Left:
    """A ledger in which the second fix saves nothing, as the busiest engine needs what the first one leaves."""

    con = None

    def worth(self, item: PricedFinding, taken: AppliedFixes) -> float:
        return 0.05

    def take(self, item: PricedFinding, taken: AppliedFixes) -> None:
        taken.replayed -= 0.05 if taken.least else 0.9
        taken.least = 0.1


@pytest.mark.parametrize(("small", "listed"), [(False, 2), (True, 1)])
def test_a_small_finding_whose_time_is_needed_stays_small(small: bool, listed: int) -> None:
    loop = Loop.model_construct(id=0, iteration_ms=1.0, iteration_ms_unprofiled=1.0, guessed=None)
    first, second = (
        PricedFinding(rule(code, **EXPECTED), [], loop, 1.0, {}, 1.0, price=Estimate(0.1, 0.1, 0.1))
        for code in ("A01", "B01")
    )
    minor = [second] if small else []
    ordered = by_worth(Left(), [first, *([] if small else [second])], minor, library().setting_values)  # type: ignore[arg-type]
    assert len(ordered) == listed and minor == ([second] if small else [])


class Together(Left):
    """A ledger in which the first fix saves next to nothing, and the second one much after it."""

    def worth(self, item: PricedFinding, taken: AppliedFixes) -> float:
        return 0.3 if taken.replayed < 1 else 0.01

    def take(self, item: PricedFinding, taken: AppliedFixes) -> None:
        taken.replayed -= self.worth(item, taken)


@pytest.mark.parametrize(("busy", "listed"), [(0.6, ["B01", "A01"]), (0.97, [])])
def test_two_fixes_that_pay_only_together_are_listed(busy: float, listed: list[str]) -> None:
    """The one that saves more alone comes first; a GPU that is busy all the time leaves nothing to save."""
    loop = Loop.model_construct(id=0, iteration_ms=1.0, iteration_ms_unprofiled=1.0, guessed=None)
    model: Any = SimpleNamespace(start=[[]], least=lambda _graphs: busy)
    minor = [
        PricedFinding(rule(code, **EXPECTED), [], loop, 1.0, {}, 1.0, model, price=Estimate(part, part, part))
        for code, part in (("A01", 1.0), ("B01", 0.99))
    ]
    ordered = by_worth(Together(), [], minor, library().setting_values)  # type: ignore[arg-type]
    assert [item.rule.code for item, *_ in ordered] == listed
    assert len(minor) == 2 - len(listed)
    assert [item.last for item, *_ in ordered] == pytest.approx([0.01, 0.3][: len(listed)])


class TogetherBeside(Together):
    """Such a ledger, with a fix beside the two that saves a fifth."""

    def worth(self, item: PricedFinding, taken: AppliedFixes) -> float:
        if item.rule.code == "C01":
            return 0.2
        return 0.3 if round(taken.replayed, 2) in (0.99, 0.79) else 0.01


def test_two_such_fixes_are_listed_beside_another_one() -> None:
    loop = Loop.model_construct(id=0, iteration_ms=1.0, iteration_ms_unprofiled=1.0, guessed=None)
    model: Any = SimpleNamespace(start=[[]], least=lambda _graphs: 0.6)
    other, *minor = (
        PricedFinding(rule(code, **EXPECTED), [], loop, 1.0, {}, 1.0, model, price=Estimate(part, part, part))
        for code, part in (("C01", 0.8), ("A01", 1.0), ("B01", 0.99))
    )
    ordered = by_worth(TogetherBeside(), [other], minor, library().setting_values)  # type: ignore[arg-type]
    assert [item.rule.code for item, *_ in ordered] == ["C01", "B01", "A01"]


SMALL = library().setting_values["min_share_hidden"]


class Apart(Together):
    """A ledger in which each fix saves the same whatever else is fixed: of what is left a little more each time."""

    def worth(self, item: PricedFinding, taken: AppliedFixes) -> float:
        return 0.03 if item.rule.code == "A01" else SMALL * 0.98


def test_two_small_fixes_of_different_things_stay_small() -> None:
    loop = Loop.model_construct(id=0, iteration_ms=1.0, iteration_ms_unprofiled=1.0, guessed=None)
    model: Any = SimpleNamespace(start=[[]], least=lambda _graphs: 0.6)
    minor = [
        PricedFinding(rule(code, **EXPECTED), [], loop, 1.0, {}, 1.0, model, price=Estimate(part, part, part))
        for code, part in (("A01", 0.97), ("B01", 1 - SMALL * 0.98))
    ]
    assert by_worth(Apart(), [], minor, library().setting_values) == []  # type: ignore[arg-type]


def test_what_is_worth_little_beside_it_waits() -> None:
    findings = found((rule("A01", after=("B01",)), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), (rule("B01"), [0, 1]))
    assert codes(findings) == ["A01", "B01"]
    assert findings[0].after == ()


def test_a_least_gain_counts_by_what_its_rows_show() -> None:
    needs, needed = rule("A01", after=("B01",)), rule("B01", price={**EXPECTED["price"], "kind": "lower_bound"})
    case = program()
    assert codes(found((needs, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), (needed, [0]), case=case)) == ["A01", "B01"]
    assert codes(found((needs, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), (needed, [0]), case=case, share=0.5)) == ["B01", "A01"]


def test_what_says_more_of_the_same_time_comes_first() -> None:
    less, more = rule("A01", behind=("B01",)), rule("B01", severity="medium")
    findings = found((less, [0, 1, 2, 3]), (more, [0, 1, 2, 3, 4]))
    assert codes(findings) == ["B01", "A01"]
    assert findings[1].after == ()
    assert codes(found((less, [0, 1, 2, 3]), (more, [0, 1, 2]))) == ["A01", "B01"]


def test_two_steps_come_in_their_order() -> None:
    first, second, third = rule("A01"), rule("B01", after=("A01",)), rule("C01", after=("B01",))
    assert codes(found((third, [0, 1, 2, 3]), (second, [4, 5, 6]), (first, [7, 8]))) == ["A01", "B01", "C01"]


def test_the_cause_comes_before_what_it_causes() -> None:
    shown, cause = rule("A01", consequence=True), rule("B01")
    findings = found((shown, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), (cause, [0, 1, 2, 3, 4, 5, 6]))
    assert [(finding.code, finding.caused_by) for finding in findings] == [("B01", None), ("A01", 1)]


def test_what_accounts_for_less_than_half_is_no_cause() -> None:
    findings = found((rule("A01", consequence=True), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), (rule("B01"), [0, 1, 2, 3]))
    assert [(finding.code, finding.caused_by) for finding in findings] == [("A01", None), ("B01", None)]


def test_no_consequence_causes_another() -> None:
    both = [(rule(code, consequence=True), [0, 1, 2]) for code in ("A01", "B01")]
    assert [finding.caused_by for finding in found(*both)] == [None, None]


def waiting(first: int) -> Case:
    """Ten iterations, in which the host works so long (µs) before its first launch and waits before its second."""
    again = {"repeat": 10, "every": first + 140}
    return {
        "iteration": [{"start": 0, "duration": first + 140, **again}],
        "api_call": [
            {"label": "a", "name": "cudaLaunchKernel", "start": first, "duration": 2, **again},
            {"name": "cudaStreamSynchronize", "start": first + 4, "duration": 56, **again},
            {"label": "b", "name": "cudaLaunchKernel", "start": first + 100, "duration": 2, **again},
        ],
        "gpu_op": [
            {"api_call": "a", "name": "gemm()", "start": first + 2, "duration": 56, **again},
            {"api_call": "b", "name": "gemm()", "start": first + 104, "duration": 32, **again},
        ],
    }


@pytest.mark.slow
@pytest.mark.parametrize(("first", "order"), [(160, ["A01", "B01"]), (70, ["B01", "A01"])])
def test_a_bound_on_the_leaf_that_leads_counts_whole(first: int, order: list[str]) -> None:
    """Host work is 73 % of what the GPU does not compute, or 47 %: of what is promised of other leaves half counts.

    A part of that work is worth less than the waits, which cost 55 µs, and more than half of them.
    """
    with opened(waiting(first), *VIEWS) as con:
        rows = con.execute("select leaf, idle_interval from idle_interval order by idle_interval").fetchall()
    waits, works = ([number for leaf, number in rows if leaf == wanted] for wanted in ("sync", "host_work"))
    fired = (rule("A01"), works[: 3 if first == 160 else 6]), (rule("B01"), waits)
    assert codes(found(*fired, case=waiting(first))) == order


@pytest.mark.slow
def test_beside_an_expected_gain_a_bound_counts_half() -> None:
    bound, sure = rule("A01"), rule("B01", **EXPECTED)  # all idle time of this program is one leaf
    assert codes(found((bound, [0, 1, 2, 3]), (rule("C01"), [4, 5, 6]))) == ["A01", "C01"]
    assert codes(found((bound, [0, 1, 2, 3]), (sure, [4, 5, 6]))) == ["B01", "A01"]


@pytest.mark.slow
@pytest.mark.parametrize(("confidence", "order"), [("high", ["A01", "B01"]), ("low", ["B01", "A01"])])
def test_of_two_gains_the_surer_diagnosis_comes_first(confidence: str, order: list[str]) -> None:
    """The first is worth a third more; what may not be the cause counts half."""
    first, sure = rule("A01", confidence=confidence, confidence_reason="so", **EXPECTED), rule("B01", **EXPECTED)
    assert codes(found((first, [0, 1, 2, 3]), (sure, [4, 5, 6]))) == order
