"""Edits of the ranks of a job and their collectives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpudiag.replay.collectives import Rendezvous, balanced
from gpudiag.replay.edges.edge_list import NEVER, EdgeKind
from gpudiag.replay.edited_graph import EditedGraph, EditTargets
from gpudiag.replay.edits.edit_spec import EditSpec


def _overlap_collective(edited: EditedGraph, chosen: EditTargets) -> None:
    """Nothing waits for the collectives, as if all of their time were hidden: the best case."""
    graph, ops = edited.graph, edited.graph.record.ops
    nodes = graph.op[chosen.ops[ops.kind[chosen.ops] == 1]]
    across = np.isin(graph.edge_kind, [EdgeKind.EVENT, EdgeKind.INFERRED, EdgeKind.LEGACY])
    edited.lag[across & np.isin(graph.source, nodes)] = NEVER


# How much slower kernels and collectives make one another was not recorded: it has no price.
OVERLAP_COLLECTIVE = EditSpec(
    "overlap_collective",
    "the selected collectives run beside kernels; priced as an upper bound",
    _overlap_collective,
    priced=False,
)


def _nothing(edited: EditedGraph, chosen: EditTargets) -> None:
    """Leave a single rank as it is: the edit needs all of them."""


def _balance(edited_graphs: Sequence[EditedGraph], meet: Rendezvous, shared: bool) -> None:
    """All ranks start their collectives together."""
    own = [edited.duration for edited in edited_graphs]
    for edited, duration in zip(
        edited_graphs, balanced([edited.graph for edited in edited_graphs], own, meet, shared=shared), strict=True
    ):
        edited.duration = duration


BALANCE_RANKS = EditSpec(
    "balance_ranks",
    "all ranks start the selected collectives together; priced as an upper bound",
    _nothing,
    across_ranks=_balance,
    also="ranks",
)
