"""What a loop is made of: its turns in each process, and where a turn ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

import duckdb

Connection = duckdb.DuckDBPyConnection
Settings = dict[str, float]


@dataclass(slots=True)
class Turns:
    """The turns of one loop in one process, before warm-up is cut; bounds in ns."""

    process: int
    thread: int
    bounds: list[tuple[int, int]]


@dataclass(slots=True)
class Found:
    """A loop and who ran it. `source` is nvtx, period or unknown."""

    name: str
    path: str | None
    source: str
    runs: list[Turns] = field(default_factory=list)


def turn_bounds(
    con: Connection, starts: list[int], ends: list[int], process: int, settings: Settings
) -> list[tuple[int, int]]:
    """Start to next start; at a long pause and after the last turn, to the end of the GPU work it queued (ns)."""
    steps = [b - a for a, b in pairwise(starts)]
    pause = settings["break_factor"] * (median(steps) if steps else 0)
    bounds: list[tuple[int, int]] = []
    broken: list[int] = []
    for index, start in enumerate(starts):
        following = starts[index + 1] if index + 1 < len(starts) else None
        if following is not None and following - start <= pause:
            bounds.append((start, following))
        else:
            broken.append(index)
            bounds.append((start, max(start, ends[min(index, len(ends) - 1)])))
    drained = _drains(con, process, [bounds[index] for index in broken])
    for index in broken:
        start, end = bounds[index]
        end = max(end, drained.get(start, end))
        bounds[index] = (start, min(end, starts[index + 1]) if index + 1 < len(starts) else end)
    return bounds


def _drains(con: Connection, process: int, turns: list[tuple[int, int]]) -> dict[int, int]:
    """Start of a turn → when the GPU finished what the host queued in it (ns). One query: pauses can be many."""
    texts = [",".join(str(turn[side]) for turn in turns) for side in (0, 1)]
    rows = con.execute(
        """
        with turn as (
            select unnest(string_split(?, ','))::bigint as start, unnest(string_split(?, ','))::bigint as until
        ), queued as (
            select t.start, a.id
            from (select id, start from api_call where process = ? and start >= (select min(start) from turn)) a
            asof join turn t on t.start <= a.start where a.start <= t.until
        )
        select q.start, max(o."end") from queued q join gpu_op o on o.api_call = q.id
        where o.process = ? group by q.start
        """,
        [*texts, process, process],
    ).fetchall()
    return {int(start): int(end) for start, end in rows}


def belonging(con: Connection) -> dict[int, tuple[str, int]]:
    """Process → what it belongs to: the job whose ranks were captured together, else its own input.

    The same code in the processes of one of these is one loop.
    """
    owners: dict[int, tuple[str, int]] = {
        process: ("input", number) for process, number in con.execute("select id, input from process").fetchall()
    }
    row = con.execute("select count(distinct o.process) from collective c join gpu_op o on o.id = c.gpu_op").fetchone()
    if row and row[0] > 1:
        joined = con.execute(
            "select process, job from joined_ranks(setting('min_turns'), setting('period_match'),"
            " rank_spread_ns(), rank_clock_ns())"
        ).fetchall()
        owners |= {process: ("job", job) for process, job in joined}
    return owners


def kernel_work(con: Connection, process: int, bounds: list[tuple[int, int]] | None = None) -> tuple[float, int]:
    """Kernel and graph time (ns) and count of a process, or of the part of it within these turns."""
    within = " and start >= ? and start < ?" if bounds else ""
    row = con.execute(
        f"select sum(\"end\" - start), count(*) from gpu_op where process = ? and kind in ('kernel', 'graph'){within}",
        [process, *((bounds[0][0], bounds[-1][1]) if bounds else ())],
    ).fetchone()
    return (float(row[0] or 0), int(row[1])) if row else (0.0, 0)
