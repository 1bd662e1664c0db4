"""Small timelines as dependency graphs, replayed as recorded and with fixes made. Synthetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pytest

from gpudiag.model import Rule
from gpudiag.replay import graph, trace
from gpudiag.replay.edges.edge_list import EdgeKind
from gpudiag.replay.edits import registry
from gpudiag.replay.graph import Graph
from gpudiag.replay.loop_model import LoopModel
from gpudiag.replay.simulate import length, replay
from gpudiag.replay.trace import Calls, Floats, LoopTrace, Ops, Window
from timelines import Case, library, opened

VIEWS = (
    "analysed_gpu_op",
    "analysed_api_call",
    "api_name",
    "span",
    "analysed_iteration",
    "idle_interval",
    "readback_range",
    "device_link",
)
NOTHING = np.zeros(0, dtype=np.int64)
# Recording costs nothing: what is left after a fix can be computed from the rows.
AS_RECORDED = {"replay_call_ns": 0.0, "replay_most_call_ns": 0.0, "replay_least_driver": 1.0}


def settings(**changed: float) -> dict[str, float]:
    """The packaged settings, some of them changed."""
    return {**library().setting_values, **changed}


@contextmanager
def loop_model(case: Case, **changed: float) -> Iterator[LoopModel]:
    """Loop 0 of these rows, to be replayed with fixes; the time of recording is not taken away."""
    known = settings(**AS_RECORDED | changed)
    with opened(case, *VIEWS) as con:
        graphs = [
            graph.build(found, known)
            for window in trace.windows(con, 0, known["replay_min_cover"])
            if len((found := trace.read(con, window)).calls) and len(found.ops)
        ]
        yield LoopModel(con, graphs, known, None)


def graph_of(case: Case, **changed: float) -> Graph:
    """The only window of loop 0 as a graph."""
    with loop_model(case, **changed) as model:
        [one] = model.graphs
        return one


def rule(*edits: str, on: str = "api_calls") -> Rule:
    """A rule whose fix is these edits."""
    return Rule.model_validate({
        "code": "H01", "kind": "finding", "id": "x", "title": "T", "query": "select 1", "message": "m", "why": "w",
        "not_a_problem_when": "n", "what": "x", "price": {"kind": "expected", "on": on, "expected": edits},
    })  # fmt: skip


def fixed(case: Case, *edits: str, changed: Mapping[str, float] | None = None, **row: Any) -> float:
    """How long (µs) loop 0 takes once a finding is fixed; the row names its calls or operations by id."""
    on = next(name for name in row if name in ("api_calls", "gpu_ops", "idle_intervals"))
    with loop_model(case, **(changed or {})) as model:
        wanted = rule(*edits, on=on)
        chosen = model.select(wanted, [row])
        assert chosen is not None
        before = sum(length(one, replay(one)) for one in model.graphs)
        return model.remaining(model.fixed(wanted, chosen, None), moved=registry.moves(edits)) * before / 1000


@dataclass(frozen=True)
class Unedited:
    """The replay of a timeline beside what was recorded of it."""

    graph: Graph
    ends: Floats

    @property
    def kinds(self) -> set[EdgeKind]:
        return {EdgeKind(kind) for kind in self.graph.edge_kind}

    def check(self, *expected: EdgeKind) -> None:
        """The replay reproduces the record, by edges of these kinds among others."""
        one = self.graph
        assert set(expected) <= self.kinds
        assert length(one, self.ends) == pytest.approx(one.length, rel=0.01)
        starts = (self.ends - one.duration)[one.op]
        assert len(starts)
        np.testing.assert_allclose(starts, one.record.ops.start, rtol=0, atol=0.01 * one.length / one.iterations)


def unedited(case: Case) -> Unedited:
    """Loop 0, replayed as it was recorded."""
    one = graph_of(case)
    return Unedited(one, replay(one))


def bare_graph(
    duration: list[float], release: list[float], edges: list[tuple[int, int, float]], kind: EdgeKind = EdgeKind.HOST
) -> Graph:
    """A graph of nothing but nodes and edges (source, target, lag); every node counts as an operation."""
    n = len(duration)
    some, empty = np.zeros(n), np.zeros(0)
    calls = Calls(**{one.name: empty for one in fields(Calls)})
    ops = Ops(**{one.name: np.zeros(n, dtype=np.int64) for one in fields(Ops)})
    own = LoopTrace(Window(0, 0, 0, 0, 1, 1), 1.0, calls, ops, NOTHING, NOTHING, NOTHING, empty)
    return Graph(
        duration=np.array(duration), overhead_scalable=some, host_cpu_ns=some, release=np.array(release), recorded=some,
        source=np.array([edge[0] for edge in edges], dtype=np.int64),
        target=np.array([edge[1] for edge in edges], dtype=np.int64),
        lag=np.array([edge[2] for edge in edges], dtype=np.float64),
        edge_kind=np.full(len(edges), int(kind), dtype=np.int64), segment=NOTHING, enter=NOTHING, leave=NOTHING,
        input_bound=NOTHING,
        op=np.arange(n), tail=-1, length=1.0, iterations=1, record=own,
    ).indexed()  # fmt: skip
