"""GPU operations of an Nsight Systems file: kernels, copies, sets and graphs traced as one block."""

from __future__ import annotations

from dataclasses import dataclass

from gpudiag.ingest.limits import LARGEST_COPY
from gpudiag.ingest.nsys.api import SANE
from gpudiag.ingest.nsys.devices import StreamKey
from gpudiag.ingest.nsys.enums import case
from gpudiag.ingest.nsys.ids import (
    Capture,
    discover_kernel_names,
    discover_streams,
    extent,
    numbered,
    settle,
    stream_map,
)
from gpudiag.ingest.nsys.lookup import relation
from gpudiag.ingest.nsys.owners import owned
from gpudiag.ingest.sources.base import Columns, ints

_COMMON = ints("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid")


@dataclass(frozen=True)
class _Activity:
    """One raw table and the columns of gpu_op that it alone fills, as SQL."""

    kind: str
    table: str
    columns: Columns
    select: str


def _activities(capture: Capture) -> tuple[_Activity, ...]:
    memory = capture.enums.memory_kinds
    sizes = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
    kernel = ints("demangledName", "shortName", *sizes, "registersPerThread", "staticSharedMemory",
                  "dynamicSharedMemory", "localMemoryPerThread", "graphNodeId")  # fmt: skip
    copies = (
        f"{_BYTES}, {case('copyKind', capture.enums.copy_kinds)} as copy_kind,"
        f" {case('srcKind', memory)} as src_kind, {case('dstKind', memory)} as dst_kind, graphNodeId as graph_node"
    )
    return (
        _Activity("kernel", "CUPTI_ACTIVITY_KIND_KERNEL", kernel, _KERNEL),
        _Activity("memcpy", "CUPTI_ACTIVITY_KIND_MEMCPY",
                  ints("bytes", "copyKind", "srcKind", "dstKind", "graphNodeId"), copies),
        _Activity("memset", "CUPTI_ACTIVITY_KIND_MEMSET", ints("bytes", "memKind", "graphNodeId"),
                  f"{_BYTES}, {case('memKind', memory)} as dst_kind, graphNodeId as graph_node"),
        _Activity("graph", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", ints("graphId", "graphExecId"),
                  "coalesce(graphExecId, graphId) as graph"),
    )  # fmt: skip


_BYTES = f"case when bytes between 0 and {LARGEST_COPY} then bytes end as bytes"

# The largest that CUDA launches; a damaged file may say more.
_KERNEL = """k.id as name,
 case when gridX < 2147483648 and gridY < 65536 and gridZ < 65536 then try(gridX * gridY * gridZ) end as grid,
 try_cast(try(if(blockX * blockY * blockZ <= 1024, blockX * blockY * blockZ, null)) as integer) as block,
 try_cast(gridX as integer) as grid_x, try_cast(gridY as integer) as grid_y, try_cast(gridZ as integer) as grid_z,
 try_cast(blockX as integer) as block_x, try_cast(blockY as integer) as block_y, try_cast(blockZ as integer) as block_z,
 try_cast(registersPerThread as integer) as registers, try_cast(staticSharedMemory as integer) as static_shared,
 try_cast(dynamicSharedMemory as integer) as dynamic_shared,
 try_cast(localMemoryPerThread as integer) as local_per_thread, graphNodeId as graph_node"""


def read_gpu_ops(capture: Capture) -> None:
    """Fill `gpu_op`."""
    for activity in _activities(capture):
        for batch in capture.source.batches(activity.table, _COMMON | activity.columns):
            _read(capture, activity, owned(capture.alone, capture.source, activity.table, batch, "globalPid"))


def _read(capture: Capture, activity: _Activity, batch: str) -> None:
    sane, kernel = f"{SANE} and globalPid is not null", activity.kind == "kernel"
    names = "demangledName, shortName" if kernel else "null, null"
    node = "coalesce(bool_or(graphNodeId <> 0), false)" if "graphNodeId" in activity.columns else "false"
    groups = capture.con.execute(
        f"select coalesce({sane}, false), globalPid >> 24, contextId, coalesce(streamId, 0), {names}, min(deviceId),"
        f" min(correlationId), max(correlationId), {node}, count(*), min(rid), max(rid) from {batch}"
        " group by 1, 2, 3, 4" + (", 5, 6" if kernel else "")
    ).fetchall()
    valid = [group for group in groups if group[0]]
    capture.dropped += sum(group[-3] for group in groups if not group[0])
    if not valid:
        return
    streams: dict[StreamKey, int | None] = {}
    for _, key, context, number, _, _, cuda, *_ in valid:
        seen = streams.get((key, context, number))
        streams[key, context, number] = cuda if seen is None or (cuda is not None and cuda < seen) else seen
    discover_streams(capture, streams)
    join = ""
    if kernel:
        discover_kernel_names(capture, {(group[4], group[5]) for group in valid})
        known = [(*key, id_) for key, (id_, _) in capture.kernel_names.items()]
        join = (
            f" left join {relation(capture.con, 'k', 'string, short, id', known)}"
            " on k.string is not distinct from demangledName and k.short is not distinct from shortName"
        )
    capture.graph_nodes |= any(group[9] for group in valid)
    rows = extent(group[-3:] for group in valid)
    first = capture.next["gpu_op"]
    source = numbered(capture, "gpu_op", batch if len(valid) == len(groups) else f"(from {batch} where {sane})", rows)
    statement = (
        f'insert into gpu_op by name select n.id, start, "end", s.device, s.process, s.stream,'
        f" '{activity.kind}' as kind, c.api_call, correlationId as correlation, {activity.select}"
        f" from {source} n join {stream_map(capture)} on s.key = globalPid >> 24"
        f" and s.context is not distinct from contextId and s.number = coalesce(streamId, 0){join}"
        " left join {calls} c on c.process = s.process and c.correlation = correlationId"
        f" limit {rows[0] + 1}"  # a correlation that a million calls and kernels share would match them all
    )
    low = min((group[7] for group in valid if group[7] is not None), default=0)
    high = max((group[8] for group in valid if group[8] is not None), default=0)
    ((inserted,),) = capture.con.execute(statement.format(calls=_calls(capture, low, high))).fetchall()
    if inserted > rows[0]:
        capture.ambiguous = True
        capture.con.execute(f"delete from gpu_op where id >= {first}")
        capture.con.execute(statement.format(calls=_calls(capture, low, high)))
    settle(capture, rows[0])


def _calls(capture: Capture, low: int, high: int) -> str:
    """The outermost calls that correlations of a range can mean; 0 is no correlation.

    Grouping millions of calls costs more than the join: as long as no correlation was met twice, it is not done.
    """
    call, join = ("coalesce(outermost, a.id)", "left join nsys_nested using (id)") if capture.nested else ("a.id", "")
    value, group = (f"min({call})", " group by all") if capture.ambiguous else (call, "")
    return (
        f"(select process, correlation, {value} as api_call from api_call a {join}"
        f" where a.id >= {capture.first['api_call']} and correlation <> 0"
        f" and correlation between {low} and {high}{group})"
    )
