"""Ways to divide a sequence of GPU operations into segments that are alike, and the one that is the iteration.

An operation that occurs once in each iteration divides the run into iterations; one that occurs in each layer divides
it into layers. So every operation, and every call that holds the host, proposes a division: at each of its occurrences,
at the first of each run, and at the first of each cluster. Those whose segments are alike are levels of a hierarchy:
the iteration is the outermost that repeats often enough. Segments are compared by their pairs of neighbours, with which
operations follow one another, so that an iteration may do a little more or less work than the one before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpudiag.loops.iteration_bounds import Ints, Settings
from gpudiag.loops.period.division import Division, Marker
from gpudiag.loops.period.levels import first_begun, outermost, repeats
from gpudiag.loops.period.submissions import PRODUCTS, Floats, Submissions

# Bounds on the cost of a search, not thresholds.
_SEGMENTS = 300  # of a division that are compared, evenly spread
_OF_ONE_COUNT = 4  # divisions into as many segments that are compared
_JUMPS = 3  # between distances of occurrences that may tell clusters apart
_STRETCH = 200_000  # operations of a long run in which divisions are sought


def iterations(events: Submissions, settings: Settings) -> Iterator[Division]:
    """The divisions that may be the program's iterations, the likeliest first."""
    middle = max(0, len(events) - _STRETCH) // 2
    sample = events.part(middle, middle + _STRETCH) if len(events) > _STRETCH else events
    found = _divisions(sample, settings)
    while found:
        level = outermost(found, sample, settings)
        if not level:
            return
        likeliest = first_begun(level, sample, settings)
        best: Division | None = likeliest
        if sample is not events:
            likeliest, best = _of_whole(likeliest, level, events, settings)
        if best:
            best = replace(best, repeats=repeats(likeliest, found, sample, settings))
            within = _from_pause_to_pause(_within(best, events, settings), events, settings)
            yield _without_stump(_after_extra_work(within, events, settings), len(events), settings)
        found = [one for one in found if one not in level]


def _of_whole(
    likeliest: Division, level: list[Division], events: Submissions, settings: Settings
) -> tuple[Division, Division | None]:
    """The likeliest division of a stretch, and the same of the whole run; or the next of its level that divides that
    into segments alike: what marks an iteration may have set up the run thousands of times.
    """
    others = sorted((one for one in level if one is not likeliest), key=lambda one: -one.quality)[:_OF_ONE_COUNT]
    first: Division | None = None
    for one in (likeliest, *others):
        judged = _judged(events, one.marker, one.marker.positions(events), settings)
        if judged and judged.alike >= settings["loop_alike_share"] and judged.coverage >= settings["min_coverage"]:
            return one, judged
        first = judged if one is likeliest else first
    return likeliest, first


def _without_stump(division: Division, operations: int, settings: Settings) -> Division:
    """The division without its last segment where the run, or the recording, ended within it."""
    ended = operations - division.begins[-1] >= settings["period_match"] * division.size
    return division if ended else replace(division, begins=division.begins[:-1], stump=int(division.begins[-1]))


def _within(division: Division, events: Submissions, settings: Settings) -> Division:
    """The division without the segments before its iterations and after them, where these hold much of the GPU's work,
    and without many in a row that are of another kind, as the batches of a validation.

    Kernels that one loop repeats also occur in the next one, in segments of other kinds.
    """
    score = np.append(0, np.cumsum(np.where(division.good, 1, -1)))
    last = int(np.argmax(score - np.minimum.accumulate(score)))
    first = int(np.argmin(score[: last + 1]))
    compared = _compared(division.count - 1)
    begins, size = division.begins, max(1, int(division.size))
    since = int(compared[first]) if first else 0
    until = int(compared[last - 1]) + 1 if last < len(compared) else len(begins)
    work, least = events.worked, settings["further_loop_share"] * events.worked[-1]
    if work[begins[since]] - work[begins[0]] < least:
        since = 0
    if until < len(begins) and work[-1] - work[min(begins[until - 1] + size, len(events))] < least:
        until = len(begins)
    others = _others(division, compared, settings)
    kept = np.arange(since, until)
    return replace(division, begins=begins[kept[~others[since:until]]])


def _others(division: Division, compared: Ints, settings: Settings) -> NDArray[np.bool_]:
    """Mark the segments of another kind that follow one another as often as a loop's iterations do.

    Of those that were not compared, at either end, the ones of another size.
    """
    marked = np.zeros(division.count, dtype=bool)
    sizes, times = np.diff(division.begins), settings["loop_size_times"]
    unlike = (sizes > times * division.size) | (sizes * times < division.size)
    edges = np.flatnonzero(np.diff(np.concatenate(([True], division.good, [True])).astype(np.int8)))
    for begin, end in edges.reshape(-1, 2):
        first, last = int(compared[begin]), int(compared[end - 1])
        while first and unlike[first - 1]:
            first -= 1
        while last + 1 < len(sizes) and unlike[last + 1]:
            last += 1
        after = division.count if end == len(compared) else last + 1  # what follows the last marker is not compared
        if after - first >= settings["loop_often"]:
            marked[first:after] = True
    return marked


def _from_pause_to_pause(division: Division, events: Submissions, settings: Settings) -> Division:
    """The division with as many segments joined as always come between two long pauses of the host, if these take most
    of the time: the same kernel launched twice a step, and code compiled before each step.
    """
    apart = np.diff(events.start[division.begins])
    long = apart > settings["break_factor"] * float(np.median(apart)) if len(apart) else np.zeros(0, dtype=bool)
    if long.sum() < settings["min_iterations"] or apart[long].sum() < settings["most_share"] * apart.sum():
        return division
    after = np.flatnonzero(long) + 1
    together = np.diff(after)
    many = int(np.median(together))
    regular = np.count_nonzero(together == many) >= settings["loop_alike_share"] * len(together)
    simple = division.kinds < settings["loop_check_kinds"]
    if not (regular and simple) or many > settings["loop_joined"]:
        return division
    first = [0] if after[0] == many else []
    return replace(
        division, begins=division.begins[[*first, *after]], size=many * division.size,
        content=many * division.content, repeats=division.repeats and many * division.repeats,
    )  # fmt: skip


def _after_extra_work(division: Division, events: Submissions, settings: Settings) -> Division:
    """The division with its segments begun where that of a validation, which some of them hold besides, ends.

    A marker in the middle of a step divides it: the rest of one step, the validation after it, the first part of the
    next. What both kinds of segments end with is that first part, which belongs to the operations after the marker.
    """
    begins, size, few = division.begins, int(division.size), settings["loop_check_few"]
    sizes = np.diff(begins)
    long = sizes > settings["loop_size_times"] * division.size
    places = np.flatnonzero(long[:-1] & ~long[1:] & (sizes[1:] >= size))  # a plain one follows
    if len(places) < settings["min_iterations"]:
        return division
    ends = np.arange(1, size + 1)
    unlike = events.kind[begins[places + 1][:, None] - ends] != events.kind[begins[places + 2][:, None] - ends]
    alike = np.where(unlike.any(axis=1), unlike.argmax(axis=1), size)
    ahead = int(np.median(alike))
    agreed = np.count_nonzero(np.abs(alike - ahead) <= few) >= settings["loop_alike_share"] * len(alike)
    if not (agreed and few < ahead < size):
        return division
    moved = begins - ahead
    whole = moved[0] >= 0 and (events.kind[moved[0] : begins[0]] == events.kind[moved[-1] : begins[-1]]).all()
    return replace(division, begins=moved if whole else moved[1:])


def odd(events: Submissions, division: Division, settings: Settings) -> NDArray[np.bool_]:
    """Mark the segments that hold far more than the typical one: something else came before the next iteration."""
    sizes = np.diff(np.append(division.begins, len(events)))
    return np.asarray(sizes > settings["loop_size_times"] * division.size)


def closing(events: Submissions, division: Division, place: int, settings: Settings) -> int:
    """Count the operations of a segment after which no iteration begins at once, up to the last one of its own.

    Its own are those that the typical segment has as often: what is done once, such as copying back the result, comes
    after it. Where one more begins after the last one, that is of the typical size.
    """
    first = int(division.begins[place])
    if place + 1 == division.count and division.stump is not None:
        return max(1, min(int(division.size), division.stump - first))
    longest = max(1, math.ceil(settings["loop_size_times"] * division.size))
    following = int(division.begins[place + 1]) if place + 1 < division.count else len(events)
    kinds = events.kind[first : min(first + longest, following)]
    order = np.argsort(kinds, kind="stable")
    ordered = kinds[order]
    before = np.empty(len(kinds), dtype=np.int64)
    before[order] = np.arange(len(kinds)) - np.searchsorted(ordered, ordered)  # equal ones before each operation
    own = np.flatnonzero(before < division.content[kinds])
    return int(own[-1]) + 1 if len(own) else 1


def _divisions(events: Submissions, settings: Settings) -> list[Division]:
    """The divisions into segments that are alike; of those into equally many, a few: where the host pauses first."""
    proposed: dict[int, list[tuple[Marker, Ints]]] = {}
    for marker, begins in _proposed(events, settings):
        proposed.setdefault(len(begins), []).append((marker, begins))
    found = []
    for group in proposed.values():
        group.sort(key=lambda one: float(np.median(events.waited[one[1]])), reverse=True)
        first = min(group, key=lambda one: int(one[1][0]))
        for marker, begins in {
            id(one): one for one in (*group[:: math.ceil(len(group) / _OF_ONE_COUNT)], first)
        }.values():
            one = _judged(events, marker, begins, settings)
            if one and one.alike >= settings["loop_alike_share"] and one.coverage >= settings["min_coverage"]:
                own = [at for other, at in group if other.call or events.roles[other.kind] not in PRODUCTS]
                agreeing = sum(_alternate(begins, at, settings) for at in own)
                found.append(replace(one, votes=len(group), own_votes=agreeing))
    # What repeats only after nearly all of the GPU's work, as a sum over a model's parameters, is no level of the rest.
    least = (1 - settings["further_loop_share"]) * events.worked[-1]
    return [one for one in found if events.worked[one.begins[0]] <= least] or found


def _alternate(one: Ints, other: Ints, settings: Settings) -> bool:
    """Return whether two markers of as many occurrences alternate, as in one iteration; else it is chance."""
    least = settings["loop_alike_share"] * (len(one) - 1)
    ahead, behind = (first[:-1] <= second[:-1] for first, second in ((one, other), (other, one)))
    return bool(max((ahead & (other[:-1] < one[1:])).sum(), (behind & (one[:-1] < other[1:])).sum()) >= least)


def _proposed(events: Submissions, settings: Settings) -> Iterator[tuple[Marker, Ints]]:
    """Each marker with the operations where its segments begin."""
    least = settings["min_iterations"]
    order = np.argsort(events.kind, kind="stable")
    cuts = np.searchsorted(events.kind[order], np.arange(len(events.names) + 1))
    occurrences = [(Marker(kind, "", 0.0), order[cuts[kind] : cuts[kind + 1]]) for kind in range(len(events.names))]
    occurrences += [(Marker(-1, call, 0.0), at) for call, at in events.calls.items()]
    for marker, at in occurrences:
        if len(at) < least:
            continue
        yield marker, at
        gaps = np.diff(at)
        ordered = np.sort(gaps)
        jumps = ordered[1:] / np.maximum(ordered[:-1], 1)
        splits = {1.0}
        for place in np.argsort(-jumps, kind="stable")[:_JUMPS]:
            if jumps[place] >= settings["loop_cluster_times"]:
                splits.add(float(np.sqrt(ordered[place] * ordered[place + 1])))
        for gap in sorted(splits):
            begins = at[np.append(True, gaps > gap)]
            if least <= len(begins) < len(at):
                yield marker._replace(gap=gap), begins


def _judged(events: Submissions, marker: Marker, begins: Ints, settings: Settings) -> Division | None:
    """Compare the segments of a division; None where the typical one is empty."""
    segments = len(begins) - 1
    if segments < 1:
        return None
    chosen = _compared(segments)
    first, sizes = begins[chosen], (begins[1:] - begins[:-1])[chosen]
    inside = np.repeat(first - np.append(0, np.cumsum(sizes)[:-1]), sizes) + np.arange(sizes.sum())
    row = np.repeat(np.arange(len(chosen)), sizes)
    pairs = _counted(row, events.pair[inside], len(chosen), events.pairs)
    typical = np.median(pairs, axis=0)
    if not typical.any():
        return None
    lengths = np.linalg.norm(pairs, axis=1) * np.linalg.norm(typical)
    cosine = (pairs @ typical) / np.maximum(lengths, 1e-9)
    size, times = float(np.median(sizes)), settings["loop_size_times"]
    good = (cosine >= settings["loop_alike"]) & (sizes <= times * size) & (sizes * times >= size)
    worked, last = events.worked, int(begins[-1])
    work = (worked[begins[1:]] - worked[begins[:-1]])[chosen]
    if good.mean() >= settings["loop_plain_share"]:  # the others may do something besides, such as write a checkpoint
        # What it does besides breaks one pair at least: the last one.
        more = ~good & (np.minimum(pairs, typical).sum(axis=1) >= settings["loop_held"] * (typical.sum() - 1))
        work[more] = np.minimum(work[more], np.median(work[good]))
        good |= more
    contents = _counted(row, events.kind[inside], len(chosen), len(events.names))
    content = np.median(contents, axis=0)
    good |= _doing_more(contents, content, good, settings)
    held = float(work[good].sum()) * segments / len(chosen)
    held += worked[min(last + int(size), len(events))] - worked[last]  # of the last segment nothing tells the end
    coverage = float(held / max(worked[-1] - worked[begins[0]], 1.0))
    return Division(marker, begins, float(good.mean()), coverage, size, content, good)


def _doing_more(contents: Floats, typical: Floats, good: NDArray[np.bool_], settings: Settings) -> NDArray[np.bool_]:
    """Mark the segments that do all that the typical one does, and more among it, where nearly each one does: a server
    takes a prompt in beside the answers that it goes on with, in every layer.

    contents: how many operations of each kind each segment has.
    """
    some = settings["loop_joined_plain"] <= good.mean() < settings["loop_alike_share"]
    if not some or np.count_nonzero(typical) < settings["loop_step_kinds"]:
        return np.zeros_like(good)
    held = np.minimum(contents, typical).sum(axis=1) >= settings["loop_held"] * typical.sum()
    return np.asarray(held & (held.mean() >= settings["loop_alike_share"]))


def _compared(segments: int) -> Ints:
    """The segments of a division that are compared, evenly spread."""
    return np.unique(np.linspace(0, segments - 1, min(segments, _SEGMENTS)).astype(np.int64))


def _counted(row: Ints, what: Ints, rows: int, kinds: int) -> Floats:
    counts: Floats = np.bincount(row * kinds + what, minlength=rows * kinds).reshape(rows, kinds).astype(np.float64)
    return counts
