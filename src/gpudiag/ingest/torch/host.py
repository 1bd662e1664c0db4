"""The host's side of a trace: threads, CUDA calls, waits and annotations."""

from __future__ import annotations

from gpudiag.ingest.rows import append
from gpudiag.ingest.torch import operators
from gpudiag.ingest.torch.staging import EVENTS
from gpudiag.ingest.torch.trace import LONGEST, Trace, intern_same

TEMPORARY = ("torch_thread", "torch_call", "torch_event_edge", *operators.TEMPORARY)

_HOST = "('cpu_op', 'user_annotation', 'cuda_runtime', 'cuda_driver', 'python_function')"
_CALLS = "('cuda_runtime', 'cuda_driver')"


def read_process(trace: Trace, rank: int | None) -> None:
    """Fill `process` and `thread`; `torch_thread` maps the file's thread numbers."""
    con = trace.con
    row = con.execute(
        f"select pid from {EVENTS} where ph = 'X' and cat in {_HOST} group by pid"
        f" order by count(*) filter (cat in {_CALLS}) desc, count(*) desc, pid limit 1"
    ).fetchone()
    pid = row[0] if row else None
    name = con.execute(
        f"select min(label) from {EVENTS} where ph = 'M' and name = 'process_name' and pid = ?", [pid]
    ).fetchone()
    con.execute(
        "insert into process by name select ? as id, ? as input, try_cast(? as bigint) as pid, ? as name, ? as rank",
        [trace.process, trace.input, pid, name[0] if name else None, rank],
    )
    con.execute(
        f"""
        create or replace temp table torch_thread as
        with seen as (
            select tid, min(start) as first from {EVENTS}
            where ph = 'X' and cat in {_HOST} and tid is not null group by tid
        ), named as (
            select tid, min(label) as label from {EVENTS} where ph = 'M' and name = 'thread_name' group by tid
        )
        select tid, {trace.first["thread"]} - 1 + row_number() over (order by first, tid) as thread, label
        from seen left join named using (tid)
        """
    )
    con.execute(
        "insert into thread by name select thread as id, ? as process, try_cast(tid as bigint) as tid, label as name"
        " from torch_thread",
        [trace.process],
    )


def read_calls(trace: Trace) -> None:
    """Fill `api_call`; `torch_call` has for each correlation the outermost call, and whether it launched a graph."""
    con, first = trace.con, trace.first["api_call"]
    function = r"regexp_replace(coalesce(name, 'unknown'), '(_v[0-9]+)?(_ptsz|_ptds)?(_v[0-9]+)?$', '')"
    valid = f"ph = 'X' and cat in {_CALLS} and start is not null and \"end\" is not null and tid is not null"
    intern_same(con, f"select {function} as text from {EVENTS} where {valid}")
    con.execute(
        f"""
        create or replace temp table torch_call as
        select {first} - 1 + row_number() over (order by e.start, e."end" desc, cat desc, correlation) as id,
               e.start - {trace.origin} as start, e."end" - {trace.origin} as "end", t.thread, n.id as name,
               n.text as function, correlation, cat = 'cuda_driver' as driver
        from {EVENTS} e join torch_thread t using (tid)
        join name n on n.text = left({function}, {LONGEST}) and n.short = n.text
        where {valid}
        """
    )
    operators.read_operators(trace)
    operators.count_recorded(trace)
    operators.measure_covered(trace)
    # Only a runtime function calls another traced one.
    con.execute(
        f"""
        insert into api_call by name
        with outer_call as (
            select thread, start, max("end") as "end", arg_max(id, "end") as id
            from torch_call where not driver group by all
        ), nested as (
            select d.id, o.id as parent from (from torch_call where driver) d
            asof join outer_call o on o.thread = d.thread and o.start <= d.start where o."end" >= d."end"
        )
        select c.id, c.start, c."end", {trace.process} as process, c.thread, n.parent, c.name, c.correlation,
               0 as return_code, o.op, r.recorded as recorded_before,
               v.ns as operators_before_ns
        from torch_call c left join nested n using (id) left join torch_call_op o on o.call = c.id
        left join torch_call_recorded r on r.call = c.id left join torch_call_covered v on v.call = c.id order by c.id
        """
    )
    con.execute(
        f"""
        create or replace temp table torch_call as
        select a.correlation, min(coalesce(a.parent, a.id)) as id,
               bool_or(regexp_matches(n.text, '^(cuda|cu)GraphLaunch')) as launches_graph
        from api_call a join name n on n.id = a.name where a.id >= {first} and a.correlation > 0 group by a.correlation
        """
    )
    ((trace.found["api_call"],),) = con.execute(f"select count(*) from api_call where id >= {first}").fetchall()


_SYNCS = {
    "Stream Sync": "stream",
    "Event Sync": "event",
    "Context Sync": "context",
    "Stream Wait Event": "stream_wait_event",
}


def read_waits(trace: Trace) -> None:
    """Fill `sync` and `event_edge`, after GPU operations: as recorded, else by the names of the calls.

    What a call for a stream waits for is then the stream in which its thread last started something.
    """
    con, first = trace.con, trace.first["api_call"]
    kinds = " ".join(f"when '{text}' then '{kind}'" for text, kind in _SYNCS.items())
    ((recorded,),) = con.execute(f"select count(*) from {EVENTS} where ph = 'X' and cat = 'cuda_sync'").fetchall()
    trace.found["cuda_sync"] = recorded
    if recorded:
        con.execute(
            f"""
            insert into sync by name
            select c.id as api_call, e.start - {trace.origin} as start, e."end" - {trace.origin} as "end",
                   {trace.process} as process, s.stream, case sync_kind {kinds} else 'unknown' end as kind
            from {EVENTS} e left join torch_call c using (correlation)
            left join torch_stream s on s.context = coalesce(e.context, 1) and s.device = coalesce(e.device, 0)
                and s.number = try_cast(e.stream as bigint) and sync_kind <> 'Context Sync'
            where ph = 'X' and cat = 'cuda_sync' and e.start is not null and e."end" is not null
            """
        )
        _edges(trace)
        return
    con.execute(
        f"""
        insert into sync by name
        with wait as (
            select a.id, a.start, a."end", a.thread, n.text from api_call a join name n on n.id = a.name
            where a.id >= {first} and a.parent is null
              and regexp_matches(n.text, '^(cuda(Device|Stream|Event|Thread)|cu(Ctx|Stream|Event))Synchronize$')
        ), started as (
            select a.thread, a.start, max(o.stream) as stream from gpu_op o join api_call a on a.id = o.api_call
            where a.id >= {first} group by all
        )
        select w.id as api_call, w.start, w."end", {trace.process} as process,
               case when w.text like '%StreamSynchronize' then s.stream end as stream,
               case when w.text like '%EventSynchronize' then 'event'
                    when w.text like '%StreamSynchronize' then 'stream' else 'context' end as kind
        from wait w asof left join started s on s.thread = w.thread and s.start <= w.start
        """
    )


def _edges(trace: Trace) -> None:
    """Fill `event_edge`, and what the host's own waits for events are for."""
    con = trace.con
    con.execute(
        f"""
        create or replace temp table torch_event_edge as
        with wait as (
            select f.stream as from_stream, if(e.sync_kind = 'Event Sync', null, t.stream) as to_stream,
                   w.id as api_call, w.start as time, r.start as recorded
            from {EVENTS} e join torch_call c on c.correlation = e.correlation join api_call w on w.id = c.id
            join torch_call k on k.correlation = e.record_correlation join api_call r on r.id = k.id
            join torch_stream f on f.context = coalesce(e.context, 1) and f.device = coalesce(e.device, 0)
                and f.number = try_cast(e.record_stream as bigint)
            left join torch_stream t on t.context = coalesce(e.context, 1) and t.device = coalesce(e.device, 0)
                and t.number = try_cast(e.stream as bigint)
            where e.ph = 'X' and e.cat = 'cuda_sync' and (e.sync_kind = 'Event Sync'
                or e.sync_kind = 'Stream Wait Event' and t.stream is not null)
        ), enqueued as (
            select o.stream, c.start, arg_max(o.id, (o.start, o.id)) as id
            from gpu_op o join api_call c on c.id = o.api_call where o.id >= {trace.first["gpu_op"]} group by all
        )
        select q.id as from_op, from_stream, to_stream, time, api_call from wait
        asof left join enqueued q on q.stream = wait.from_stream and q.start <= wait.recorded
        """
    )
    con.execute(
        "insert into event_edge by name select from_op, from_stream, to_stream, time from torch_event_edge"
        " where from_stream <> to_stream"
    )
    con.execute(
        "update sync set after_op = e.from_op from torch_event_edge e"
        " where e.to_stream is null and e.api_call = sync.api_call"
    )


def _after_the_last_step(trace: Trace) -> int | None:
    """Return the start of the last step of the profiler where nothing was launched in it.

    Each `prof.step()` begins another step. After the last one that is what the program does until recording ends.
    """
    row = trace.con.execute(
        f"""
        with last as (
            select max(start) as start, arg_max("end", start) as "end" from {EVENTS}
            where ph = 'X' and cat = 'user_annotation' and starts_with(name, 'ProfilerStep#')
            having count(*) > 1
        )
        select start from last where not exists (
            from gpu_op o join api_call a on a.id = o.api_call
            where o.id >= {trace.first["gpu_op"]} and a.start >= last.start - {trace.origin}
              and a.start < last."end" - {trace.origin}
        )
        """
    ).fetchone()
    return row[0] if row else None


def read_annotations(trace: Trace) -> None:
    """Fill `nvtx_range`: what the program annotated, and the profiler's steps. Ranges that cross are siblings."""
    con, first = trace.con, trace.first["nvtx_range"]
    valid = "ph = 'X' and cat = 'user_annotation' and start is not null and \"end\" is not null and name <> ''"
    if (rest := _after_the_last_step(trace)) is not None:
        valid += f" and not (start >= {rest} and starts_with(name, 'ProfilerStep#'))"
    intern_same(con, f"select name as text from {EVENTS} where {valid}")
    rows = con.execute(
        f"""
        select t.thread, e.start - {trace.origin}, e."end" - {trace.origin}, n.id
        from {EVENTS} e join torch_thread t using (tid)
        join name n on n.text = left(e.name, {LONGEST}) and n.short = n.text where {valid}
        order by t.thread, e.start, e."end" desc, n.id
        """
    ).fetchall()
    found, open_ = [], list[tuple[int, int, int]]()  # identifier, thread, end
    for id_, (thread, start, end, name) in enumerate(rows, first):
        while open_ and (open_[-1][1] != thread or open_[-1][2] <= start):
            open_.pop()
        above = next((i for i in range(len(open_) - 1, -1, -1) if open_[i][2] >= end), -1)
        parent = open_[above][0] if above >= 0 else None
        found.append((id_, start, end, thread, trace.process, name, "push_pop", above + 1, parent))
        if above == len(open_) - 1:
            open_.append((id_, thread, end))
    columns = ("id", "start", "end", "thread", "process", "name", "kind", "depth", "parent")
    append(con, "nvtx_range", columns, found)
    trace.found["nvtx_range"] = len(found)


def read_overhead(trace: Trace) -> None:
    """Fill `overhead` with what the profiler says of itself."""
    trace.con.execute(
        f'insert into overhead by name select start - {trace.origin} as start, "end" - {trace.origin} as "end",'
        f" null::integer as thread, name as kind from {EVENTS}"
        " where ph = 'X' and cat = 'overhead' and \"end\" is not null"
    )
