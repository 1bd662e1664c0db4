"""Replay of the graph in one pass, and checks of whether its answer is believed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from gpudiag.replay.graph import Graph
from gpudiag.replay.trace import Floats, Ints

_WORTH = 600_000  # edges that plain Python replays while numba is imported
_seen = [0]
"""Edges replayed so far in this process: a loop's graph is replayed once for each fix that is priced."""


def replay(
    graph: Graph, duration: Floats | None = None, lag: Floats | None = None, release: Floats | None = None
) -> Floats:
    """The end of each node (ns), with other durations, lags or earliest starts if given."""
    _seen[0] += len(graph.source)
    run = _compiled() if _seen[0] > _WORTH or _compiled.cache_info().currsize else _replay
    return run(
        graph.first, graph.source, graph.lag if lag is None else lag,
        graph.release if release is None else release,
        graph.duration if duration is None else duration,
    )  # fmt: skip


def length(graph: Graph, ends: Floats) -> float:
    """Return when the window's last work ended (ns): its operations, its waits, the driving thread's last call."""
    last = [float(ends[graph.op].max())] if len(graph.op) else []
    if graph.tail >= 0:
        last.append(float(ends[graph.tail]))
    elif len(graph.leave):
        mine = graph.leave[graph.record.calls.thread == graph.record.window.thread]
        last += [float(ends[mine].max())] if len(mine) else []
    return max(last, default=0.0)


def after_first(graph: Graph, ends: Floats, at_least: float) -> float:
    """Return how long the loop takes once the GPU has done the first iteration's work (ns); all of a single one.

    at_least: what the whole loop takes whatever ended when.
    """
    calls = graph.record.ops.call
    first = (calls >= 0) & (np.append(graph.record.iteration_of_call, -1)[calls] == 0)
    done = float(ends[graph.op][first].max()) if graph.iterations > 1 and first.any() else 0.0
    return max(length(graph, ends), at_least) - done


def _replay(first: Ints, source: Ints, lag: Floats, release: Floats, duration: Floats) -> Floats:
    ends = [0.0] * len(duration)
    edges, sources, lags = first.tolist(), source.tolist(), lag.tolist()
    for node, (begin, own) in enumerate(zip(release.tolist(), duration.tolist(), strict=True)):
        start = begin
        for edge in range(edges[node], edges[node + 1]):
            ready = ends[sources[edge]] + lags[edge]
            if ready > start:
                start = ready
        ends[node] = start + own
    return np.array(ends)


def ready() -> None:
    """Load the compiled pass, which takes half a second, before a large graph needs it."""
    nothing, no_edges = np.zeros(1), np.zeros(0, dtype=np.int64)
    _compiled()(np.zeros(2, dtype=np.int64), no_edges, nothing[:0], nothing, nothing)


@cache
def _compiled() -> Callable[[Ints, Ints, Floats, Floats, Floats], Floats]:
    from gpudiag.replay import compiled

    return compiled.replay


@dataclass(frozen=True, slots=True)
class Doubt:
    """Reason why a loop's replay is not believed.

    missed: it takes longer or shorter than the loop did, by the part `off`.
    held: the GPU works nearly all the time, yet without any work the replay stays nearly as long (`off` less).
    """

    kind: Literal["missed", "held"]
    off: float


def held(graphs: Sequence[Graph], settings: Mapping[str, float]) -> Doubt | None:
    """Return a doubt where waits of unknown cause, and not the GPU's work, set the replay's pace.

    A busy GPU sets the pace of its loop. If the replay hardly shortens once neither the GPU nor the host has any work,
    a wait that was recorded with its length holds it, and every price would come out near nothing.
    """
    whole = sum(one.length for one in graphs)
    if whole <= 0 or sum(map(computing, graphs)) < settings["replay_held_busy"] * whole:
        return None
    left = sum(_without_work(one) for one in graphs) / whole
    return Doubt("held", left - 1) if left >= settings["replay_held_part"] else None


def computing(one: Graph) -> float:
    """Return how long the window's busiest device computed (ns)."""
    ops = one.record.ops
    times = [
        union(ops.start[mine], ops.end[mine]) for mine in ((ops.device == d) & (ops.kind == 0) for d in set(ops.device))
    ]
    return max(times, default=0.0)


def union(start: Floats, end: Floats) -> float:
    """Return the time covered by intervals that stand in order of their starts (ns)."""
    if not len(start):
        return 0.0
    reached = np.concatenate([[-np.inf], np.maximum.accumulate(end)[:-1]])
    return float(np.maximum(end - np.maximum(start, reached), 0).sum())


def _without_work(one: Graph) -> float:
    duration = one.duration - one.overhead_scalable
    duration[one.op] = 0.0
    return length(one, replay(one, np.maximum(duration, 0.0)))
