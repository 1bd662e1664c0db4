"""Operators of a trace: for each CUDA call the innermost one that made it, with its shapes, module and pass."""

from __future__ import annotations

import numpy as np

from gpudiag.ingest.torch import modules
from gpudiag.ingest.torch.staging import EVENTS
from gpudiag.ingest.torch.trace import LONGEST, Numbers, Spans, Trace, innermost, intern_same, spans

TEMPORARY = ("torch_operator", "torch_call_op", "torch_call_recorded", "torch_call_covered", "torch_operator_module")

_LONGEST_SHAPES = 500
"""Characters of an operator's input shapes that are kept: of fused optimizers they list every parameter."""

_SHAPES = r"regexp_replace(regexp_replace(replace(o.dims, ' ', ''), ',\[\]', '', 'g'), '^\[\[\],?', '[')"
"""SQL for the shapes of the inputs that are arrays: of others an empty list stands there."""


def read_operators(trace: Trace) -> None:
    """Fill `op` with the operators that made CUDA calls, before `api_call`, which is staged in `torch_call`.

    `torch_call_op` has the operator of each such call.
    """
    con, first = trace.con, trace.first["op"]
    con.execute(
        f"""
        create or replace temp table torch_operator as
        select row_number() over (order by t.thread, e.start, e."end" desc, e.name) - 1 as position, t.thread,
               e.start - {trace.origin} as start, e."end" - {trace.origin} as "end", e.name, e.dims,
               nullif(e.sequence, -1) as sequence
        from {EVENTS} e join torch_thread t using (tid)
        where ph = 'X' and cat = 'cpu_op' and e.start is not null and e."end" is not null and e.name is not null
        """
    )
    operators = spans(con, 'select thread, start, "end" from torch_operator order by position')
    calls = con.execute(
        'select id, thread, start, "end" from torch_call order by thread, start, "end" desc'
    ).fetchnumpy()
    found = innermost(operators, Spans(calls["thread"], calls["start"], calls["end"]))
    made = found >= 0
    columns = {"call": calls["id"][made], "position": found[made]}
    con.register("torch_found", columns)
    try:
        con.execute(
            f"""
            create or replace temp table torch_call_op as
            select call, position, {first} - 1 + dense_rank() over (order by position) as op from torch_found
            """
        )
    finally:
        con.unregister("torch_found")
    known = modules.of_operators(trace, np.unique(found[made]).tolist())
    con.execute(
        "create or replace temp table torch_operator_module as"
        " select unnest($1::bigint[]) as position, unnest($2::varchar[]) as module, unnest($3::varchar[]) as pass",
        [list(column) for column in zip(*known, strict=True)] or [[], [], []],
    )
    used = "torch_operator where position in (select position from torch_call_op)"
    intern_same(con, f"select name as text from {used}")
    con.execute(
        f"""
        insert into op by name
        select c.op as id, o.start, o."end", o.thread, n.id as name,
               case when len(o.dims) <= {_LONGEST_SHAPES} then nullif({_SHAPES}, '[]') end as shapes,
               m.module, m.pass
        from (select distinct op, position from torch_call_op) c join torch_operator o using (position)
        left join torch_operator_module m using (position)
        join name n on n.text = left(o.name, {LONGEST}) and n.short = n.text
        """
    )


def count_recorded(trace: Trace) -> None:
    """Make `torch_call_recorded`: functions and operators that began on a call's thread since the call before it."""
    con = trace.con
    con.execute("create or replace temp table torch_call_recorded (call integer, recorded integer)")
    begun = con.execute(
        f"""
        select t.thread, e.start - {trace.origin} as start from {EVENTS} e join torch_thread t using (tid)
        where ph = 'X' and cat in ('python_function', 'cpu_op') and e.start is not null
        """
    ).fetchnumpy()
    calls = con.execute("select id, thread, start from torch_call order by thread, start, id").fetchnumpy()
    for thread in np.unique(begun["thread"]):
        mine = calls["thread"] == thread
        before = np.searchsorted(np.sort(begun["start"][begun["thread"] == thread]), calls["start"][mine])
        con.register("torch_found", {"call": calls["id"][mine], "recorded": np.diff(before, prepend=0)})
        try:
            con.execute("insert into torch_call_recorded select call, recorded from torch_found")
        finally:
            con.unregister("torch_found")


def measure_covered(trace: Trace) -> None:
    """Make `torch_call_covered`: time on a call's thread since the call before it in operators that make CUDA calls.

    What an operator calls and makes none, such as one on arrays of the CPU, does not count.
    """
    con = trace.con
    con.execute("create or replace temp table torch_call_covered (call integer, ns bigint)")
    operators = con.execute('select thread, start, "end" from torch_operator').fetchnumpy()
    calls = con.execute('select id, thread, start, "end" from torch_call order by thread, start, id').fetchnumpy()
    for thread in np.unique(operators["thread"]):
        mine, own = calls["thread"] == thread, operators["thread"] == thread
        starts, ends = calls["start"][mine], np.maximum.accumulate(calls["end"][mine])
        begun, done = operators["start"][own], operators["end"][own]
        silent = np.searchsorted(starts, begun) == np.searchsorted(starts, done)
        since = np.concatenate([starts[:1], ends[:-1]])
        ns = _within(begun, done, since, starts) - _within(begun[silent], done[silent], since, starts)
        con.register("torch_found", {"call": calls["id"][mine], "ns": ns})
        try:
            con.execute("insert into torch_call_covered select call, ns from torch_found")
        finally:
            con.unregister("torch_found")


def _within(start: Numbers, end: Numbers, since: Numbers, until: Numbers) -> Numbers:
    """Return for each stretch how much of it these spans cover together, where they may lie within one another."""
    if not len(start):
        return np.zeros(len(since), dtype=np.int64)
    order = np.argsort(start, kind="stable")
    begun, reach = start[order], np.maximum.accumulate(end[order])
    apart = begun[1:] > reach[:-1]
    begun, done = begun[np.concatenate([[True], apart])], reach[np.concatenate([apart, [True]])]
    length = done - begun
    before = np.cumsum(length) - length

    def covered(time: Numbers) -> Numbers:
        last = np.searchsorted(begun, time, side="right") - 1
        return np.where(last < 0, 0, before[last] + np.minimum(time - begun[last], length[last]))

    return covered(np.maximum(since, until)) - covered(since)
