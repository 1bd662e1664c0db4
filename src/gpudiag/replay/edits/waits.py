"""Edits of calls that hold the host: waits, allocations, whole calls."""

from __future__ import annotations

import numpy as np

from gpudiag.replay.edited_graph import (
    ALLOCATING,
    COPY,
    FREE,
    POOL,
    SYNC,
    EditedGraph,
    EditTargets,
    but_launches,
    started_by,
    waits_after,
)
from gpudiag.replay.edits.edit_spec import IDLE_AFTER, IDLE_BEFORE, IDLE_IN_CALL, EditSpec


def _drop_sync(edited: EditedGraph, chosen: EditTargets) -> None:
    """Nobody needs the wait: what it waited for is not looked at before the next wait."""
    edited.no_wait(chosen.calls)
    calls = chosen.calls[edited.graph.record.calls.kind[chosen.calls] == SYNC]
    edited.cost(calls, 0.0)


DROP_SYNC = EditSpec(
    "drop_sync",
    "nothing is waited for in the selected calls; selected waits cost nothing",
    _drop_sync,
    idle_bound=(IDLE_IN_CALL, IDLE_AFTER),
    also="host_ahead",
)


def _drop_call(edited: EditedGraph, chosen: EditTargets) -> None:
    """The call is not needed at all, nor what it copied or set; a kernel that it launched is work and stays."""
    calls = but_launches(edited, chosen.calls)
    edited.no_wait(calls)
    edited.cost(calls, 0.0)
    edited.without_ops(started_by(edited, calls))


DROP_CALL = EditSpec(
    "drop_call",
    "the selected calls go, and the copies and sets that they started take no time; a kernel that they launched stays",
    _drop_call,
    idle_bound=(IDLE_IN_CALL, IDLE_AFTER),
    also="host_ahead",
)


def _run_async(edited: EditedGraph, chosen: EditTargets) -> None:
    """The call only enqueues: it costs what a launch costs, and frameworks no longer wait for their copies."""
    edited.no_wait(chosen.calls)
    edited.cost(chosen.calls, edited.usual_launch())
    waits = waits_after(edited, chosen.calls[edited.graph.record.calls.kind[chosen.calls] == COPY])
    edited.no_wait(waits)
    edited.cost(waits, 0.0)


RUN_ASYNC = EditSpec(
    "run_async",
    "the selected calls wait for nothing and cost the host a launch; a wait right after a copy goes with it",
    _run_async,
    idle_bound=(IDLE_IN_CALL, IDLE_AFTER),
    also="host_ahead",
)


def _pool_allocation(edited: EditedGraph, chosen: EditTargets) -> None:
    """A pool serves the request without the driver, and a free no longer waits for the GPU."""
    calls = chosen.calls[np.isin(edited.graph.record.calls.kind[chosen.calls], ALLOCATING)]
    edited.no_wait(calls)
    edited.cost(calls, edited.settings["replay_pool_ns"])


POOL_ALLOCATION = EditSpec(
    "pool_allocation",
    "the selected allocations and frees wait for nothing and cost a microsecond",
    _pool_allocation,
    idle_bound=(IDLE_IN_CALL, IDLE_AFTER),
    also="host_ahead",
)


def _drop_collection(edited: EditedGraph, chosen: EditTargets) -> None:
    """The host does not look for memory that it could free: a phase of its own right before a free."""
    long = edited.duration[edited.graph.segment[chosen.segments]] >= edited.settings["cpu_phase_ns"]
    edited.no_segment(chosen.segments[long & (edited.graph.record.calls.kind[chosen.segments] == FREE)])


DROP_COLLECTION = EditSpec(
    "drop_collection",
    "host segments of a phase's length right before the selected frees go, as a garbage collection does with them",
    _drop_collection,
    idle_bound=(IDLE_BEFORE,),
    also="host_ahead",
)


def _keep_pool_memory(edited: EditedGraph, chosen: EditTargets) -> None:
    """Waits end with what they wait for, and the pool has the memory that is asked for."""
    kept = np.isin(edited.graph.record.calls.kind[chosen.calls], [SYNC, POOL])
    edited.cost(chosen.calls[kept], edited.settings["replay_pool_ns"])


KEEP_POOL_MEMORY = EditSpec(
    "keep_pool_memory",
    "the selected waits end when the GPU is done, and the selected allocations from a pool cost a microsecond",
    _keep_pool_memory,
    idle_bound=(IDLE_IN_CALL, IDLE_AFTER),
    also="host_ahead",
)
