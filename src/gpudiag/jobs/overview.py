"""The job for the report: its ranks beside one another, over time, and its collectives."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from gpudiag.model import Job, JobCollective, JobRank
from gpudiag.text.format import clean

Connection = duckdb.DuckDBPyConnection

_COLLECTIVES = 6  # kinds of them that the report lists
_DIGITS = 4


def overview(con: Connection, missing: Sequence[int], parts: int) -> Job | None:
    """The job whose tables and views are in the store; None where no iteration of it holds a collective.

    missing: numbers of ranks not given; parts: of the recording, for how each rank fares over time.
    """
    row = con.execute(_WHOLE).fetchall()[0]
    ranks, hosts, reference, iterations, iteration_ns, wait_ns = row
    if not iterations:
        return None
    saved = con.execute(_AT_MEDIAN).fetchall()[0][0] or 0.0
    over_time: dict[int, list[float]] = {}
    for member, _, more in con.execute(_OVER_TIME, {"parts": min(parts, iterations)}).fetchall():
        over_time.setdefault(member, []).append(round(float(more), _DIGITS))
    members = tuple(
        JobRank(
            label=clean(label), rank=rank, file=clean(file), host=clean(host) if host else None,
            more=round(float(more), _DIGITS), waits=round(float(waits), _DIGITS), slow=bool(slow),
            over_time=tuple(over_time.get(member, ())), computes_ms=_ms(compute), copies_ms=_ms(copy),
            nothing_to_do_ms=_ms(idle),
        )
        for member, label, rank, file, host, more, waits, slow, compute, copy, idle in con.execute(_MEMBERS).fetchall()
    )  # fmt: skip
    collectives = tuple(
        JobCollective(
            operation=operation, bytes=size, ranks=n, each=float(each), transfer_ms=float(transfer) / 1e6,
            wait_ms=float(wait) / 1e6, bandwidth=float(rate) if rate else None,
        )
        for operation, size, n, each, transfer, wait, rate in con.execute(_KINDS, [_COLLECTIVES]).fetchall()
    )  # fmt: skip
    return Job(
        ranks=ranks, hosts=hosts or None, reference=clean(reference), iterations=iterations,
        iteration_ms=iteration_ns / 1e6, waiting=wait_ns / iteration_ns, at_median_ms=(iteration_ns - saved) / 1e6,
        missing=tuple(missing), collectives=collectives, members=members,
    )  # fmt: skip


def _ms(ns: float) -> float:
    return round(ns / 1e6, _DIGITS)


_WHOLE = """
select (select count(*) from job_rank), (select count(distinct host) from job_rank),
    (select label from job_rank where reference), count(distinct step), avg("end" - start), avg(wait_ns)
from job_iteration
"""
# Between two collectives the slowest rank sets the pace: by how much the median rank is faster is what goes.
_AT_MEDIAN = """
select sum(ns) / count(distinct step) from (
    select w.step, median(w.exposed_wait_ns) as ns
    from job_wait w join job_collective c on c."group" = w."group" and c."sequence" = w."sequence"
    where c.ranks = (select max(ranks) from job_collective)
    group by w.step, w."group", w."sequence"
)
"""
_OVER_TIME = """
select member, part, avg(more_ns / iteration_ns) as more
from (select *, ntile($parts) over (partition by member order by step) as part from job_work)
group by member, part order by member, part
"""
_MEMBERS = """
select r.id, r.label, r.rank, r.file, r.host, coalesce(j.more_ns / j.iteration_ns, 0),
    coalesce(j.wait_ns / j.iteration_ns, 0), coalesce(j.late or j.degrades, false),
    coalesce(j.compute_ns, 0), coalesce(j.copy_ns, 0), coalesce(j.idle_ns, 0)
from job_rank r left join job_late j on j.member = r.id order by r.id
"""
_KINDS = """
with waited as (
    select "group", "sequence", avg(wait_ns) as wait_ns from job_wait group by all
), own as (
    select c.operation, c.bytes, c.ranks, count(*) / count(distinct c.step) / count(distinct c."group") as each,
        median(c.transfer_ns) as transfer_ns, avg(w.wait_ns) as wait_ns
    from job_collective c join waited w on w."group" = c."group" and w."sequence" = c."sequence" group by all
)
select operation, bytes, ranks, each, transfer_ns, wait_ns, case operation
        when 'all_reduce' then 2 * (ranks - 1) / ranks
        when 'all_gather' then ranks - 1
        when 'reduce_scatter' then ranks - 1
        when 'broadcast' then 1
    end * bytes * 1e9 / nullif(transfer_ns, 0) as rate
from own order by each * (transfer_ns + wait_ns) desc, operation, bytes limit ?
"""
