"""Observations of the time of a loop that no finding accounts for: what the host did in it. They name no cause."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

import duckdb

from gpudiag.diagnosis.source_location import lines_of_calls
from gpudiag.model import Loop, Place, Unclaimed
from gpudiag.text.format import clean

Connection = duckdb.DuckDBPyConnection

NAMED = 3  # lines, calls and calls of the operating system an observation names


def observed(con: Connection, loop: Loop, leaf: str, share: float, settings: Mapping[str, float]) -> Unclaimed:
    """Say what the host did in the part of a leaf that no finding accounts for: what table claim lacks."""
    _find(con, loop.id, leaf)
    calls = con.execute(
        f"""
        select c.name from unexplained u join call c on c.id = u.api_call
        group by c.name order by sum(u.until - u.start) desc, c.name limit {NAMED}
        """
    ).fetchall()
    return Unclaimed(
        leaf=leaf,
        share=share,
        large=share > settings["min_unclaimed_row"],
        where=_where(con, loop, settings["most_share"]),
        calls=tuple(clean(name) for (name,) in calls),
        os_calls=_os_calls(con, settings["min_os_call_share"]),
    )


def _find(con: Connection, loop: int, leaf: str) -> None:
    """Fill table `unexplained`, and `unexplained_idle`, the same moments of each thread, once for all devices."""
    con.execute(
        "create or replace temp table unexplained (api_call integer, thread integer, start bigint, until bigint)"
    )
    for claims in ("claim", "(select * from claim limit 0)"):  # where all have claims, but small ones: all of it
        con.execute(
            f"""
            insert into unexplained
            with spent as (
                select 'interval:' || idle_interval as key, api_call, thread, start, "end" - start as ns
                from idle_interval where loop = $1 and leaf = $2
                union all
                select 'op:' || t.op, w.api_call, null, w.start, t.exposed_ns
                from transfer t join loop_gpu_op w on w.op = t.op
                where t.loop = $1 and $2 = 'exposed_copy' and t.exposed_ns > 0
                union all
                select 'op:' || op, api_call, null, start, duration_ns from loop_gpu_op
                where loop = $1 and $2 = 'exposed_communication' and class = 'communication'
            )
            select s.api_call, s.thread, s.start, s.start + s.ns from spent s left join {claims} c using (key)
            where 2 * coalesce(c.ns, 0) < s.ns
            """,
            [loop, leaf],
        )
        if con.execute("select 1 from unexplained limit 1").fetchall():
            break
    con.execute(
        """
        create or replace temp table unexplained_idle as
        select thread, min(start) as start, max(until) as until
        from (
            select *, sum(starts) over (partition by thread order by start, until rows unbounded preceding) as part
            from (
                select thread, start, until,
                       cast(start > coalesce(max(until) over (partition by thread order by start, until
                           rows between unbounded preceding and 1 preceding), -1) as integer) as starts
                from (select distinct thread, start, until from unexplained where thread is not null)
            )
        )
        group by thread, part
        """
    )


def _os_calls(con: Connection, least: float) -> tuple[str, ...]:
    """Return the calls of the operating system that fill at least this part of the time, longest first."""
    rows = con.execute(
        f"""
        with met as (
            select w.name, least(w."end", u.until) - w.start as ns
            from os_call w asof join unexplained_idle u on w.thread = u.thread and u.start <= w.start
            where w.start < u.until
            union all
            select w.name, least(w."end", u.until) - u.start  -- it went on from before
            from unexplained_idle u asof join os_call w on u.thread = w.thread and w.start < u.start
            where w."end" > u.start
        )
        select n.text from met m join name n on n.id = m.name
        group by n.text
        having sum(m.ns) >= $1 * (select sum(until - start) from unexplained_idle)
        order by sum(m.ns) desc, n.text limit {NAMED}
        """,
        [least],
    ).fetchall()
    return tuple(clean(name) for (name,) in rows)


def _where(con: Connection, loop: Loop, least: float) -> tuple[Place, ...]:
    """The lines that the host was in, by samples, else the NVTX range that holds at least this part of the time."""
    rows = con.execute("select distinct api_call from unexplained where api_call is not null").fetchall()
    lines = lines_of_calls(con, [call for (call,) in rows])[:NAMED]
    return tuple(lines) if lines else _range(con, loop, least)


def _range(con: Connection, loop: Loop, least: float) -> tuple[Place, ...]:
    """The innermost NVTX range that holds enough of the time. The loop's own range says nothing new.

    Of idle time the range counts that was open then; of copies and exchanges, the one that they were started in.
    """
    rows = con.execute(
        """
        with moment as (
            select thread, start as time, start, until from unexplained_idle
            union all
            select a.thread, a.time, u.start, u.until
            from annotation_at a asof join unexplained_idle u on a.thread = u.thread and u.start < a.time
            where a.time < u.until
        ), met as (
            select a.path, m.ns from (
                select thread, time,
                       coalesce(lead(time) over (partition by thread, start order by time), until) - time as ns
                from moment
            ) m asof left join annotation_at a on m.thread = a.thread and a.time <= m.time
            union all
            select p.path, u.until - u.start from unexplained u left join call_place p on p.api_call = u.api_call
            where u.thread is null
        )
        select path, cast(sum(ns) as double) from met group by path
        """
    ).fetchall()
    named = con.execute("select distinct path, parent_path, label from annotation where path is not null").fetchall()
    outer = {path: (parent, label) for path, parent, label in named}
    held: dict[str, float] = defaultdict(float)
    for path, ns in rows:
        seen: set[str] = set()
        while path in outer and path not in seen:  # ranges may be nested hundreds deep
            seen.add(path)
            parent, label = outer[path]
            if label != loop.name:
                held[path] += ns
            path = parent
    every = math.fsum(ns for _, ns in rows)
    enough = [path for path, ns in held.items() if ns >= least * every]
    best = min(enough, key=lambda path: (-len(path), path), default=None)
    return (Place(nvtx=clean(best), share=held[best] / every),) if best else ()
