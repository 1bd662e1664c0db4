"""Edits of copies between the host and a GPU."""

from __future__ import annotations

import numpy as np

from gpudiag.replay.edges.edge_list import NEVER, EdgeKind
from gpudiag.replay.edited_graph import (
    COPY,
    SYNC,
    EditedGraph,
    EditTargets,
    link_time,
    prefetched,
    started_by,
    waits_after,
)
from gpudiag.replay.edits.edit_spec import IDLE_AFTER, IDLE_BEFORE, IDLE_IN_CALL, IDLE_LAUNCHING, EditSpec
from gpudiag.replay.trace import Ints


def _drop_copy(edited: EditedGraph, chosen: EditTargets) -> None:
    """The data stay where they are: the copies go, and with a wait the read-back right before it."""
    calls = edited.graph.record.calls
    before = chosen.calls[calls.kind[chosen.calls] == SYNC] - 1
    before = before[before >= 0]
    ops = edited.graph.record.ops
    reading = np.isin(before, ops.call[ops.direction == 2])
    reads = before[reading & (calls.kind[before] == COPY) & (calls.thread[before] == calls.thread[before + 1])]
    copies = np.union1d(chosen.calls[np.isin(calls.kind[chosen.calls], [COPY, SYNC])], reads)
    edited.no_wait(copies)
    edited.cost(copies, 0.0)
    edited.without_ops(
        np.union1d(started_by(edited, copies), chosen.ops[edited.graph.record.ops.kind[chosen.ops] == 2])
    )


DROP_COPY = EditSpec(
    "drop_copy",
    "the selected copies and waits go; a copy right before a selected wait goes with it",
    _drop_copy,
    idle_bound=(IDLE_IN_CALL, IDLE_AFTER, IDLE_BEFORE),
    copy_bound="all",
    also="copies",
)


def _pin(edited: EditedGraph, chosen: EditTargets) -> None:
    """Pinned memory moves at the link's rate and needs no staging by the host."""
    ops = edited.graph.record.ops
    copies = chosen.ops[(ops.kind[chosen.ops] == 2) & ops.pageable[chosen.ops]]
    edited.duration[edited.graph.op[copies]] = np.minimum(
        edited.duration[edited.graph.op[copies]], link_time(edited, copies)
    )
    calls = np.unique(ops.call[copies])
    calls = calls[calls >= 0]
    edited.no_wait(calls)
    edited.cost(calls, edited.usual_launch())
    # Frameworks wait for an upload that nobody asked to be asynchronous.
    waits = waits_after(edited, ops.call[copies[ops.direction[copies] == 1]])
    edited.no_wait(waits)
    edited.cost(waits, 0.0)


PIN = EditSpec(
    "pin",
    "the selected pageable copies take the time of their bytes, and their calls cost a launch",
    _pin,
    idle_bound=(IDLE_IN_CALL, IDLE_AFTER),
    copy_bound="but_bytes",
    also="host_ahead",
)


def _batch_copies(edited: EditedGraph, chosen: EditTargets) -> None:
    """Selected copies of one direction and iteration become one: one call, one latency, bytes at the link's rate.

    What the host does for milliseconds before one of them is a phase of its own, and stays.
    """
    graph, record = edited.graph, edited.graph.record
    ops = chosen.ops[(record.ops.call[chosen.ops] >= 0) & (record.ops.direction[chosen.ops] > 0)]
    groups = np.stack(
        [record.iteration_of_call[record.ops.call[ops]], record.ops.direction[ops], record.ops.stream[ops]]
    )
    _, first = np.unique(groups, axis=1, return_index=True)
    later = np.delete(ops, first)
    calls = record.ops.call[later]
    segments = graph.segment[calls]
    edited.duration[segments[edited.duration[segments] < edited.settings["cpu_phase_ns"]]] = 0.0
    edited.no_wait(calls)
    edited.cost(calls, 0.0)
    waits = waits_after(edited, record.ops.call[ops])
    _, last = np.unique(
        record.iteration_of_call[waits][::-1], return_index=True
    )  # one wait an iteration serves them all
    waits = np.delete(waits, len(waits) - 1 - last)
    edited.no_wait(waits)
    edited.cost(waits, 0.0)
    edited.duration[graph.op[later]] = np.minimum(edited.duration[graph.op[later]], link_time(edited, later))


BATCH_COPIES = EditSpec(
    "batch_copies",
    "the selected copies of an iteration and direction become one; the time their bytes need stays",
    _batch_copies,
    idle_bound=(IDLE_IN_CALL, IDLE_AFTER, IDLE_LAUNCHING),
    copy_bound="but_bytes",
    also="calls",
)


def _overlap_copy(edited: EditedGraph, chosen: EditTargets) -> None:
    """Copies get streams of their own: an upload waits for no kernel, no kernel waits for a read-back; engines stay.

    The host asks for an upload one iteration ahead, as a prefetching loader does, unless it had to read back first what
    it then sent.
    """
    graph, ops = edited.graph, edited.graph.record.ops
    copies = chosen.ops[(ops.kind[chosen.ops] == 2) & np.isin(ops.direction[chosen.ops], [1, 2])]
    if not len(copies):
        return
    calls = np.unique(ops.call[copies])
    edited.no_wait(calls[calls >= 0])
    edited.cost(calls[calls >= 0], edited.usual_launch())
    nodes = graph.op[copies]
    edited.duration[nodes] *= edited.settings["replay_contention"]
    queued = np.isin(graph.edge_kind, [EdgeKind.STREAM, EdgeKind.LEGACY, EdgeKind.EVENT, EdgeKind.INFERRED])
    uploads, reads = nodes[ops.direction[copies] == 1], nodes[ops.direction[copies] == 2]
    edited.lag[queued & np.isin(graph.target, uploads)] = NEVER
    edited.lag[queued & np.isin(graph.source, reads)] = NEVER
    edited.added += _past(edited, copies)
    ahead, asked = prefetched(edited, copies[ops.direction[copies] == 1])
    edited.lag[(graph.edge_kind == EdgeKind.LAUNCH) & np.isin(graph.target, graph.op[ahead])] = NEVER
    known = asked >= 0
    edited.added += zip(graph.enter[asked[known]].tolist(), graph.op[ahead[known]].tolist(), strict=True)


OVERLAP_COPY = EditSpec(
    "overlap_copy",
    "the selected copies run beside kernels, one at a time in each direction, and a little slower",
    _overlap_copy,
    idle_bound=(IDLE_IN_CALL, IDLE_AFTER),
    copy_bound="but_engines",
    also="followers",
)


def _past(edited: EditedGraph, copies: Ints) -> list[tuple[int, int]]:
    """Edges that keep each stream's other operations in order once its copies have left it."""
    graph, ops = edited.graph, edited.graph.record.ops
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
