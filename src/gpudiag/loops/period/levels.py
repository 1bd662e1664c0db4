"""Levels of repetition: divisions of a run into like segments, and which of them holds the iteration."""

from __future__ import annotations

import numpy as np

from gpudiag.loops.iteration_bounds import Settings
from gpudiag.loops.period import coarser
from gpudiag.loops.period.division import Division, every, holds_most, same_period, updates
from gpudiag.loops.period.submissions import Submissions


def outermost(found: list[Division], events: Submissions, settings: Settings) -> list[Division]:
    """The divisions of the outermost level that repeats often enough, of about the best quality.

    In a short recording a few segments are enough, where all are alike, an operation of their own marks them, and they
    last: a call that comes now and then divides anything, and so does one array that is sent in a few parts.
    """
    few = [one for one in found if one.count < settings["loop_often"] and one.alike >= settings["loop_few_alike"]]
    few = [one for one in few if np.ptp(events.start[one.begins]) >= settings["loop_few_ns"]]
    enough = [one for one in few if one.count >= settings["loop_few"] and not one.marker.call]
    often = [*(one for one in found if one.count >= settings["loop_often"]), *enough]
    often.sort(key=lambda one: one.count)
    seldom = [one for one in few if one not in enough]
    level: list[Division] = []
    while often:
        level = [one for one in often if one.count <= settings["loop_level_times"] * often[0].count]
        # A marker may lie in some of the iterations only: others of the same period tell the rest.
        level += [one for one in often[len(level) :] if any(same_period(one, other, settings) for other in level)]
        often = [one for one in often if one not in level]
        typical = max(level, key=lambda one: one.quality)
        if not (
            coarser.is_coarser(typical, often, found, events, settings) or _by_chance(level, typical, often, settings)
        ):
            break
    # Few long steps: what updates the weights tells a training step from its layers.
    steps = [one for one in seldom if updates(one, events)]
    if steps and not any(updates(one, events) for one in level):
        level = steps
    level = level or [one for one in seldom if one.count == min(other.count for other in seldom)]
    return _good(level, settings)


def first_begun(level: list[Division], events: Submissions, settings: Settings) -> Division:
    """Of equal divisions one that begins where the host pauses long, and of these the one that begins first.

    A loop begins with the first operation of its iteration; pauses as short as preparing a launch say nothing.
    """
    usual = max(one.votes for one in level)
    pauses = {one: float(np.median(events.waited[one.begins])) for one in level if one.votes == usual}
    longest = max(pauses.values())
    long = settings["loop_pause_share"] * longest if longest >= settings["host_work_ns"] else 0.0
    return min((one for one, pause in pauses.items() if pause >= long), key=lambda one: int(one.begins[0]))


def repeats(division: Division, found: list[Division], events: Submissions, settings: Settings) -> int | None:
    """Return how often a finer division's work comes in each segment, where it holds most of it: the steps between two
    snapshots, or the layers of a step. Of several such divisions the coarsest counts.
    """
    finer = sorted((one for one in found if one.count > division.count), key=lambda one: one.count)
    times = (every(division, one, settings) for one in finer if holds_most(one, division, events, settings))
    return next((one for one in times if one >= settings["loop_check_every"]), None)


def _good(level: list[Division], settings: Settings) -> list[Division]:
    """The divisions of about the best quality."""
    best = max((one.quality for one in level), default=0.0)
    return [one for one in level if one.quality >= best - settings["loop_quality_spread"]]


def _by_chance(level: list[Division], best: Division, finer: list[Division], settings: Settings) -> bool:
    """Return whether a level only shows in which iterations of a finer one some kernel runs.

    A library picks another kernel for another size: it marks some of the iterations, now one apart, now three. A level
    of its own has more to tell it by, or holds as many of the finer one's each time, and more than one, wherever these
    are said to begin.
    """
    votes = max(one.own_votes for one in _good(level, settings))
    regular: dict[int, bool] = {}
    for inner in finer:
        if votes > settings["loop_chance_votes"] * inner.votes:
            continue
        regular[inner.count] = regular.get(inner.count, False) or every(best, inner, settings) > 0
    return not all(regular.values())
