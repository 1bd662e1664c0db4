"""Edits that make kernels shorter."""

from __future__ import annotations

import numpy as np

from gpudiag.replay.edited_graph import EditedGraph, EditTargets
from gpudiag.replay.edits.edit_spec import EditSpec


def _shrink_kernel(edited: EditedGraph, chosen: EditTargets) -> None:
    """Each operation loses the part that the rule's column `recoverable` gives.

    Of two such fixes the greater counts: nobody knows whether a kernel rewritten for one reason still has the other.
    """
    nodes = edited.graph.op[chosen.ops]
    edited.duration[nodes] = np.minimum(edited.duration[nodes], edited.base[nodes] * (1 - chosen.recoverable))


SHRINK_KERNEL = EditSpec(
    "shrink_kernel",
    "the selected operations lose the part that the column `recoverable` gives",
    _shrink_kernel,
    rewrites_kernel=True,
    changes_kernels=True,
)


def _lower_precision(edited: EditedGraph, chosen: EditTargets) -> None:
    """The same, of what is left: half the bytes are half of fewer bytes too."""
    edited.duration[edited.graph.op[chosen.ops]] *= 1 - chosen.recoverable


LOWER_PRECISION = EditSpec(
    "lower_precision",
    "as shrink_kernel, by lower precision",
    _lower_precision,
    rewrites_kernel=True,
    changes_kernels=True,
)
