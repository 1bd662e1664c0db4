"""Python stacks of a trace: read off its function calls at many moments, or as PyTorch 1.8 wrote them beside operators.

The calls are exact in time and up to two thirds of all events. Findings ask which function held the host, for which
some ten thousand moments are plenty: at each CUDA call, and evenly over time.
"""

from __future__ import annotations

from gpudiag.ingest.torch import frames
from gpudiag.ingest.torch.staging import EVENTS
from gpudiag.ingest.torch.trace import Trace

TEMPORARY = ("torch_frame", "torch_stack", "torch_moment", "torch_function")

_MOST = 8_000
"""Moments at calls, and as many evenly over time."""
_SHORTEST_NS = 20_000
"""Between two of the latter: half of the shortest host work that is looked into."""
_DEEPEST = 200
"""Innermost frames of a stack that are kept."""

_FRAMES = "struct(function varchar, file varchar, line integer)"


def read_stacks(trace: Trace) -> None:
    """Fill `py_sample`, after calls."""
    con = trace.con
    functions, stacks = con.execute(
        "select count(*) filter (cat = 'python_function' and python_id is not null),"
        f" count(stack) filter (cat = 'cpu_op') from {EVENTS} where ph = 'X'"
    ).fetchall()[0]
    trace.found["python_function"], trace.found["call_stack"] = functions, stacks
    if functions:
        _from_functions(trace)
    elif stacks:
        _from_operators(trace)
    first = trace.first["py_sample"]
    ((trace.found["py_sample"],),) = con.execute(f"select count(*) from py_sample where id >= {first}").fetchall()


def _from_functions(trace: Trace) -> None:
    con = trace.con
    con.execute(
        f"""
        create or replace temp table torch_function as
        select t.thread, e.python_id as id, any_value(e.python_parent) as parent, any_value(e.name) as name,
               min(e.start) - {trace.origin} as start, max(e."end") - {trace.origin} as "end"
        from {EVENTS} e join torch_thread t using (tid)
        where ph = 'X' and cat = 'python_function' and python_id is not null
          and e.start is not null and e."end" is not null
        group by t.thread, e.python_id
        """
    )
    names = con.execute("select distinct name from torch_function where name is not null").fetchall()
    _give_frames(trace, {name: [frames.parse(name)] for (name,) in names})
    con.execute(
        f"""
        create or replace temp table torch_moment as
        with outer_call as (
            select thread, start, row_number() over (order by start, id) as n, count(*) over () as calls
            from api_call where id >= {trace.first["api_call"]} and parent is null
              and thread in (select thread from torch_function)
        ), extent as (
            select thread, min(start) as first, max("end") as last from torch_function
            where thread in (select thread from outer_call) group by thread
        ), even as (
            select thread, unnest(range(first, last, greatest({_SHORTEST_NS}, (last - first) // {_MOST}))) as time
            from extent
        ), moment as (
            select thread, time from even union
            select thread, start from outer_call where n % greatest(1, calls // {_MOST}) = 0
        )
        select row_number() over (order by time, thread) as moment, * from moment
        """
    )
    # The function that began last may have returned: then it is one of those that called it.
    con.execute(
        f"""
        insert into py_sample by name
        with recursive latest as (  -- of those that began at once, the innermost
            select thread, start, max(id) as id from torch_function group by thread, start
        ), begun as (
            select m.moment, m.time, m.thread, l.id
            from torch_moment m asof join latest l on l.thread = m.thread and l.start <= m.time
        ), stacked as (
            select b.moment, b.time, b.thread, f.id, f.parent, f.name, f."end" > b.time as holds, 0 as depth
            from begun b join torch_function f on f.thread = b.thread and f.id = b.id
            union all
            select s.moment, s.time, s.thread, f.id, f.parent, f.name, f."end" > s.time, s.depth + 1
            from stacked s join torch_function f on f.thread = s.thread and f.id = s.parent where s.depth < {_DEEPEST}
        ), taken as (
            select moment, any_value(time) as time, any_value(thread) as thread,
                   list(f.frames[1] order by depth) as frames
            from stacked join torch_frame f on f.text = stacked.name where holds group by moment
        )
        select {trace.first["py_sample"]} - 1 + row_number() over (order by time, thread) as id, time, thread, frames
        from taken
        """
    )


def _from_operators(trace: Trace) -> None:
    con = trace.con
    texts = con.execute(f"select distinct stack from {EVENTS} where ph = 'X' and cat = 'cpu_op' and stack is not null")
    _give_frames(trace, {text: frames.of_stack(text)[:_DEEPEST] for (text,) in texts.fetchall()})
    con.execute(
        f"""
        insert into py_sample by name
        with stacked as (
            select t.thread, e.start - {trace.origin} as time, f.frames, count(*) over () as stacks,
                   row_number() over (order by e.start, t.thread) as n
            from {EVENTS} e join torch_thread t using (tid) join torch_frame f on f.text = e.stack
            where ph = 'X' and cat = 'cpu_op' and e.start is not null and e.stack is not null
        )
        select {trace.first["py_sample"]} - 1 + row_number() over (order by time, thread, n) as id, time, thread, frames
        from stacked where n % greatest(1, stacks // {_MOST}) = 0
        """
    )


def _give_frames(trace: Trace, known: dict[str, list[frames.Frame]]) -> None:
    con = trace.con
    con.execute(f"create or replace temp table torch_frame (text varchar, frames {_FRAMES}[])")
    listed = [(text, [frame._asdict() for frame in stack]) for text, stack in known.items()]
    for at in range(0, len(listed), 10_000):
        part = listed[at : at + 10_000]
        con.execute(
            f"insert into torch_frame select unnest($1::varchar[]), unnest($2::{_FRAMES}[][])",
            [[text for text, _ in part], [stack for _, stack in part]],
        )
