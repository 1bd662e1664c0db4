"""Lines of the user's program by the Python samples that were taken in them, most first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import duckdb

Connection = duckdb.DuckDBPyConnection
Votes = tuple[str, int | None, str | None, int]
"""File, line, function, and how many samples were in it. Where only functions are named, each is a place."""


def before_calls(con: Connection, calls: Sequence[int], near_ns: float) -> tuple[list[Votes], ...]:
    """Count the samples of each line that were inside these calls, at most so long before them, and all of them.

    Each in the order of the counts.
    """
    rows = con.execute(
        """
        select file, line,
               min(function) filter (inside), count(*) filter (inside),
               min(function) filter (before_ns <= $near), count(*) filter (before_ns <= $near),
               min(function), count(*)
        from call_sample where api_call in (select unnest($calls::integer[])) and file is not null
        group by file, line, if(line is null, function, null)  -- where only functions are named, each is a place
        """,
        {"calls": list(calls), "near": near_ns},
    ).fetchall()
    return tuple(
        sorted(((*row[:2], row[at], row[at + 1]) for row in rows if row[at + 1]), key=_most_first) for at in (2, 4, 6)
    )


def _most_first(votes: Votes) -> tuple[Any, ...]:
    file, line, function, count = votes
    return -count, file, line is None, line, function is None, function


def by_function(counted: Sequence[Votes]) -> list[Votes]:
    """Count the samples of each function of these lines, most first."""
    found: Counter[tuple[str, str]] = Counter()
    for file, _, function, count in counted:
        if function is not None:
            found[file, function] += count
    return sorted(((file, None, function, count) for (file, function), count in found.items()), key=_most_first)


def heading(con: Connection, calls: Sequence[int], within_ns: float) -> list[Votes]:
    """Lines of the samples shortly before these calls, wherever they are.

    A host that runs ahead makes the calls of an iteration long before the GPU gets to it.
    """
    return con.execute(
        """
        with heading as (  -- without the frames, which would be copied for every sample
            select y.id from (select id, thread, time from py_sample) y
            asof join (select thread, start, "end" from api_call where id in (select unnest($calls::integer[]))) c
                on y.thread = c.thread and y.time <= c."end"
            where y.time >= c.start - $within
        ), sample as (
            select user_frame(frames) as frame from py_sample where id in (from heading)
        )
        select frame.file, frame.line, min(frame.function), count(*) as n from sample where frame.file is not null
        group by frame.file, frame.line, if(frame.line is null, frame.function, null)
        order by n desc, frame.file, frame.line
        """,
        {"calls": list(calls), "within": within_ns},
    ).fetchall()


def met_while_idle(con: Connection, idle: Sequence[int]) -> list[int]:
    """The samples in idle intervals, of the threads whose calls ended them."""
    rows = con.execute(
        """
        with waiting as (
            select a.thread, i.start, i."end" from idle_interval i join api_call a on a.id = i.api_call
            where i.idle_interval in (select unnest($idle::integer[]))
        ), met as (
            select y.id from (select id, thread, time from py_sample) y
            asof join waiting w on y.thread = w.thread and y.time >= w.start
            where y.time < w."end"
        )
        select sample from call_sample where sample in (from met) and file is not null
        """,
        {"idle": list(idle)},
    ).fetchall()
    return [sample for (sample,) in rows]


def of(con: Connection, samples: Sequence[int]) -> list[Votes]:
    """Count some samples of calls by their lines."""
    return con.execute(
        """
        select file, line, min(function), count(*) as n from call_sample where sample in (select unnest(?::integer[]))
        group by file, line, if(line is null, function, null) order by n desc, file, line
        """,
        [list(samples)],
    ).fetchall()


def asked_for_input(
    con: Connection, calls: Sequence[int], samples: Sequence[int]
) -> tuple[str, int | None, str | None, float, float] | None:
    """The line that asked the data loader for input most often: file, line, function, its part of the samples, and the
    part of all that were inside the loader. Of those before the calls; of `samples` where some are given.
    """
    return con.execute(
        """
        select entry_file, entry_line, min(entry_function), count(*) / any_value(total) as part,
               any_value(fetching) / any_value(total)
        from (
            select *, count(*) over () as total, count(*) filter (fetches_input) over () as fetching
            from call_sample
            where api_call in (select unnest($calls::integer[]))
                and (len($samples::integer[]) = 0 or sample in (select unnest($samples::integer[])))
        )
        where fetches_input and entry_file is not null
        group by entry_file, entry_line, if(entry_line is null, entry_function, null)
        order by part desc, entry_file, entry_line limit 1
        """,
        {"calls": list(calls), "samples": list(samples)},
    ).fetchone()
