"""Laws that hold for every replay: on random graphs, and on random recorded timelines. Synthetic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpudiag.replay import bounds, compiled, simulate
from gpudiag.replay.edges.edge_list import NEVER
from gpudiag.replay.edited_graph import EditedGraph, EditTargets
from gpudiag.replay.edits import registry
from gpudiag.replay.graph import Graph
from gpudiag.replay.loop_model import LoopModel
from gpudiag.replay.simulate import length, replay
from gpudiag.replay.trace import Floats
from random_timelines import LAW
from random_timelines import timelines as any_timeline
from replaying import NOTHING, bare_graph, loop_model, rule
from timelines import Case

pytestmark = pytest.mark.slow

times = st.floats(0, 1e9, allow_subnormal=False)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Up to thirty nodes, with edges from earlier to later ones; some edges hold nothing back."""
    n = draw(st.integers(1, 30))
    durations = draw(st.lists(times, min_size=n, max_size=n))
    releases = draw(st.lists(st.one_of(st.just(-1e17), times), min_size=n, max_size=n))
    edges = []
    for _ in range(draw(st.integers(0, 60)) if n > 1 else 0):
        target = draw(st.integers(1, n - 1))
        edges.append((draw(st.integers(0, target - 1)), target, draw(st.one_of(st.just(NEVER), st.just(0.0), times))))
    return bare_graph(durations, releases, edges)


def changed(values: Floats, place: int, value: float) -> Floats:
    result = values.copy()
    result[place] = value
    return result


# Random graphs


@given(graph=graphs(), place=st.integers(0, 29), more=times)
def test_more_time_in_a_node_never_shortens_the_replay(graph: Graph, place: int, more: float) -> None:
    place %= len(graph.duration)
    before = replay(graph)
    after = replay(graph, changed(graph.duration, place, graph.duration[place] + more))
    assert (after >= before).all()
    assert length(graph, after) >= length(graph, before)
    if before[place] >= 0:
        assert after[place] == pytest.approx(before[place] + more)


@given(graph=graphs(), place=st.integers(0, 59))
def test_an_edge_less_never_lengthens_the_replay(graph: Graph, place: int) -> None:
    assume(len(graph.source))
    place %= len(graph.source)
    before, without = replay(graph), replay(graph, lag=changed(graph.lag, place, NEVER))
    assert (without <= before).all()
    keep = np.arange(len(graph.source)) != place
    gone = replace(
        graph, source=graph.source[keep], target=graph.target[keep], lag=graph.lag[keep],
        edge_kind=graph.edge_kind[keep],
    ).indexed()  # fmt: skip
    # An edge with a lag of NEVER is no edge, wherever anything else says when its target starts.
    released = graph.release[graph.target[place]] > NEVER / 2
    assert not released or (replay(gone) == without).all()


@given(graph=graphs(), seed=st.integers(0, 2**32 - 1))
def test_no_edit_saves_more_than_is_proven(graph: Graph, seed: int) -> None:
    random = np.random.default_rng(seed)
    before = EditedGraph.of(graph, graph.duration, {})
    after = before.copy()
    after.duration *= np.where(random.random(len(after.duration)) < 0.3, random.choice([0.0, 0.5]), 1.0)
    after.lag[random.random(len(after.lag)) < 0.3] = NEVER
    ends, sooner = replay(graph), replay(graph, after.duration, after.lag)
    saved = length(graph, ends) - length(graph, sooner)
    most = bounds.covered([bounds.removable(before, ends, after)])
    assert saved <= most * (1 + 1e-9) + 1e-6 * abs(length(graph, ends))


@given(graph=graphs())
def test_no_node_starts_before_what_it_waits_for(graph: Graph) -> None:
    ends = replay(graph)
    starts = ends - graph.duration
    slack = 1e-6 * np.maximum(1, np.abs(ends))
    assert (starts >= graph.release - np.abs(graph.release) * 1e-9 - slack).all()
    assert (starts[graph.target] >= ends[graph.source] + graph.lag - slack[graph.target]).all()


@given(graph=graphs())
def test_a_replay_is_the_same_each_time_and_the_same_compiled(graph: Graph) -> None:
    ends = replay(graph)
    np.testing.assert_array_equal(replay(graph), ends)
    fast = compiled.replay(graph.first, graph.source, graph.lag, graph.release, graph.duration)
    np.testing.assert_array_equal(fast, ends)


def test_a_large_graph_is_replayed_like_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """After some work the replay is compiled: a long chain with a detour around each node."""
    loaded: list[bool] = []
    monkeypatch.setattr(simulate, "_seen", [0])
    monkeypatch.setattr(simulate, "_WORTH", 40_000)
    monkeypatch.setattr(simulate, "_compiled", cache(lambda: loaded.append(True) or compiled.replay))
    n = 15_000
    edges = [(i, i + 1, 0.25) for i in range(n - 1)] + [(i, i + 2, 7.0) for i in range(n - 2)]
    graph = bare_graph([1.5] * n, [0.0] * n, edges)
    assert len(graph.source) > 20_000
    for times in range(3):
        assert loaded == [True] * (times > 1)
        assert length(graph, replay(graph)) == pytest.approx(1.5 + (n - 1) // 2 * 8.5 + (n - 1) % 2 * 1.75)
    assert loaded == [True]


@given(graph=graphs(), power=st.integers(-10, 10))
def test_a_replay_scales_with_its_times(graph: Graph, power: int) -> None:
    """Exactly, for powers of two: nothing in it depends on a unit."""
    factor = 2.0**power
    scaled = replace(graph, duration=graph.duration * factor, lag=graph.lag * factor, release=graph.release * factor)
    np.testing.assert_array_equal(replay(scaled), replay(graph) * factor)


# Random recorded timelines


@contextmanager
def replayable(case: Case, **settings: float) -> Iterator[LoopModel]:
    with loop_model(case, **settings) as model:
        assume(model.graphs)
        yield model


def some(data: st.DataObject, count: int) -> list[int]:
    return sorted(data.draw(st.sets(st.integers(0, count - 1))))


def selection(data: st.DataObject, graph: Graph) -> EditTargets:
    """Any calls and operations."""
    calls = np.array(some(data, len(graph.record.calls)), dtype=np.int64)
    ops = np.array(some(data, len(graph.record.ops)), dtype=np.int64)
    recoverable = data.draw(st.lists(st.floats(0, 1), min_size=len(ops), max_size=len(ops)))
    return EditTargets(calls, calls, ops, np.array(recoverable, dtype=np.float64), NOTHING)


@LAW
@given(case=any_timeline(), data=st.data())
def test_laws_of_a_graph_hold_for_a_recorded_timeline(case: Case, data: st.DataObject) -> None:
    with replayable(case) as model:
        for graph in model.graphs:
            assert (graph.source < graph.target).all()
            assert (graph.duration >= 0).all()
            ends = replay(graph)
            node = data.draw(st.integers(0, len(graph.duration) - 1))
            assert (replay(graph, changed(graph.duration, node, graph.duration[node] + 1e5)) >= ends).all()
            edge = data.draw(st.integers(0, len(graph.source) - 1))
            assert (replay(graph, lag=changed(graph.lag, edge, NEVER)) <= ends).all()
            fast = compiled.replay(graph.first, graph.source, graph.lag, graph.release, graph.duration)
            np.testing.assert_array_equal(fast, ends)
            scaled = replace(graph, duration=graph.duration * 4, lag=graph.lag * 4, release=graph.release * 4)
            np.testing.assert_array_equal(replay(scaled), ends * 4)


@LAW
@given(case=any_timeline())
def test_the_same_timeline_gives_the_same_graph(case: Case) -> None:
    with replayable(case) as first, loop_model(case) as second:
        for one, other in zip(first.graphs, second.graphs, strict=True):
            for name in ("duration", "release", "source", "target", "lag", "edge_kind", "op"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@LAW
@given(case=any_timeline())
def test_a_fix_of_nothing_changes_nothing(case: Case) -> None:
    nothing = EditTargets(NOTHING, NOTHING, NOTHING, np.zeros(0), NOTHING)
    with replayable(case) as model:
        for graph in model.graphs:
            for edit in registry.known():
                edited = EditedGraph.of(graph, graph.duration, model.settings)
                registry.apply(edited, [edit], nothing)
                np.testing.assert_array_equal(edited.duration, graph.duration, err_msg=edit)
                np.testing.assert_array_equal(edited.lag, graph.lag, err_msg=edit)
                assert (edited.at_least, edited.added) == (0.0, [])


# What can make a loop longer costs nothing here: copies beside kernels, and launching a graph.
FREE = {"replay_contention": 1.0, "replay_graph_launch_ns": 0.0}


@LAW
@given(case=any_timeline(), data=st.data())
def test_no_fix_lengthens_the_replay_but_by_what_it_costs_itself(case: Case, data: st.DataObject) -> None:
    with replayable(case, **FREE) as model:
        chosen = [selection(data, graph) for graph in model.graphs]
        before = model.remaining([part.edited for part in model.start[0]])
        for edit in registry.known():
            assert model.remaining(model.fixed(rule(edit), chosen, None)) <= before * (1 + 1e-12), edit


@LAW
@given(
    case=any_timeline(), made=st.lists(st.sampled_from(list(registry.known())), min_size=1, max_size=4), data=st.data()
)
def test_each_further_fix_leaves_no_more(case: Case, made: list[str], data: st.DataObject) -> None:
    with replayable(case, **FREE) as model:
        edited_graphs, left = None, 1.0
        for edit in made:
            edited_graphs = model.fixed(rule(edit), [selection(data, graph) for graph in model.graphs], edited_graphs)
            after = model.remaining(edited_graphs)
            assert after <= left * (1 + 1e-12), edit
            left = after
