"""Edits of the order between streams."""

from __future__ import annotations

import numpy as np

from gpudiag.replay.edges.edge_list import NEVER, EdgeKind
from gpudiag.replay.edited_graph import EditedGraph, EditTargets
from gpudiag.replay.edits.edit_spec import EditSpec


def _non_blocking(edited: EditedGraph, chosen: EditTargets) -> None:
    """Operations no longer wait for the legacy default stream, nor it for them; what events order stays so.

    Where one waited for a copy, so did all kernels that follow it. Whether a result is needed in that order no timeline
    tells, and kernels that run side by side take longer: what this saves is a bound.
    """
    graph = edited.graph
    legacy = graph.edge_kind == EdgeKind.LEGACY
    held = legacy & np.isin(graph.target, graph.op[chosen.ops])
    copies = np.intersect1d(graph.source[held], graph.op[graph.record.ops.kind == 2])  # memcpy
    edited.lag[held | (legacy & np.isin(graph.source, copies))] = NEVER


NON_BLOCKING_STREAMS = EditSpec(
    "non_blocking_streams",
    "selected operations wait for their own stream and for events, no more for the legacy default stream",
    _non_blocking,
    copy_bound="all",
    moves_kernels=True,
)
