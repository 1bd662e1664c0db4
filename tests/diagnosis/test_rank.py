"""The order of findings, what each is worth after those before it, and what is too small to list. Synthetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from captures import report_of
from evaluation.corpus import CAPTURES
from evaluation.packed import stored
from gpudiag import pipeline, prepare
from gpudiag.authoring.cases import fill
from gpudiag.diagnosis import run_summary
from gpudiag.diagnosis.rank import rank
from gpudiag.evaluate.engine import Evaluation
from gpudiag.model import Finding, Fired, Report, Row, Rule
from gpudiag.report import markdown
from gpudiag.report.wording import words
from gpudiag.store import database
from ranking import VIEWS, program, rule
from timelines import Case, iterations, library, opened

EXPECTED = {"price": {"kind": "expected", "on": "idle_intervals", "expected": ["to_workers"], "high": ["drop_range"]}}
USUAL = 0.0705  # an iteration without the profiler as the replay guesses it (ms), of 0.1 as recorded
TEST = {"price": {"kind": "test_needed", "test": "Run it twice."}}


def ranked(
    *fired: tuple[Rule, Sequence[Row]], case: Case | None = None, times: dict[str, float] | None = None, **more: Any
) -> tuple[list[Finding], list[Finding]]:
    with opened(case or program(), *VIEWS) as con:
        run = run_summary.run(con, library().setting_values, times or {})
        outcomes = tuple(Fired(rule=r, rows=tuple(rows)) for r, rows in fired)
        return rank(con, Evaluation(outcomes=outcomes, **more), library(), run.loops, run.frameworks)


def intervals(*numbers: int, **more: Any) -> list[Row]:
    return [{"loop": 0, "idle_intervals": list(numbers), **more}]


def codes(findings: Sequence[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def test_what_is_worth_most_comes_first() -> None:
    found, minor = ranked(
        (rule("A01"), intervals(0, 1)), (rule("B01"), intervals(2, 3, 4, 5)), (rule("C01"), intervals(6, 7, 8))
    )
    assert codes(found) == ["B01", "C01", "A01"]
    assert [finding.rank for finding in found] == [1, 2, 3]
    assert minor == []
    assert found[0].gain.share == pytest.approx(0.24, abs=0.01)


@pytest.mark.slow
def test_a_milder_mistake_must_be_worth_more_to_come_first() -> None:
    grave = (rule("A01", "high"), intervals(0, 1, 2, 3))
    assert codes(ranked(grave, (rule("B01", "low"), intervals(4, 5, 6, 7, 8)))[0]) == ["A01", "B01"]
    assert codes(ranked(grave, (rule("B01", "medium"), intervals(4, 5, 6, 7, 8, 9)))[0]) == ["B01", "A01"]


def test_no_microsecond_is_promised_twice() -> None:
    found, *_ = ranked(
        (rule("A01"), intervals(0, 1, 2, 3, 4)), (rule("B01"), intervals(0, 1, 2, 3)), (rule("C01"), intervals(5, 6)),
    )  # fmt: skip
    assert codes(found) == ["A01", "C01", "B01"], "what B01 would save is saved already"
    first, second, third = (finding.gain for finding in found)
    assert third.share == pytest.approx(0.24, abs=0.01), "alone it would still be worth this"
    assert second.cumulative_after_ms == third.cumulative_after_ms
    assert first.cumulative_after_ms == pytest.approx(USUAL * 0.7, rel=0.02)
    assert second.cumulative_after_ms == pytest.approx(USUAL * 0.58, rel=0.02)


@pytest.mark.slow
def test_a_gain_is_a_time_before_and_after() -> None:
    [finding] = ranked((rule("A01"), intervals(0, 1, 2, 3, 4)))[0]
    gain = finding.gain
    assert (gain.kind, gain.basis, gain.loop) == ("upper_bound", "loop", 0)
    assert gain.before_ms == pytest.approx(0.1), "a bound is of the recorded time"
    assert gain.after_ms == pytest.approx(0.07)
    assert gain.speedup == pytest.approx(1 / 0.7)
    [finding] = ranked((rule("A01"), intervals(0, 1, 2, 3, 4)), times={"": 50_000.0})[0]
    assert finding.gain.before_ms == pytest.approx(0.05), "the time without the profiler counts, when it is known"


def test_an_expected_gain_is_replayed_and_lies_within_its_range() -> None:
    [finding] = ranked((rule("A01", **EXPECTED), intervals(0, 1, 2, 3, 4)))[0]
    gain = finding.gain
    assert (gain.kind, gain.basis) == ("expected", "loop")
    assert gain.before_ms is not None and gain.after_ms is not None and gain.low_ms is not None
    assert gain.before_ms == pytest.approx(USUAL, rel=0.01)
    # Half of the iterations lose the host's work before the next launch: then the GPU's 40 µs set the pace.
    assert gain.after_ms == pytest.approx(0.04, rel=0.03)
    assert gain.high_ms is not None and gain.low_ms <= gain.after_ms <= gain.high_ms <= gain.before_ms


def test_no_microsecond_is_promised_twice_by_the_replay() -> None:
    found, *_ = ranked(
        (rule("A01", **EXPECTED), intervals(0, 1, 2, 3, 4)), (rule("B01", **EXPECTED), intervals(2, 3, 4))
    )
    first, second = (finding.gain for finding in found)
    assert codes(found) == ["A01", "B01"]
    assert second.share is not None and second.share > 0.1, "alone it would be worth this"
    assert second.cumulative_after_ms == first.cumulative_after_ms == first.after_ms


@pytest.mark.slow
def test_an_expected_gain_precedes_a_slightly_higher_bound() -> None:
    known, bound = rule("B01", **EXPECTED), rule("A01")
    assert codes(ranked((bound, intervals(0, 1, 2, 3)), (known, intervals(5, 6, 7, 8)))[0]) == ["B01", "A01"]
    assert codes(ranked((bound, intervals(0, 1, 2, 3, 4, 5)), (known, intervals(7, 8)))[0]) == ["A01", "B01"]


def test_a_loop_with_a_bad_replay_is_priced_by_a_bound() -> None:
    case = program(stretch=10)
    case["iteration"] = [iterations(9, 1000), {"start": 9000, "duration": 400}]
    case["api_call"][0]["every"] = 10  # launched long before, yet each kernel begins 600 µs after the one before it
    [finding], _ = ranked((rule("A01", **EXPECTED), [{"loop": 0, "share": 0.3}]), case=case)
    assert finding.gain.kind == "upper_bound"


def test_small_gains_are_listed_apart() -> None:
    found, minor = ranked((rule("A01"), intervals(0)), (rule("B01"), intervals(1, 2)))
    assert (codes(found), codes(minor)) == (["B01"], ["A01"])
    assert minor[0].rank == 2


def test_a_loop_counts_by_its_part_of_the_run() -> None:
    case = program()
    case["iteration"] = [iterations(10), iterations(10, 1900, loop=1, start=2000)]
    found, minor = ranked((rule("A01"), intervals(0, 1, 2, 3, 4, 5, 6)), case=case)
    assert (codes(found), codes(minor)) == ([], ["A01"]), "42 % of a twentieth of the run"


def test_findings_that_need_a_test_come_last_without_a_number() -> None:
    found, *_ = ranked((rule("A01", **TEST), [{"loop": 0, "share": 0.9}]), (rule("B01", "low"), intervals(0, 1, 2, 3)))
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


def test_declared_evidence_gets_its_label_and_unit() -> None:
    items = {"wait": {"label": "waiting", "unit": "ns"}, "copies": {"label": "copies", "unit": "count"}}
    rows = [{**row, "wait": 5, "copies": 2, "other": 3} for row in intervals(0, 1, 2, 3)]
    said = "It waits {{ places[0].wait }} ns."
    [finding] = ranked((rule("A01", evidence=items, message=said), rows))[0]
    assert {key: (one.label, one.unit, one.in_message) for key, one in finding.evidence_labels.items()} == {
        "places": ("places", "count", False), "wait": ("waiting", "ns", True), "copies": ("copies", "count", False),
    }  # fmt: skip
    assert finding.evidence["other"] == 3


def test_a_list_of_columns_is_labelled_by_their_names() -> None:
    rows = [{**row, "wait_ns": 5, "copies": 2} for row in intervals(0, 1, 2, 3)]
    [finding] = ranked((rule("A01", evidence=["wait_ns"]), rows))[0]
    assert finding.evidence_labels["wait_ns"].label == "wait"
    assert finding.evidence_labels["wait_ns"].unit == "ns"
    assert "copies" not in finding.evidence_labels


def test_a_former_rule_declares_no_evidence() -> None:
    [finding] = ranked((rule("A01"), intervals(0, 1, 2, 3)))[0]
    assert finding.evidence_labels == {}


@pytest.mark.slow
def test_one_code_in_two_loops_is_two_findings() -> None:
    case = program()
    case["iteration"] = [iterations(5), iterations(5, loop=1, start=500)]
    found, *_ = ranked(
        (rule("A01"), [{"loop": 0, "idle_intervals": [0, 1, 2]}, {"loop": 1, "idle_intervals": [5, 6, 7, 8]}]),
        case=case,
    )
    assert [(finding.code, finding.gain.loop) for finding in found] == [("A01", 1), ("A01", 0)]
    assert (
        found[0].fingerprint == ranked((rule("A01"), [{"loop": 0, "idle_intervals": [0, 1, 2, 3]}]))[0][0].fingerprint
    )


@pytest.mark.slow
def test_a_fingerprint_depends_on_function_not_time_or_line() -> None:
    def fingerprint(case: Case, code: str = "A01") -> str:
        return ranked((rule(code), intervals(0, 1, 2, 3)), case=case)[0][0].fingerprint

    known = fingerprint(program())
    assert fingerprint(program(stretch=0.5, line=77)) == known
    moved = program()
    moved["py_sample"][0]["frames"][1]["function"] = "evaluate"
    assert fingerprint(moved) != known
    assert fingerprint(program(), "A02") != known


def test_doubts_about_the_measurement_lower_the_confidence() -> None:
    [finding] = ranked((rule("A01"), intervals(0, 1, 2)), weakened={"A01": ("The clocks moved.", "The clocks moved.")})[
        0
    ]
    assert (finding.confidence, finding.confidence_reason) == ("low", "The clocks moved.")


def test_a_loop_nobody_knows_is_not_reported() -> None:
    assert ranked((rule("A01"), [{"loop": 9, "share": 0.9}])) == ([], [])


def test_nothing_fired_gives_nothing() -> None:
    assert ranked() == ([], [])


@pytest.mark.capture
def test_each_remedy_has_the_price_of_what_it_does() -> None:
    """A loop of tiny kernels becomes one kernel, or one CUDA graph, which is worth less."""
    report = report_of(stored(CAPTURES / "farthest_point_sampling" / "slow"))
    assert_priced_apart(report, "H04", "replace-python-loop", "cuda-graphs")


@pytest.mark.slow
def test_arrays_that_still_travel_are_not_priced_as_kept() -> None:
    """Arrays stay on the GPU, or their memory comes from a pool while they still travel, which is worth less."""
    each = {"repeat": 20, "every": 400}
    copy = {"kind": "memcpy", "bytes": 800_000, **each}
    case: Case = {
        "iteration": [iterations(20, 400)],
        "api_call": [
            {"name": "cuMemAlloc", "start": 0, "duration": 50, **each},
            {"label": "up", "name": "cuMemcpyHtoD", "start": 55, "duration": 100, **each},
            {"label": "kernel", "name": "cuLaunchKernel", "start": 160, "duration": 5, **each},
            {"label": "down", "name": "cuMemcpyDtoH", "start": 170, "duration": 125, **each},
            {"name": "cuMemFree", "start": 300, "duration": 50, **each},
        ],
        "gpu_op": [
            {"api_call": "up", "copy_kind": "host_to_device", "src_kind": "pageable", "dst_kind": "device", "start": 70,
             "duration": 84, **copy},
            {"api_call": "kernel", "name": "add_arrays()", "start": 166, "duration": 30, **each},
            {"api_call": "down", "copy_kind": "device_to_host", "src_kind": "device", "dst_kind": "pageable",
             "start": 197, "duration": 95, **copy},
        ],
    }  # fmt: skip
    with database.create(small=True) as con:
        fill(con, case, library())
        prepare.prepare(con, library())
        report = pipeline.build_report(con, library(), {})
    assert_priced_apart(report, "M05", "device-arrays", "pool-allocation")


def assert_priced_apart(report: Report, code: str, whole: str, part: str) -> None:
    """The finding's number is that of its first remedy, and the other one says its own."""
    found = next(finding for finding in report.findings if finding.code == code)
    own = {remedy.id: remedy.gain for remedy in found.remedies}
    assert list(own) == [whole, part]
    assert own[whole] is None  # the finding's own
    assert found.gain.after_ms is not None
    less = own[part]
    assert less is not None
    assert found.gain.after_ms < less.after_ms < less.before_ms
    text = markdown.render(report)
    assert f"by this one {words.duration(less.before_ms)} to {words.duration(less.after_ms)}" in text


def test_time_between_iterations_counts_beside_their_own() -> None:
    """Pauses add 25 µs to each iteration of 100 µs, and 30 % of both are idle in them."""
    [finding] = ranked((rule("A01"), [{"loop": 0, "idle_intervals": None, "share": 0.3, "added_between_ns": 25_000}]))[
        0
    ]
    assert finding.gain.before_ms == pytest.approx(0.125)
    assert finding.gain.after_ms == pytest.approx(0.0875)


def test_pauses_between_iterations_leave_the_loop_to_others() -> None:
    """Without the pauses of 300 µs an iteration the loop is what it was: the other fix still saves its part of it."""
    paused = (rule("A01"), [{"loop": 0, "idle_intervals": None, "share": 0.75, "added_between_ns": 300_000}])
    other = (rule("A02"), [{"loop": 0, "idle_intervals": None, "share": 0.4}])
    first, second = ranked(paused, other)[0]
    assert first.gain.share == pytest.approx(0.75)
    assert first.gain.after_ms == pytest.approx(0.1)
    assert second.gain.cumulative_before_ms == pytest.approx(USUAL, rel=0.01)
    assert second.gain.cumulative_after_ms == pytest.approx(USUAL * 0.6, rel=0.01)


def test_pages_of_frameworks_that_are_not_used_are_left_out() -> None:
    links = ("https://docs.pytorch.org/a.html", "https://docs.cupy.dev/b.html", "https://docs.nvidia.com/c.html")
    named = rule("A01").model_copy(update={"references": links})
    for seen, kept in ((["cupy"], links[1:]), ([], links)):
        with opened(program(), *VIEWS, "loop_tree") as con:
            run = run_summary.run(con, library().setting_values, {})
            outcomes = (Fired(rule=named, rows=({"loop": 0, "idle_intervals": [0, 1, 2]},)),)
            [found], _ = rank(con, Evaluation(outcomes=outcomes), library(), run.loops, seen)
        assert found.references == kept
