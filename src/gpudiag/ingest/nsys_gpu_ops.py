"""What ran on the GPU in an Nsight Systems file: kernels, copies, sets and graphs traced as one block."""

from __future__ import annotations

from dataclasses import dataclass

from gpudiag.ingest.nsys_api import SANE
from gpudiag.ingest.nsys_enums import case
from gpudiag.ingest.nsys_ids import Capture, discover_kernel_names, discover_streams, numbered
from gpudiag.ingest.source import Columns, ints

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
        f"bytes, {case('copyKind', capture.enums.copy_kinds)} as copy_kind,"
        f" {case('srcKind', memory)} as src_kind, {case('dstKind', memory)} as dst_kind, graphNodeId as graph_node"
    )
    return (
        _Activity("kernel", "CUPTI_ACTIVITY_KIND_KERNEL", kernel, _KERNEL),
        _Activity("memcpy", "CUPTI_ACTIVITY_KIND_MEMCPY",
                  ints("bytes", "copyKind", "srcKind", "dstKind", "graphNodeId"), copies),
        _Activity("memset", "CUPTI_ACTIVITY_KIND_MEMSET", ints("bytes", "memKind", "graphNodeId"),
                  f"bytes, {case('memKind', memory)} as dst_kind, graphNodeId as graph_node"),
        _Activity("graph", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", ints("graphId", "graphExecId"),
                  "coalesce(graphExecId, graphId) as graph"),
    )  # fmt: skip


_KERNEL = """k.id as name,
 try(gridX * gridY * gridZ) as grid, try_cast(try(blockX * blockY * blockZ) as integer) as block,
 try_cast(gridX as integer) as grid_x, try_cast(gridY as integer) as grid_y, try_cast(gridZ as integer) as grid_z,
 try_cast(blockX as integer) as block_x, try_cast(blockY as integer) as block_y, try_cast(blockZ as integer) as block_z,
 try_cast(registersPerThread as integer) as registers, try_cast(staticSharedMemory as integer) as static_shared,
 try_cast(dynamicSharedMemory as integer) as dynamic_shared,
 try_cast(localMemoryPerThread as integer) as local_per_thread, graphNodeId as graph_node"""


def read_gpu_ops(capture: Capture) -> int:
    """Fill `gpu_op`; gives the number of rows dropped because their times make no sense."""
    return sum(_read(capture, activity) for activity in _activities(capture))


def _read(capture: Capture, activity: _Activity) -> int:
    con, dropped = capture.con, 0
    for batch in capture.source.batches(activity.table, _COMMON | activity.columns):
        sane = f"{SANE} and globalPid is not null"
        valid = (
            f"(select * replace (coalesce(streamId, 0) as streamId), globalPid >> 24 as key from {batch} where {sane})"
        )
        rows = con.execute(f"select count(*), count(*) filter (where {sane}) from {batch}").fetchall()
        dropped += rows[0][0] - rows[0][1]
        discover_streams(capture, valid)
        join = ""
        if activity.kind == "kernel":
            discover_kernel_names(capture, valid)
            join = (
                " left join nsys_kernel_name k on k.string is not distinct from demangledName"
                " and k.short is not distinct from shortName"
            )
        con.execute(
            f'insert into gpu_op by name select n.id, start, "end", s.device, s.process, s.id as stream,'
            f" '{activity.kind}' as kind, c.api_call, correlationId as correlation, {activity.select}"
            f" from {numbered(capture, 'gpu_op', valid)} n"
            f" join nsys_stream_ids s on s.key = n.key and s.context is not distinct from contextId"
            f" and s.number = streamId{join}"
            f" left join {_calls(capture, valid)} c on c.process = s.process and c.correlation = correlationId"
        )
    return dropped


def _calls(capture: Capture, batch: str) -> str:
    """The outermost calls that the correlations of a batch can mean; 0 is no correlation.

    Only the batch's range of correlations, so that a hash table over all calls is not built for every batch.
    """
    ((low, high),) = capture.con.execute(f"select min(correlationId), max(correlationId) from {batch}").fetchall()
    nested = capture.con.execute("select 1 from nsys_nested limit 1").fetchall()
    call, join = ("coalesce(outermost, a.id)", "left join nsys_nested using (id)") if nested else ("a.id", "")
    return (
        f"(select process, correlation, min({call}) as api_call from api_call a {join}"
        f" where a.id >= {capture.first['api_call']} and correlation <> 0"
        f" and correlation between {low or 0} and {high or 0} group by all)"
    )
