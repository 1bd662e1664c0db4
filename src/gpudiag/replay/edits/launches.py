"""Edits that launch the same kernels in fewer calls."""

from __future__ import annotations

import numpy as np

from gpudiag.replay.edited_graph import EditedGraph, EditTargets, edges_within, numbered, regions, rows_in_stream
from gpudiag.replay.edits.edit_spec import IDLE_LAUNCHING, EditSpec


def _graph_region(edited: EditedGraph, chosen: EditTargets) -> None:
    """All launches of an iteration between two waits become one CUDA graph; longer host work stays where it is."""
    graph = edited.graph
    runs = regions(edited, chosen)
    for region in runs:
        later = region[1:]
        short = later[edited.duration[graph.segment[later]] < edited.settings["host_work_ns"]]
        edited.duration[graph.segment[short]] = 0.0
        spent = float(edited.duration[graph.leave[region]].sum())
        edited.cost(region, 0.0)
        edited.duration[graph.leave[region[0]]] = min(spent, edited.settings["replay_graph_launch_ns"])
    number = numbered(runs, len(graph.record.calls))
    inside = edges_within(edited, np.append(number, -1)[graph.record.ops.call])
    edited.lag[inside] = np.minimum(edited.lag[inside], edited.settings["replay_graph_gap_ns"])


GRAPH_REGION = EditSpec(
    "graph_region",
    "all launches between two waits, a selected one among them, become one CUDA graph",
    _graph_region,
    idle_bound=(IDLE_LAUNCHING,),
    in_graph=True,
    before_call=True,
    also="host_ahead",
)


def _fuse_kernels(edited: EditedGraph, chosen: EditTargets) -> None:
    """Kernels that follow one another in a stream and iteration become one: one launch, no gaps, the same work."""
    graph, ops = edited.graph, edited.graph.record.ops
    rows = rows_in_stream(edited, chosen.ops)
    for row in rows:
        later = ops.call[row[1:]]
        later = later[later >= 0]
        edited.duration[graph.segment[later]] = 0.0
        edited.cost(later, 0.0)
    edges = edges_within(edited, numbered(rows, len(ops)))
    edited.lag[edges] = np.minimum(edited.lag[edges], 0.0)


FUSE_KERNELS = EditSpec(
    "fuse_kernels",
    "selected kernels that follow one another in a stream become one; their own time stays",
    _fuse_kernels,
    idle_bound=(IDLE_LAUNCHING,),
    before_call=True,
    changes_kernels=True,
    also="launches",
)
