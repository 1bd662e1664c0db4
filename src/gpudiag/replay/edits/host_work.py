"""Edits of what the host does around its calls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpudiag.replay.edited_graph import (
    COPY,
    LAUNCHES,
    EditedGraph,
    EditTargets,
    but_launches,
    own_work,
    started_by,
    waits_after,
)
from gpudiag.replay.edits.edit_spec import (
    IDLE_AFTER,
    IDLE_BEFORE,
    IDLE_IN_CALL,
    IDLE_LAUNCHING,
    EditSpec,
)
from gpudiag.replay.trace import Ints


def _drop_range(edited: EditedGraph, chosen: EditTargets) -> None:
    """Nor is what the host did to prepare the calls, or with a value read, unless that is a phase of its own.

    A block that only reads values back goes whole.
    """
    calls = np.union1d(but_launches(edited, chosen.calls), chosen.block)
    edited.no_segment(own_work(edited, chosen))
    edited.no_wait(calls)
    edited.cost(calls, 0.0)
    edited.without_ops(started_by(edited, chosen.block))


DROP_RANGE = EditSpec(
    "drop_range",
    "the host work around the selected calls goes with them; a block that only reads back, whole",
    _drop_range,
    idle_bound=(IDLE_BEFORE, IDLE_IN_CALL, IDLE_AFTER, IDLE_LAUNCHING),
    before_call=True,
    whole_block=True,
    also="host_work",
)


def _drop_preparation(edited: EditedGraph, chosen: EditTargets) -> None:
    """The host neither prepares the calls nor handles what they returned; what it launches meanwhile stays."""
    calls = but_launches(edited, chosen.calls)
    edited.no_segment(own_work(edited, replace(chosen, block=calls[:0])))
    edited.no_wait(calls)
    edited.cost(calls, 0.0)


DROP_PREPARATION = EditSpec(
    "drop_preparation",
    "the host work before the selected calls goes with them, unless it is a phase of its own",
    _drop_preparation,
    idle_bound=(IDLE_BEFORE, IDLE_IN_CALL, IDLE_AFTER),
    before_call=True,
    also="host_work",
)


def _to_workers(edited: EditedGraph, chosen: EditTargets) -> None:
    """The host work before the calls is done by other processes at the same time, `replay_workers` of them."""
    moved = edited.no_fetch(chosen.segments) + edited.no_segment(chosen.segments)
    edited.at_least += moved / edited.settings["replay_workers"]


TO_WORKERS = EditSpec(
    "to_workers",
    "the host work before the selected calls is shared among worker processes that run meanwhile",
    _to_workers,
    idle_bound=(IDLE_BEFORE,),
    before_call=True,
    also="host_ahead",
)


def _work_on_gpu(edited: EditedGraph, chosen: EditTargets) -> None:
    """The GPU does what the host did with the arrays read back: neither they nor what came of it are copied."""
    record = edited.graph.record.calls
    copies = chosen.calls[record.kind[chosen.calls] == COPY]
    edited.no_segment(_phases_after(edited, copies))
    calls = np.union1d(copies, waits_after(edited, copies))
    edited.no_wait(calls)
    edited.cost(calls, 0.0)
    edited.without_ops(started_by(edited, copies))


def _phases_after(edited: EditedGraph, calls: Ints) -> Ints:
    """Return the calls that end a long host segment, after one of these calls on its thread and before its next launch.

    A launch that ends one counts.
    """
    record = edited.graph.record.calls
    launched = np.isin(record.kind, LAUNCHES)
    begins = np.append(True, launched[:-1] | (record.thread[1:] != record.thread[:-1]))
    stretch = np.cumsum(begins)
    known, first = np.unique(stretch[calls], return_index=True)
    begun = np.full(int(stretch[-1]) + 1 if len(stretch) else 1, len(record), dtype=np.int64)
    begun[known] = calls[first]
    after = np.arange(len(record)) > begun[stretch]
    long = edited.duration[edited.graph.segment] >= edited.settings["cpu_phase_ns"]
    return np.flatnonzero(after & long)


_IDLE_AT_WORK = (
    "p.doing = 'segment' and p.api_call in"
    " (select work from host_result_work where api_call in (select id from wanted))"
)
WORK_ON_GPU = EditSpec(
    "work_on_gpu",
    "long host work between the selected copies and the next launch goes, and so do the copies and their waits",
    _work_on_gpu,
    idle_bound=(IDLE_IN_CALL, IDLE_AFTER, _IDLE_AT_WORK),
    copy_bound="all",
    before_call=True,
    also="host_ahead",
)
