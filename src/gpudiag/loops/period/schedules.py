"""Reasons why a level of repetition is coarser than the iteration: output, log lines, and requests to a server."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from gpudiag.loops.iteration_bounds import Settings
from gpudiag.loops.period.division import Division, added, every, holds_most, updates
from gpudiag.loops.period.submissions import COPY_BACK, Floats, Submissions


def is_scheduled(
    outer: Division, finer: list[Division], found: Sequence[Division], events: Submissions, settings: Settings
) -> bool:
    """Return whether a level comes every so many finer iterations, and something else every so many others: a snapshot
    every 15 steps and an energy every 25, neither a multiple of the other.

    What belongs to one iteration comes once in it, or as often in each. Where two such schedules show, what comes now
    after more iterations, now after fewer, is no iteration either: both write something, say.
    """
    for inner in finer:
        few = inner.count < settings["loop_check_every"] * outer.count
        if few or not holds_most(inner, outer, events, settings, least="most_share"):
            continue
        intervals = {one: every(one, inner, settings) for one in found if one.count < inner.count}
        spaced = sorted((one for one in intervals if intervals[one]), key=lambda one: -intervals[one])
        pairs = [two for two in combinations(spaced, 2) if not intervals[outer] or outer in two]
        if any(
            intervals[longer] % intervals[shorter] and not _begins_anew(longer, shorter, inner, settings)
            for longer, shorter in pairs
        ):
            return True
    return False


def is_admission(outer: Division, finer: list[Division], events: Submissions, settings: Settings) -> bool:
    """Return whether a level comes now after a few steps of a model, now after many, each time with an input: a server
    takes a request in, and computes its prompt, whenever another one is answered.

    A solver needs more iterations for one time step than for another, too, but these are of few kinds, or the time step
    does something besides before the next input comes.
    """
    if updates(outer, events) or outer.part_with(events.fed) < settings["loop_alike_share"]:
        return False
    for inner in finer:
        step = inner.kinds >= settings["loop_step_kinds"] and inner.alike >= settings["loop_alike_share"]
        if not step or not holds_most(inner, outer, events, settings, least="most_share"):
            continue
        if not _follows_input(added(inner, outer), inner, events, settings):
            continue
        held = np.diff(np.searchsorted(inner.begins, outer.begins))
        if np.median(held) < 1:
            continue  # of another phase of the program
        if inner.count < settings["loop_check_every"] * outer.count:  # by what some of the steps do besides?
            marked = settings["loop_chance_votes"] * inner.votes
            if outer.votes <= marked and not every(outer, inner, settings):
                return True
            continue
        if held.std() >= settings["loop_irregular"] * held.mean():
            return True
    return False


def is_log_line(inner: Division, outer: Division, events: Submissions, settings: Settings) -> bool:
    """Return whether a level is many finer iterations that read values back, and after them a wait, or one more
    value that is read back as theirs are. A model's layers read nothing back, and an array is an iteration's result.
    """
    back = np.array([COPY_BACK in name for name in events.names], dtype=bool)
    times = every(outer, inner, settings)
    if times < settings["loop_check_every_few"] or added(inner, outer).any() or not inner.content[back].any():
        return False
    results = outer.part_with(events.results) >= settings["loop_alike_share"] > inner.part_with(events.results)
    return outer.size - times * inner.size <= settings["loop_check_few"] and not results


def _follows_input(new: Floats, inner: Division, events: Submissions, settings: Settings) -> bool:
    """Return whether what is new in a level comes after an input, with no finer iteration between; also where nothing
    is new, as it comes in most of the finer iterations.
    """
    at = np.flatnonzero(new[events.kind] > 0)
    first = np.full(inner.count + 1, len(events))  # input of each finer segment, and before them
    np.minimum.at(first, np.searchsorted(inner.begins, events.fed, side="right"), events.fed)
    after = first[np.searchsorted(inner.begins, at, side="right")] <= at
    kind, kinds = events.kind[at], len(events.names)
    held, following = np.bincount(kind, minlength=kinds), np.bincount(kind, weights=after, minlength=kinds)
    return bool((following >= settings["loop_alike_share"] * held).all())


def _begins_anew(longer: Division, shorter: Division, inner: Division, settings: Settings) -> bool:
    """Return whether the segments of one division begin anew with each of a longer one: after as many finer iterations,
    though one more or less may come before it ends.
    """
    begins = longer.begins[longer.begins <= shorter.begins[-1]]
    if not len(begins):
        return False
    first = shorter.begins[np.searchsorted(shorter.begins, begins)]
    after = np.searchsorted(inner.begins, first) - np.searchsorted(inner.begins, begins)
    return bool(np.bincount(after).max() >= settings["loop_alike_share"] * len(after))
