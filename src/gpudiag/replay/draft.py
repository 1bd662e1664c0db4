"""A graph under change, what a finding points at in it, and the groups of calls and operations that edits work on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from gpudiag.replay.edge import NEVER, EdgeKind
from gpudiag.replay.graph import BEFORE_ALL, Graph
from gpudiag.replay.record import CALL_KINDS, Floats, Ints

LAUNCHES = [CALL_KINDS.index(kind) for kind in ("launch", "graph_launch")]
SYNC, COPY = CALL_KINDS.index("sync"), CALL_KINDS.index("copy")
ALLOCATING = [CALL_KINDS.index(kind) for kind in ("alloc", "free", "host_alloc", "pool")]
# What a CUDA graph can hold: everything that neither waits nor allocates nor builds.
CAPTURABLE = [CALL_KINDS.index(kind) for kind in ("launch", "graph_launch", "copy", "set", "pool", "other")]


@dataclass(frozen=True, slots=True)
class Selection:
    """What a finding points at, as positions in the record. `recoverable` is per operation, 0 to 1."""

    calls: Ints
    segments: Ints  # calls whose host segment is meant
    ops: Ints
    recoverable: Floats
    block: Ints  # calls of blocks that exist to read the selected values back
    least: Floats = field(default_factory=lambda: np.zeros(0))  # of `recoverable`, where the rule gives it
    most: Floats = field(default_factory=lambda: np.zeros(0))


@dataclass(slots=True)
class Draft:
    """A graph under change."""

    graph: Graph
    settings: Mapping[str, float]
    duration: Floats
    lag: Floats
    release: Floats
    base: Floats  # durations before any edit
    at_least: float = 0.0  # ns: what other workers need, whatever the replay says
    added: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, graph: Graph, duration: Floats, settings: Mapping[str, float]) -> Draft:
        return cls(graph, settings, duration.copy(), graph.lag.copy(), graph.release.copy(), duration)

    def copy(self) -> Draft:
        arrays = {name: getattr(self, name).copy() for name in ("duration", "lag", "release")}
        return replace(self, **arrays, added=list(self.added))

    def no_wait(self, calls: Ints) -> None:
        """The calls return without waiting for any operation."""
        graph = self.graph
        waits = (graph.edge_kind == EdgeKind.WAIT) & np.isin(graph.target, graph.leave[calls])
        self.lag[waits] = NEVER

    def cost(self, calls: Ints, ns: float) -> None:
        """The calls hold the host no longer than that."""
        nodes = self.graph.leave[calls]
        self.duration[nodes] = np.minimum(self.duration[nodes], ns)

    def no_segment(self, calls: Ints) -> float:
        """The host does nothing before the calls, and waits for no other thread; returns what that took (ns)."""
        graph = self.graph
        nodes = np.concatenate([graph.segment[calls], graph.enter[calls]])
        taken = float(self.duration[nodes].sum())
        fetched = np.intersect1d(calls, graph.supplied)
        record = graph.record.calls
        taken += float(np.minimum(record.asleep, record.start - record.segment_start)[fetched].sum())
        self.duration[nodes] = 0.0
        self.release[graph.enter[fetched]] = BEFORE_ALL
        self.lag[(graph.edge_kind == EdgeKind.HAND_OVER) & np.isin(graph.target, graph.enter[calls])] = NEVER
        return taken

    def usual_launch(self) -> float:
        """What a launch costs the host in this loop (ns)."""
        launches = np.isin(self.graph.record.calls.kind, LAUNCHES)
        nodes = self.graph.leave[launches]
        return float(np.median(self.base[nodes])) if len(nodes) else self.settings["replay_launch_ns"]

    def without_ops(self, ops: Ints) -> None:
        self.duration[self.graph.op[ops]] = 0.0


def but_launches(draft: Draft, calls: Ints) -> Ints:
    return calls[~np.isin(draft.graph.record.calls.kind[calls], LAUNCHES)]


def handling(draft: Draft, reads: Ints) -> Ints:
    """Calls before which the host handled what the call before them, or a wait right after that, had read."""
    calls, settings = draft.graph.record.calls, draft.settings
    after = reads[np.isin(calls.kind[reads], [SYNC, COPY])] + 1
    after = after[after < len(calls)]
    after = np.where((calls.kind[after] == SYNC) & (after + 1 < len(calls)), after + 1, after)
    taken = draft.duration[draft.graph.segment[after]]
    same = calls.thread[after] == calls.thread[after - 1]
    return np.asarray(after[same & (taken >= settings["host_work_ns"]) & (taken < settings["cpu_phase_ns"])])


def started_by(draft: Draft, calls: Ints) -> Ints:
    return np.flatnonzero(np.isin(draft.graph.record.ops.call, calls))


def link_time(draft: Draft, ops: Ints) -> Floats:
    bytes_ = draft.graph.record.ops.bytes[ops]
    return np.asarray(1e9 * bytes_ / draft.settings["pinned_bytes_per_s"], dtype=np.float64)


def numbered(groups: list[Ints], count: int) -> Ints:
    """Of each of `count` positions, the number of the group that holds it; -1 for none."""
    number = np.full(count, -1, dtype=np.int64)
    for index, members in enumerate(groups):
        number[members] = index
    return number


def edges_within(draft: Draft, group: Ints) -> Ints:
    """Stream edges between operations of one group; `group` is each operation's, -1 for none."""
    graph = draft.graph
    of_node = np.full(len(draft.duration), -1, dtype=np.int64)
    of_node[graph.op] = group
    source, target = of_node[graph.source], of_node[graph.target]
    return np.flatnonzero((graph.edge_kind == EdgeKind.STREAM) & (target >= 0) & (source == target))


def regions(draft: Draft, chosen: Selection) -> list[Ints]:
    """Runs of calls, on one thread and in one turn, that one graph could hold and of which one is selected."""
    graph, record = draft.graph, draft.graph.record
    calls = record.calls
    waiting = np.zeros(len(calls), dtype=bool)
    held = (graph.edge_kind == EdgeKind.WAIT) & (draft.lag > NEVER / 2)
    place = np.full(len(draft.duration), -1, dtype=np.int64)
    place[graph.leave] = np.arange(len(calls))
    waiting[place[graph.target[held]]] = True
    launches = np.isin(calls.kind, LAUNCHES)
    waiting &= ~launches  # a launch that waits only for room in the queue
    fits = np.isin(calls.kind, CAPTURABLE) & ~waiting
    breaks = np.ones(len(calls), dtype=bool)
    breaks[1:] = (calls.thread[1:] != calls.thread[:-1]) | (record.turn_of_call[1:] != record.turn_of_call[:-1])
    breaks[1:] |= ~fits[1:] | ~fits[:-1]
    number = np.cumsum(breaks)
    wanted = np.unique(number[np.intersect1d(np.union1d(chosen.calls, chosen.segments), np.flatnonzero(launches))])
    order = np.flatnonzero(np.isin(number, wanted) & fits)
    return [run for run in np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if len(run) > 1]


def rows_in_stream(draft: Draft, selected: Ints) -> list[Ints]:
    """Selected operations that follow one another in their stream, row by row; a row ends with its turn."""
    record = draft.graph.record
    ops = record.ops
    turn = np.full(len(ops), -1, dtype=np.int64)
    turn[ops.call >= 0] = record.turn_of_call[ops.call[ops.call >= 0]]
    rank = np.empty(len(ops), dtype=np.int64)
    order = np.lexsort((np.arange(len(ops)), ops.stream))
    rank[order] = np.arange(len(ops))
    chosen = selected[np.argsort(rank[selected])]
    breaks = (np.diff(rank[chosen]) != 1) | (np.diff(ops.stream[chosen]) != 0) | (np.diff(turn[chosen]) != 0)
    return [row for row in np.split(chosen, np.flatnonzero(breaks) + 1) if len(row) > 1]
