"""Loops without annotations: from the period of the GPU operations, else the whole GPU work as one iteration."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice, pairwise
from statistics import median_low
from typing import NamedTuple

import duckdb
import numpy as np

from gpudiag.loops.iteration_bounds import Bounds, Found, Iterations, Settings, iteration_bounds, kernel_work
from gpudiag.loops.periodicity import find_repetitions, iteration_starts

Connection = duckdb.DuckDBPyConnection

_PRODUCT = "product"  # what kernel_role calls a product of matrices
_THREADS = 3  # that are asked for a loop: a bound on the cost, not a threshold
# Kernels that any program may launch anywhere: their names say nothing of the loop.
_UNTELLING_ROLES = ("pointwise", "cast", "layout")
_UNTELLING = re.compile(r"elementwise|multi_tensor_apply|^reduce_kernel$|^CatArray|^(cupy_)?copy|^kernel2?$", re.I)
_FOREVER = 2**62  # later than any time stamp
_TRIES = 3  # further stretches of one sequence that are asked: likewise


def loop_from_period(con: Connection, process: int, settings: Settings, *, late: bool = True) -> Found | None:
    """A loop from what one thread repeats: the operations it starts and the calls that hold it.

    Of each thread and each way to name its operations the stretch that repeats longest is asked first. Where none
    stands for what the process does, `late` ones count that stand for what it does from then on, and other stretches.
    """
    attempts = [
        attempt for thread in _threads(con, process, settings) for attempt in _attempts(con, process, thread, settings)
    ]
    passed: list[Found] = []
    for attempt in attempts:
        if found := next(attempt, None):
            if _stands_for(con, process, found.runs[0].bounds, settings):
                return found
            passed.append(found)
    others = (found for attempt in attempts for found in islice(attempt, _TRIES))
    for found in chain(passed, others):
        bounds = found.runs[0].bounds
        if _stands_for(con, process, bounds, settings) or (late and _stands_late(con, process, bounds, settings)):
            return found
    return None


def _attempts(con: Connection, process: int, thread: int, settings: Settings) -> Iterator[Iterator[Found]]:
    """Loops of a thread, by each sequence that may show them.

    Calls separate iterations that launch one kernel again and again. Operations alone decide where such calls have no
    part in what repeats, or repeat as well.
    """
    events = _started(con, process, thread, settings)
    operations = [event for event in events if event.is_op]
    for symbols in _readings(operations):
        yield _repeated(con, process, events, symbols, settings)
        alone = _repeated(con, process, operations, symbols, settings)
        yield (found for found in alone if _calls_repeat(events, found.runs[0].bounds, settings))


class _Event(NamedTuple):
    """An operation, by the call that started it, or a call that held the host; times in ns."""

    thread: int
    start: int
    end: int
    op_end: int
    op_ns: int
    full: str
    short: str
    role: str | None
    is_op: bool


def _readings(operations: list[_Event]) -> list[dict[tuple[str, str], str]]:
    """Names for the operations to compare iterations by, the likeliest first: each maps full and short names to one.

    A short name that stands for many kernels (element-wise ones) hides where an iteration ends. A library picks another
    kernel for each size of a product, so where sizes vary iterations only agree when all products count as one.
    """
    kernels = {(event.full, event.short): event.role for event in operations}
    by_short = {names: names[1] for names in kernels}
    by_full = {names: names[0] for names in kernels}
    products = {names: _PRODUCT for names, role in kernels.items() if role == _PRODUCT}
    readings: dict[tuple[int, ...], dict[tuple[str, str], str]] = {}
    for reading in (by_short, by_full, by_full | products, by_short | products):
        first: dict[str, int] = {}
        numbered = tuple(first.setdefault(name, len(first)) for name in reading.values())
        readings.setdefault(numbered, reading)
    return list(readings.values())


def _threads(con: Connection, process: int, settings: Settings) -> list[int]:
    """The threads that launch, those with much of the GPU work first: of these, the one that launches most often."""
    rows = con.execute(
        """
        select a.thread, count(*) filter (o.kind in ('kernel', 'graph')) as kernels,
               coalesce(sum(o."end" - o.start) filter (o.kind in ('kernel', 'graph')), 0) as work,
               work >= $share * sum(work) over () as much
        from gpu_op o join api_call a on a.id = o.api_call where o.process = $process
        group by 1 order by much desc, if(much, count(*), work) desc, 1
        """,
        {"process": process, "share": settings["thread_share"]},
    ).fetchall()
    launching = [int(row[0]) for row in rows if row[1]]
    return (launching or [int(row[0]) for row in rows])[:_THREADS]


def _calls_repeat(events: list[_Event], bounds: Bounds, settings: Settings) -> bool:
    """Return whether at most as many of the iterations' events as may differ are calls that other iterations do not
    make.
    """
    starts, ends = bounds[:, 0].tolist(), bounds[:, 1].tolist()
    iterations: list[Counter[str]] = [Counter() for _ in bounds]
    inside = 0
    for event in events:
        iteration = bisect_right(starts, event.start) - 1
        if iteration >= 0 and event.start < ends[iteration]:
            inside += 1
            if not event.is_op:
                iterations[iteration][event.full] += 1
    odd = 0
    for what in set().union(*iterations):
        usual = median_low(iteration[what] for iteration in iterations)
        odd += sum(abs(iteration[what] - usual) for iteration in iterations)
    return odd <= (1 - settings["period_match"]) * inside


def _started(con: Connection, process: int, thread: int, settings: Settings) -> list[_Event]:
    rows = con.execute(
        """
        with named as (
            select id, text, short, kernel_role(text) as role from name
            where id in (select distinct name from gpu_op where process = $process)
        ), ops as (
            select a.thread, a.start, a."end", o."end" as op_end, o."end" - o.start as op_ns,
                   coalesce(n.text, o.kind || ':' || coalesce(o.copy_kind, '')) as text,
                   coalesce(n.short, o.kind || ':' || coalesce(o.copy_kind, '')) as short, n.role
            from gpu_op o join api_call a on a.id = o.api_call left join named n on n.id = o.name
            where o.process = $process and a.thread = $thread order by a.start, op_end limit $most
        ), bounds as (select min(start) as first, max(start) as last from ops)
        select thread, start, "end", op_end, op_ns, text, short, role, true as is_op from ops
        union all
        select a.thread, a.start, a."end", a."end", 0, 'call:' || n.text, 'call:' || n.text, null, false
        from api_call a join bounds b on a.thread = $thread and a.start between b.first and b.last
        join name n on n.id = a.name
        where a.parent is null and a.process = $process and api_kind(n.text) in ('sync', 'alloc', 'free')
        order by 2, is_op, op_end
        """,
        {"process": process, "thread": thread, "most": int(settings["max_ops"])},
    ).fetchall()
    return [_Event(*row) for row in rows]


def _repeated(
    con: Connection, process: int, events: list[_Event], symbols: dict[tuple[str, str], str], settings: Settings
) -> Iterator[Found]:
    """Yield what repeats, the stretch that does so for the longest time first."""
    least = int(settings["min_iterations"])
    sequence = [symbols.get((event.full, event.short), event.full) for event in events]
    waits = [0] + [b.start - a.end for a, b in pairwise(events)]
    for period, first, last in find_repetitions(sequence, [event.start for event in events], settings):
        inside = events[first:last]
        starts = iteration_starts(sequence[first:last], waits[first:last], period, settings)
        if len(starts) < least:
            continue
        begins = np.array([inside[i].start for i in starts])
        ends = np.array([inside[min(i + period, len(inside)) - 1].op_end for i in starts])
        bounds = iteration_bounds(con, begins, ends.__getitem__, process, settings)
        name = _telling(inside[starts[0] : starts[0] + period])
        yield Found(f"every {name}", None, "period", [Iterations(process, inside[0].thread, bounds)])


def _telling(iteration: list[_Event]) -> str:
    """The kernel to call a loop by: the one that opens the iteration, or where that may be anything, the rarest in it.

    Products come last: their names are the library's for a size of tile. Of equally rare ones the longest, by powers of
    two, so that two ranks or two recordings agree.
    """
    kernels = [event for event in iteration if ":" not in event.short]
    telling = [event for event in kernels if event.role not in _UNTELLING_ROLES and not _UNTELLING.search(event.short)]
    if not telling or telling[0] is kernels[0]:
        return (kernels or iteration)[0].short.rstrip(":")
    often = Counter(event.short for event in telling)
    products = {event.short for event in telling if event.role == _PRODUCT}
    work: Counter[str] = Counter()
    for event in telling:
        work[event.short] += event.op_ns
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
