"""The rank that is shown in full: its iterations, and where in the program its time goes."""

from __future__ import annotations

import duckdb
import numpy as np

from gpudiag.jobs.rank_summary import Ints, RankSummary

Connection = duckdb.DuckDBPyConnection

_LOOP = """
with own as (
    select o.start from collective c join gpu_op o on o.id = c.gpu_op join process p on p.id = o.process
    join input i on i.id = p.input where i.file = $file and coalesce(p.pid, 0) = $pid
)
select t.loop, t.process, count(o.start) as n
from analysed_iteration t join process p on p.id = t.process join input i on i.id = p.input
join own o on o.start >= t.start and o.start < t."end"
where i.file = $file and coalesce(p.pid, 0) = $pid
group by t.loop, t.process order by n desc, t.loop limit 1
"""
_BOUNDS = 'select start, "end" from analysed_iteration where loop = ? and process = ? order by start'


def iterations(con: Connection, own: RankSummary) -> tuple[int | None, Ints]:
    """The loop that holds most of a rank's collectives, and starts and ends of its analysed iterations (ns).

    None where no loop holds any.
    """
    row = con.execute(_LOOP, {"file": own.file, "pid": own.pid}).fetchone()
    if row is None:
        return None, np.zeros((0, 2), dtype=np.int64)
    bounds = con.execute(_BOUNDS, [row[0], row[1]]).fetchall()
    return int(row[0]), np.array(bounds, dtype=np.int64).reshape(-1, 2)


def copy_loop(con: Connection, store: Connection, loop: int) -> None:
    """The loop's row, so that sentences about it read as in the rest of the report."""
    cursor = con.execute("select * from loop where id = ?", [loop])
    names = [str(column[0]) for column in cursor.description or ()]
    row = cursor.fetchall()[0]
    listed = ", ".join(f'"{name}"' for name in names)
    store.execute(f"insert into loop ({listed}) values ({', '.join('?' * len(names))})", list(row))


_IDLE = """
select 'host' as cause, coalesce(h.path, c.path) as path,
    list(distinct p.api_call order by p.api_call) filter (p.api_call is not null) as api_calls,
    sum(p."end" - p.start) as ns
from idle_interval p
left join host_segment h on h.api_call = p.api_call and p.doing = 'segment'
left join call_place c on c.api_call = p.api_call
where p.loop = $loop group by coalesce(h.path, c.path)
"""
_WORK = """
select if(w.class = 'compute', 'compute', 'copies') as cause, c.path,
    list(distinct w.api_call order by w.api_call) filter (w.api_call is not null) as api_calls,
    sum(w.duration_ns) as ns
from loop_gpu_op w left join call_place c on c.api_call = w.api_call
where w.loop = $loop and w.class in ('compute', 'copy') group by 1, c.path
"""
_MOST_CALLS = 2_000


def write(con: Connection, store: Connection, reference: int, loop: int) -> None:
    """Fill `job_place`: of each cause the NVTX range in which most of the reference rank's time lies."""
    rows = [row for query in (_IDLE, _WORK) for row in con.execute(query, {"loop": loop}).fetchall()]
    row = con.execute("select iterations from loop_facts where loop = ?", [loop]).fetchone()
    iterations_ = int(row[0]) if row else 1
    longest: dict[str, tuple[str, str | None, list[int] | None, float]] = {}
    for cause, path, calls, ns in sorted(rows, key=lambda row: (row[0], -row[3], row[1] or "")):
        longest.setdefault(cause, (cause, path, calls[:_MOST_CALLS] if calls else None, float(ns) / iterations_))
    for cause, path, calls, ns in longest.values():
        store.execute("insert into job_place values (?, ?, ?, ?, ?)", [reference, cause, path, calls, ns])
