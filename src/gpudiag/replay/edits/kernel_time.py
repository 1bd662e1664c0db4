"""Edits that make kernels shorter."""

from __future__ import annotations

import numpy as np

from gpudiag.replay.edited_graph import EditedGraph, EditTargets
from gpudiag.replay.edits.edit_spec import EditSpec


def _shrink_kernel(draft: EditedGraph, chosen: EditTargets) -> None:
    """Each operation loses the part that the rule's column `recoverable` gives.

    Of two such fixes the greater counts: nobody knows whether a kernel rewritten for one reason still has the other.
    """
    nodes = draft.graph.op[chosen.ops]
    draft.duration[nodes] = np.minimum(draft.duration[nodes], draft.base[nodes] * (1 - chosen.recoverable))


SHRINK_KERNEL = EditSpec(
    "shrink_kernel",
    "the selected operations lose the part that the column `recoverable` gives",
    _shrink_kernel,
    rewrites_kernel=True,
    changes_kernels=True,
)


def _lower_precision(draft: EditedGraph, chosen: EditTargets) -> None:
    """The same, of what is left: half the bytes are half of fewer bytes too."""
    draft.duration[draft.graph.op[chosen.ops]] *= 1 - chosen.recoverable


LOWER_PRECISION = EditSpec(
    "lower_precision",
    "as shrink_kernel, by lower precision",
    _lower_precision,
    rewrites_kernel=True,
    changes_kernels=True,
)
