"""Loops without annotations: from what repeats in the GPU operations, else the whole GPU work as one iteration."""

from __future__ import annotations

import re
from collections import Counter

import duckdb
import numpy as np

from gpudiag.loops.iteration_bounds import Bounds, Found, Ints, Iterations, Settings, iteration_bounds, kernel_work
from gpudiag.loops.period import further, segmentation, submissions
from gpudiag.loops.period.division import Division
from gpudiag.loops.period.further import Parts, Repetition
from gpudiag.loops.period.submissions import Submissions

Connection = duckdb.DuckDBPyConnection

_PRODUCT = "product"  # what kernel_role calls a product of matrices
# Kernels that any program may launch anywhere: their names say nothing of the loop.
_UNTELLING_ROLES = ("pointwise", "cast", "layout")
_UNTELLING = re.compile(r"elementwise|multi_tensor_apply|^reduce_kernel$|^CatArray|^(cupy_)?copy|^kernel2?$", re.I)
_FOREVER = 2**62  # later than any time stamp
_TRIES = 6  # levels of a hierarchy that are asked: a bound on the cost, not a threshold


def loops_from_period(
    con: Connection, process: int, settings: Settings, *, late: bool = True, several: bool = True
) -> list[Found]:
    """The iterations of what a process repeats, by time: of the loop that stands for it, and of `several` others.

    Where no level of its repetitions stands for what the process does, `late` ones count that stand for what it does
    from then on: after much compiling and tuning.
    """
    events, found = _main(con, process, settings, late=late)
    if found is None:
        return []
    loops = _all(con, process, events, found, settings) if several else [Parts([found])]
    return [
        Found(f"every {_telling(one.each[0].events, one.each[0].division)}", None, "period",
              [Iterations(process, int(events.thread[one.begins]), one.bounds)], one.each[0].division.repeats)
        for one in further.ended(loops) if not one.each[0].sets_up
    ]  # fmt: skip


def _main(con: Connection, process: int, settings: Settings, *, late: bool) -> tuple[Submissions, Repetition | None]:
    """The loop that stands for a process, in its operations as they are distinguished for it."""
    events = submissions.read(con, process, settings)
    found = _of(con, process, events, settings, late=late)
    if found is None and _threads(con, process) > 1:  # a pool may hand the same work to any of its threads
        events = submissions.read(con, process, settings, by_thread=False)
        return events, _of(con, process, events, settings, pooled=True)
    if found is None:
        return events, None
    few, times = _hardly_marked(found.division, settings), _alternates(events, found.division)
    if few or times > 1:  # a few iterations, perhaps, of sizes for each of which a library has other kernels
        by_role = submissions.read(con, process, {**settings, "loop_kernels_a_role": 0})
        finer = _of(con, process, by_role, settings)
        if finer and (
            _tells_more(finer.division, found.division)
            if few
            else _is_fed(by_role, finer.division, times * found.division.count, settings)
        ):
            return by_role, finer
    return events, found


def _hardly_marked(division: Division, settings: Settings) -> bool:
    """Return whether few kinds of operations mark a division, or only kernels that a library picks by size."""
    return division.own_votes == 0 or division.votes < settings["loop_marked_share"] * division.kinds


def _tells_more(finer: Division, division: Division) -> bool:
    """Return whether a finer division is marked by more kinds, or by one at all where the other has none of its own."""
    more = finer.votes > division.votes or finer.own_votes > division.own_votes == 0
    return finer.count > division.count and more


def _alternates(events: Submissions, division: Division) -> int:
    """Return how many times a segment may hold the same iteration, of sizes for each of which a library has kernels of
    its own: all else in it comes as often, or a multiple of that. 1 where it holds one iteration.
    """
    there = np.flatnonzero(division.content)
    sized = np.array([events.roles[kind] in submissions.SIZED for kind in there], dtype=bool)
    if sized.all() or np.count_nonzero(sized) < 2:
        return 1
    return int(np.gcd.reduce(np.rint(division.content[there[~sized]]).astype(np.int64)))


def _is_fed(events: Submissions, division: Division, count: int, settings: Settings) -> bool:
    """Return whether there are about so many iterations, and each is given an upload to work on."""
    if min(count, division.count) < settings["period_match"] * max(count, division.count):
        return False
    return division.part_with(events.fed) >= settings["loop_alike_share"]


def _all(con: Connection, process: int, events: Submissions, main: Repetition, settings: Settings) -> list[Parts]:
    """The main loop, and those that repeat in what it leaves, less those that only prepare others."""
    loops = [Parts([main])]
    left = further.left(events, main, settings)
    while left and len(loops) <= settings["further_loops"]:
        first, last = left.pop(0)
        part = events.part(first, last)
        for _, division in zip(range(_TRIES), segmentation.iterations(part, settings), strict=False):
            one = Repetition(part, first, division, _bounds(con, process, part, division, settings), settings)
            if further.joined(one, loops, events, settings):
                left += further.left(events, one, settings)
                break
    return further.steady(loops, further.loading(con, process), settings) if len(loops) > 1 else loops


def _threads(con: Connection, process: int) -> int:
    """Count the threads that launch GPU operations."""
    row = con.execute(
        "select count(distinct a.thread) from gpu_op o join api_call a on a.id = o.api_call where o.process = ?",
        [process],
    ).fetchall()[0]
    return int(row[0])


def _of(
    con: Connection, process: int, events: Submissions, settings: Settings, *, late: bool = False, pooled: bool = False
) -> Repetition | None:
    """The iterations of what is submitted; of a pool's only those that compute and repeat often.

    Copies that several threads make look alike whatever they are for.
    """
    passed: list[Repetition] = []
    for _, division in zip(range(_TRIES), segmentation.iterations(events, settings), strict=False):
        if pooled and (division.count < settings["loop_often"] or not _computes(events, division)):
            continue
        found = Repetition(events, 0, division, _bounds(con, process, events, division, settings), settings)
        if _stands_for(con, process, found.bounds, settings):
            return found
        passed.append(found)
    return next((one for one in passed if late and _stands_late(con, process, one.bounds, settings)), None)


def _computes(events: Submissions, division: Division) -> bool:
    """Return whether the typical iteration launches a kernel or a graph."""
    return not events.copies[division.content > 0].all()


def _bounds(con: Connection, process: int, events: Submissions, division: Division, settings: Settings) -> Bounds:
    """Return where each iteration begins and ends (ns): at the next one, or where others come before it, or none does,
    at its last operation.
    """
    begins, size = division.begins, max(1, int(division.size))

    def ended(places: Ints) -> Ints:
        return np.array([events.done[at : at + size].max() for at in begins[places]], dtype=np.int64)

    def closed(places: Ints) -> Ints:
        lengths = [segmentation.closing(events, division, int(at), settings) for at in places]
        return np.array(
            [events.done[begins[at] : begins[at] + n].max() for at, n in zip(places, lengths, strict=True)],
            dtype=np.int64,
        )

    bounds = iteration_bounds(con, events.start[begins], closed, process, settings, by_host=False)
    longer = np.flatnonzero(segmentation.odd(events, division, settings))
    if len(longer):
        bounds[longer, 1] = np.minimum(bounds[longer, 1], np.maximum(ended(longer), bounds[longer, 0] + 1))
    return bounds


def _telling(events: Submissions, division: Division) -> str:
    """The kernel to call a loop by: the one that opens the iteration, or where that may be anything, the rarest in it.

    Products come last: their names are the library's for a size of tile. Of equally rare ones the longest, by powers of
    two, so that two ranks or two recordings agree.
    """
    middle = int(division.begins[len(division.begins) // 2])
    inside = events.kind[middle : middle + max(1, int(division.size))]
    kernels = [int(kind) for kind in inside if ":" not in events.short[kind]]
    telling = [
        kind for kind in kernels
        if events.roles[kind] not in _UNTELLING_ROLES and not _UNTELLING.search(events.short[kind])
    ]  # fmt: skip
    if not telling or telling[0] == kernels[0]:
        return events.short[kernels[0] if kernels else int(inside[0])].rstrip(":")
    often = Counter(events.short[kind] for kind in telling)
    products = {events.short[kind] for kind in telling if events.roles[kind] == _PRODUCT}
    work: Counter[str] = Counter()
    each = events.ns[middle : middle + len(inside)]
    for kind, ns in zip(inside, each, strict=True):
        work[events.short[kind]] += int(ns)
    return min(often, key=lambda name: (name in products, often[name], -work[name].bit_length(), name))


def _stands_for(con: Connection, process: int, bounds: Bounds, settings: Settings) -> bool:
    """Return whether the iterations hold enough of the process's GPU work, or of its time, to stand for it."""
    row = con.execute('select min(start), max("end") from gpu_op where process = ?', [process]).fetchall()[0]
    held = _length(bounds) / max(row[1] - row[0], 1)  # pauses belong to no iteration
    return bool(max(held, _share(con, process, bounds)) >= settings["min_coverage"])


def _length(bounds: Bounds) -> int:
    """The time of all iterations together (ns)."""
    return int((bounds[:, 1] - bounds[:, 0]).sum())


def _stands_late(con: Connection, process: int, bounds: Bounds, settings: Settings) -> bool:
    """Return whether iterations that come after much compiling and tuning stand for the work from then on.

    They have to fill their time: kernels being tuned repeat as well, with their compilation between.
    """
    first, last = int(bounds[0, 0]), int(bounds[-1, 1])
    return (
        _share(con, process, bounds) >= settings["late_coverage"]
        and _share(con, process, bounds, since=first) >= settings["min_coverage"]
        and _length(bounds) >= settings["min_coverage"] * (last - first)
    )


def _share(con: Connection, process: int, bounds: Bounds, since: int | None = None) -> float:
    """Return the iterations' part of the process's kernel time or launches, the larger one; of those `since` then."""
    inside = kernel_work(con, process, bounds)
    total = kernel_work(con, process, None if since is None else np.array([[since, _FOREVER]]))
    return max(held / max(whole, 1) for held, whole in zip(inside, total, strict=True))


def whole_run(con: Connection, process: int, settings: Settings) -> Found | None:
    """Nothing repeats: from the first GPU operation's call to the last one's end counts as one iteration.

    Of more operations than the setting max_unrepeated_ops, those in the middle. None when so little was recorded that
    it tells nothing.
    """
    row = con.execute(
        """
        select min(least(coalesce(a.start, o.start), o.start)), max(o."end"),
               mode(a.thread order by a.thread), count(*), max(o."end" - o.start)
        from gpu_op o left join api_call a on a.id = o.api_call where o.process = ?
        """,
        [process],
    ).fetchall()[0]
    if row[3] < settings["min_ops"] and row[4] < settings["long_op_ns"]:
        return None
    thread = row[2]
    if thread is None:
        other = con.execute("select min(id) from thread where process = ?", [process]).fetchall()[0]
        thread = other[0] if other[0] is not None else 0
    name, bounds, most = "whole run", row[:2], int(settings["max_unrepeated_ops"])
    if row[3] > most:
        middle = "from gpu_op where process = ? order by start, id limit ? offset ?"
        name = "part of the run"
        bounds = con.execute(
            f"select min(start), max(start) from ({middle})", [process, most, (row[3] - most) // 2]
        ).fetchall()[0]
    return Found(name, None, "unknown", [Iterations(process, int(thread), np.array([bounds]))])
