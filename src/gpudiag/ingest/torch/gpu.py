"""The GPU's side of a trace: devices, streams, operations and collectives."""

from __future__ import annotations

import re
from typing import Any

from gpudiag.ingest.limits import LARGEST_COPY
from gpudiag.ingest.numba import untagged
from gpudiag.ingest.rows import append
from gpudiag.ingest.torch.staging import EVENTS
from gpudiag.ingest.torch.trace import LONGEST, Trace, intern

TEMPORARY = ("torch_device", "torch_stream", "torch_kernel")

_WORK = "('kernel', 'gpu_memcpy', 'gpu_memset')"
_PLACE = (
    "coalesce(e.device, try_cast(e.pid as bigint), 0) as device, coalesce(e.context, 1) as context,"
    r" coalesce(try_cast(e.stream as bigint), try_cast(regexp_extract(e.tid, '(\d+)', 1) as bigint), 0) as number"
)
_KERNEL = "coalesce(nullif(e.name, ''), '(unnamed kernel)')"
_VALID = f"ph = 'X' and cat in {_WORK} and start is not null and \"end\" is not null"

# Property of a device in the file → column of `device`. No clock, no bandwidth, no cache is stated.
_PROPERTIES = {
    "name": "name",
    "numSms": "sm_count",
    "totalGlobalMem": "memory_bytes",
    "computeMajor": "cc_major",
    "computeMinor": "cc_minor",
    "regsPerMultiprocessor": "registers_per_sm",
    "sharedMemPerMultiprocessor": "shared_bytes_per_sm",
}
_LANES = 32


def read_devices(trace: Trace) -> None:
    """Fill `device` and `stream` with those that did something; `torch_device` and `torch_stream` map their numbers."""
    con = trace.con
    used = [
        number
        for (number,) in con.execute(
            f"select distinct device from (select {_PLACE} from {EVENTS} e where {_VALID}) order by 1"
        ).fetchall()
    ]
    listed = trace.stated.get("deviceProperties")
    described = {
        one["id"]: one
        for one in (listed if isinstance(listed, list) else ())
        if isinstance(one, dict) and isinstance(one.get("id"), int)
    }
    numbers = used or sorted(described)
    rows: list[tuple[Any, ...]] = []
    for id_, number in enumerate(numbers, trace.first["device"]):
        about = described.get(number, {})
        values = [_known(about.get(key), column) for key, column in _PROPERTIES.items()]
        threads = _known(about.get("maxThreadsPerMultiprocessor"), "threads")
        rows.append((id_, trace.input, number, *values, threads // _LANES if isinstance(threads, int) else None))
    append(con, "device", ("id", "input", "ordinal", *_PROPERTIES.values(), "max_warps_per_sm"), rows)
    con.execute("create or replace temp table torch_device (number bigint, id integer)")
    con.executemany("insert into torch_device values (?, ?)", [(row[2], row[0]) for row in rows] or [(None, None)])
    con.execute(
        f"""
        create or replace temp table torch_stream as
        select device, context, number,
               {trace.first["stream"]} - 1 + row_number() over (order by device, context, number) as stream
        from (select distinct {_PLACE} from {EVENTS} e where {_VALID})
        """
    )
    # CUPTI numbers the null stream of a process's first context 7.
    con.execute(
        f"""
        insert into stream by name
        select s.stream as id, d.id as device, {trace.process} as process, s.context, s.number,
               case when s.number = 7 and s.context = 1 then 'null' else 'unknown' end as kind, null as priority
        from torch_stream s join torch_device d on d.number = s.device
        """
    )


def _known(value: object, column: str) -> object:
    if column == "name":
        return value if isinstance(value, str) and value else None
    least = 0 if column == "cc_minor" else 1
    return value if isinstance(value, int) and least <= value < 1 << (63 if column == "memory_bytes" else 31) else None


_OPENED = re.compile(r"\(anonymous namespace\)")


def base_name(text: str) -> str:
    """Return a kernel's name without return type, namespaces, template arguments and parameters."""
    kept, depth = list[str](), 0
    for part in re.split(r"([<>()])", _OPENED.sub("", untagged(text))):
        if part == "(" and not depth and "".join(kept).strip():
            break
        if part == "<":
            depth += 1
        elif part == ">":
            depth = max(0, depth - 1)
        elif not depth:
            kept.append(part)
    name = "".join(kept).strip().rpartition("::")[2].split(" ")[-1].strip("():{}, ")
    return name or text


def read_operations(trace: Trace) -> None:
    """Fill `gpu_op`, after calls. What a graph's launch started is numbered where the file does not state its nodes."""
    con, first = trace.con, trace.first["gpu_op"]
    rows = con.execute(f"select distinct {_KERNEL} from {EVENTS} e where {_VALID} and cat = 'kernel'").fetchall()
    known = [(text[:LONGEST], base_name(text)[:LONGEST]) for (text,) in rows]
    intern(con, known)
    con.execute("create or replace temp table torch_kernel (text varchar, short varchar)")
    if known:
        con.execute(
            "insert into torch_kernel select unnest(?::varchar[]), unnest(?::varchar[])",
            [[text for text, _ in known], [short for _, short in known]],
        )
    sides = ", ".join(
        f"try_cast(e.{what}_size[{number}] as integer) as {what}_{side}"
        for what in ("grid", "block") for number, side in enumerate("xyz", 1)
    )  # fmt: skip
    con.execute(
        f"""
        insert into gpu_op by name
        with placed as (
            select e.* exclude (device, context), {_PLACE},
                   try_cast(e.grid as bigint[]) as grid_size, try_cast(e.block as bigint[]) as block_size
            from {EVENTS} e where {_VALID}
        ), named as (
            select k.text, n.id from torch_kernel k join name n on n.text = k.text and n.short = k.short
        )
        select {first} - 1 + row_number() over (order by e.start, e."end", e.device, e.number, e.correlation) as id,
               e.start - {trace.origin} as start, e."end" - {trace.origin} as "end", d.id as device,
               {trace.process} as process, s.stream,
               case cat when 'gpu_memcpy' then 'memcpy' when 'gpu_memset' then 'memset' else 'kernel' end as kind,
               n.id as name, c.id as api_call, e.correlation,
               case when e.bytes between 0 and {LARGEST_COPY} then e.bytes end as bytes,
               {_COPY}, {sides},
               case when len(grid_size) = 3 and {_LAUNCHED}
                    then try(grid_size[1] * grid_size[2] * grid_size[3]) end as grid,
               case when len(block_size) = 3 and try(block_size[1] * block_size[2] * block_size[3]) <= 1024
                    then (block_size[1] * block_size[2] * block_size[3])::integer end as block,
               try_cast(e.registers as integer) as registers, try_cast(e.shared as integer) as dynamic_shared,
               coalesce(try_cast(nullif(e.graph_node, '0') as bigint), case when c.launches_graph
                   then row_number() over (partition by c.id order by e.start, e."end", e.number) end) as graph_node
        from placed e join torch_device d on d.number = e.device
        join torch_stream s on s.device = e.device and s.context = e.context and s.number = e.number
        left join named n on e.cat = 'kernel' and n.text = left({_KERNEL}, {LONGEST})
        left join torch_call c on c.correlation = e.correlation and e.correlation > 0
        """
    )
    ((trace.found["gpu_op"],),) = con.execute(f"select count(*) from gpu_op where id >= {first}").fetchall()


# The largest that CUDA launches; a damaged file may say more.
_LAUNCHED = "grid_size[1] < 2147483648 and grid_size[2] < 65536 and grid_size[3] < 65536"

# "Memcpy HtoD (Pageable -> Device)", "Memset (Device)"
_COPY = r"""
case when cat = 'gpu_memcpy' then case regexp_extract(e.name, '([HDAP])to([HDAP])', 0)
    when 'HtoD' then 'host_to_device' when 'HtoA' then 'host_to_device' when 'DtoH' then 'device_to_host'
    when 'AtoH' then 'device_to_host' when 'DtoD' then 'device_to_device' when 'AtoA' then 'device_to_device'
    when 'AtoD' then 'device_to_device' when 'DtoA' then 'device_to_device' when 'HtoH' then 'host_to_host'
    when 'PtoP' then 'peer_to_peer' else 'unknown' end end as copy_kind,
case when cat = 'gpu_memcpy' then coalesce(try_cast(lower(regexp_extract(e.name, '\((\w+) *->', 1)) as $), 'unknown')
    end as src_kind,
case when cat = 'gpu_memcpy' then coalesce(try_cast(lower(regexp_extract(e.name, '-> *(\w+)\)', 1)) as $), 'unknown')
    when cat = 'gpu_memset' then coalesce(try_cast(lower(regexp_extract(e.name, '\((\w+)\)', 1)) as $), 'unknown')
    end as dst_kind""".replace("$", "enum('pageable', 'pinned', 'device', 'managed', 'array', 'unknown')")

_COLLECTIVES = {
    "AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter", "Broadcast": "broadcast",
    "SendRecv": "send_recv",
}  # fmt: skip
_ELEMENT_BYTES = {
    "byte": 1, "char": 1, "bool": 1, "int8": 1, "uint8": 1, "float8": 1, "short": 2, "half": 2, "bfloat16": 2,
    "int": 4, "float": 4, "long": 8, "double": 8, "complexfloat": 8, "complexdouble": 16,
}  # fmt: skip


def read_collectives(trace: Trace) -> None:
    """Fill `collective` from NCCL's kernels: the operation is in their name, the rest is what PyTorch states of it."""
    ops = " ".join(f"when contains(n.short, '{part}') then '{op}'" for part, op in _COLLECTIVES.items())
    sizes = " ".join(f"when '{name}' then {size}" for name, size in _ELEMENT_BYTES.items())
    trace.con.execute(
        f"""
        insert into collective by name
        with stated as (
            select correlation, any_value(group_name) as "group", any_value(try_cast(group_size as integer)) as ranks,
                   any_value(try_cast(elements_in as bigint)) as elements_in,
                   any_value(try_cast(elements_out as bigint)) as elements_out,
                   any_value(case lower(dtype) {sizes} end) as size
            from {EVENTS} where ph = 'X' and cat = 'kernel' and collective is not null and correlation > 0
            group by correlation having count(*) = 1
        ), found as (
            select o.id, o.stream, o.start, o.correlation, case {ops} else 'other' end as op
            from gpu_op o join name n on n.id = o.name
            where o.id >= {trace.first["gpu_op"]} and o.kind = 'kernel'
              and regexp_matches(n.short, '^nccl(Dev)?Kernel_')
        )
        select f.id as gpu_op, row_number() over (partition by f.stream order by f.start, f.id) - 1 as sequence,
               s."group", f.op, s.ranks,
               s.size * case f.op when 'reduce_scatter' then s.elements_out else s.elements_in end as bytes
        from found f left join stated s using (correlation)
        """
    )
