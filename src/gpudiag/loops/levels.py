"""Levels of repetition: divisions of a run into like segments, and which of them holds the iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpudiag.loops.iteration_bounds import Ints, Settings
from gpudiag.loops.submissions import COPIES, COPY_BACK, GRAPH, PRODUCTS, UPLOAD, Floats, Submissions


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
    stump: int | None = None
    """The operation with which one more segment begins that the run, or the recording, did not end."""

    @property
    def count(self) -> int:
        return len(self.begins)

    @property
    def kinds(self) -> int:
        """Count the kinds of operations of the typical segment."""
        return int(np.count_nonzero(self.content))

    @property
    def quality(self) -> float:
        return min(1.0, self.coverage) * self.alike


def outermost(found: list[Division], events: Submissions, settings: Settings) -> list[Division]:
    """The divisions of the outermost level that repeats often enough, of about the best quality."""
    often = sorted((one for one in found if one.count >= settings["loop_often"]), key=lambda one: one.count)
    seldom = [one for one in found if one.count < settings["loop_often"] and one.alike >= settings["loop_few_alike"]]
    level: list[Division] = []
    while often:
        level = [one for one in often if one.count <= settings["loop_level_times"] * often[0].count]
        # A marker may lie in some of the iterations only: others of the same period tell the rest.
        level += [one for one in often[len(level) :] if any(same_period(one, other, settings) for other in level)]
        often = [one for one in often if one not in level]
        typical = max(level, key=lambda one: one.quality)
        if not (
            _is_check(typical, often, events, settings)
            or _is_epoch(typical, often, events, settings)
            or _holds_fed(typical, often, events, settings)
            or _is_beside(typical, often, events, settings)
            or _by_chance(level, typical, often, settings)
        ):
            break
    # Few long steps: what updates the weights tells a training step from its layers.
    steps = [one for one in seldom if _updates(one, events)]
    if steps and not any(_updates(one, events) for one in level):
        level = steps
    level = level or [one for one in seldom if one.count == min(other.count for other in seldom)]
    return _good(level, settings)


def _good(level: list[Division], settings: Settings) -> list[Division]:
    """The divisions of about the best quality."""
    best = max((one.quality for one in level), default=0.0)
    return [one for one in level if one.quality >= best - settings["loop_quality_spread"]]


def same_period(one: Division, other: Division, settings: Settings) -> bool:
    """Return whether the typical segments of two divisions are of one size and hold the same operations."""
    least = settings["period_match"]
    if min(one.size, other.size) < least * max(one.size, other.size):
        return False
    lengths = np.linalg.norm(one.content) * np.linalg.norm(other.content)
    return bool(one.content @ other.content >= least * lengths)


def _updates(division: Division, events: Submissions) -> bool:
    """Return whether the typical segment runs kernels of an optimizer."""
    return any(events.updates[kind] for kind in np.flatnonzero(division.content))


def _is_epoch(outer: Division, finer: list[Division], events: Submissions, settings: Settings) -> bool:
    """Return whether a level consists of many training steps of one kind, and of what updates no weights between them.

    A validation every so many steps repeats as well as the steps do, and runs mostly their kernels. A step that updates
    several networks has few updates; in reinforcement learning an iteration also collects data, by kernels of its own.
    What only copies to the host between the steps is a checkpoint, after however few of them.
    """
    if not _updates(outer, events):
        return False
    updates, back = np.array(events.updates), np.array([COPY_BACK in name for name in events.names])

    def holds(one: Division) -> bool:
        added = _added(one, outer)
        if not added[~back].any():
            return one.count >= settings["loop_check_every"] * outer.count
        little = max(_shares(added, outer, events)) <= settings["loop_epoch_share"]
        return one.count >= settings["loop_epoch_steps"] * outer.count and little and not added[updates].any()

    return any(
        holds(one)
        and _holds_most(one, outer, events, settings)
        and _updates(one, events)
        and one.votes >= settings["loop_chance_votes"] * outer.votes
        for one in finer
    )


def _is_beside(outer: Division, finer: list[Division], events: Submissions, settings: Settings) -> bool:
    """Return whether all that a level adds to finer iterations but little comes from threads that have no part in them.

    A viewer that draws now and then, or a thread that answers requests, is no part of the training step beside it; a
    thread that copies its input is.
    """
    places = events.thread_of_kind
    copies = np.array([name.startswith(COPIES) for name in events.short])
    for inner in finer:
        few = inner.kinds < settings["loop_check_kinds"]
        if few or inner.quality < outer.quality - settings["loop_quality_spread"]:
            continue
        if _updates(outer, events) and not _updates(inner, events):
            continue  # what a thread for the backward pass does is half of a step
        added, within = _added(inner, outer), np.isin(places, places[inner.content > 0])
        if max(_shares(added, outer, events)) > settings["most_share"]:
            continue
        if added[~within & ~copies].any() and _is_little(np.where(within, added, 0.0), outer, events, settings):
            return True
    return False


def _holds_fed(outer: Division, finer: list[Division], events: Submissions, settings: Settings) -> bool:
    """Return whether a level consists of many finer iterations, each with an upload to work on, that are more alike, or
    to which the level adds little.

    A program whose optimizer has no name, as compiled by XLA, validates or logs every so many steps; a step's layers
    and a solver's inner iterations are given no input. Where all are alike they may be chunks of one input.
    """
    if any(events.updates):
        return False
    for one in finer:
        few = one.kinds < settings["loop_check_kinds"]
        alike = one.quality <= outer.quality
        if one.count < settings["loop_check_every_few" if few or alike else "loop_epoch_steps"] * outer.count:
            continue
        if not _holds_most(one, outer, events, settings):
            continue
        if alike and not _is_little(_added(one, outer), outer, events, settings):
            continue
        fed = np.unique(np.searchsorted(one.begins, events.fed, side="right"))
        if np.count_nonzero(fed) >= settings["loop_alike_share"] * one.count:
            return True
    return False


def _by_chance(level: list[Division], best: Division, finer: list[Division], settings: Settings) -> bool:
    """Return whether a level only shows in which iterations of a finer one some kernel runs.

    A library picks another kernel for another size: it marks some of the iterations, now one apart, now three. A level
    of its own has more to tell it by, or holds as many of the finer one's each time, and more than one, wherever these
    are said to begin.
    """
    votes = max(one.own_votes for one in _good(level, settings))
    regular: dict[int, bool] = {}
    for inner in finer:
        if inner.quality < best.quality or votes > settings["loop_chance_votes"] * inner.votes:
            continue
        held = np.diff(np.searchsorted(inner.begins, best.begins))
        if len(held):
            times = np.bincount(held)
            as_many = times.argmax() > 1 and times.max() >= settings["loop_alike_share"] * len(held)
            regular[inner.count] = regular.get(inner.count, False) or bool(as_many)
    return not all(regular.values())


def _is_check(outer: Division, finer: list[Division], events: Submissions, settings: Settings) -> bool:
    """Return whether a level only adds a small test, or a snapshot, read back once, to several finer iterations.

    A convergence test or a log line every ten steps repeats as well as the steps do; unlike a step it uploads nothing
    but what it fills with the values to read, and unlike what follows the last layer it multiplies no matrices.
    """
    kinds = len(events.names)
    read_back, uploaded = (np.array([way in name for name in events.names]) for way in (COPY_BACK, UPLOAD))
    graphs, copies = (np.array([name.startswith(kind) for name in events.short]) for kind in (GRAPH, COPIES))
    ahead = _ahead_of_read(read_back, events)
    soon = ahead <= settings["loop_check_few"]
    inside = np.arange(len(events)) >= outer.begins[1]  # the set-up may lie in the first segment
    held = np.bincount(events.kind, weights=inside, minlength=kinds)
    for_tests = np.bincount(events.kind, weights=inside & soon, minlength=kinds) >= settings["loop_alike_share"] * held
    step = (uploaded & ~for_tests) | np.array(events.updates) | np.array([role in PRODUCTS for role in events.roles])
    for inner in finer:
        few = inner.kinds < settings["loop_check_kinds"]
        if copies[inner.content > 0].all() or (few and graphs[inner.content > 0].any()):
            continue  # a step computes; and nothing tells graphs apart, of which it may launch several
        often = inner.count >= settings["loop_check_every_few" if few else "loop_check_every"] * outer.count
        if not (often and _holds_most(inner, outer, events, settings)):
            continue
        new = _added(inner, outer)
        if not _is_little(new, outer, events, settings) or new[step].any():
            continue
        reads = float(inner.content[read_back].sum())  # it may read so often that something is read soon anywhere
        at_once = soon & (reads * ahead <= max(settings["most_share"] * inner.size, reads))
        if not _for_reading(new, copies, at_once, events, settings):
            continue
        if 0 < _read(new, read_back, outer, events) <= settings["loop_check_reads"]:
            return True
    return False


def _holds_most(inner: Division, outer: Division, events: Submissions, settings: Settings) -> bool:
    """Return whether finer iterations hold most of a level's GPU time, or of what its typical segment takes.

    A library that tries its algorithms for a new shape does so within one segment of the level, between the finer ones.
    """
    least = settings["loop_check_coverage"]
    together = np.minimum(outer.content, inner.content * (inner.count / outer.count))
    typical = outer.content @ events.mean_ns
    return bool(inner.coverage >= least * outer.coverage or together @ events.mean_ns >= least * typical)


def _added(inner: Division, outer: Division) -> Floats:
    """The operations of each kind that a level has and its finer iterations have not, counted."""
    return np.where(inner.content == 0, outer.content, 0.0)


def _is_little(new: Floats, outer: Division, events: Submissions, settings: Settings) -> bool:
    """Return whether what a level adds is few operations of little time."""
    operations, time = _shares(new, outer, events)
    few = operations <= settings["loop_check_operations"] or new.sum() <= settings["loop_check_few"]
    return few and time <= settings["loop_check_share"]


def _shares(new: Floats, outer: Division, events: Submissions) -> tuple[float, float]:
    """The parts of a level's operations and of their GPU time that are new in it."""
    whole = max(float(outer.content @ events.mean_ns), 1.0)
    return float(new.sum() / max(outer.size, 1.0)), float(new @ events.mean_ns / whole)


def _ahead_of_read(read_back: NDArray[np.bool_], events: Submissions) -> Ints:
    """Return how many operations after each the next copy back comes. read_back: of each kind."""
    reads = np.append(np.flatnonzero(read_back[events.kind]), 2 * len(events) + 1)
    places = np.arange(len(events))
    return np.asarray(reads[np.searchsorted(reads, places)] - places)


def _for_reading(
    new: Floats, copies: NDArray[np.bool_], soon: NDArray[np.bool_], events: Submissions, settings: Settings
) -> bool:
    """Return whether what the kernels that are new in a level compute is read back at once, as the value of a test is.

    What a solver begins with is new as well, and all its iterations come before the value that is read. soon: of each
    operation whether it is read back at once.
    """
    computed = np.flatnonzero((new[events.kind] > 0) & ~copies[events.kind])
    near = np.count_nonzero(soon[computed])
    return bool(near >= settings["loop_alike_share"] * len(computed))


def _read(new: Floats, read_back: NDArray[np.bool_], outer: Division, events: Submissions) -> float:
    """Count the copies back of the operations that are new in a level, by the segment: copies of a kind of their own,
    or else those that follow such an operation at once, where most segments have one. Its iterations may read something
    back by themselves, and a log line every so many of the level's own is none of it.
    """
    if own := float(new[read_back].sum()):
        return own
    last = np.flatnonzero(new[events.kind[:-1]] > 0)
    copies = last[read_back[events.kind[last + 1]]]
    held = np.bincount(np.searchsorted(outer.begins, copies, side="right"), minlength=outer.count + 1)[1:]
    return len(copies) / outer.count if np.median(held) else 0.0
