"""Division of a run into like segments, each of which may be an iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpudiag.loops.iteration_bounds import Ints, Settings
from gpudiag.loops.period.submissions import Floats, Submissions


class Marker(NamedTuple):
    """A kind of operation, or a call, that proposes a division: at all places, or where more than `gap` precede it."""

    kind: int
    call: str
    gap: float

    def positions(self, events: Submissions) -> Ints:
        """Return the operations that it marks, ascending."""
        at = events.calls[self.call] if self.call else np.flatnonzero(events.kind == self.kind)
        return at[np.append(True, np.diff(at) > self.gap)] if self.gap and len(at) else at


@dataclass(frozen=True, eq=False)
class Division:
    """A division of a run into segments; each begins with an operation of `begins` and ends before the next."""

    marker: Marker
    begins: Ints
    alike: float
    """The part of the segments that are like the typical one."""
    coverage: float
    """Their part of the GPU time since the first segment."""
    size: float
    """Operations of the typical segment."""
    content: Floats
    """How many of each kind it has."""
    good: NDArray[np.bool_]
    """Whether each of the segments that were compared, evenly spread, is like the typical one."""
    votes: int = 1
    """How many markers propose a division into as many segments."""
    own_votes: int = 1
    """Of these the ones whose occurrences alternate with its own; no products and convolutions, of which a library
    picks another kernel for each size."""
    repeats: int | None = None
    """How often the work of a finer division comes in the typical segment, where that holds most of it."""
    stump: int | None = None
    """The operation with which one more segment begins that the run, or the recording, did not end."""

    @property
    def count(self) -> int:
        return len(self.begins)

    @property
    def kinds(self) -> int:
        """Count the kinds of operations of the typical segment."""
        return int(np.count_nonzero(self.content))

    def part_with(self, places: Ints) -> float:
        """Return the part of the segments that hold any of these operations."""
        segments = np.unique(np.searchsorted(self.begins, places, side="right"))  # 0 comes before the first
        return float(np.count_nonzero(segments)) / self.count

    @property
    def quality(self) -> float:
        return min(1.0, self.coverage) * self.alike


def same_period(one: Division, other: Division, settings: Settings) -> bool:
    """Return whether the typical segments of two divisions are of one size and hold the same operations."""
    least = settings["period_match"]
    if min(one.size, other.size) < least * max(one.size, other.size):
        return False
    lengths = np.linalg.norm(one.content) * np.linalg.norm(other.content)
    return bool(one.content @ other.content >= least * lengths)


def updates(division: Division, events: Submissions) -> bool:
    """Return whether the typical segment runs kernels of an optimizer."""
    return any(events.updates[kind] for kind in np.flatnonzero(division.content))


def every(one: Division, inner: Division, settings: Settings) -> int:
    """Return after how many finer iterations each segment of a division comes; 0 where that differs, or is one."""
    held = np.diff(np.searchsorted(inner.begins, one.begins))
    if len(held) < settings["min_iterations"]:
        return 0
    usual = int(np.bincount(held).argmax())
    regular = np.count_nonzero(held == usual) >= settings["loop_alike_share"] * len(held)
    return usual if regular and usual > 1 else 0


def holds_most(
    inner: Division, outer: Division, events: Submissions, settings: Settings, *, least: str = "loop_check_coverage"
) -> bool:
    """Return whether finer iterations hold most of a level's GPU time, or of what its typical segment takes.

    least: the setting that says how much of it. A library that tries its algorithms for a new shape does so within one
    segment of the level, between the finer ones.
    """
    part = settings[least]
    together = np.minimum(outer.content, inner.content * (inner.count / outer.count))
    typical = outer.content @ events.mean_ns
    return bool(inner.coverage >= part * outer.coverage or together @ events.mean_ns >= part * typical)


def added(inner: Division, outer: Division) -> Floats:
    """The operations of each kind that a level has and its finer iterations have not, counted."""
    return np.where(inner.content == 0, outer.content, 0.0)
