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
    assert "| same first finding, slow variants | 1 of 2 (50%) |" in found
    assert "| the trace names the label's function | 1 of 1 (100%) |" in found
    assert "| healthy programs without a finding worth 5 % | 0 of 1 (0%) |" in found
    assert "| median error of 2 expected times after the fix | 25% |" in found


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
