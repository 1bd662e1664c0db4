"""Loops without annotations: from the period of the GPU operations, else the whole GPU work as one turn."""

from __future__ import annotations

from itertools import pairwise

import duckdb

from gpudiag.loops import Found, Settings, Turns, turn_bounds
from gpudiag.period import find_period, turn_starts

Connection = duckdb.DuckDBPyConnection


def loop_from_period(con: Connection, process: int, settings: Settings) -> Found | None:
    """A loop from the repeated sequence of operations that the busiest launching thread started."""
    rows = con.execute(
        """
        with started as (
            select a.thread, a.start, o."end" as op_end, a."end",
                   coalesce(n.short, o.kind || ':' || coalesce(o.copy_kind, '')) as what,
                   count(*) over (partition by a.thread) as thread_ops
            from gpu_op o join api_call a on a.id = o.api_call left join name n on n.id = o.name
            where o.process = ?
        )
        select thread, start, "end", op_end, what from started
        qualify thread_ops = max(thread_ops) over () order by thread, start, op_end limit ?
        """,
        [process, int(settings["max_ops"])],
    ).fetchall()
    rows = [row for row in rows if row[0] == rows[0][0]]
    sequence = [row[4] for row in rows]
    waits = [0] + [b[1] - a[2] for a, b in pairwise(rows)]
    period = find_period(sequence, settings["period_match"], int(settings["min_turns"]))
    if period is None:
        return None
    starts = turn_starts(sequence, waits, period, settings["period_match"])
    if len(starts) < settings["min_turns"]:
        return None
    begins = [rows[i][1] for i in starts]
    ends = [rows[min(i + period, len(rows)) - 1][2] for i in starts]
    opener = next((what for what in sequence[starts[0] : starts[0] + period] if ":" not in what), sequence[starts[0]])
    bounds = turn_bounds(con, begins, ends, process, settings)
    if not _stands_for(con, process, bounds, settings):
        return None
    return Found(f"every {opener}", None, "period", [Turns(process, rows[0][0], bounds)])


def _stands_for(con: Connection, process: int, bounds: list[tuple[int, int]], settings: Settings) -> bool:
    """Whether the turns fill enough of the time in which the process used the GPU to stand for it."""
    row = con.execute('select min(start), max("end") from gpu_op where process = ?', [process]).fetchone()
    assert row is not None
    return sum(end - start for start, end in bounds) >= settings["min_coverage"] * (int(row[1]) - int(row[0]))


def whole_run(con: Connection, process: int, settings: Settings) -> Found | None:
    """Nothing repeats: from the first GPU operation's call to the last one's end counts as one turn.

    None when so little was recorded that it tells nothing.
    """
    row = con.execute(
        """
        select min(least(coalesce(a.start, o.start), o.start)), max(o."end"), mode(a.thread), count(*),
               max(o."end" - o.start)
        from gpu_op o left join api_call a on a.id = o.api_call where o.process = ?
        """,
        [process],
    ).fetchone()
    if row is None or (row[3] < settings["min_ops"] and row[4] < settings["long_op_ns"]):
        return None
    thread = row[2]
    if thread is None:
        other = con.execute("select min(id) from thread where process = ?", [process]).fetchone()
        thread = other[0] if other and other[0] is not None else 0
    return Found("whole run", None, "unknown", [Turns(process, int(thread), [(int(row[0]), int(row[1]))])])
