"""An iteration's time in both sides by what it is spent in: the budget, and the time tree with what changed in it.

A leaf of the same program, recorded again, lies in a range: what the repeats of its side say, widened by what one
recording differs from the next and, where the host sets its length, by what the profiler may have added. Where the
ranges of both sides do not meet, the leaf changed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpudiag.compare import interval, sentences
from gpudiag.model import BudgetChange, LeafChange, Loop
from gpudiag.model.vocabulary import LEAVES

Settings = Mapping[str, float]
WORK = {"computing": "diff_gpu", "exposed_copy": "diff_copy"}
"""Leaves of which the profiler does not change the length → the setting that says by how much recordings differ."""
DRAINED = {"sync": "diff_least_host", "allocating": "diff_least_driver"}
"""Leaves that begin with nothing queued, since waits and most calls that free memory let the GPU finish first → the
setting that says what is left of them without the profiler.
"""


class _Range(NamedTuple):
    least: float
    most: float


def budget(base: Loop, head: Loop) -> tuple[BudgetChange, ...]:
    """In the order of the budget's definition; categories that neither side spends time in are left out."""
    order = dict.fromkeys((*base.budget, *head.budget))
    rows = [
        BudgetChange(
            category=category,
            base_ms=base.budget.get(category, 0.0) * base.iteration_ms,
            head_ms=head.budget.get(category, 0.0) * head.iteration_ms,
        )
        for category in order
    ]
    least = sentences.LITTLE
    return tuple(
        row for row in rows if row.base_ms >= least * base.iteration_ms or row.head_ms >= least * head.iteration_ms
    )


def leaves(
    repeats: tuple[Sequence[Loop], Sequence[Loop]], factors: Sequence[float], settings: Settings, *, quiet: bool
) -> tuple[LeafChange, ...]:
    """Return the leaves that either side spends time in, largest change first; none where a side has no tree.

    repeats: this loop in every report of base and of head, first the one that stands for its side. factors: by how much
    an iteration of head may be more work; where there are several, a leaf has to change by each. quiet: the loop's
    whole time differs by noise alone, so do its leaves.
    """
    base, head = repeats[0][0], repeats[1][0]
    if not base.tree or not head.tree:
        return ()
    longest = max(base.iteration_ms, head.iteration_ms / factors[0])
    found = []
    for leaf in dict.fromkeys((*LEAVES, *base.tree, *head.tree)):
        before, now = _ms(base, leaf), _ms(head, leaf)
        by = now / factors[0] - before
        changed = not quiet and abs(by) >= settings["diff_least"] * longest and _apart(leaf, repeats, factors, settings)
        if before >= sentences.LITTLE * base.iteration_ms or now >= sentences.LITTLE * head.iteration_ms:
            found.append((abs(by), LeafChange(leaf=leaf, base_ms=before, head_ms=now, changed=changed)))
    return tuple(change for _, change in sorted(found, key=lambda item: -item[0]))


def _apart(
    leaf: str, repeats: tuple[Sequence[Loop], Sequence[Loop]], factors: Sequence[float], settings: Settings
) -> bool:
    """Return whether the leaf took longer on one side for sure, the same one whatever factor holds."""
    before, now = (_range(leaf, loops, settings) for loops in repeats)
    longer = all(now.least / factor > before.most for factor in factors)
    shorter = all(now.most / factor < before.least for factor in factors)
    return longer or shorter


def _range(leaf: str, loops: Sequence[Loop], settings: Settings) -> _Range:
    """The time of the leaf in another recording, as all of a side's reports that have a tree show it."""
    ranges = [_of_one(leaf, loop, settings) for loop in loops if loop.tree]
    return _Range(min(one.least for one in ranges), max(one.most for one in ranges))


def _of_one(leaf: str, loop: Loop, settings: Settings) -> _Range:
    """The GPU idles for as long as the host takes more than the work still queued, so all that the profiler may have
    added to an iteration may stand in one leaf. Where nothing is queued, the leaf grows as the work of the host does.
    """
    ms = _ms(loop, leaf)
    if leaf in WORK:
        margin = settings[WORK[leaf]]
        return _Range(ms * math.exp(-margin), ms * math.exp(margin))
    if leaf in DRAINED:
        added = (1 - settings[DRAINED[leaf]]) * ms
    else:
        added = (1 - interval.least_share(loop, settings)) * loop.iteration_ms
    margin = settings["diff_host"]
    return _Range(max(0.0, ms - added) * math.exp(-margin), ms * math.exp(margin))


def _ms(loop: Loop, leaf: str) -> float:
    return loop.tree[leaf].share * loop.iteration_ms if leaf in loop.tree else 0.0
