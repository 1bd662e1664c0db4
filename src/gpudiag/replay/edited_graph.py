"""A graph under change, what a finding points at in it, and the groups of calls and operations that edits work on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from gpudiag.replay.edges.edge_list import NEVER, EdgeKind
from gpudiag.replay.graph import Graph
from gpudiag.replay.trace import CALL_KINDS, Floats, Ints

LAUNCHES = [CALL_KINDS.index(kind) for kind in ("launch", "graph_launch")]
SYNC, COPY = CALL_KINDS.index("sync"), CALL_KINDS.index("copy")
FREE, POOL = CALL_KINDS.index("free"), CALL_KINDS.index("pool")
ALLOCATING = [CALL_KINDS.index(kind) for kind in ("alloc", "free", "host_alloc", "pool")]
# What a CUDA graph can hold: everything that neither waits nor allocates nor builds.
CAPTURABLE = [CALL_KINDS.index(kind) for kind in ("launch", "graph_launch", "copy", "set", "pool", "other")]


@dataclass(frozen=True, slots=True)
class EditTargets:
    """Targets of a finding, as positions in the trace. `recoverable` is per operation, 0 to 1."""

    calls: Ints
    segments: Ints  # calls whose host segment is meant
    ops: Ints
    recoverable: Floats
    block: Ints  # calls of blocks that exist to read the selected values back
    least: Floats = field(default_factory=lambda: np.zeros(0))  # of `recoverable`, where the rule gives it
    most: Floats = field(default_factory=lambda: np.zeros(0))


@dataclass(slots=True)
class EditedGraph:
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
    def of(cls, graph: Graph, duration: Floats, settings: Mapping[str, float]) -> EditedGraph:
        return cls(graph, settings, duration.copy(), graph.lag.copy(), graph.release.copy(), duration)

    def copy(self) -> EditedGraph:
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
        """The host does nothing of its own before the calls; returns what that took (ns).

        Another thread that launches kernels meanwhile is still waited for, and so is what the host did before it handed
        over: a backward pass that runs in a thread of its own stays before the optimizer. A thread that launches
        nothing worked for the calls alone.
        """
        graph = self.graph
        handed = calls[np.isin(graph.enter[calls], graph.target[graph.edge_kind == EdgeKind.CROSS_THREAD])]
        kept = handed[self._launched_meanwhile(handed)]
        nodes = np.concatenate([graph.segment[np.setdiff1d(calls, kept)], graph.enter[calls]])
        taken = float(self.duration[nodes].sum())
        self.duration[nodes] = 0.0
        alone = graph.enter[np.setdiff1d(handed, kept)]
        self.lag[(graph.edge_kind == EdgeKind.CROSS_THREAD) & np.isin(graph.target, alone)] = NEVER
        return taken

    def _launched_meanwhile(self, calls: Ints) -> NDArray[np.bool_]:
        """Return whether anything was launched in the segments before the calls: by other threads, then."""
        record = self.graph.record.calls
        starts = np.sort(record.start[np.isin(record.kind, LAUNCHES)])
        first, last = (np.searchsorted(starts, edge[calls]) for edge in (record.segment_start, record.start))
        return np.asarray(last > first)

    def no_fetch(self, calls: Ints) -> float:
        """Input is ready when the host asks for it; returns what waiting for it took (ns)."""
        graph, record = self.graph, self.graph.record.calls
        self.lag[self._handed_by_suppliers(calls)] = NEVER
        fetched = np.intersect1d(calls, graph.input_bound)
        self.lag[(graph.edge_kind == EdgeKind.SUPPLY) & np.isin(graph.target, graph.enter[fetched])] = NEVER
        return float(np.minimum(record.asleep, record.start - record.segment_start)[fetched].sum())

    def _handed_by_suppliers(self, calls: Ints) -> Ints:
        """Return edges by which a thread that launches nothing, and that the calls waited for, hands over to their
        threads in their iterations: it pins or copies batches, and one batch takes several of its calls.
        """
        graph, record = self.graph, self.graph.record
        handed = np.flatnonzero(graph.edge_kind == EdgeKind.CROSS_THREAD)
        source, target = (
            self.places_in(graph.leave)[graph.source[handed]],
            self.places_in(graph.enter)[graph.target[handed]],
        )
        thread = record.calls.thread
        launching = np.unique(thread[np.isin(record.calls.kind, LAUNCHES)])
        suppliers = np.setdiff1d(thread[source[np.isin(target, calls)]], launching)
        asked = np.isin(thread[target], thread[calls]) & np.isin(
            record.iteration_of_call[target], record.iteration_of_call[calls]
        )
        return np.asarray(handed[np.isin(thread[source], suppliers) & asked])

    def places_in(self, nodes: Ints) -> Ints:
        """Of each node, its place in `nodes`, of which each call or operation has one; -1 for the other nodes."""
        place = np.full(len(self.duration), -1, dtype=np.int64)
        place[nodes] = np.arange(len(nodes))
        return place

    def usual_launch(self) -> float:
        """Return what a launch costs the host in this loop (ns)."""
        launches = np.isin(self.graph.record.calls.kind, LAUNCHES)
        nodes = self.graph.leave[launches]
        return float(np.median(self.base[nodes])) if len(nodes) else self.settings["replay_launch_ns"]

    def without_ops(self, ops: Ints) -> None:
        """The operations take no time, and order nothing between the legacy default stream and the others."""
        graph, record = self.graph, self.graph.record.ops
        nodes = graph.op[ops]
        self.duration[nodes] = 0.0
        legacy = graph.edge_kind == EdgeKind.LEGACY
        held = np.flatnonzero(legacy & np.isin(graph.source, nodes) & ~np.isin(graph.target, nodes))
        self.lag[legacy & (np.isin(graph.source, nodes) | np.isin(graph.target, nodes))] = NEVER
        # What waited for one of them waits for what comes before that in its stream.
        gone = self.places_in(graph.op)[graph.source[held]]
        for stream in np.unique(record.stream[gone]):
            stays = np.setdiff1d(np.flatnonzero(record.stream == stream), ops)
            here = record.stream[gone] == stream
            before = np.searchsorted(stays, gone[here]) - 1
            self.added += zip(
                graph.op[stays[before[before >= 0]]].tolist(),
                graph.target[held[here]][before >= 0].tolist(),
                strict=True,
            )


def but_launches(edited: EditedGraph, calls: Ints) -> Ints:
    return calls[~np.isin(edited.graph.record.calls.kind[calls], LAUNCHES)]


def handling(edited: EditedGraph, reads: Ints) -> Ints:
    """Calls before which the host handled what the call before them, or a wait right after that, had read."""
    calls, settings = edited.graph.record.calls, edited.settings
    after = reads[np.isin(calls.kind[reads], [SYNC, COPY])] + 1
    after = after[after < len(calls)]
    after = np.where((calls.kind[after] == SYNC) & (after + 1 < len(calls)), after + 1, after)
    taken = edited.duration[edited.graph.segment[after]]
    same = calls.thread[after] == calls.thread[after - 1]
    return np.asarray(after[same & (taken >= settings["host_work_ns"]) & (taken < settings["cpu_phase_ns"])])


def own_work(edited: EditedGraph, chosen: EditTargets) -> Ints:
    """Calls whose host segment belongs to what the selection names, and goes with it.

    Before a wait or a copy a short segment prepares it; a longer one is a phase of its own. A block that exists only
    to read values back goes whole. Input is fetched all the same.
    """
    graph = edited.graph
    calls = graph.record.calls
    longer = edited.duration[graph.segment[chosen.segments]] >= edited.settings["cpu_phase_ns"]
    beside = np.isin(calls.kind[chosen.segments], [SYNC, COPY]) & longer
    before = np.union1d(chosen.segments[~beside], np.union1d(chosen.block, handling(edited, chosen.calls)))
    return np.asarray(before[~calls.fetches[before]])


def started_by(edited: EditedGraph, calls: Ints) -> Ints:
    return np.flatnonzero(np.isin(edited.graph.record.ops.call, calls))


def waits_after(edited: EditedGraph, calls: Ints) -> Ints:
    """The waits that come right after these calls, in order."""
    record = edited.graph.record.calls
    after = np.unique(calls[(calls >= 0) & (calls + 1 < len(record))]) + 1
    waits: Ints = after[(record.kind[after] == SYNC) & (record.thread[after] == record.thread[after - 1])]
    return waits


def link_time(edited: EditedGraph, ops: Ints) -> Floats:
    """Return how long the copies take at the rate of their device's link (ns)."""
    copies = edited.graph.record.ops
    return np.asarray(1e9 * copies.bytes[ops] / copies.link[ops], dtype=np.float64)


def numbered(groups: list[Ints], count: int) -> Ints:
    """Of each of `count` positions, the number of the group that holds it; -1 for none."""
    number = np.full(count, -1, dtype=np.int64)
    for index, members in enumerate(groups):
        number[members] = index
    return number


def edges_within(edited: EditedGraph, group: Ints) -> Ints:
    """Stream edges between operations of one group; `group` is each operation's, -1 for none."""
    graph = edited.graph
    of_node = np.full(len(edited.duration), -1, dtype=np.int64)
    of_node[graph.op] = group
    source, target = of_node[graph.source], of_node[graph.target]
    return np.flatnonzero((graph.edge_kind == EdgeKind.STREAM) & (target >= 0) & (source == target))


def regions(edited: EditedGraph, chosen: EditTargets) -> list[Ints]:
    """Return runs of calls, on one thread and in one iteration, that one graph could hold and of which one is selected.

    Iterations of few launches are steps of something larger: a graph can hold many of them.
    """
    graph, record = edited.graph, edited.graph.record
    calls = record.calls
    waiting = np.zeros(len(calls), dtype=bool)
    held = (graph.edge_kind == EdgeKind.WAIT) & (edited.lag > NEVER / 2)
    waiting[edited.places_in(graph.leave)[graph.target[held]]] = True
    launches = np.isin(calls.kind, LAUNCHES)
    waiting &= ~launches  # a launch that waits only for room in the queue
    gone = edited.duration[graph.leave] == 0  # by another fix: a wait for nothing, an allocation before the loop
    fits = (np.isin(calls.kind, CAPTURABLE) | gone) & ~waiting
    breaks = np.ones(len(calls), dtype=bool)
    breaks[1:] = calls.thread[1:] != calls.thread[:-1]
    if launches.sum() >= edited.settings["replay_graph_launches"] * record.window.iterations:
        breaks[1:] |= record.iteration_of_call[1:] != record.iteration_of_call[:-1]
    breaks[1:] |= ~fits[1:] | ~fits[:-1]
    number = np.cumsum(breaks)
    wanted = np.unique(number[np.intersect1d(np.union1d(chosen.calls, chosen.segments), np.flatnonzero(launches))])
    order = np.flatnonzero(np.isin(number, wanted) & fits)
    return [run for run in np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if len(run) > 1]


def rows_in_stream(edited: EditedGraph, selected: Ints) -> list[Ints]:
    """Selected operations that follow one another in their stream, row by row; a row ends with its iteration."""
    record = edited.graph.record
    ops = record.ops
    iteration = np.full(len(ops), -1, dtype=np.int64)
    iteration[ops.call >= 0] = record.iteration_of_call[ops.call[ops.call >= 0]]
    rank = np.empty(len(ops), dtype=np.int64)
    order = np.lexsort((np.arange(len(ops)), ops.stream))
    rank[order] = np.arange(len(ops))
    chosen = selected[np.argsort(rank[selected])]
    breaks = (np.diff(rank[chosen]) != 1) | (np.diff(ops.stream[chosen]) != 0) | (np.diff(iteration[chosen]) != 0)
    return [row for row in np.split(chosen, np.flatnonzero(breaks) + 1) if len(row) > 1]


def prefetched(edited: EditedGraph, uploads: Ints) -> tuple[Ints, Ints]:
    """Return uploads that the host could ask for an iteration earlier, and of each the call that did so for its data
    then: the one in the same place of the iteration before (-1: before the window).

    Left out are uploads before which the host waited for a read-back of about as many bytes: it sends what it read.
    """
    record, settings = edited.graph.record, edited.settings
    calls, ops = record.calls, record.ops
    mine = uploads[ops.call[uploads] >= 0]
    iteration = record.iteration_of_call[ops.call[mine]]
    order = np.lexsort((mine, iteration))
    mine, iteration = mine[order], iteration[order]
    place = np.arange(len(mine)) - np.searchsorted(iteration, iteration)
    call_of = {
        (t, p): int(ops.call[op]) for op, t, p in zip(mine.tolist(), iteration.tolist(), place.tolist(), strict=True)
    }
    asked = np.array(
        [call_of.get((t - 1, p), -1) for t, p in zip(iteration.tolist(), place.tolist(), strict=True)], dtype=np.int64
    )
    reads = np.flatnonzero((ops.direction == 2) & (ops.call >= 0))
    reads = reads[np.argsort(ops.end[reads], kind="stable")]
    total = np.concatenate([[0.0], np.cumsum(ops.bytes[reads])])
    now = calls.start[ops.call[mine]]
    since = np.where(asked >= 0, calls.start[np.maximum(asked, 0)], -np.inf)
    first, last = (np.searchsorted(ops.end[reads], time, "left") for time in (since, now))
    fed_back = total[last] - total[first] >= np.maximum(settings["replay_feedback_part"] * ops.bytes[mine], 1.0)
    return mine[~fed_back], asked[~fed_back]


def with_edges(edited: EditedGraph) -> tuple[Graph, EditedGraph]:
    """Return the graph with the edges that its edits added, and the edits of that graph."""
    one = edited.graph
    extra = np.array(edited.added, dtype=np.int64).reshape(-1, 2)
    wider = replace(
        one,
        source=np.concatenate([one.source, extra[:, 0]]),
        target=np.concatenate([one.target, extra[:, 1]]),
        lag=np.concatenate([edited.lag, np.zeros(len(extra))]),
        edge_kind=np.concatenate([one.edge_kind, np.full(len(extra), int(EdgeKind.STREAM))]),
    ).indexed()
    return wider, replace(edited, graph=wider, lag=wider.lag, added=[])
