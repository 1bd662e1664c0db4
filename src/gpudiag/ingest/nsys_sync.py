"""Waits, events and collectives of an Nsight Systems file; after API calls and GPU operations."""

from __future__ import annotations

from gpudiag.ingest.nsys_api import SANE
from gpudiag.ingest.nsys_ids import Capture, discover_streams
from gpudiag.ingest.source import ints

TEMPORARY = ("nsys_event_record", "nsys_event_wait")

_NO_STREAM = 4294967295
"""CUPTI's "no stream" and "no event"."""

# By name: syncType reads 2 for every stream wait in some versions while the file's own enumeration says otherwise.
_KIND = """case
 when name.text like '%StreamWaitEvent' then 'stream_wait_event'
 when name.text like '%EventSynchronize' then 'event'
 when name.text like '%StreamSynchronize' then 'stream'
 when name.text in ('cudaDeviceSynchronize', 'cudaThreadSynchronize', 'cuCtxSynchronize') then 'context'
 when name.text like '%Memcpy%' or name.text like '%Memset%' then 'stream'
 else 'unknown' end"""


def read_syncs(capture: Capture) -> int:
    """Fill `sync`; gives the number of rows dropped because their times make no sense."""
    con, dropped = capture.con, 0
    con.execute("create or replace temp table nsys_event_wait (key bigint, event bigint, stream integer, time bigint)")
    columns = ints("start", "end", "contextId", "streamId", "correlationId", "globalPid", "eventId")
    for batch in capture.source.batches("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", columns):
        rows = con.execute(f"select count(*), count(*) filter (where {SANE}) from {batch}").fetchall()
        dropped += rows[0][0] - rows[0][1]
        # deviceId reads 0 here whatever the context's device is: take it from the context's other streams.
        con.execute(
            'create or replace temp table nsys_sync as select rid, start, "end", contextId, correlationId, eventId,'
            f" nullif(streamId, {_NO_STREAM}) as streamId, globalPid >> 24 as key,"
            " (select min(cuda) from nsys_stream s where s.key = globalPid >> 24 and s.context = contextId) as deviceId"
            f" from {batch} where globalPid is not null and {SANE}"
        )
        discover_streams(capture, "nsys_sync")
        con.execute(
            "create or replace temp table nsys_sync_named as select y.*, p.id as process, s.id as stream,"
            " coalesce(n.outermost, c.id) as api_call, " + _KIND + " as kind"
            " from nsys_sync y join nsys_process p on p.key = y.key"
            " left join nsys_stream s on s.key = y.key and s.context is not distinct from y.contextId"
            " and s.number = y.streamId"
            " left join (select process, correlation, min(id) as id, arg_min(name, id) as name from api_call"
            f" where id >= {capture.first['api_call']} and correlation in (select correlationId from nsys_sync)"
            " group by all) c on c.process = p.id and c.correlation = y.correlationId"
            " left join nsys_nested n on n.id = c.id left join name on name.id = c.name"
        )
        con.execute(
            'insert into sync by name select api_call, start, "end", process,'
            " case when kind <> 'context' then stream end as stream, kind from nsys_sync_named order by rid"
        )
        con.execute(
            "insert into nsys_event_wait select key, eventId, stream, start from nsys_sync_named"
            f" where kind = 'stream_wait_event' and stream is not null and eventId <> {_NO_STREAM}"
        )
        con.execute("drop table nsys_sync; drop table nsys_sync_named")
    return dropped


def read_event_edges(capture: Capture) -> None:
    """Fill `event_edge` where both the record and the wait were traced."""
    con = capture.con
    con.execute(
        "create or replace temp table nsys_event_record (key bigint, event bigint, stream integer, time bigint)"
    )
    columns = ints("contextId", "streamId", "correlationId", "globalPid", "eventId")
    for batch in capture.source.batches("CUPTI_ACTIVITY_KIND_CUDA_EVENT", columns):
        con.execute(
            "insert into nsys_event_record select e.globalPid >> 24, eventId, s.id, min(c.start)"
            f" from {batch} e join nsys_stream_ids s on s.key = e.globalPid >> 24 and s.context = contextId"
            " and s.number = streamId"
            " join api_call c on c.process = s.process and c.correlation = correlationId"
            f" where c.id >= {capture.first['api_call']} group by all"
        )
    con.execute(
        "insert into event_edge by name with edges as ("
        "select r.stream as from_stream, w.stream as to_stream, w.time, r.time as recorded from nsys_event_wait w"
        " asof join nsys_event_record r on r.key = w.key and r.event = w.event and r.time <= w.time),"
        " enqueued as (select o.stream, o.id, c.start from gpu_op o join api_call c on c.id = o.api_call"
        f" where o.id >= {capture.first['gpu_op']} and o.stream in (select from_stream from edges))"
        " select q.id as from_op, from_stream, to_stream, time from edges"
        " asof left join enqueued q on q.stream = edges.from_stream and q.start <= edges.recorded"
        " where from_stream <> to_stream order by time, from_stream, to_stream"
    )


def read_collectives(capture: Capture) -> None:
    """Fill `collective` from NCCL's kernels: their names carry the operation; a communicator keeps to one stream."""
    capture.con.execute(
        "insert into collective by name select o.id as gpu_op,"
        " row_number() over (partition by o.process, o.stream order by o.start, o.id) - 1 as sequence,"
        " case when n.short like '%AllReduce%' then 'all_reduce' when n.short like '%AllGather%' then 'all_gather'"
        " when n.short like '%ReduceScatter%' then 'reduce_scatter' when n.short like '%Broadcast%' then 'broadcast'"
        " when n.short like '%SendRecv%' then 'send_recv' else 'other' end as op"
        " from gpu_op o"
        " join (select id, short from name where short similar to 'nccl(Dev)?Kernel_.*') n on n.id = o.name"
        f" where o.kind = 'kernel' and o.id >= {capture.first['gpu_op']} order by o.id"
    )
