"""The order of findings, what each is worth after those before it, and what is too small to list. Synthetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from gpudiag import summary
from gpudiag.evaluate import Evaluation
from gpudiag.model import Finding, Fired, Row, Rule
from gpudiag.rank import rank

from .timelines import Case, launched, library, opened, turns

VIEWS = (
    "kernel_match", "kernel_roof", "kernel_rounds", "kernel_use", "kernel_wait",
    "idle_piece", "work", "transfer", "loop_budget", "loop_facts", "device_state", "read_block",
    "call_sample", "loop_sample", "call_place", "framework_seen", "kernel_facts",
)  # fmt: skip


def program(stretch: float = 1, line: int = 31) -> Case:
    """Ten turns of 100 µs: 40 µs of a kernel, then 60 µs idle while a user's line runs. Idle pieces are 0 to 9."""
    case = launched(10, 100 * stretch, ("gemm()", 0, 0, 40 * stretch))
    for row in case["api_call"]:
        row["duration"] = 3 * stretch
    frames = [
        {"function": "to", "file": "/v/site-packages/torch/_tensor.py", "line": line + 400},
        {"function": "step", "file": "/home/u/train.py", "line": line},
    ]
    return {
        "iteration": [turns(10, 100 * stretch)], **case,
        "py_sample": [{"time": 70 * stretch, "repeat": 9, "every": 100 * stretch, "frames": frames}],
    }  # fmt: skip


def rule(code: str, severity: str = "high", **changes: Any) -> Rule:
    price = {"kind": "upper_bound", "on": "pieces", "high": ["overlap_collective"]}  # is not replayed
    return Rule.model_validate({
        "code": code, "kind": "finding", "id": "x", "title": f"Title {code}", "severity": severity, "query": "select 1",
        "message": "m", "why": "w", "not_a_problem_when": "n", "price": price, "locate": ("python",), **changes,
    })  # fmt: skip


EXPECTED = {"price": {"kind": "expected", "on": "pieces", "expected": ["to_workers"], "high": ["drop_range"]}}
TEST = {"price": {"kind": "test_needed", "test": "Run it twice."}}


def ranked(
    *fired: tuple[Rule, Sequence[Row]], case: Case | None = None, times: dict[str, float] | None = None, **more: Any
) -> tuple[list[Finding], list[Finding], dict[int, float]]:
    with opened(case or program(), *VIEWS) as con:
        run = summary.run(con, library().setting_values, times or {})
        outcomes = tuple(Fired(rule=r, rows=tuple(rows)) for r, rows in fired)
        return rank(con, Evaluation(outcomes=outcomes, **more), library(), run.loops, run.frameworks)


def pieces(*numbers: int, **more: Any) -> list[Row]:
    return [{"loop": 0, "pieces": list(numbers), **more}]


def codes(findings: Sequence[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def test_what_is_worth_most_comes_first() -> None:
    found, minor, _ = ranked(
        (rule("A01"), pieces(0, 1)), (rule("B01"), pieces(2, 3, 4, 5)), (rule("C01"), pieces(6, 7, 8))
    )
    assert codes(found) == ["B01", "C01", "A01"]
    assert [finding.rank for finding in found] == [1, 2, 3]
    assert minor == []
    assert found[0].gain.share == pytest.approx(0.24, abs=0.01)


def test_a_milder_mistake_must_be_worth_more_to_come_first() -> None:
    grave = (rule("A01", "high"), pieces(0, 1, 2, 3))
    assert codes(ranked(grave, (rule("B01", "low"), pieces(4, 5, 6, 7, 8)))[0]) == ["A01", "B01"]
    assert codes(ranked(grave, (rule("B01", "medium"), pieces(4, 5, 6, 7, 8, 9)))[0]) == ["B01", "A01"]


def test_no_microsecond_is_promised_twice() -> None:
    found, *_ = ranked(
        (rule("A01"), pieces(0, 1, 2, 3, 4)), (rule("B01"), pieces(0, 1, 2, 3)), (rule("C01"), pieces(5, 6)),
    )  # fmt: skip
    assert codes(found) == ["A01", "C01", "B01"], "what B01 would save is saved already"
    first, second, third = (finding.gain for finding in found)
    assert third.share == pytest.approx(0.24, abs=0.01), "alone it would still be worth this"
    assert second.cumulative_after_ms == third.cumulative_after_ms
    assert first.cumulative_after_ms == pytest.approx(0.1 * 0.7, rel=0.02)
    assert second.cumulative_after_ms == pytest.approx(0.1 * 0.58, rel=0.02)


def test_a_gain_is_a_time_before_and_after() -> None:
    [finding] = ranked((rule("A01"), pieces(0, 1, 2, 3, 4)))[0]
    gain = finding.gain
    assert (gain.kind, gain.basis, gain.loop) == ("upper_bound", "loop", 0)
    assert gain.before_ms == pytest.approx(0.1)
    assert gain.after_ms == pytest.approx(0.07)
    assert gain.speedup == pytest.approx(1 / 0.7)
    [finding] = ranked((rule("A01"), pieces(0, 1, 2, 3, 4)), times={"": 50_000.0})[0]
    assert finding.gain.before_ms == pytest.approx(0.05), "the time without the profiler counts, when it is known"


def test_an_expected_gain_is_replayed_and_lies_within_its_range() -> None:
    [finding] = ranked((rule("A01", **EXPECTED), pieces(0, 1, 2, 3, 4)))[0]
    gain = finding.gain
    assert (gain.kind, gain.basis) == ("expected", "loop")
    assert gain.before_ms is not None and gain.after_ms is not None and gain.low_ms is not None
    assert gain.before_ms == pytest.approx(0.1)
    # Half of the turns lose the 97 µs of host work before the next launch; the host does not wait for the GPU.
    assert gain.after_ms == pytest.approx(0.1 - 0.5 * 0.097, rel=0.03)
    assert gain.high_ms is not None and gain.low_ms <= gain.after_ms <= gain.high_ms < gain.before_ms


def test_no_microsecond_is_promised_twice_by_the_replay() -> None:
    found, *_ = ranked((rule("A01", **EXPECTED), pieces(0, 1, 2, 3, 4)), (rule("B01", **EXPECTED), pieces(2, 3, 4)))
    first, second = (finding.gain for finding in found)
    assert codes(found) == ["A01", "B01"]
    assert second.share is not None and second.share > 0.1, "alone it would be worth this"
    assert second.cumulative_after_ms == first.cumulative_after_ms == first.after_ms


def test_a_known_worth_comes_before_a_bound_that_is_hardly_higher() -> None:
    known, bound = rule("B01", **EXPECTED), rule("A01")
    assert codes(ranked((bound, pieces(0, 1, 2, 3)), (known, pieces(5, 6, 7, 8)))[0]) == ["B01", "A01"]
    assert codes(ranked((bound, pieces(0, 1, 2, 3, 4, 5)), (known, pieces(7, 8)))[0]) == ["A01", "B01"]


def test_a_loop_whose_replay_misses_the_recorded_time_is_named_and_priced_by_a_bound() -> None:
    case = program(stretch=10)
    case["iteration"] = [turns(9, 1000), {"start": 9000, "duration": 400}]
    case["api_call"][0]["every"] = 10  # launched long before, yet each kernel begins 600 µs after the one before it
    [finding], _, missed = ranked((rule("A01", **EXPECTED), [{"loop": 0, "share": 0.3}]), case=case)
    assert missed.keys() == {0} and missed[0] < -0.1
    assert finding.gain.kind == "upper_bound"


def test_small_gains_are_listed_apart() -> None:
    found, minor, _ = ranked((rule("A01"), pieces(0)), (rule("B01"), pieces(1, 2)))
    assert (codes(found), codes(minor)) == (["B01"], ["A01"])
    assert minor[0].rank == 2


def test_a_loop_counts_by_its_part_of_the_run() -> None:
    case = program()
    case["iteration"] = [turns(10), turns(10, 1900, loop=1, start=2000)]
    found, minor, _ = ranked((rule("A01"), pieces(0, 1, 2, 3, 4, 5, 6)), case=case)
    assert (codes(found), codes(minor)) == ([], ["A01"]), "42 % of a twentieth of the run"


def test_what_only_an_experiment_can_tell_comes_last_and_has_no_number() -> None:
    found, *_ = ranked((rule("A01", **TEST), [{"loop": 0, "share": 0.9}]), (rule("B01", "low"), pieces(0, 1, 2, 3)))
    assert codes(found) == ["B01", "A01"]
    gain = found[1].gain
    assert (gain.kind, gain.test, gain.before_ms, gain.after_ms, gain.speedup) == (
        "test_needed",
        "Run it twice.",
        None,
        None,
        None,
    )


def test_profiled_kernels_are_priced_by_a_launch() -> None:
    price = {"price": {"kind": "upper_bound", "on": "profiles", "high": ["shrink_kernel"]}}
    rows = [
        {"profiles": [0], "share": 0.2, "recoverable": 0.9, "duration_ns": 1e6},
        {"profiles": [1], "share": 0.8, "recoverable": 0.5, "duration_ns": 4e6},
    ]
    alone = {"kernel_profile": [{"name": "a()"}, {"name": "b()"}]}
    [finding] = ranked((rule("K01", **price), rows), case=alone)[0]
    gain = finding.gain
    assert (gain.basis, gain.loop, gain.before_ms, gain.after_ms, gain.share) == ("kernel", None, 4.0, 2.0, 0.5)
    assert finding.evidence["places"] == 2


def test_one_code_in_two_loops_is_two_findings() -> None:
    case = program()
    case["iteration"] = [turns(5), turns(5, loop=1, start=500)]
    found, *_ = ranked(
        (rule("A01"), [{"loop": 0, "pieces": [0, 1, 2]}, {"loop": 1, "pieces": [5, 6, 7, 8]}]), case=case
    )
    assert [(finding.code, finding.gain.loop) for finding in found] == [("A01", 1), ("A01", 0)]
    assert found[0].fingerprint == ranked((rule("A01"), [{"loop": 0, "pieces": [0, 1, 2, 3]}]))[0][0].fingerprint


def test_a_fingerprint_survives_other_times_and_other_lines_but_not_another_function() -> None:
    def fingerprint(case: Case, code: str = "A01") -> str:
        return ranked((rule(code), pieces(0, 1, 2, 3)), case=case)[0][0].fingerprint

    known = fingerprint(program())
    assert fingerprint(program(stretch=0.5, line=77)) == known
    moved = program()
    moved["py_sample"][0]["frames"][1]["function"] = "evaluate"
    assert fingerprint(moved) != known
    assert fingerprint(program(), "A02") != known


def test_doubts_about_the_measurement_lower_the_confidence_and_are_said() -> None:
    [finding] = ranked((rule("A01"), pieces(0, 1, 2)), weakened={"A01": ("The clocks moved.", "The clocks moved.")})[0]
    assert (finding.confidence, finding.confidence_reason) == ("low", "The clocks moved.")


def test_a_loop_nobody_knows_is_not_reported() -> None:
    assert ranked((rule("A01"), [{"loop": 9, "share": 0.9}])) == ([], [], {})


def test_nothing_fired_gives_nothing() -> None:
    assert ranked() == ([], [], {})
