"""What a loop is made of: its turns in each process, and where a turn ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import duckdb
import numpy as np
from numpy.typing import NDArray

Connection = duckdb.DuckDBPyConnection
Settings = dict[str, float]
Ints = NDArray[np.int64]
Bounds = NDArray[np.int64]
"""Where turns begin and end, a row each, in ns: shape (turns, 2)."""


@dataclass(slots=True)
class Turns:
    """The turns of one loop in one process, before warm-up is cut."""

    process: int
    thread: int
    bounds: Bounds
    begun: bool = False
    """Whether the loop was running where the selected part of the process begins."""
    goes_on: bool = False
    """Whether it was where that part ends."""
    moves: bool = True
    """Whether a turn begins only where the GPU has done what was queued before it."""


@dataclass(slots=True)
class Found:
    """A loop and who ran it. `source` is nvtx, period or unknown."""

    name: str
    path: str | None
    source: str
    runs: list[Turns] = field(default_factory=list)


@contextmanager
def temporary(con: Connection, table: str, **columns: Ints) -> Iterator[None]:
    """Arrays of one length as a temporary table, while this is open.

    A table, because the planner has to know how many rows there are, or it compares each with every operation.
    """
    con.execute(
        f"drop table if exists {table}"
    )  # and ends a result not read to its end, beside which nothing registers
    con.register("handed_over", {column: np.ascontiguousarray(values) for column, values in columns.items()})
    try:
        con.execute(f"create temp table {table} as from handed_over")
    finally:
        con.unregister("handed_over")
    yield
    con.execute(f"drop table {table}")


def turn_bounds(con: Connection, starts: Ints, ends: Ints, process: int, settings: Settings) -> Bounds:
    """Start to next start; at a long pause and after the last turn, to the end of the GPU work it queued (ns).

    starts: when each turn began, ascending; ends: when what marks it ended, of as many turns or one less.
    """
    steps = np.diff(starts)
    pause = settings["break_factor"] * (float(np.median(steps)) if len(steps) else 0.0)
    bounds = np.column_stack((starts, np.append(starts[1:], starts[-1:])))
    broken = np.append(np.flatnonzero(steps > pause), len(starts) - 1)
    until = np.maximum(starts[broken], ends[np.minimum(broken, len(ends) - 1)])
    until = _drained(con, process, starts[broken], until)
    until[:-1] = np.minimum(until[:-1], starts[broken[:-1] + 1])
    bounds[broken, 1] = until
    return bounds


def _drained(con: Connection, process: int, starts: Ints, ends: Ints) -> Ints:
    """When the host and the GPU were done with each turn: its end, or that of the work queued in it (ns)."""
    with temporary(con, "queueing_turn", start=starts, until=ends):
        found = con.execute(
            """
            with turn as (select start, any_value(until) as until from queueing_turn group by start), queued as (
                select t.start, a.id
                from (select id, start from api_call where process = $process and start between $first and $last) a
                asof join turn t on t.start <= a.start where a.start <= t.until
            )
            select q.start, max(o."end") as done from queued q join gpu_op o on o.api_call = q.id
            where o.process = $process group by q.start order by q.start
            """,
            {"process": process, "first": int(starts[0]), "last": int(ends.max())},
        ).fetchnumpy()
    done = ends.copy()
    if len(found["start"]):
        at = np.minimum(np.searchsorted(found["start"], starts), len(found["start"]) - 1)
        done = np.where(found["start"][at] == starts, np.maximum(done, found["done"][at]), done)
    return done


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
            "select process, job from joined_ranks(setting('min_turns'), setting('period_match'),"
            " rank_spread_ns(), rank_clock_ns())"
        ).fetchall()
        owners |= {process: ("job", job) for process, job in joined}
    return owners


def kernel_work(con: Connection, process: int, bounds: Bounds | None = None) -> tuple[float, int]:
    """Kernel and graph time (ns) and count of a process, or of the part of it within these turns."""
    within = " and start >= ? and start < ?" if bounds is not None else ""
    row = con.execute(
        f"select sum(\"end\" - start), count(*) from gpu_op where process = ? and kind in ('kernel', 'graph'){within}",
        [process, *((int(bounds[0, 0]), int(bounds[-1, 1])) if bounds is not None else ())],
    ).fetchall()[0]
    return float(row[0] or 0), int(row[1])
