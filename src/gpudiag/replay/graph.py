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

from gpudiag.replay.edge import EdgeKind, Edges
from gpudiag.replay.queues import order_ops
from gpudiag.replay.record import CALL_KINDS, Floats, Ints, Record
from gpudiag.replay.waits import Waits, hand_overs


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in replay order. `scalable` is the part of a duration (ns) around recorded calls."""

    duration: Floats
    scalable: Floats
    hostly: Floats  # the part of a duration that is the host's own doing, the driver's work included, waiting not
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
    tail: int  # what the driving thread did after its last call; -1 when the window ends with the GPU
    length: float  # recorded ns
    turns: int
    record: Record
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


def build(record: Record, settings: Mapping[str, float]) -> Graph:
    """The graph of a window. Node numbers follow recorded starts; ties go to the host."""
    calls, ops = record.calls, record.ops
    waits = Waits(record, settings)
    over = hand_overs(calls, settings)
    n, m = len(calls), len(ops)
    tail = _tail(record)
    handed = np.flatnonzero(over.call >= 0)
    segment_end, taken_over = calls.start.copy(), calls.start.copy()
    segment_end[handed] = calls.segment_start[handed] + over.before[handed]
    taken_over[handed] = calls.end[over.call[handed]]
    recorded = np.concatenate([
        calls.segment_start, taken_over, waits.begins, ops.start, [calls.end[tail]] if tail >= 0 else [],
    ])  # fmt: skip
    # The three nodes of a call must follow one another, and those of the next call them, however short they are.
    within = np.concatenate(
        [3 * np.arange(n), 3 * np.arange(n) + 1, 3 * np.arange(n) + 2, 3 * n + np.arange(m), [3 * n + m] * (tail >= 0)]
    )
    on_gpu = np.concatenate([np.zeros(3 * n), np.ones(m), np.zeros(int(tail >= 0))])
    order = np.lexsort((within, on_gpu, recorded))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    segment, enter, leave, op = place[:n], place[n : 2 * n], place[2 * n : 3 * n], place[3 * n : 3 * n + m]

    asleep = np.minimum(calls.asleep, segment_end - calls.segment_start)
    first = np.ones(n, dtype=bool)
    first[1:] = calls.thread[1:] != calls.thread[:-1]
    duration = np.concatenate([
        segment_end - calls.segment_start, over.after, calls.end - waits.begins, ops.end - ops.start,
        [record.length - calls.end[tail]] if tail >= 0 else [],
    ])  # fmt: skip
    scalable = duration.copy()
    scalable[:n] = np.maximum(duration[:n] - asleep, 0)
    own = np.isin(calls.kind, [CALL_KINDS.index(k) for k in ("alloc", "free", "host_alloc", "load", "context")])
    scalable[2 * n : 3 * n] = np.where(own | waits.on_copy, 0.0, scalable[2 * n : 3 * n])
    scalable[3 * n : 3 * n + m] = 0
    hostly = duration.copy()
    hostly[:n] = scalable[:n]
    hostly[3 * n : 3 * n + m] = 0
    release = np.full(len(order), -1e17)
    release[:n] = np.where(first, calls.segment_start, -1e17)

    edges = Edges()
    edges.add(segment, enter, 0.0, EdgeKind.HOST)
    edges.add(enter, leave, 0.0, EdgeKind.HOST)
    follows = np.flatnonzero(~first)
    edges.add(leave[follows - 1], segment[follows], 0.0, EdgeKind.HOST)
    edges.add(leave[over.call[handed]], enter[handed], 0.0, EdgeKind.HAND_OVER)
    edges.add(op[waits.op], leave[waits.call], 0.0, EdgeKind.WAIT)
    if tail >= 0:
        edges.add(leave[[tail]], place[[3 * n + m]], 0.0, EdgeKind.HOST)
    alone = order_ops(edges, record, enter, op, settings)
    release[3 * n : 3 * n + m] = 0.0  # until the window begins, the GPU is busy with what was queued before
    release[3 * n : 3 * n + m][alone] = ops.start[alone]

    def placed(values: Floats) -> Floats:
        return np.asarray(values[order], dtype=np.float64)

    source, target, lag, kind = edges.arrays()
    return Graph(
        duration=placed(np.maximum(duration, 0)), scalable=placed(np.maximum(scalable, 0)),
        hostly=placed(np.maximum(hostly, 0)), release=placed(release),
        recorded=placed(recorded), source=source, target=target, lag=lag, edge_kind=kind, segment=segment, enter=enter,
        leave=leave, op=op, tail=int(place[3 * n + m]) if tail >= 0 else -1, length=record.length,
        turns=record.window.turns, record=record,
    ).indexed()  # fmt: skip


def _tail(record: Record) -> int:
    """The driving thread's last call, when the window ends with the host and not with the GPU; else -1."""
    calls, ops = record.calls, record.ops
    mine = np.flatnonzero(calls.thread == record.window.thread)
    if not len(mine):
        return -1
    ends = float(ops.end.max()) if len(ops) else 0.0
    last = int(mine[-1])
    return last if calls.end[last] < record.length and ends < record.length else -1
