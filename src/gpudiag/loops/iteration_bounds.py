"""Iterations of a loop in each process, and the moment at which an iteration ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import duckdb
import numpy as np
from numpy.typing import NDArray

from gpudiag.loops.tuning import work_while_tuning

Connection = duckdb.DuckDBPyConnection
Settings = dict[str, float]
Ints = NDArray[np.int64]
Bounds = NDArray[np.int64]
"""Where iterations begin and end, a row each, in ns: shape (iterations, 2)."""


@dataclass(slots=True)
class Iterations:
    """The iterations of one loop in one process, before warm-up is cut."""

    process: int
    thread: int
    bounds: Bounds
    begun: bool = False
    """Whether the loop was running where the selected part of the process begins."""
    goes_on: bool = False
    """Whether it was where that part ends."""
    moves: bool = True
    """Whether an iteration begins only where the GPU has done what was queued before it."""


@dataclass(slots=True)
class Found:
    """A loop and who ran it. `source` is nvtx, period or unknown; `repeats` how often the same work comes in each
    iteration, where more than once.
    """

    name: str
    path: str | None
    source: str
    runs: list[Iterations] = field(default_factory=list)
    repeats: int | None = None


_AT_ONCE = 1_000_000
"""Values of an array that are handed over, or taken, at a time: of more, the copies alone would fill the memory."""


@contextmanager
def temporary(con: Connection, table: str, **columns: Ints) -> Iterator[None]:
    """Arrays of one length as a temporary table, while this is open; with their row numbers as `ordinal`.

    A table, because the planner has to know how many rows there are, or it compares each with every operation.
    """
    # Dropping ends a result not read to its end, beside which nothing registers.
    con.execute(f"drop table if exists {table}")
    begun = "create temp table {table} as"
    for first in range(0, max(1, len(next(iter(columns.values())))), _AT_ONCE):
        part = {name: np.ascontiguousarray(values[first : first + _AT_ONCE]) for name, values in columns.items()}
        part["ordinal"] = np.arange(first, first + len(next(iter(part.values()))))
        con.register("handed_over", part)
        try:
            con.execute(f"{begun.format(table=table)} from handed_over")
        finally:
            con.unregister("handed_over")
        begun = "insert into {table}"
    yield
    con.execute(f"drop table {table}")


NEVER = -(2**62)
_NEAR = 1_000
"""Stretches of time that the longest iteration is looked for in."""


def iteration_bounds(
    con: Connection,
    starts: Ints,
    ended: Callable[[Ints], Ints],
    process: int,
    settings: Settings,
    *,
    by_host: bool = True,
) -> Bounds:
    """Start to next start; at a long pause and after the last iteration, to the end of the GPU work it queued (ns).

    Pauses that come in many of the iterations, or that take most of the time, are a part of them if the GPU idles.

    starts: when each iteration began, ascending; ended: returns, for iterations by position, when their marks ended.
    by_host: whether these are moments of the host, up to which an iteration queues work, and not the end of that work.
    """
    broken = np.append(_pauses(con, starts, process, settings), len(starts) - 1)
    until = np.maximum(starts[broken], ended(broken))
    if by_host:
        until = np.maximum(until, queued(con, process, starts[broken], until)[1])
    until[:-1] = np.minimum(until[:-1], starts[broken[:-1] + 1])
    bounds = np.empty((len(starts), 2), dtype=np.int64)
    bounds[:, 0], bounds[:-1, 1] = starts, starts[1:]
    bounds[broken, 1] = until
    return bounds


def _pauses(con: Connection, starts: Ints, process: int, settings: Settings) -> Ints:
    """Return the iterations after which the loop stands still for long, by position, where that is no part of it."""
    # Iterations may be tens of millions: of arrays as long as that there are as few at a time as can be.
    typical = float(np.median(np.diff(starts), overwrite_input=True)) if len(starts) > 1 else 0.0
    long = np.flatnonzero(np.diff(starts) > settings["break_factor"] * typical)
    if not len(long):
        return long
    paused = float((starts[long + 1] - starts[long]).sum())
    most = len(long) >= settings["break_least"] and paused > settings["most_share"] * float(starts[-1] - starts[0])
    if not most and len(long) <= settings["break_often"] * len(starts):
        return long
    # What the GPU works on meanwhile, as a validation, is another loop.
    worked = _busy(con, process, starts[long], starts[long + 1])
    return long if worked > settings["most_share"] * paused else long[:0]


def _busy(con: Connection, process: int, starts: Ints, ends: Ints) -> float:
    """Return for how long operations of a process ran in these stretches, all together (ns).

    starts, ends: of the stretches, ascending and disjoint.
    """
    lengths = np.append(0, np.cumsum(ends - starts))

    def before(moments: Ints) -> Ints:
        """Return how long the stretches last up to each moment."""
        begun = np.searchsorted(starts, moments, "right")
        over = np.maximum(0, ends[np.maximum(begun - 1, 0)] - moments)
        return lengths[begun] - np.where(begun > 0, over, 0)

    parts = operations_in_parts(con, "process = ?", [process])
    return float(sum(int((before(done) - before(begun)).sum()) for begun, done in parts))


def operations_in_parts(con: Connection, which: str, parameters: list[int | None]) -> Iterator[tuple[Ints, Ints]]:
    """Return when GPU operations began and ended (ns), for a bounded number at a time: the parts are in order of time,
    the operations in one are not.

    which: a condition on gpu_op.
    """
    first, last, operations = con.execute(
        f"select min(start), max(start), count(*) from gpu_op where {which}", parameters
    ).fetchall()[0]
    if not operations:
        return
    limits = np.linspace(first, last + 1, 2 + operations // _AT_ONCE).astype(np.int64)
    limits[-1] = last + 1
    for since, until in pairwise(limits):
        rows = con.execute(
            f'select start, "end" from gpu_op where {which} and start >= ? and start < ?',
            [*parameters, int(since), int(until)],
        ).fetchnumpy()
        yield np.asarray(rows["start"], dtype=np.int64), np.asarray(rows["end"], dtype=np.int64)


def queued(con: Connection, process: int, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Return when the GPU began and ended what each of these stretches of the host launched (ns), NEVER if nothing."""
    with temporary(con, "queueing_iteration", start=starts, until=ends):
        # Few iterations of many are asked for: calls near none of them are left out before they are sorted.
        lengths = ends - starts
        near = max(1, int(np.median(lengths)), int(lengths.max()) // _NEAR)
        found = con.execute(
            f"""
            with asked as (select start, max(until) as until from queueing_iteration group by start), near as (
                select distinct unnest(range(start // {near}, until // {near} + 1)) as stretch from asked
            ), queued as (
                select t.start, a.id
                from (
                    select id, start from api_call where process = $process and start between $first and $last
                        and start // {near} in (select stretch from near)
                ) a
                asof join asked t on t.start <= a.start where a.start <= t.until
            )
            select q.start, min(o.start) as begun, max(o."end") as done from queued q join gpu_op o on o.api_call = q.id
            where o.process = $process group by q.start order by q.start
            """,
            {"process": process, "first": int(starts[0]), "last": int(ends.max())},
        ).fetchnumpy()
    if not len(found["start"]):
        return np.full(len(starts), NEVER), np.full(len(starts), NEVER)
    at = np.minimum(np.searchsorted(found["start"], starts), len(found["start"]) - 1)
    worked = found["start"][at] == starts
    return np.where(worked, found["begun"][at], NEVER), np.where(worked, found["done"][at], NEVER)


DONE = """
    select a.start, max(o."end") over (order by a.start) as done
    from gpu_op o join api_call a on a.id = o.api_call
    where o.process = $process and a.start >= $since and a.start < $last
"""
"""When the GPU had done all that was launched up to each call (ns), as a query over the calls of a stretch."""


def reached(con: Connection, process: int, moments: Ints) -> Ints:
    """Return when the GPU had done what was launched before each of these moments, or the moment where that is later
    (ns).
    """
    with temporary(con, "asked_moment", time=moments):
        found: Ints = con.execute(
            f"""
            with done as ({DONE})
            select greatest(m.time, coalesce(d.done, m.time)) as reached
            from asked_moment m asof left join done d on d.start < m.time order by m.ordinal
            """,
            {"process": process, "since": NEVER, "last": int(moments.max())},
        ).fetchnumpy()["reached"]
    return found


def belonging(con: Connection) -> dict[int, tuple[str, int]]:
    """Process → what it belongs to: the job whose ranks were captured together, else its own input.

    The same code in the processes of one of these is one loop.
    """
    owners: dict[int, tuple[str, int]] = {
        process: ("input", number) for process, number in con.execute("select id, input from process").fetchall()
    }
    row = con.execute("select count(distinct o.process) from collective c join gpu_op o on o.id = c.gpu_op").fetchall()[
        0
    ]
    if row[0] > 1:
        joined = con.execute(
            "select process, job from joined_ranks(setting('min_iterations'), setting('period_match'),"
            " rank_spread_ns(), rank_clock_ns())"
        ).fetchall()
        owners |= {process: ("job", job) for process, job in joined}
    return owners


def kernel_work(con: Connection, process: int, bounds: Bounds | None = None) -> tuple[float, int]:
    """Kernel and graph time (ns) and count of a process, or of the part of it within these iterations; without those
    that an autotuner launched.
    """
    first, last = (int(bounds[0, 0]), int(bounds[-1, 1])) if bounds is not None else (NEVER, -NEVER)
    ((time, count),) = con.execute(
        "select sum(\"end\" - start), count(*) from gpu_op where process = ? and kind in ('kernel', 'graph')"
        " and start >= ? and start < ?",
        [process, first, last],
    ).fetchall()
    tuned, launched = work_while_tuning(con, process, first, last)
    return float(time or 0) - tuned, int(count) - launched
