"""Edits of what the host does around its calls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpudiag.replay.edited_graph import EditedGraph, EditTargets, but_launches, own_work, started_by
from gpudiag.replay.edits.edit_spec import (
    IDLE_AFTER,
    IDLE_BEFORE,
    IDLE_IN_CALL,
    IDLE_LAUNCHING,
    EditSpec,
)


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
