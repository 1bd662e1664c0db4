"""The comparison of both recordings of a program: synthetic pairs."""

from __future__ import annotations

from dataclasses import replace

from evaluation import both_ways, corpus
from evaluation.both_ways import Pair, page

SLOW = next(case for case in corpus.cases() if case.key == "item_every_stage/slow")
HEALTHY = next(case for case in corpus.cases() if case.key == "healthy_gemm_loop/healthy")
RIGHT = Pair(SLOW, "S01", "S01", function=True, kind="expected", before_ms=10.0, predicted_ms=6.0, measured_ms=8.0)


def test_figures_count_pairs() -> None:
    found = page([RIGHT, replace(RIGHT, trace="H02", function=False), Pair(HEALTHY, None, "H01", alarms=("H01",))])
    assert "| both recordings lead to the same first finding | 1 (50%) | 2 slow variants |" in found
    assert "names the label's function | 1 (100%) | 1 slow variants whose label" in found
    assert "| no finding of the trace is worth 5 % of the run | 0 (0%) | 1 healthy programs |" in found
    assert "In the median of 2 slow variants" in found
    assert "differs by 25% from the measured one" in found


def test_each_code_of_the_table_is_named_once() -> None:
    found = page([RIGHT, replace(RIGHT, trace="H02"), Pair(HEALTHY, None, "H02", alarms=("H02",))])
    assert found.count("* [H02](reference/rules/H02.md): host work between launches\n") == 1
    assert "* [S02](reference/rules/S02.md)" in found


def test_a_bound_is_no_expected_time() -> None:
    bound = replace(RIGHT, kind="upper_bound")
    assert bound.error is None
    assert "| at least 6 | 8 |" in page([bound, RIGHT])


def test_every_new_trace_has_an_unprofiled_time() -> None:
    early = {"elementwise_chain", "item_every_stage", "loader_without_workers", "rollout_eager"}
    new = {case.key for case, _ in both_ways.traces() if case.slug not in early}
    assert new <= both_ways.times().keys()


def test_the_function_around_a_planted_line_is_found() -> None:
    place = SLOW.expect["place"]
    assert both_ways.enclosing(place["file"], corpus.line_of(place)) == ("step",)
