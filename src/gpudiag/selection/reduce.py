"""The canonical tables, reduced to the rows that were selected. Identifiers stay as they are, so they have gaps."""

from __future__ import annotations

import duckdb

Connection = duckdb.DuckDBPyConnection

_OF_PROCESS = "left join selected s on s.process = t.process"
_OF_THREAD = "left join thread h on h.id = t.thread left join selected s on s.process = h.process"
_OF_DEVICE = "t.device in (from chosen_device)"
_THREADS = "(select id from thread where process in (select process from selected))"
_AT_ALL = "cross join (select min(host) as host, max(until) as until from selected) s"


def _overlaps(since: str) -> str:
    """Return the condition for an overlap; an event without length counts at its start."""
    return f'coalesce(t.start < s.until and (t."end" > s.{since} or t.start >= s.{since}), false)'


_MOMENT = "t.time < s.until and t.time >= s.host"

# In this order: some rows are kept because others are.
_BY_TIME = {
    "gpu_op": (_OF_PROCESS, f"{_OF_DEVICE} and {_overlaps('start')}"),
    "api_call": (_OF_PROCESS, f"{_overlaps('host')} or t.id in (select api_call from gpu_op)"),
    "sync": (_OF_PROCESS, f"t.api_call in (select id from api_call) or t.api_call is null and {_overlaps('host')}"),
    "collective": ("", "t.gpu_op in (select id from gpu_op)"),
    "event_edge": (
        "join stream r on r.id = coalesce(t.to_stream, t.from_stream) join selected s on s.process = r.process",
        "t.from_op is null or t.from_op in (select id from gpu_op)",
    ),
    "nvtx_range": (_OF_PROCESS, _overlaps("host")),
    "module_call": (_OF_PROCESS, _overlaps("host")),
    "nvtx_mark": (_OF_THREAD, _MOMENT),
    "py_sample": (_OF_THREAD, _MOMENT),
    "os_call": (_OF_THREAD, _overlaps("host")),
    "op": (_OF_THREAD, _overlaps("host")),
    "memory_event": (_OF_PROCESS, f"{_OF_DEVICE} and t.time < s.until"),  # what was allocated before is still held
    "overhead": (_AT_ALL, f"{_overlaps('host')} and coalesce(t.thread in {_THREADS}, true)"),
    "gpu_metric": (_AT_ALL, f"{_OF_DEVICE} and {_MOMENT}"),
}  # fmt: skip
_OWNERS = {
    # A log of nvidia-smi runs by a clock of its own: no part of it can be selected.
    "device": "t.id in (from chosen_device) or t.input in (select id from input where kind = 'smi')",
    "process": "t.id in (from chosen_process)",
    "thread": "t.process in (from chosen_process)",
    "stream": f"t.process in (from chosen_process) and {_OF_DEVICE}",
    # A file that has no part in the selection must not speak for it.
    "input": "t.kind not in ('nsys', 'torch') or t.id in (select input from process)",
    "capability": "t.input in (select id from input)",
}

# Ranks are compared by the position of a collective in its stream, so one that is cut off on one rank goes on all.
_UNPAIRED = """
with job as (
    select process, job
    from joined_ranks(setting('min_iterations'), setting('period_match'), rank_spread_ns(), rank_clock_ns())
    where process in (from chosen_process)
), placed as (
    select n.gpu_op, j.job, n.channel, n.sequence from numbered_collectives() n join job j using (process)
), cut as (
    select distinct job, channel, sequence from placed where gpu_op not in (select id from selected_op)
)
select gpu_op from placed semi join cut using (job, channel, sequence)
"""

# Where launches are counted from the program's start, those that were not selected count as well.
_LEFT_OUT = """
insert into left_out_launch
select o.process, o.name, coalesce(a.start, o.start) from gpu_op o left join api_call a on a.id = o.api_call
where o.kind = 'kernel' and o.id not in (select id from selected_op)
    and o.process in (select process from selected_op)
    and o.name in (select n.id from name n semi join (
        select coalesce(n.short, n.text) as base from name n where n.id in (select name from selected_op)
    ) k on k.base = coalesce(n.short, n.text))
"""


def reduce(con: Connection) -> None:
    """Keep what is selected. Needs `selected`, `chosen_process` and `chosen_device`."""
    join, condition = _BY_TIME["gpu_op"]
    con.execute(
        "create or replace temp table selected_op as"
        f" select t.id, t.process, t.name from gpu_op t {join} where {condition}"
    )
    con.execute(_LEFT_OUT)
    row = con.execute("select count(distinct o.process) from collective c join gpu_op o on o.id = c.gpu_op").fetchone()
    if row and row[0] > 1:
        con.execute(f"delete from collective where gpu_op in ({_UNPAIRED})")
    for table, (join, condition) in _BY_TIME.items():
        _keep(con, table, join, condition)
    for table, condition in _OWNERS.items():
        _keep(con, table, "", condition)
    con.execute("drop table selected_op; drop table selected; drop table chosen_process; drop table chosen_device")


def _keep(con: Connection, table: str, join: str, condition: str) -> None:
    con.execute(f'create or replace table "{table}" as select t.* from "{table}" t {join} where {condition}')
