"""The NVTX ranges that were selected by their message."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import duckdb
import numpy as np
from numpy.typing import NDArray

from gpudiag.errors import GpudiagError
from gpudiag.loops.clip import Chosen, TimeFilter
from gpudiag.loops.iteration_bounds import NEVER, Bounds, Ints, queued, reached
from gpudiag.text.format import clean, plural

Connection = duckdb.DuckDBPyConnection
NAMED = 8
"""Names listed in the message where none fits."""

_LABELLED = """
with labelled as (
    select n.id, n.text, range_label(n.text) as label from name n where n.id in (select distinct name from nvtx_range)
), owned as (
    select r.*, l.text, l.label from nvtx_range r join labelled l on l.id = r.name
    where r.process in (from chosen_process) and r."end" > r.start
)"""
_OUTERMOST = """, reaching as (
    select *, max("end") over (partition by thread order by start, "end" desc, id
                               rows between unbounded preceding and 1 preceding) as reached from named
)
select id, process, thread, start, "end", label from reaching where coalesce(reached <= start, true)
order by process, thread, start
"""
_MATCHED = f"""{_LABELLED}, named as (
    select * from owned
    where list_contains($names, text) or list_contains($names, label)
        or list_contains($in_domain, text || '@' || coalesce(domain, ''))
        or list_contains($in_domain, label || '@' || coalesce(domain, ''))
){_OUTERMOST}"""
# As loops are found in ranges; what repeats in the whole run is a step of it, even if few lie in the part.
_STEPS = f"""{_LABELLED}, marked as (
    select * from owned where kind = 'push_pop' and domain is null and not names_operator(text)
), repeated as (
    select thread, label from marked group by thread, label having count(*) >= $least
), limited as (
    select unnest($process::integer[]) as process, unnest($after::bigint[]) as after,
           unnest($before::bigint[]) as before
), named as (
    select m.* from marked m semi join repeated using (thread, label) join limited l using (process)
    where m.start > l.after and m."end" <= l.before
){_OUTERMOST}"""


def chosen(con: Connection, names: Sequence[str]) -> tuple[Chosen, ...]:
    """The ranges with one of these messages, or labels, as the report shows them; the outermost where they nest.

    Needs `chosen_process`. Raises GpudiagError when a name fits no range.
    """
    rows = []
    for name in names:
        given = {"names": [name], "in_domain": [name] if "@" in name else []}
        if not con.execute(f"select 1 from ({_MATCHED}) limit 1", given).fetchall():
            raise GpudiagError(_nothing_called(con, name))
    if names:
        rows = con.execute(_MATCHED, {"names": names, "in_domain": [name for name in names if "@" in name]}).fetchall()
    return _chosen(con, rows)


def steps(con: Connection, limits: Mapping[int, TimeFilter]) -> tuple[Chosen, ...]:
    """The outermost ranges within these limits that repeat in the whole run."""
    (least,) = con.execute("select value from setting where name = 'min_iterations'").fetchall()[0]
    given = {
        "least": least,
        "process": list(limits),
        "after": [one.after for one in limits.values()],
        "before": [one.before for one in limits.values()],
    }
    return _chosen(con, con.execute(_STEPS, given).fetchall())


def _chosen(con: Connection, rows: Iterable[tuple[int, int, int, int, int, str]]) -> tuple[Chosen, ...]:
    settings = dict(con.execute("select name, value from setting").fetchall())
    by_thread: dict[tuple[int, int], list[tuple[int, int, int, str]]] = defaultdict(list)
    for number, process, thread, start, end, label in rows:
        by_thread[process, thread].append((number, start, end, label))
    return tuple(
        item for (process, thread), ranges in by_thread.items() for item in _of(con, process, thread, ranges, settings)
    )


def summary(names: Iterable[str]) -> str:
    return " or ".join(repr(clean(name)) for name in list(dict.fromkeys(names))[:NAMED])


def _of(
    con: Connection,
    process: int,
    thread: int,
    ranges: Sequence[tuple[int, int, int, str]],
    settings: dict[str, float],
) -> Iterator[Chosen]:
    """The ranges of one thread, by label."""
    starts, ends = (np.array([row[side] for row in ranges], dtype=np.int64) for side in (1, 2))
    iterations, works = _iterations(con, process, starts, ends, settings)
    bounds = np.column_stack((starts, iterations[:, 1]))
    for label in dict.fromkeys(row[3] for row in ranges):
        own = [index for index, row in enumerate(ranges) if row[3] == label]
        # Host ranges make no iterations where GPU work does: iterations of a process do not overlap.
        if own := [index for index in own if works[index] or not works.any()]:
            yield Chosen(process, thread, label, _path(con, ranges[own[0]][0]), bounds[own], iterations[own])


def _iterations(
    con: Connection, process: int, starts: Ints, ends: Ints, settings: dict[str, float]
) -> tuple[Bounds, NDArray[np.bool_]]:
    """From where the GPU, done with all before, could begin with each range to where host and GPU were done with it.

    What lies between two ranges is in neither; where the next one follows at once there is nothing between. A range
    that launches nothing is what the host spent in it. With which of them launch anything.
    """
    first, last = queued(con, process, starts, ends)
    works = last != NEVER
    begins = np.where(works, np.minimum(reached(con, process, starts), np.where(works, first, starts)), starts)
    until = np.maximum(ends, last)
    follows = (starts[1:] - ends[:-1] < settings["host_work_ns"]) & (works[1:] == works[:-1])
    until[:-1] = np.where(follows, begins[1:], until[:-1])
    working = np.flatnonzero(works)  # on several streams one may still run while the next begins
    here, following = working[:-1], working[1:]
    until[here] = np.maximum(begins[here], np.minimum(until[here], begins[following]))
    return np.column_stack((begins, until)), works


def _path(con: Connection, number: int) -> str:
    """Labels from the outermost range to this one, as views name places; a cycle of parents has an end."""
    rows = con.execute(
        """
        with recursive above as (
            select id, parent, name, 0 as height from nvtx_range where id = ?
            union all
            select r.id, r.parent, r.name, a.height + 1 from nvtx_range r join above a on r.id = a.parent
            where a.height < 1000
        )
        select range_label(n.text) from above a join name n on n.id = a.name
        where a.height = 0 or not names_operator(n.text) order by a.height desc
        """,
        [number],
    ).fetchall()
    return " / ".join(label for (label,) in rows)


def _nothing_called(con: Connection, name: str) -> str:
    rows = con.execute(
        """
        select range_label(n.text) as label, count(*) as times from nvtx_range r join name n on n.id = r.name
        where r.process in (from chosen_process) group by label order by times desc, label limit ?
        """,
        [NAMED],
    ).fetchall()
    if not rows:
        return f"No NVTX range is called {summary([name])}: none at all was recorded there."
    there = ", ".join(f"{clean(label)!r} ({plural(times, 'time')})" for label, times in rows)
    return f"No NVTX range is called {summary([name])}; the most frequent are {there}."
