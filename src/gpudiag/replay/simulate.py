"""One pass over the graph: when would everything have happened?"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from gpudiag.replay.graph import Graph
from gpudiag.replay.record import Floats, Ints

_SMALL = 20_000  # below so many edges plain Python is done before numba is imported


def replay(
    graph: Graph, duration: Floats | None = None, lag: Floats | None = None, release: Floats | None = None
) -> Floats:
    """The end of each node (ns), with other durations, lags or earliest starts if given."""
    edges = len(graph.source)
    run = _compiled() if edges > _SMALL else _replay
    return run(
        graph.first, graph.source, graph.lag if lag is None else lag,
        graph.release if release is None else release,
        graph.duration if duration is None else duration,
    )  # fmt: skip


def length(graph: Graph, ends: Floats) -> float:
    """When the window's last work ended: its operations, its waits, and what the driving thread did last (ns)."""
    last = [float(ends[graph.op].max())] if len(graph.op) else []
    if graph.tail >= 0:
        last.append(float(ends[graph.tail]))
    elif len(graph.leave):
        mine = graph.leave[graph.record.calls.thread == graph.record.window.thread]
        last += [float(ends[mine].max())] if len(mine) else []
    return max(last, default=0.0)


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


@cache
def _compiled() -> Callable[[Ints, Ints, Floats, Floats, Floats], Floats]:
    from gpudiag.replay import compiled

    return compiled.replay
