"""Inputs that would count twice: a file given twice, a recording under another name, two pages of one report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import duckdb

from gpudiag.errors import GpudiagError

_ROUNDED = 0.01
"""How far a duration on a details page, which has a few digits, may lie from the one on the raw page."""


def refuse_twice(paths: Iterable[Path]) -> None:
    """Raise GpudiagError where two paths lead to one file or folder."""
    seen: dict[tuple[int, int], Path] = {}
    for path in paths:
        try:
            found = path.stat()
        except (OSError, ValueError):  # reading it will say so
            continue
        if first := seen.get((found.st_dev, found.st_ino)):
            same = f"{path} is given twice" if first == path else f"{path} and {first} are the same file"
            raise GpudiagError(f"{same}: give it once.")
        seen[found.st_dev, found.st_ino] = path


def settle(con: duckdb.DuckDBPyConnection, paths: Sequence[Path]) -> None:
    """After reading these files, one input each: the raw and the details page of one report become one.

    Raises GpudiagError where two inputs hold the same otherwise.
    """
    con.execute(_TWINS, [_ROUNDED])
    for statement in _ONE_PAGE:
        con.execute(statement)
    for first, second in con.execute(_SAME).fetchall():
        raise GpudiagError(f"{paths[second]} holds the same as {paths[first]}: give one of them, or it counts twice.")
    for first, second, rank in con.execute(_SAME_RANK).fetchall():
        raise GpudiagError(
            f"{paths[second]} and {paths[first]} are both of rank {rank}: give one trace of each rank, of one run."
        )


# Launches are counted from the beginning of a page, and two programs of one process id rarely launch the same kernels.
_TWINS = """
create or replace temp table ncu_twin as
with page as (
    select p.input, any_value(c.state) = 'recorded' as raw, count(*) as launches
    from kernel_profile p join capability c on c.input = p.input and c.name = 'ncu_raw' group by p.input
), pair as (
    select r.input as raw, d.input as details, r.launches, x.id as kept, y.id as dropped
    from page r join page d on r.raw and not d.raw and r.launches = d.launches
    join kernel_profile x on x.input = r.input join kernel_profile y on y.input = d.input
        and y.ordinal = x.ordinal and y.process = x.process and y.name = x.name
        and y.grid is not distinct from x.grid and y.block is not distinct from x.block
        and abs(y.duration_ns - x.duration_ns) <= ? * x.duration_ns
)
select kept, dropped from pair
qualify count(*) over (partition by raw, details) = launches
    and row_number() over (partition by kept) = 1 and row_number() over (partition by dropped) = 1
"""
_ONE_PAGE = (
    "update kernel_rule set profile = kept from ncu_twin where profile = dropped",
    (
        "insert into kernel_metric by name select kept as profile, metric, value, text from kernel_metric"
        " join ncu_twin on profile = dropped anti join kernel_metric known on known.profile = kept"
        " and known.metric = kernel_metric.metric"
    ),
    "delete from kernel_metric where profile in (select dropped from ncu_twin)",
    "delete from kernel_profile where id in (select dropped from ncu_twin)",
    "drop table ncu_twin",
)
# What a trace of torch.profiler states of itself; the name of another capture may number anything.
_SAME_RANK = """
select min(p.input), max(p.input), p.rank from process p join input i on i.id = p.input
where i.kind = 'torch' and p.rank is not null group by p.rank having count(distinct p.input) > 1 order by p.rank limit 1
"""
_SAME = """
with event as (
    select process, 0 as call, start, "end" from gpu_op union all select process, 1, start, "end" from api_call
), measured as (
    select profile, count(*) as n, sum(value) as total from kernel_metric group by profile
), content as (
    select p.input, row(count(*), sum(call), min(start), max("end"), sum("end" - start)) as held
    from event e join process p on p.id = e.process group by p.input
    union all
    select p.input, row(count(*), sum(m.n), min(p.name), max(p.name), sum(m.total)) from kernel_profile p
    join measured m on m.profile = p.id group by p.input
    union all
    select d.input, row(count(*), max(s.reading), min(s.time), max(s.time), sum(s.value)) from smi_sample s
    join device d on d.id = s.device group by d.input
    union all
    select input, row(count(*), sum(calls), min(self_ns), max(self_ns), sum(cumulative_ns)) from cpu_function
    group by input
)
select one.input, other.input
from content one join content other on one.input < other.input and one.held = other.held
join input a on a.id = one.input join input b on b.id = other.input and b.kind = a.kind
order by one.input, other.input limit 1
"""
