"""Reasons why a level of repetition is coarser than the iteration: what it adds to finer ones is no part of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpudiag.loops.iteration_bounds import Ints, Settings
from gpudiag.loops.period import schedules
from gpudiag.loops.period.division import Division, added, every, holds_most, updates
from gpudiag.loops.period.submissions import COPIES, COPY_BACK, GRAPH, PRODUCTS, UPLOAD, Floats, Submissions


def is_coarser(
    outer: Division, finer: list[Division], found: Sequence[Division], events: Submissions, settings: Settings
) -> bool:
    """Return whether a level consists of several iterations, which are among the finer ones, and of little else.

    found: the divisions of all levels.
    """
    return (
        _is_check(outer, finer, events, settings)
        or _is_report(outer, finer, events, settings)
        or _is_epoch(outer, finer, events, settings)
        or _holds_fed(outer, finer, events, settings)
        or _is_beside(outer, finer, events, settings)
        or _repeats_graph(outer, finer, events, settings)
        or schedules.is_scheduled(outer, finer, found, events, settings)
        or schedules.is_admission(outer, finer, events, settings)
    )


def _is_report(outer: Division, finer: list[Division], events: Submissions, settings: Settings) -> bool:
    """Return whether a level adds only a report to its finer iterations: it comes after always as many of them, ten or
    more, takes next to no time, and what each of its kernels computes is read back before half of another one has run.

    Energies and moments take dozens of small kernels, often more than a step has. A solver's iterations are mostly no
    steps: their number differs, or the time step takes more time around them, or computes something before them.
    """
    back = _copied(COPY_BACK, events)
    step = _copied(UPLOAD, events) | np.array(events.updates) | np.array([role in PRODUCTS for role in events.roles])
    places = np.arange(len(events))
    read = np.minimum(places + _ahead_of_read(back, events), len(events))
    for inner in finer:
        enough = inner.kinds >= settings["loop_check_kinds"] and inner.quality >= settings["loop_held"]
        if not enough or events.copies[inner.content > 0].all():
            continue
        many = every(outer, inner, settings) >= settings["loop_check_every_few"]
        if not (many and holds_most(inner, outer, events, settings)):
            continue
        new = added(inner, outer)
        if new[step].any() or _shares(new, outer, events)[1] > settings["loop_report_share"]:
            continue
        own = np.where((inner.content > 0) & ~events.copies, events.mean_ns, 0.0)
        run = np.append(0.0, np.cumsum(own[events.kind]))
        at_once = run[read] - run[places] < settings["most_share"] * (inner.content @ own)
        if _shares_input(inner, outer, at_once, events, settings):
            continue
        later = places >= outer.begins[1]  # the first segment may set up
        held, soon = (np.bincount(events.kind[at], minlength=len(new)) for at in (later, later & at_once))
        kernels = (new > 0) & ~events.copies
        each = (soon >= settings["loop_alike_share"] * held)[kernels]
        if each.any() and each.all() and _read(new, back, outer, events):
            return True
    return False


def _is_epoch(outer: Division, finer: list[Division], events: Submissions, settings: Settings) -> bool:
    """Return whether a level consists of many training steps of one kind, and of next to nothing else that updates.

    A validation every so many steps repeats as well as the steps do, and runs mostly their kernels. A step that updates
    several networks has few updates; in reinforcement learning an iteration also collects data, by kernels of its own.
    What only copies to the host between the steps is a checkpoint, after however few of them.
    """
    if not updates(outer, events):
        return False
    updating, back = np.array(events.updates), _copied(COPY_BACK, events)

    def holds(one: Division) -> bool:
        new = added(one, outer)
        if not new[~back].any():
            return one.count >= settings["loop_check_every"] * outer.count
        part = max(_shares(new, outer, events))
        # The copy to a target network looks like an update, but its steps have updates of their own.
        most = settings["loop_negligible" if new[updating].any() else "loop_epoch_share"]
        return one.count >= settings["loop_epoch_steps"] * outer.count and part <= most

    return any(
        holds(one)
        and holds_most(one, outer, events, settings)
        and updates(one, events)
        and one.votes >= settings["loop_chance_votes"] * outer.votes
        for one in finer
    )


def _is_beside(outer: Division, finer: list[Division], events: Submissions, settings: Settings) -> bool:
    """Return whether all that a level adds to finer iterations but little comes from threads that have no part in them.

    A viewer that draws now and then, or a thread that answers requests, is no part of the training step beside it; a
    thread that copies its input is.
    """
    places = events.thread_of_kind
    for inner in finer:
        few = inner.kinds < settings["loop_check_kinds"]
        if few or inner.quality < outer.quality - settings["loop_quality_spread"]:
            continue
        if updates(outer, events) and not updates(inner, events):
            continue  # what a thread for the backward pass does is half of a step
        new, within = added(inner, outer), np.isin(places, places[inner.content > 0])
        if max(_shares(new, outer, events)) > settings["most_share"]:
            continue
        if new[~within & ~events.copies].any() and _is_little(np.where(within, new, 0.0), outer, events, settings):
            return True
    return False


def _repeats_graph(outer: Division, finer: list[Division], events: Submissions, settings: Settings) -> bool:
    """Return whether a level launches one graph many times, and adds next to no time to that: a step that a framework
    recorded, points that are drawn anew every so many steps. The launches share no input, and are for no array. A value
    that is read back after now more launches, now fewer, ends a solver's iterations; or is logged every second.
    """
    back = _copied(COPY_BACK, events)
    for inner in finer:
        few = inner.count < settings["loop_check_every_few"] * outer.count
        if few or not events.same_graph[inner.content > 0].any() or not holds_most(inner, outer, events, settings):
            continue
        shared = any(
            outer.part_with(at) >= settings["loop_alike_share"] > inner.part_with(at)
            for at in (events.fed, events.results)
        )
        new, held = added(inner, outer), np.diff(np.searchsorted(inner.begins, outer.begins))
        solves = new[back].any() and np.bincount(held).max() < settings["most_share"] * len(held)
        if not (shared or solves) and _shares(new, outer, events)[1] <= settings["loop_negligible"]:
            return True
    return False


def _holds_fed(outer: Division, finer: list[Division], events: Submissions, settings: Settings) -> bool:
    """Return whether a level consists of many finer iterations that are more alike, or to which the level adds little,
    each with an upload to work on or with an array as its result.

    A program whose optimizer has no name, as compiled by XLA, validates or logs every so many steps; a step's layers
    and a solver's inner iterations are given no input. Where all are alike they may be chunks of one input, and arrays
    may be parts of one result.
    """
    if any(events.updates):
        return False
    for one in finer:
        if events.copies[one.content > 0].all():
            continue  # an input may come in thousands of copies
        few = one.kinds < settings["loop_check_kinds"]
        alike = one.quality <= outer.quality
        if one.count < settings["loop_check_every_few" if few or alike else "loop_epoch_steps"] * outer.count:
            continue
        if not holds_most(one, outer, events, settings):
            continue
        little = _is_little(added(one, outer), outer, events, settings)
        if alike and not little:
            continue
        given, delivers = (one.part_with(at) >= settings["loop_alike_share"] for at in (events.fed, events.results))
        if given and not _alternates_with_host(one, outer, events, settings):
            return True
        kernels = ~events.copies
        few_kernels = np.count_nonzero(kernels[one.content > 0]) < settings["loop_check_kinds"]
        tile = few_kernels and added(one, outer)[kernels].any()  # a kernel or two of what launches others as well
        shared = outer.part_with(events.fed) >= settings["loop_alike_share"]
        if delivers and not given and little and not tile and not shared:
            return True
    return False


def _alternates_with_host(inner: Division, outer: Division, events: Submissions, settings: Settings) -> bool:
    """Return whether finer iterations are a kernel or two whose result the host works on at once and uploads for the
    next: parts of a level that launches other kernels around them.
    """
    there = inner.content > 0
    kernels = np.array([not name.startswith((*COPIES, GRAPH)) for name in events.short], dtype=bool)
    if np.count_nonzero(there & ~events.copies) >= settings["loop_check_kinds"] or not (there & kernels).any():
        return False
    back, up = _copied(COPY_BACK, events), _copied(UPLOAD, events)
    places = np.where(up[events.kind], 0, np.arange(len(events)))
    before = np.maximum.accumulate(places)[events.fed[events.fed >= inner.begins[0]]]  # what comes before the uploads
    alternates = np.count_nonzero(back[events.kind[before]]) >= settings["loop_alike_share"] * len(before)
    return bool(alternates and added(inner, outer)[kernels].any())


def _is_check(outer: Division, finer: list[Division], events: Submissions, settings: Settings) -> bool:
    """Return whether a level only adds a small test, or a snapshot, read back once, to several finer iterations.

    A convergence test or a log line every ten steps repeats as well as the steps do, but what comes after fewer may be
    a time step of a few cycles. Unlike a step a test uploads nothing but what it fills with the values to read, and
    unlike what follows the last layer it multiplies no matrices.
    What takes next to no time beside iterations of many kernels is written now and then, whatever computed it.
    """
    kinds = len(events.names)
    read_back, uploaded = _copied(COPY_BACK, events), _copied(UPLOAD, events)
    graphs = np.array([name.startswith(GRAPH) for name in events.short])
    ahead = _ahead_of_read(read_back, events)
    soon = ahead <= settings["loop_check_few"]
    inside = np.arange(len(events)) >= outer.begins[1]  # the set-up may lie in the first segment
    held = np.bincount(events.kind, weights=inside, minlength=kinds)
    for_tests = np.bincount(events.kind, weights=inside & soon, minlength=kinds) >= settings["loop_alike_share"] * held
    after_read = np.append(False, read_back[events.kind[:-1]])  # the host worked on what it read
    for_tests &= np.bincount(events.kind, weights=inside & after_read, minlength=kinds) <= settings["most_share"] * held
    step = (uploaded & ~for_tests) | np.array(events.updates)
    products = np.array([role in PRODUCTS for role in events.roles])
    for inner in finer:
        few = inner.kinds < settings["loop_check_kinds"]
        if events.copies[inner.content > 0].all() or (few and graphs[inner.content > 0].any()):
            continue  # a step computes; and nothing tells graphs apart, of which it may launch several
        new = added(inner, outer)
        negligible = (
            inner.kinds >= settings["loop_step_kinds"]
            and max(_shares(new, outer, events)) <= settings["loop_negligible"]
        ) or (not few and schedules.is_log_line(inner, outer, events, settings))
        least = "loop_check_every_few" if few else "loop_check_every" if negligible else "loop_test_every"
        if inner.count < settings[least] * outer.count or not holds_most(inner, outer, events, settings):
            continue
        if _shares_input(inner, outer, soon, events, settings):
            continue
        if not _is_little(new, outer, events, settings) or new[step].any() or (new[products].any() and not negligible):
            continue
        if negligible:
            return True
        reads = float(inner.content[read_back].sum())  # it may read so often that something is read soon anywhere
        at_once = soon & (reads * ahead <= max(settings["most_share"] * inner.size, reads))
        if not _for_reading(new, at_once, inside, events, settings):
            continue
        most = "loop_snapshot_reads" if every(outer, inner, settings) else "loop_check_reads"
        if 0 < _read(new, read_back, outer, events) <= settings[most]:
            return True
    return False


def _shares_input(
    inner: Division, outer: Division, soon: NDArray[np.bool_], events: Submissions, settings: Settings
) -> bool:
    """Return whether nearly each segment of a level is given an upload to work on, and few finer iterations are: these
    share it. What is read back soon is no input but a test's.
    """
    given = events.fed[~soon[events.fed]]
    return outer.part_with(given) >= settings["loop_alike_share"] and inner.part_with(given) <= settings["most_share"]


def _is_little(new: Floats, outer: Division, events: Submissions, settings: Settings) -> bool:
    """Return whether what a level adds is few operations of little time."""
    operations, time = _shares(new, outer, events)
    few = operations <= settings["loop_check_operations"] or new.sum() <= settings["loop_check_few"]
    return few and time <= settings["loop_check_share"]


def _shares(new: Floats, outer: Division, events: Submissions) -> tuple[float, float]:
    """The parts of a level's operations and of their GPU time that are new in it."""
    whole = max(float(outer.content @ events.mean_ns), 1.0)
    return float(new.sum() / max(outer.size, 1.0)), float(new @ events.mean_ns / whole)


def _copied(way: str, events: Submissions) -> NDArray[np.bool_]:
    """Return a mask of the kinds that copy this way."""
    return np.array([way in name for name in events.names], dtype=bool)


def _ahead_of_read(read_back: NDArray[np.bool_], events: Submissions) -> Ints:
    """Return how many operations after each the next copy back comes. read_back: of each kind."""
    reads = np.append(np.flatnonzero(read_back[events.kind]), 2 * len(events) + 1)
    places = np.arange(len(events))
    return np.asarray(reads[np.searchsorted(reads, places)] - places)


def _for_reading(
    new: Floats, soon: NDArray[np.bool_], inside: NDArray[np.bool_], events: Submissions, settings: Settings
) -> bool:
    """Return whether what the kernels that are new in a level compute is read back at once, as the value of a test is.

    What a solver begins with is new as well, and all its iterations come before the value that is read. soon: of each
    operation whether it is read back at once; inside: whether it comes after the first segment, which may set up.
    """
    computed = (new[events.kind] > 0) & ~events.copies[events.kind] & inside
    return bool(np.count_nonzero(soon & computed) >= settings["loop_alike_share"] * np.count_nonzero(computed))


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
