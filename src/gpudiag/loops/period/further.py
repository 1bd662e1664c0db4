"""Loops beside the one that stands for the program: what its iterations leave is searched again.

Programs tune, train, validate and solve a second time, one after another. A further loop holds a part of the program's
GPU time that matters, and most of the stretch in which it lies; warm-up, teardown and a log line now and then do
neither. A loop that only prepares a later one, as tuning does, is left out: it is over when the program begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import duckdb
import numpy as np

from gpudiag.loops.iteration_bounds import Bounds, Ints, Settings
from gpudiag.loops.period import segmentation
from gpudiag.loops.period.division import Division, same_period
from gpudiag.loops.period.submissions import COPIES, GRAPH, Submissions


@dataclass(frozen=True)
class Repetition:
    """A division of a stretch of the program's operations, and when its iterations begin and end."""

    events: Submissions
    """The operations of the stretch."""
    first: int
    """Where the stretch begins among all operations."""
    division: Division
    bounds: Bounds
    settings: Settings

    @cached_property
    def ends(self) -> Ints:
        """The operation of the stretch after the last one of each iteration."""
        ends = np.append(self.division.begins[1:], len(self.events))
        for place in np.flatnonzero(np.append(self.bounds[1:, 0] > self.bounds[:-1, 1], True)):  # others come next
            ends[place] = min(ends[place], self.division.begins[place] + self._length(int(place)))
        return ends

    def _length(self, place: int) -> int:
        return segmentation.closing(self.events, self.division, place, self.settings)

    @property
    def begins(self) -> int:
        """Its first operation, counted among all."""
        return self.first + int(self.division.begins[0])

    @property
    def held(self) -> float:
        """The GPU time of its operations (ns)."""
        worked = self.events.worked
        return float((worked[self.ends] - worked[self.division.begins]).sum())

    @property
    def kernels(self) -> set[int]:
        """The kinds of kernels in its typical iteration, which a graph hides."""
        kinds = np.flatnonzero(self.division.content).tolist()
        return {kind for kind in kinds if not self.events.short[kind].startswith((*COPIES, GRAPH))}

    @property
    def sets_up(self) -> bool:
        """Tell whether it copies in a few bursts and computes nothing, as a program does before its loop."""
        if not all(self.events.short[kind].startswith(COPIES) for kind in np.flatnonzero(self.division.content)):
            return False
        lengths = self.bounds[:, 1] - self.bounds[:, 0]
        return bool(np.median(lengths) * len(lengths) < self.settings["most_share"] * lengths.sum())

    def like(self, other: Repetition) -> bool:
        """Return whether both do the same work: warm-up of a loop does, and its iterations after a validation."""
        kinds = max(self.events.pairs, other.events.pairs)
        one, two = (
            np.bincount(each.events.pair[each.division.begins[0] : each.ends[-1]], minlength=kinds).astype(np.float64)
            for each in (self, other)
        )
        return bool(one @ two >= self.settings["loop_alike"] * np.linalg.norm(one) * np.linalg.norm(two))


@dataclass(frozen=True)
class Parts:
    """A loop: its iterations in one stretch, or in several with others between."""

    each: list[Repetition]

    @property
    def begins(self) -> int:
        """Its first operation, counted among all."""
        return min(one.begins for one in self.each)

    @property
    def held(self) -> float:
        """The GPU time of its operations (ns)."""
        return sum(one.held for one in self.each)

    @property
    def bounds(self) -> Bounds:
        """Beginnings and ends of its iterations, in order."""
        return np.concatenate([one.bounds for one in sorted(self.each, key=lambda one: one.begins)])


def left(events: Submissions, found: Repetition, settings: Settings) -> list[tuple[int, int]]:
    """Return the stretches that a loop leaves and that may hold a further one, the one with most GPU time first."""
    since = np.append(0, found.ends) + found.first
    until = np.append(found.division.begins, len(found.events)) + found.first
    ns = events.worked[until] - events.worked[since]
    enough = np.flatnonzero((ns >= settings["further_loop_share"] * events.worked[-1]) & (ns > 0))
    return [(int(since[one]), int(until[one])) for one in enough[np.argsort(-ns[enough], kind="stable")]]


def joined(found: Repetition, loops: list[Parts], events: Submissions, settings: Settings) -> bool:
    """Add iterations to the loop whose work they do, or as a loop of their own; return whether they are any."""
    if not _stands(found, loops[0].each[0], events, settings):
        return False
    same = next((loop for loop in loops if found.like(loop.each[0])), None)
    if same is None:
        loops.append(Parts([found]))
    elif same_period(found.division, same.each[0].division, settings):
        same.each.append(found)
    else:
        return False
    return True


def _stands(found: Repetition, main: Repetition, events: Submissions, settings: Settings) -> bool:
    """Return whether a loop repeats often, holds enough of the program's GPU time and of its own stretch, and fills its
    time.

    Kernels being tuned repeat as well, with their compilation between.
    """
    length = float((found.bounds[:, 1] - found.bounds[:, 0]).sum())
    return (
        found.division.count >= settings["loop_often"]
        and _computes(found, settings, sets_up=found.begins < main.begins)
        and found.held >= settings["further_loop_share"] * events.worked[-1]
        and found.held >= settings["further_loop_part"] * found.events.worked[-1]
        and length >= settings["min_coverage"] * float(found.bounds[-1, 1] - found.bounds[0, 0])
    )


def _computes(found: Repetition, settings: Settings, *, sets_up: bool) -> bool:
    """Return whether kernels or graphs take most of a loop's GPU time, and where it may set up, several of them.

    Data and parameters are made, converted and uploaded block by block, before anything is computed with them.
    """
    first, last = int(found.division.begins[0]), int(found.ends[-1])
    kernels = ~found.events.copies[found.events.kind[first:last]]
    ns = found.events.ns[first:last]
    graph = any(found.events.short[kind] == GRAPH for kind in np.flatnonzero(found.division.content))
    several = graph or len(found.kernels) > 1 or not sets_up
    return several and bool(ns[kernels].sum() > settings["most_share"] * ns.sum())


def steady(loops: list[Parts], loading: Ints, settings: Settings) -> list[Parts]:
    """Leave out the loops that only prepare a later one: that tune or compile for it, or time one of its kernels.

    loading: when calls that load or build code began (ns), ascending.
    """
    return [one for one in loops if not any(_prepares(one, other, loading, settings) for other in loops)]


def _prepares(found: Parts, later: Parts, loading: Ints, settings: Settings) -> bool:
    """Return whether a loop tunes for a later one of comparable work, a validation being no such: code is loaded to its
    end, and none in the later one's; or its one kernel is one that the later one runs among others.

    What updates parameters trains, whatever it loads.
    """
    first, second = found.each[0], later.each[0]
    if found.begins >= later.begins or found.held > settings["prepared_times"] * later.held:
        return False
    timed, used = first.kernels, second.kernels
    if any(first.events.updates[kind] for kind in timed):
        return False
    times_one = len(timed) == 1 and timed < used
    return times_one or (_loads(found.bounds, loading) and not _loads(later.bounds, loading))


def loading(con: duckdb.DuckDBPyConnection, process: int) -> Ints:
    """Return when calls of a process that load or build code began (ns), ascending."""
    return np.asarray(
        con.execute(
            "select a.start from api_call a join name n on n.id = a.name"
            " where a.process = ? and api_kind(n.text) = 'load' order by 1",
            [process],
        ).fetchnumpy()["start"],
        dtype=np.int64,
    )


def _loads(bounds: Bounds, loading: Ints) -> bool:
    """Return whether code is loaded several times in the second half of a loop: in the first, iterations warm up."""
    later = bounds[len(bounds) // 2 :]
    inside = loading[(loading >= later[0, 0]) & (loading < later[-1, 1])]
    return len(np.unique(np.searchsorted(later[:, 0], inside, "right"))) > 1


def ended(loops: Sequence[Parts]) -> list[Parts]:
    """Sort loops by time, each part over when the GPU has done its work, where another one's work follows."""
    parts = sorted((one for loop in loops for one in loop.each), key=lambda one: one.begins)
    for one, following in pairwise(parts):
        begins = int(following.bounds[0, 0])
        if one.bounds[-1, 0] < begins < one.bounds[-1, 1]:
            done = int(one.events.done[int(one.division.begins[-1]) : int(one.ends[-1])].max())
            one.bounds[-1, 1] = min(int(one.bounds[-1, 1]), max(begins, done))
    return sorted(loops, key=lambda loop: loop.begins)
