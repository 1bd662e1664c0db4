"""The recorded timeline as a dependency graph: nodes with durations, edges with lags, both as arrays.

Each outermost CUDA call is three nodes: the host segment before it, its entry, and what is left of it once what it
waits for is done. Each GPU operation is a node. A node starts when all its edges allow; an edge from a to b with lag t
means that b starts no earlier than t after a's end. Nodes stand in the recorded order of their starts, which is an
order of the graph too: a replay is one pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from gpudiag.replay.edges.edge_list import EdgeKind, Edges
from gpudiag.replay.edges.stream_edges import order_ops
from gpudiag.replay.edges.sync_edges import Supply, Waits, cross_thread_dependencies, supply
from gpudiag.replay.trace import CALL_KINDS, Calls, Floats, Ints, LoopTrace

BEFORE_ALL = -1e17  # ns: the earliest start of what only its edges hold back


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in replay order. `overhead_scalable` is the part of a duration (ns) around recorded calls."""

    duration: Floats
    overhead_scalable: Floats
    host_cpu_ns: Floats  # the part of a duration that is the host's own doing, the driver's work included, waiting not
    release: Floats  # earliest start
    recorded: Floats  # recorded start
    source: Ints
    target: Ints
    lag: Floats
    edge_kind: Ints
    segment: Ints  # of each call, its segment's node
    enter: Ints
    leave: Ints
    op: Ints  # of each operation, its node
    input_bound: Ints  # calls whose entry waits for input that comes at its supplier's pace
    tail: int  # what the driving thread did after its last call; -1 when the window ends with the GPU
    length: float  # recorded ns
    iterations: int
    record: LoopTrace
    first: Ints = field(
        default_factory=lambda: np.zeros(1, dtype=np.int64)
    )  # of each node, its first edge; one more at the end

    def indexed(self) -> Graph:
        """The same graph with its edges sorted by target; edges against the order of the nodes are left out."""
        keep = (self.source < self.target) & (self.source >= 0)
        source, target, lag, kind = self.source[keep], self.target[keep], self.lag[keep], self.edge_kind[keep]
        order = np.argsort(target, kind="stable")
        first = np.searchsorted(target[order], np.arange(len(self.duration) + 1))
        return replace(
            self, source=source[order], target=target[order], lag=lag[order], edge_kind=kind[order], first=first
        )


def build(record: LoopTrace, settings: Mapping[str, float]) -> Graph:
    """The graph of a window. Node numbers follow recorded starts; ties go to the host."""
    calls, ops = record.calls, record.ops
    waits = Waits(record, settings)
    over = cross_thread_dependencies(calls, settings)
    n, m = len(calls), len(ops)
    tail = _tail(record)
    handed = np.flatnonzero(over.call >= 0)
    segment_end, taken_over = calls.start.copy(), calls.start.copy()
    segment_end[handed] = calls.segment_start[handed] + over.before[handed]
    taken_over[handed] = calls.end[over.call[handed]]
    recorded = np.concatenate([
        calls.segment_start, taken_over, waits.begins, ops.start, [calls.end[tail]] if tail >= 0 else [],
    ])  # fmt: skip
    order, place = _in_order(n, m, tail >= 0, recorded)
    segment, enter, leave, op = place[:n], place[n : 2 * n], place[2 * n : 3 * n], place[3 * n : 3 * n + m]

    asleep = np.minimum(calls.asleep, segment_end - calls.segment_start)
    first = np.ones(n, dtype=bool)
    first[1:] = calls.thread[1:] != calls.thread[:-1]
    duration = np.concatenate([
        segment_end - calls.segment_start, over.after, calls.end - waits.begins, ops.end - ops.start,
        [record.length - calls.end[tail]] if tail >= 0 else [],
    ])  # fmt: skip
    overhead_scalable = duration.copy()
    overhead_scalable[:n] = np.maximum(duration[:n] - asleep, 0)
    own = np.isin(calls.kind, [CALL_KINDS.index(k) for k in ("alloc", "free", "host_alloc", "load", "context")])
    overhead_scalable[2 * n : 3 * n] = np.where(own | waits.on_copy, 0.0, overhead_scalable[2 * n : 3 * n])
    overhead_scalable[3 * n : 3 * n + m] = 0
    host_cpu_ns = duration.copy()
    host_cpu_ns[:n] = overhead_scalable[:n]
    host_cpu_ns[3 * n : 3 * n + m] = 0
    release = np.full(len(order), BEFORE_ALL)
    release[:n] = np.where(first, calls.segment_start, BEFORE_ALL)
    paced = supply(record, handed, settings)
    duration[paced.follows] = overhead_scalable[paced.follows]  # what is left is waiting, until the input is there

    edges = Edges()
    follows = np.flatnonzero(~first)
    _host_edges(edges, (segment, enter, leave), follows, place[[3 * n + m]] if tail >= 0 else None, tail)
    edges.add(leave[over.call[handed]], enter[handed], 0.0, EdgeKind.CROSS_THREAD)
    _pace(edges, calls, paced, enter)
    edges.add(op[waits.op], leave[waits.call], 0.0, EdgeKind.WAIT)
    alone = order_ops(edges, record, enter, leave, op, settings)
    release[3 * n : 3 * n + m] = 0.0  # until the window begins, the GPU is busy with what was queued before
    release[3 * n : 3 * n + m][alone] = ops.start[alone]

    def placed(values: Floats) -> Floats:
        return np.asarray(values[order], dtype=np.float64)

    source, target, lag, kind = edges.arrays()
    return Graph(
        duration=placed(np.maximum(duration, 0)), overhead_scalable=placed(np.maximum(overhead_scalable, 0)),
        host_cpu_ns=placed(np.maximum(host_cpu_ns, 0)), release=placed(release),
        recorded=placed(recorded), source=source, target=target, lag=lag, edge_kind=kind, segment=segment,
        enter=enter, leave=leave, op=op, input_bound=paced.follows,
        tail=int(place[3 * n + m]) if tail >= 0 else -1, length=record.length,
        iterations=record.window.iterations, record=record,
    ).indexed()  # fmt: skip


def _in_order(calls: int, ops: int, tail: bool, recorded: Floats) -> tuple[Ints, Ints]:
    """Nodes by recorded start, and the place of each; ties go to the host.

    The three nodes of a call must follow one another, and those of the next call them, however short they are.
    """
    each = 3 * np.arange(calls)
    within = np.concatenate([each, each + 1, each + 2, 3 * calls + np.arange(ops), [3 * calls + ops] * tail])
    on_gpu = np.concatenate([np.zeros(3 * calls), np.ones(ops), np.zeros(int(tail))])
    order = np.lexsort((within, on_gpu, recorded))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return order, place


def _host_edges(edges: Edges, nodes: tuple[Ints, Ints, Ints], follows: Ints, end: Ints | None, tail: int) -> None:
    """Join each thread's nodes in order; `end` is what the driving thread did after its last call."""
    segment, enter, leave = nodes
    edges.add(segment, enter, 0.0, EdgeKind.HOST)
    edges.add(enter, leave, 0.0, EdgeKind.HOST)
    edges.add(leave[follows - 1], segment[follows], 0.0, EdgeKind.HOST)
    if end is not None:
        edges.add(leave[[tail]], end, 0.0, EdgeKind.HOST)


def _pace(edges: Edges, calls: Calls, paced: Supply, enter: Ints) -> None:
    """Let each paced input come as long after the one before it as was recorded."""
    lag = calls.start[paced.follows] - calls.start[paced.after]
    edges.add(enter[paced.after], enter[paced.follows], lag, EdgeKind.SUPPLY)


def _tail(record: LoopTrace) -> int:
    """The driving thread's last call, when the window ends with the host and not with the GPU; else -1."""
    calls, ops = record.calls, record.ops
    mine = np.flatnonzero(calls.thread == record.window.thread)
    if not len(mine):
        return -1
    ends = float(ops.end.max()) if len(ops) else 0.0
    last = int(mine[-1])
    return last if calls.end[last] < record.length and ends < record.length else -1
