"""Ranks replayed together: they wait for one another at their collectives, and for nobody else.

Graphs are synthetic: in each iteration a rank works, then joins a collective. The last test reads a real capture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation import corpus, scoring
from gpudiag.replay import collectives
from gpudiag.replay.graph import BEFORE_ALL, Graph
from gpudiag.replay.trace import Floats
from replaying import bare_graph

TRANSFER = 50.0
TIMES = st.lists(st.floats(0, 1000), min_size=4, max_size=4)


def job(*work: Sequence[float], skew: float = 0.0) -> tuple[list[Graph], collectives.Rendezvous]:
    """Ranks (rows: work before each collective, ns) as a GPU runs them; the clock of rank k reads k × skew more."""
    iterations = len(work[0])
    joined = np.cumsum(np.max(work, axis=0)) + TRANSFER * np.arange(iterations)
    before = np.concatenate([[0.0], joined[:-1] + TRANSFER])  # when the collective before is done
    graphs, arrived = [], []
    for number, own in enumerate(work):
        durations = np.array([[w, TRANSFER] for w in own]).ravel()
        chain = [(node, node + 1, 0.0) for node in range(2 * iterations - 1)]
        release = [number * skew] + [BEFORE_ALL] * (2 * iterations - 1)
        one = bare_graph(durations.tolist(), release, chain)
        starts = np.column_stack([before, before + own]).ravel() + number * skew
        graphs.append(replace(one, recorded=starts))
        arrived.append(before + np.array(own) + number * skew)
    node = np.arange(1, 2 * iterations, 2)
    offset = skew * np.arange(len(work))
    meet = collectives.Rendezvous(
        node=tuple(node for _ in work), offset=offset, transfer=np.full(iterations, TRANSFER), arrived=tuple(arrived),
        joined=tuple(joined + one for one in offset),
    )  # fmt: skip
    return graphs, meet


def last(graphs: Sequence[Graph], meet: collectives.Rendezvous) -> list[float]:
    return [float(end.max()) for end in collectives.as_recorded(graphs, meet)]


def test_who_is_late_sets_the_pace_for_all() -> None:
    graphs, meet = job([100, 100, 100], [300, 100, 100])
    assert last(graphs, meet) == [650, 650]


def test_ranks_that_alternate_in_being_late_add_up() -> None:
    graphs, meet = job([100, 300, 100], [300, 100, 100], [100, 100, 400])
    assert last(graphs, meet) == [1150, 1150, 1150]


def test_clocks_that_differ_do_not_matter() -> None:
    graphs, meet = job([100, 300, 100], [300, 100, 100], skew=7000)
    assert last(graphs, meet) == [850, 7850]


def test_ranks_that_keep_up_with_the_fastest_wait_no_more() -> None:
    graphs, meet = job([100, 100, 100], [300, 100, 500])
    even = collectives.balanced(graphs, [graph.duration for graph in graphs], meet)
    lags, releases = [graph.lag for graph in graphs], [graph.release for graph in graphs]
    ends = collectives.ends(graphs, even, lags, releases, meet)
    assert [float(end.max()) for end in ends] == pytest.approx([450, 450])


@settings(deadline=None)
@given(TIMES, TIMES)
def test_together_they_take_what_the_slowest_needs_each_time(first: list[float], second: list[float]) -> None:
    graphs, meet = job(first, second)
    assert last(graphs, meet) == pytest.approx([sum(map(max, first, second)) + 4 * TRANSFER] * 2, abs=10)


@settings(deadline=None)
@given(TIMES, TIMES, st.integers(0, 7), st.integers(0, 1), st.floats(0, 1000))
def test_more_work_on_one_rank_never_makes_any_rank_end_sooner(
    first: list[float], second: list[float], node: int, rank: int, more: float
) -> None:
    graphs, meet = job(first, second)
    durations: list[Floats] = [graph.duration.copy() for graph in graphs]
    durations[rank][node] += more
    lags, releases = [graph.lag for graph in graphs], [graph.release for graph in graphs]
    after = collectives.ends(graphs, durations, lags, releases, meet)
    for before, then in zip(collectives.as_recorded(graphs, meet), after, strict=True):
        assert (then >= before - 10).all()  # rendezvous are found to a nanosecond each


@pytest.mark.capture
@pytest.mark.parametrize("variant", ["slow:compute", "slow:host"])
def test_a_real_job_without_its_late_rank_takes_as_measured(variant: str) -> None:
    case = next(c for c in corpus.cases() if c.key == f"ddp_slow_rank/{variant}")
    before, fixed = (corpus.iteration_ms(case.slug, name) for name in (variant, "fixed"))
    assert before and fixed
    with scoring.opened(case) as (con, library):
        report = scoring.build_report(con, library, {"": before * 1e6})
    [late] = [finding for finding in report.findings if finding.code == "N02"]
    assert late.gain.kind == "expected"
    assert late.gain.low_ms is not None and late.gain.high_ms is not None
    assert late.gain.low_ms <= fixed <= late.gain.high_ms < before
