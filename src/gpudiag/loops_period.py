"""Loops without annotations: from the period of the GPU operations, else the whole GPU work as one turn."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import duckdb

from gpudiag.loops import Found, Settings, Turns, kernel_work, turn_bounds
from gpudiag.period import find_repetition, turn_starts

Connection = duckdb.DuckDBPyConnection


def loop_from_period(con: Connection, process: int, settings: Settings) -> Found | None:
    """A loop from what the busiest launching thread repeats: the operations it starts and the calls that hold it.

    Calls tell turns apart that launch one kernel again and again. Operations alone decide where such calls are too rare
    to have a part in what repeats.
    """
    rows = _started(con, process, settings)
    found = _repeated(con, process, rows, settings)
    if found:
        return found
    found = _repeated(con, process, [row for row in rows if row.is_op], settings)
    if found is None:
        return None
    first, last = found.runs[0].bounds[0][0], found.runs[0].bounds[-1][1]
    inside = [row.is_op for row in rows if first <= row.start < last]
    return found if inside.count(False) <= (1 - settings["period_match"]) * len(inside) else None


class _Event(NamedTuple):
    """An operation, by the call that started it, or a call that held the host; times in ns."""

    thread: int
    start: int
    end: int
    op_end: int
    what: str
    is_op: bool


def _started(con: Connection, process: int, settings: Settings) -> list[_Event]:
    rows = con.execute(
        """
        with started as (
            select a.thread, a.start, a."end", o."end" as op_end, true as is_op,
                   coalesce(n.short, o.kind || ':' || coalesce(o.copy_kind, '')) as what,
                   count(*) over (partition by a.thread) as thread_ops
            from gpu_op o join api_call a on a.id = o.api_call left join name n on n.id = o.name
            where o.process = $process
        ), ops as (
            from started qualify thread_ops = max(thread_ops) over () order by thread, start, op_end limit $most
        ), bounds as (select any_value(thread) as thread, min(start) as first, max(start) as last from ops)
        select thread, start, "end", op_end, what, is_op from ops
        union all
        select a.thread, a.start, a."end", a."end", 'call:' || n.text, false
        from api_call a join bounds b on a.thread = b.thread and a.start between b.first and b.last
        join name n on n.id = a.name
        where a.parent is null and a.process = $process and api_kind(n.text) in ('sync', 'alloc', 'free')
        order by thread, start, is_op, op_end
        """,
        {"process": process, "most": int(settings["max_ops"])},
    ).fetchall()
    events = [_Event(*row) for row in rows]
    return [event for event in events if event.thread == events[0].thread]


def _repeated(con: Connection, process: int, events: list[_Event], settings: Settings) -> Found | None:
    match, least = settings["period_match"], int(settings["min_turns"])
    sequence = [event.what for event in events]
    repetition = find_repetition(sequence, [event.start for event in events], match, least)
    if repetition is None:
        return None
    period, first, last = repetition
    waits = [0] + [b.start - a.end for a, b in pairwise(events)]
    events, sequence = events[first:last], sequence[first:last]
    starts = turn_starts(sequence, waits[first:last], period, match)
    if len(starts) < least:
        return None
    begins = [events[i].start for i in starts]
    ends = [events[min(i + period, len(events)) - 1].op_end for i in starts]
    turn = events[starts[0] : starts[0] + period]
    opener = next((event.what for event in turn if ":" not in event.what), turn[0].what)
    bounds = turn_bounds(con, begins, ends, process, settings)
    if not _stands_for(con, process, bounds, settings):
        return None
    return Found(f"every {opener}", None, "period", [Turns(process, events[0].thread, bounds)])


def _stands_for(con: Connection, process: int, bounds: list[tuple[int, int]], settings: Settings) -> bool:
    """Whether the turns hold enough of what the process did with the GPU to stand for it: of its work, or its time."""
    row = con.execute('select min(start), max("end") from gpu_op where process = ?', [process]).fetchone()
    assert row is not None
    inside, total = kernel_work(con, process, bounds), kernel_work(con, process)
    held: tuple[float, ...] = (
        inside[0] / max(total[0], 1),
        inside[1] / max(total[1], 1),
        sum(end - start for start, end in bounds) / max(row[1] - row[0], 1),  # pauses belong to no turn
    )
    return max(held) >= settings["min_coverage"]


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
