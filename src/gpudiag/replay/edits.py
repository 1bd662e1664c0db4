"""What a fix does to the graph. Each edit is a few lines, with the assumption it rests on.

An edit changes durations and lags of a draft of the graph; it never changes which operation comes first in a queue, so
that what it takes away can only shorten the replay. Only overlap_copy adds something: copies beside kernels are slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from gpudiag.model import Edit
from gpudiag.replay.draft import (
    ALLOCATING,
    COPY,
    SYNC,
    Draft,
    Selection,
    but_launches,
    edges_within,
    handling,
    link_time,
    numbered,
    rows_in_stream,
    started_by,
)
from gpudiag.replay.draft import (
    regions as regions_of,
)
from gpudiag.replay.edge import NEVER, EdgeKind
from gpudiag.replay.record import Ints


def apply(draft: Draft, edits: Iterable[Edit], chosen: Selection) -> None:
    """Change the draft as the fix would; an empty selection changes nothing."""
    for edit in edits:
        EDITS[edit](draft, chosen)


def _drop_sync(draft: Draft, chosen: Selection) -> None:
    """Nobody needs the wait: what it waited for is not looked at before the next wait."""
    draft.no_wait(chosen.calls)
    calls = chosen.calls[draft.graph.record.calls.kind[chosen.calls] == SYNC]
    draft.cost(calls, 0.0)


def _drop_call(draft: Draft, chosen: Selection) -> None:
    """The call is not needed at all, nor what it copied or set; a kernel that it launched is work and stays."""
    calls = but_launches(draft, chosen.calls)
    draft.no_wait(calls)
    draft.cost(calls, 0.0)
    draft.without_ops(started_by(draft, calls))


def _drop_copy(draft: Draft, chosen: Selection) -> None:
    """The data stay where they are: the copies go, and with a wait the read-back right before it."""
    calls = draft.graph.record.calls
    before = chosen.calls[calls.kind[chosen.calls] == SYNC] - 1
    before = before[before >= 0]
    ops = draft.graph.record.ops
    reading = np.isin(before, ops.call[ops.direction == 2])
    reads = before[reading & (calls.kind[before] == COPY) & (calls.thread[before] == calls.thread[before + 1])]
    copies = np.union1d(chosen.calls[np.isin(calls.kind[chosen.calls], [COPY, SYNC])], reads)
    draft.no_wait(copies)
    draft.cost(copies, 0.0)
    draft.without_ops(np.union1d(started_by(draft, copies), chosen.ops[draft.graph.record.ops.kind[chosen.ops] == 2]))


def _drop_range(draft: Draft, chosen: Selection) -> None:
    """Nor is what the host did to prepare the calls, or with a value read, unless that is a phase of its own.

    A block that only reads values back goes whole.
    """
    calls = np.union1d(but_launches(draft, chosen.calls), chosen.block)
    before = np.union1d(np.union1d(chosen.segments, chosen.block), handling(draft, chosen.calls))
    draft.no_segment(np.setdiff1d(before, draft.graph.supplied))  # input is fetched all the same
    draft.no_wait(calls)
    draft.cost(calls, 0.0)
    draft.without_ops(started_by(draft, chosen.block))


def _run_async(draft: Draft, chosen: Selection) -> None:
    """The call only enqueues: it costs what a launch costs."""
    draft.no_wait(chosen.calls)
    draft.cost(chosen.calls, draft.usual_launch())


def _pin(draft: Draft, chosen: Selection) -> None:
    """Pinned memory moves at the link's rate and needs no staging by the host."""
    ops = draft.graph.record.ops
    copies = chosen.ops[(ops.kind[chosen.ops] == 2) & ops.pageable[chosen.ops]]
    draft.duration[draft.graph.op[copies]] = np.minimum(
        draft.duration[draft.graph.op[copies]], link_time(draft, copies)
    )
    calls = np.unique(ops.call[copies])
    calls = calls[calls >= 0]
    draft.no_wait(calls)
    draft.cost(calls, draft.usual_launch())
    # Frameworks wait for an upload that nobody asked to be asynchronous.
    waits = _waits_after(draft, ops.call[copies[ops.direction[copies] == 1]])
    draft.no_wait(waits)
    draft.cost(waits, 0.0)


def _waits_after(draft: Draft, calls: Ints) -> Ints:
    """The waits that come right after these calls, in order."""
    record = draft.graph.record.calls
    after = np.unique(calls[(calls >= 0) & (calls + 1 < len(record))]) + 1
    waits: Ints = after[(record.kind[after] == SYNC) & (record.thread[after] == record.thread[after - 1])]
    return waits


def _pool_allocation(draft: Draft, chosen: Selection) -> None:
    """A pool serves the request without the driver, and a free no longer waits for the GPU."""
    calls = chosen.calls[np.isin(draft.graph.record.calls.kind[chosen.calls], ALLOCATING)]
    draft.no_wait(calls)
    draft.cost(calls, draft.settings["replay_pool_ns"])


def _graph_region(draft: Draft, chosen: Selection) -> None:
    """All launches of a turn between two waits become one CUDA graph; longer host work stays where it is."""
    graph = draft.graph
    regions = regions_of(draft, chosen)
    for region in regions:
        later = region[1:]
        short = later[draft.duration[graph.segment[later]] < draft.settings["host_work_ns"]]
        draft.duration[graph.segment[short]] = 0.0
        spent = float(draft.duration[graph.leave[region]].sum())
        draft.cost(region, 0.0)
        draft.duration[graph.leave[region[0]]] = min(spent, draft.settings["replay_graph_launch_ns"])
    number = numbered(regions, len(graph.record.calls))
    inside = edges_within(draft, np.append(number, -1)[graph.record.ops.call])
    draft.lag[inside] = np.minimum(draft.lag[inside], draft.settings["replay_graph_gap_ns"])


def _fuse_kernels(draft: Draft, chosen: Selection) -> None:
    """Selected kernels that follow one another in a stream and turn become one: one launch, no gaps, the same work."""
    graph, ops = draft.graph, draft.graph.record.ops
    rows = rows_in_stream(draft, chosen.ops)
    for row in rows:
        later = ops.call[row[1:]]
        later = later[later >= 0]
        draft.duration[graph.segment[later]] = 0.0
        draft.cost(later, 0.0)
    edges = edges_within(draft, numbered(rows, len(ops)))
    draft.lag[edges] = np.minimum(draft.lag[edges], 0.0)


def _batch_copies(draft: Draft, chosen: Selection) -> None:
    """Selected copies of one direction and turn become one: one call, one latency, the bytes at the link's rate."""
    graph, record = draft.graph, draft.graph.record
    ops = chosen.ops[(record.ops.call[chosen.ops] >= 0) & (record.ops.direction[chosen.ops] > 0)]
    groups = np.stack([record.turn_of_call[record.ops.call[ops]], record.ops.direction[ops], record.ops.stream[ops]])
    _, first = np.unique(groups, axis=1, return_index=True)
    later = np.delete(ops, first)
    calls = record.ops.call[later]
    draft.duration[graph.segment[calls]] = 0.0
    draft.no_wait(calls)
    draft.cost(calls, 0.0)
    waits = _waits_after(draft, record.ops.call[ops])
    _, last = np.unique(record.turn_of_call[waits][::-1], return_index=True)  # one wait a turn serves them all
    waits = np.delete(waits, len(waits) - 1 - last)
    draft.no_wait(waits)
    draft.cost(waits, 0.0)
    draft.duration[graph.op[later]] = np.minimum(draft.duration[graph.op[later]], link_time(draft, later))


def _overlap_copy(draft: Draft, chosen: Selection) -> None:
    """Copies get streams of their own: an upload waits for no kernel, no kernel waits for a read-back; engines stay."""
    graph, ops = draft.graph, draft.graph.record.ops
    copies = chosen.ops[(ops.kind[chosen.ops] == 2) & np.isin(ops.direction[chosen.ops], [1, 2])]
    if not len(copies):
        return
    calls = np.unique(ops.call[copies])
    draft.no_wait(calls[calls >= 0])
    draft.cost(calls[calls >= 0], draft.usual_launch())
    nodes = graph.op[copies]
    draft.duration[nodes] *= draft.settings["replay_contention"]
    queued = np.isin(graph.edge_kind, [EdgeKind.STREAM, EdgeKind.LEGACY, EdgeKind.EVENT, EdgeKind.INFERRED])
    uploads, reads = nodes[ops.direction[copies] == 1], nodes[ops.direction[copies] == 2]
    draft.lag[queued & np.isin(graph.target, uploads)] = NEVER
    draft.lag[queued & np.isin(graph.source, reads)] = NEVER
    draft.added += _past(draft, copies)


def _past(draft: Draft, copies: Ints) -> list[tuple[int, int]]:
    """Edges that keep each stream's other operations in order once its copies have left it."""
    graph, ops = draft.graph, draft.graph.record.ops
    gone = np.zeros(len(ops), dtype=bool)
    gone[copies] = True
    added: list[tuple[int, int]] = []
    for stream in np.unique(ops.stream[copies]):
        own = np.flatnonzero(ops.stream == stream)
        stay = own[~gone[own]]
        added += zip(graph.op[stay[:-1]].tolist(), graph.op[stay[1:]].tolist(), strict=True)
        # A read-back still follows what made its data: the last operation before it that is no copy.
        for copy in own[gone[own] & (ops.direction[own] == 2)]:
            position = int(np.searchsorted(stay, copy)) - 1
            if position >= 0:
                added.append((int(graph.op[stay[position]]), int(graph.op[copy])))
    return added


def _overlap_collective(draft: Draft, chosen: Selection) -> None:
    """Nothing waits for the collectives, as if all of their time were hidden: the best case."""
    graph, ops = draft.graph, draft.graph.record.ops
    nodes = graph.op[chosen.ops[ops.kind[chosen.ops] == 1]]
    across = np.isin(graph.edge_kind, [EdgeKind.EVENT, EdgeKind.INFERRED, EdgeKind.LEGACY])
    draft.lag[across & np.isin(graph.source, nodes)] = NEVER


def _to_workers(draft: Draft, chosen: Selection) -> None:
    """The host work before the calls is done by other processes at the same time, `replay_workers` of them."""
    moved = draft.no_segment(chosen.segments)
    draft.at_least += moved / draft.settings["replay_workers"]


def _shrink_kernel(draft: Draft, chosen: Selection) -> None:
    """Each operation loses the part that the rule's column `recoverable` gives.

    Of two such fixes the greater counts: nobody knows whether a kernel rewritten for one reason still has the other.
    """
    nodes = draft.graph.op[chosen.ops]
    draft.duration[nodes] = np.minimum(draft.duration[nodes], draft.base[nodes] * (1 - chosen.recoverable))


def _lower_precision(draft: Draft, chosen: Selection) -> None:
    """The same, of what is left: half the bytes are half of fewer bytes too."""
    draft.duration[draft.graph.op[chosen.ops]] *= 1 - chosen.recoverable


def _balance_ranks(draft: Draft, chosen: Selection) -> None:
    """Needs all ranks together: `ranks.balanced` makes it, where several were recorded."""


EDITS: Mapping[Edit, Callable[[Draft, Selection], None]] = {
    Edit.DROP_SYNC: _drop_sync,
    Edit.DROP_COPY: _drop_copy,
    Edit.DROP_RANGE: _drop_range,
    Edit.DROP_CALL: _drop_call,
    Edit.RUN_ASYNC: _run_async,
    Edit.GRAPH_REGION: _graph_region,
    Edit.FUSE_KERNELS: _fuse_kernels,
    Edit.BATCH_COPIES: _batch_copies,
    Edit.OVERLAP_COPY: _overlap_copy,
    Edit.OVERLAP_COLLECTIVE: _overlap_collective,
    Edit.PIN: _pin,
    Edit.POOL_ALLOCATION: _pool_allocation,
    Edit.TO_WORKERS: _to_workers,
    Edit.SHRINK_KERNEL: _shrink_kernel,
    Edit.LOWER_PRECISION: _lower_precision,
    Edit.BALANCE_RANKS: _balance_ranks,
}
