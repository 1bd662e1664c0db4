"""Waits, events and collectives of an Nsight Systems file; after API calls and GPU operations."""

from __future__ import annotations

import re

from gpudiag.ingest.nsys.api import SANE
from gpudiag.ingest.nsys.ids import Capture, discover_processes, discover_streams, process_map, stream_map, thread_map
from gpudiag.ingest.nsys.owners import owned
from gpudiag.ingest.sources.base import ints

TEMPORARY = ("nsys_event_record", "nsys_event_wait", "nsys_event_edge", "nsys_message")

_EVENTS = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
_SYNCS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
TABLES = (_EVENTS, _SYNCS)
_NO_STREAM = 4294967295
"""CUPTI's "no stream" and "no event"."""


def _kind(function: str) -> str:
    """Return the kind of thing that a function waits for.

    By name: syncType reads 2 for every stream wait in some versions while the file's own enumeration says otherwise.
    """
    if function in ("cudaDeviceSynchronize", "cudaThreadSynchronize", "cuCtxSynchronize"):
        return "context"
    endings = {"StreamWaitEvent": "stream_wait_event", "EventSynchronize": "event", "StreamSynchronize": "stream"}
    for ending, kind in endings.items():
        if function.endswith(ending):
            return kind
    return "stream" if "Memcpy" in function or "Memset" in function else "unknown"


def read_syncs(capture: Capture) -> None:
    """Fill `sync`, and the temporary `nsys_event_wait` when the file has events to wait for."""
    con, has_events = capture.con, capture.source.has(_EVENTS)
    if has_events:
        con.execute(
            "create or replace temp table nsys_event_wait"
            " (key bigint, event bigint, stream integer, time bigint, api_call integer)"
        )
    columns = ints("start", "end", "contextId", "streamId", "correlationId", "globalPid", "eventId")
    for raw in capture.source.batches(_SYNCS, columns):
        batch = owned(capture.alone, capture.source, _SYNCS, raw, "globalPid")
        groups = con.execute(
            f"select coalesce({SANE}, false), globalPid >> 24, contextId, nullif(streamId, {_NO_STREAM}), count(*)"
            f" from {batch} group by all"
        ).fetchall()
        capture.dropped += sum(count for sane, *_, count in groups if not sane)
        valid = [(key, context, stream) for sane, key, context, stream, _ in groups if sane and key is not None]
        discover_processes(capture, {key for key, _, _ in valid})
        # deviceId reads 0 here whatever the context's device is: take it from the context's other streams.
        devices = capture.gpus.stream_devices
        discover_streams(capture, {(k, c, s): devices.get((k, c)) for k, c, s in valid if s is not None})
        waits = _named(capture, batch)
        con.execute(
            'insert into sync by name select api_call, start, "end", process,'
            f" case when kind <> 'context' then stream end as stream, kind from {waits}"
        )
        if has_events:
            con.execute(  # of the host's own waits the call, of a stream's the stream
                "insert into nsys_event_wait select key, eventId, if(kind = 'event', null, stream), start, api_call"
                f" from {waits} where eventId <> {_NO_STREAM}"
                " and (kind = 'stream_wait_event' and stream is not null or kind = 'event' and api_call is not null)"
            )


def _named(capture: Capture, batch: str) -> str:
    """A batch's waits with process, stream, call and kind."""
    by_kind: dict[str, set[int]] = {}
    for id_, function in capture.api_names.values():
        by_kind.setdefault(_kind(function), set()).add(id_)
    whens = " ".join(
        f"when c.name in ({', '.join(map(str, sorted(ids)))}) then '{kind}'"
        for kind, ids in sorted(by_kind.items())
        if kind != "unknown"
    )
    call, nested = ("coalesce(n.outermost, c.id)", "left join nsys_nested n on n.id = c.id") if capture.nested else (
        "c.id", ""
    )  # fmt: skip
    return (
        f"(select y.*, p.process, s.stream, {call} as api_call, {f'case {whens} else' if whens else ''} 'unknown'"
        f' {"end" if whens else ""} as kind from (select start, "end", contextId, correlationId, eventId,'
        f" nullif(streamId, {_NO_STREAM}) as streamId, globalPid >> 24 as key from {batch}"
        f" where globalPid is not null and {SANE}) y"
        f" join {process_map(capture)} on p.key = y.key"
        f" left join {stream_map(capture)} on s.key = y.key and s.context is not distinct from y.contextId"
        " and s.number = y.streamId"
        " left join (select process, correlation, min(id) as id, arg_min(name, id) as name from api_call"
        f" where id >= {capture.first['api_call']} and correlation in (select correlationId from {batch})"
        f" group by all) c on c.process = p.process and c.correlation = y.correlationId {nested})"
    )


def read_event_edges(capture: Capture) -> None:
    """Fill `event_edge`, and what the host's own waits for events are for, where both record and wait were traced."""
    con = capture.con
    columns = ints("contextId", "streamId", "correlationId", "globalPid", "eventId")
    if not capture.source.has(_EVENTS) or not con.execute("select 1 from nsys_event_wait limit 1").fetchall():
        return
    con.execute(
        "create or replace temp table nsys_event_record (key bigint, event bigint, stream integer, time bigint)"
    )
    for raw in capture.source.batches(_EVENTS, columns):
        batch = owned(capture.alone, capture.source, _EVENTS, raw, "globalPid")
        con.execute(
            "insert into nsys_event_record select e.globalPid >> 24, eventId, s.stream, min(c.start)"
            f" from {batch} e join {stream_map(capture)} on s.key = e.globalPid >> 24 and s.context = contextId"
            " and s.number = streamId"
            " join api_call c on c.process = s.process and c.correlation = correlationId"
            f" where c.id >= {capture.first['api_call']} group by 1, 2, 3, correlationId"  # an event is recorded anew
        )
    con.execute(
        "create or replace temp table nsys_event_edge as with edges as ("
        "select r.stream as from_stream, w.stream as to_stream, w.time, w.api_call, r.time as recorded"
        " from nsys_event_wait w"
        " asof join (select key, event, time, max(stream) as stream from nsys_event_record group by all) r"
        " on r.key = w.key and r.event = w.event and r.time <= w.time),"
        " enqueued as (select o.stream, c.start, arg_max(o.id, (o.start, o.id)) as id"  # a graph's launch is of many
        " from gpu_op o join api_call c on c.id = o.api_call"
        f" where o.id >= {capture.first['gpu_op']} and o.stream in (select from_stream from edges) group by all)"
        " select q.id as from_op, from_stream, to_stream, time, edges.api_call from edges"
        " asof left join enqueued q on q.stream = edges.from_stream and q.start <= edges.recorded"
    )
    con.execute(
        "insert into event_edge by name select from_op, from_stream, to_stream, time from nsys_event_edge"
        " where from_stream <> to_stream"
    )
    con.execute(
        "update sync set after_op = e.from_op from nsys_event_edge e"
        f" where e.to_stream is null and e.api_call = sync.api_call and e.api_call >= {capture.first['api_call']}"
    )


_COLLECTIVES = {
    "AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter", "Broadcast": "broadcast",
    "SendRecv": "send_recv",
}  # fmt: skip


def read_collectives(capture: Capture) -> None:
    """Fill `collective` from NCCL's kernels: their names carry the operation; a communicator keeps to one stream."""
    whens = []
    for id_, short in sorted(set(capture.kernel_names.values())):
        if re.match(r"nccl(Dev)?Kernel_", short):
            op = next((op for part, op in _COLLECTIVES.items() if part in short), "other")
            whens.append((id_, op))
    if not whens:
        return
    case = " ".join(f"when {id_} then '{op}'" for id_, op in whens)
    capture.con.execute(
        "insert into collective by name select id as gpu_op,"
        " row_number() over (partition by process, stream order by start, id) - 1 as sequence,"
        f" case name {case} end as op from gpu_op where kind = 'kernel' and id >= {capture.first['gpu_op']}"
        f" and name in ({', '.join(str(id_) for id_, _ in whens)})"
    )


_BYTES, _GROUP, _RANKS = "Message size [bytes]", "NCCL communicator ID", "No. of ranks"
"""What NCCL writes beside the ranges of its own calls; not all of it in every version."""


def read_messages(capture: Capture) -> None:
    """Fill size, communicator and number of ranks of collectives, after NVTX.

    NCCL annotates its calls; the kernel belongs to the call that launched it. A group of calls launches its kernels
    when the group ends, so theirs remain unknown, as do those of a graph.
    """
    con, first = capture.con, capture.first["gpu_op"]
    if (
        not capture.source.has("NVTX_EVENTS")
        or not con.execute("select 1 from collective where gpu_op >= ? limit 1", [first]).fetchall()
    ):
        return

    def stated(field: str) -> str:
        return f"try(json_extract_string(json, '$.\"{field}\"'))"

    calls = f'select rid, start, "end", globalTid, {stated(_GROUP)} as communicator, {stated(_BYTES)} as bytes,'
    con.execute(
        f"create or replace temp table nsys_message as {calls} {stated(_RANKS)} as ranks from nsys_nvtx"
        f" where not sampled and kind = 'push_pop' and (json like '%{_BYTES}%' or json like '%{_RANKS}%')"
    )
    # A communicator has as many ranks as its creation says; older versions do not name it, then all must agree.
    con.execute(
        'update collective set bytes = found.bytes, "group" = found.communicator, ranks = found.ranks from ('
        "with created as (select globalTid >> 24 as key, communicator, max(try_cast(ranks as integer)) as ranks"
        " from nsys_message where ranks is not null group by all having count(distinct ranks) = 1)"
        " select any_value(o.id) as op, any_value(try_cast(m.bytes as bigint)) as bytes,"
        " any_value(m.communicator) as communicator, any_value(c.ranks) as ranks"
        " from collective k join gpu_op o on o.id = k.gpu_op join api_call a on a.id = o.api_call"
        f" join {thread_map(capture)} on t.thread = a.thread"
        ' asof join (from nsys_message where bytes is not null and "end" >= start'
        " qualify row_number() over (partition by globalTid, start order by rid desc) = 1) m"
        " on m.globalTid = t.tid and m.start <= a.start"
        " left join created c on c.key = m.globalTid >> 24 and c.communicator is not distinct from m.communicator"
        f' where o.id >= {first} and a."end" <= m."end" group by m.rid having count(*) = 1'
        ") found where found.op = collective.gpu_op"
    )
