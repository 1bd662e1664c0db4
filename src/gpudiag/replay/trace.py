"""The trace of one loop in one process, as arrays: its window, the host's calls, the GPU's operations.

Times are nanoseconds since the window's start, as floats; indices refer to positions in these arrays, -1 means none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

Connection = duckdb.DuckDBPyConnection
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Columns = Mapping[str, NDArray[Any]]

CALL_KINDS = (
    "launch", "graph_launch", "sync", "copy", "set", "alloc", "free", "pool", "host_alloc", "load", "context", "other",
)  # fmt: skip
OP_CLASSES = ("compute", "communication", "copy")


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive iterations of a loop in one process, driven by one thread; absolute ns."""

    loop: int
    process: int
    thread: int
    start: int
    end: int
    iterations: int


@dataclass(frozen=True, slots=True)
class Calls:
    """Outermost CUDA calls by thread and time. `waits_on`: stream, -1 none, -2 the whole context, -3 an event."""

    id: Ints
    thread: Ints
    kind: Ints  # index into CALL_KINDS
    start: Floats
    end: Floats
    segment_start: Floats  # when the call before it on its thread returned
    asleep: Floats  # part of the segment before it that its thread slept: that passes as fast without a profiler
    waited: Floats  # part of that in which it waited for others, and not for a time to pass
    waits_on: Ints
    fetches: NDArray[np.bool_]  # whether the segment before it fetched input
    functions: Floats  # Python functions and operators that the profiler recorded in the segment before it
    nodes: Floats  # kernels and copies of a graph that it launched, where these were recorded one by one

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True, slots=True)
class Ops:
    """GPU operations by start."""

    id: Ints
    call: Ints  # position in Calls of the call that started it
    stream: Ints
    legacy: NDArray[np.bool_]  # in the legacy default stream
    blocking: NDArray[np.bool_]  # in a stream that the legacy default stream waits for, and that waits for it
    device: Ints
    context: Ints
    kind: Ints  # index into OP_CLASSES
    direction: Ints  # 0 none, 1 host to device, 2 device to host, 3 other copies
    pageable: NDArray[np.bool_]
    start: Floats
    end: Floats
    bytes: Floats
    link: Floats  # B/s that the link to the device moves from pinned memory

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True, slots=True)
class LoopTrace:
    """One window of a loop with all that happened in it."""

    window: Window
    length: float  # ns
    calls: Calls
    ops: Ops
    iteration_of_call: Ints  # iteration number in the window
    event_from: Ints  # position in Ops of the last operation before an event that another stream waits for
    event_stream: Ints  # that stream
    event_time: Floats  # when the host asked for the wait


def windows(con: Connection, loop: int, least_cover: float) -> list[Window]:
    """One window a process: all its iterations where they follow one another, else the stretch of most of them.

    Of stretches of as many the one whose iterations take about as long as the loop's do.
    """
    rows = con.execute(
        'select process, thread, start, "end", iterations from steady_interval where loop = ? order by process, start',
        [loop],
    ).fetchall()
    found: list[Window] = []
    for process in dict.fromkeys(row[0] for row in rows):
        own = [row for row in rows if row[0] == process]
        start, end = min(row[2] for row in own), max(row[3] for row in own)
        if sum(row[3] - row[2] for row in own) < least_cover * (end - start):
            usual = sum(row[3] - row[2] for row in own) / sum(row[4] for row in own)
            own = [max(own, key=lambda row: (row[4], -abs((row[3] - row[2]) / row[4] - usual)))]
            start, end = own[0][2], own[0][3]
        found.append(Window(loop, process, own[0][1], start, end, sum(row[4] for row in own)))
    return found


def read(con: Connection, window: Window) -> LoopTrace:
    """The window's calls and operations. Work that was queued before the window's first iteration is not part of it."""
    ops = _ops(con, window)
    calls = _calls(con, window)
    position = {int(number): index for index, number in enumerate(calls.id)}
    call_of = np.array([position.get(int(number), -1) for number in ops["api_call"]], dtype=np.int64)
    return LoopTrace(
        window, float(window.end - window.start), calls, _as_ops(ops, call_of),
        _iterations(con, window, calls, call_of, ops["start"].astype(np.float64)),
        *_events(con, window, ops["id"].astype(np.int64)),
    )  # fmt: skip


def _events(con: Connection, window: Window, ops: Ints) -> tuple[Ints, Ints, Floats]:
    columns = con.execute(
        """
        select e.from_op, e.to_stream, e.time - $start as time
        from event_edge e join analysed_gpu_op o on o.id = e.from_op
        where o.process = $process and o.start >= $start and o.start < $end
            and e.to_stream is not null and e.time is not null order by e.time, e.from_op, e.to_stream
        """,
        {"process": window.process, "start": window.start, "end": window.end},
    ).fetchnumpy()
    order = np.argsort(ops, kind="stable")
    position = order[np.searchsorted(ops[order], columns["from_op"].astype(np.int64))] if len(ops) else ops
    return position, columns["to_stream"].astype(np.int64), columns["time"].astype(np.float64)


def _ops(con: Connection, window: Window) -> Columns:
    return con.execute(
        """
        select o.id, coalesce(o.api_call, -1) as api_call, o.stream, s.kind = 'null' as legacy,
               s.kind in ('blocking', 'unknown') as blocking, o.device, coalesce(s.context, 0) as context,
               case op_class(o.kind, n.short) when 'compute' then 0 when 'communication' then 1 else 2 end as class,
               case when o.kind <> 'memcpy' then 0 when o.copy_kind = 'host_to_device' then 1
                    when o.copy_kind = 'device_to_host' then 2 else 3 end as direction,
               coalesce(o.src_kind = 'pageable' or o.dst_kind = 'pageable', false) as pageable,
               o.start - $start as start, o."end" - $start as "end", coalesce(o.bytes, 0) as bytes,
               coalesce(l.bytes_per_s, setting('pinned_bytes_per_s')) as link
        from analysed_gpu_op o join stream s on s.id = o.stream left join name n on n.id = o.name
        left join device_link l on l.device = o.device
        where o.process = $process and o.start >= $start and o.start < $end order by o.start, o.id
        """,
        {"process": window.process, "start": window.start, "end": window.end},
    ).fetchnumpy()


def _as_ops(columns: Columns, call: Ints) -> Ops:
    def as_int(name: str) -> Ints:
        return columns[name].astype(np.int64)

    def as_float(name: str) -> Floats:
        return columns[name].astype(np.float64)

    return Ops(
        id=as_int("id"), call=call, stream=as_int("stream"), legacy=columns["legacy"].astype(bool),
        blocking=columns["blocking"].astype(bool), device=as_int("device"), context=as_int("context"),
        kind=as_int("class"),
        direction=as_int("direction"), pageable=columns["pageable"].astype(bool), start=as_float("start"),
        end=as_float("end"), bytes=as_float("bytes"), link=as_float("link"),
    )  # fmt: skip


def _calls(con: Connection, window: Window) -> Calls:
    """Per thread, from the first call that belongs to the window to the last; a host may run far ahead of the GPU."""
    kinds = " ".join(f"when '{kind}' then {index}" for index, kind in enumerate(CALL_KINDS))
    columns = con.execute(
        f"""
        with launched as (
            select api_call, min(start) as begins, count(*) filter (kind <> 'graph') as nodes from analysed_gpu_op
            where process = $process and api_call is not null and start >= $early group by api_call
        ), candidate as (
            select a.id, a.thread, a.start, a."end", a.name, l.begins,
                   a.recorded_before as functions, coalesce(l.nodes, 0) as nodes,
                   lag(a."end") over (partition by a.thread order by a.start, a.id) as previous_end
            from analysed_api_call a left join launched l on l.api_call = a.id
            where a.process = $process and a.start < $end and a.start >= $early
        ), bounds as (
            select thread,
                   min(start) filter (where begins >= $start or (begins is null and start >= $start)) as first,
                   min(start) filter (where begins >= $end) as beyond
            from candidate group by thread
        ), waited as (
            select api_call, min(case when kind = 'context' then -2 when kind = 'stream' then coalesce(stream, -2)
                                            when kind = 'event' then -3 else -1 end) as on_stream
            from sync where api_call is not null and kind <> 'stream_wait_event' group by api_call
        )
        select c.id, c.thread, case k.kind {kinds} else {len(CALL_KINDS) - 1} end as kind, c.start - $start as start,
               c."end" - $start as "end", coalesce(w.on_stream, case when k.kind <> 'sync' then -1
                   when regexp_matches(k.text, 'Event') then -3 else -2 end) as waits_on,
               c.previous_end - $start as previous_end, coalesce(i.fetches_input, false) as fetches,
               c.functions, if(k.kind = 'graph_launch', c.nodes, 0) as nodes
        from candidate c join bounds b on b.thread = c.thread join api_name k on k.id = c.name
        left join waited w on w.api_call = c.id left join host_segment i on i.api_call = c.id
        where c.start >= b.first and c.start < coalesce(b.beyond, $end)
            and c.start < coalesce((select launched from part where process = $process), $end)
        order by c.thread, c.start, c.id
        """,
        {"process": window.process, "start": window.start, "end": window.end, "early": _earliest(con, window)},
    ).fetchnumpy()
    start = columns["start"].astype(np.float64)
    thread = columns["thread"].astype(np.int64)
    opens = np.concatenate([[True], thread[1:] != thread[:-1]])[: len(thread)]
    previous = np.ma.filled(np.ma.asarray(columns["previous_end"]).astype(np.float64), -np.inf)
    segment = np.where(opens, np.minimum(start, np.maximum(previous, 0)), np.minimum(previous, start))
    waited = _asleep(con, window, thread, segment, start, _WAITS)
    return Calls(
        id=columns["id"].astype(np.int64), thread=thread, kind=columns["kind"].astype(np.int64), start=start,
        end=columns["end"].astype(np.float64), segment_start=segment,
        asleep=waited + _asleep(con, window, thread, segment, start, _NAPS), waited=waited,
        waits_on=columns["waits_on"].astype(np.int64), fetches=columns["fetches"].astype(bool),
        functions=columns["functions"].astype(np.float64), nodes=columns["nodes"].astype(np.float64),
    )  # fmt: skip


def _earliest(con: Connection, window: Window) -> int:
    """Return when the first call was made that started an operation of the window, or the window's start."""
    row = con.execute(
        """
        select min(a.start) from analysed_gpu_op o join analysed_api_call a on a.id = o.api_call
        where o.process = ? and o.start >= ? and o.start < ?
        """,
        [window.process, window.start, window.end],
    ).fetchone()
    return min(int(row[0]), window.start) if row and row[0] is not None else window.start


_NAPS = "n.text in ('nanosleep', 'clock_nanosleep', 'usleep', 'sleep')"
_WAITS = "(waits_for_others(n.text) or receives_data(n.text) or n.text = 'read')"


def _asleep(con: Connection, window: Window, thread: Ints, begin: Floats, end: Floats, which: str) -> Floats:
    """Per segment, the time its thread spent in such calls of the operating system (ns)."""
    asleep = np.zeros(len(thread))
    columns = con.execute(
        f"""
        select o.thread, o.start - $start as start, o."end" - $start as "end"
        from os_call o join name n on n.id = o.name join thread t on t.id = o.thread
        where t.process = $process and o."end" > $start and o.start < $end
            and {which}
        order by o.thread, o.start
        """,
        {"process": window.process, "start": window.start, "end": window.end},
    ).fetchnumpy()
    for number in np.unique(columns["thread"]):
        mine, theirs = np.flatnonzero(thread == number), columns["thread"] == number
        starts = columns["start"][theirs].astype(float)
        ends = np.maximum.accumulate(columns["end"][theirs].astype(float))
        total = np.concatenate(
            [[0.0], np.cumsum(np.maximum(ends - np.maximum(starts, np.concatenate([[-np.inf], ends[:-1]])), 0))]
        )

        def until(time: Floats, starts: Floats = starts, ends: Floats = ends, total: Floats = total) -> Floats:
            last = np.searchsorted(starts, time, "right")
            over = np.where(last > 0, np.maximum(ends[np.maximum(last - 1, 0)] - time, 0), 0)
            return np.asarray(total[last] - over, dtype=np.float64)

        if len(mine):
            asleep[mine] = np.clip(until(end[mine]) - until(begin[mine]), 0, end[mine] - begin[mine])
    return asleep


def _iterations(con: Connection, window: Window, calls: Calls, call_of: Ints, begins: Floats) -> Ints:
    """The iteration each call belongs to, counted from 0: that of what it started, however far the host ran ahead.

    call_of, begins: of each operation its call's position, -1 for none, and its start. A call that started nothing
    belongs to no earlier iteration than the call before it.
    """
    rows = con.execute(
        "select start from analysed_iteration"
        " where loop = ? and process = ? and start >= ? and start < ? order by start",
        [window.loop, window.process, window.start, window.end],
    ).fetchall()
    bounds = np.array([row[0] - window.start for row in rows], dtype=np.float64)
    time = np.full(len(calls), np.inf)
    np.minimum.at(time, call_of[call_of >= 0], begins[call_of >= 0])
    started = np.isfinite(time)
    iteration = np.searchsorted(bounds, np.where(started, time, calls.start), "right") - 1
    before = np.maximum.accumulate(np.where(started, np.arange(len(calls)), 0))
    known = started[before] & (calls.thread[before] == calls.thread)
    return np.maximum(np.where(known, np.maximum(iteration, iteration[before]), iteration), 0).astype(np.int64)
