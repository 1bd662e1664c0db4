"""GPUs and streams of an Nsight Systems file: which GPU a CUDA device number means, which stream is the null stream."""

from __future__ import annotations

import duckdb

from gpudiag.ingest.nsys_enums import Enums, case
from gpudiag.ingest.source import Source, ints, texts

TEMPORARY = (
    "nsys_gpu",
    "nsys_cuda_device",
    "nsys_device",
    "nsys_stream_info",
    "nsys_null_stream",
    "nsys_stream",
)

_MAPS = """
create or replace temp table nsys_gpu (gpu bigint, cuda bigint, name varchar, sm_count integer, clock_hz bigint,
  dram_bytes_per_s bigint, l2_bytes bigint, memory_bytes bigint, max_warps_per_sm integer, max_blocks_per_sm integer,
  registers_per_sm integer, shared_bytes_per_sm integer, copy_engines integer, cc_major integer, cc_minor integer);
create or replace temp table nsys_cuda_device (pid bigint, cuda bigint, gpu bigint);
create or replace temp table nsys_device (key bigint, cuda bigint, gpu bigint, id integer);
create or replace temp table nsys_stream_info (pid bigint, context bigint, number bigint, kind varchar,
  priority bigint);
create or replace temp table nsys_null_stream (pid bigint, context bigint, number bigint);
create or replace temp table nsys_stream (key bigint, context bigint, number bigint, cuda bigint, id integer);
create or replace temp view nsys_stream_ids as
  select n.key, n.context, n.number, n.id, s.device, s.process from nsys_stream n join stream s on s.id = n.id;
"""

# Exports since 2022. Clocks are Hz, bandwidth is bytes a second, sizes are bytes.
_GPU = """
select distinct id, cuDevice, name, try_cast(smCount as integer), nullif(clockRate, 0), nullif(memoryBandwidth, 0),
  nullif(l2CacheSize, 0), nullif(totalMemory, 0), try_cast(nullif(maxWarpsPerSm, 0) as integer),
  try_cast(nullif(maxBlocksPerSm, 0) as integer), try_cast(nullif(maxRegistersPerSm, 0) as integer),
  try_cast(nullif(maxShmemPerSm, 0) as integer), try_cast(asyncEngines as integer),
  try_cast(nullif(computeMajor, 0) as integer), try_cast(computeMinor as integer)
from {batch}
"""
# 2020 and 2021: clocks are kHz, bandwidth is kB a second, and 2020 wrote a cut-off bandwidth (0xF0000000) and MiB.
_CUDA_GPU = """
select distinct deviceId, deviceId, name, try_cast(numMultiprocessors as integer), nullif(coreClockRate, 0) * 1000,
  case when globalMemoryBandwidth between 1 and 4026531839 then globalMemoryBandwidth * 1000 end,
  nullif(l2CacheSize, 0),
  case when globalMemorySize < 16777216 then globalMemorySize * 1048576 else globalMemorySize end,
  try_cast(nullif(maxWarpsPerMultiprocessor, 0) as integer), try_cast(nullif(maxBlocksPerMultiprocessor, 0) as integer),
  try_cast(nullif(maxRegistersPerMultiprocessor, 0) as integer),
  try_cast(nullif(maxSharedMemoryPerMultiprocessor, 0) as integer), try_cast(numMemcpyEngines as integer),
  try_cast(nullif(computeCapabilityMajor, 0) as integer), try_cast(computeCapabilityMinor as integer)
from {batch}
"""
_GPU_COLUMNS = ints(
    "id", "cuDevice", "smCount", "clockRate", "memoryBandwidth", "l2CacheSize", "totalMemory", "maxWarpsPerSm",
    "maxBlocksPerSm", "maxRegistersPerSm", "maxShmemPerSm", "asyncEngines", "computeMajor", "computeMinor",
) | texts("name")  # fmt: skip
_CUDA_GPU_COLUMNS = ints(
    "deviceId", "globalMemoryBandwidth", "globalMemorySize", "l2CacheSize", "coreClockRate", "numMemcpyEngines",
    "numMultiprocessors", "maxWarpsPerMultiprocessor", "maxBlocksPerMultiprocessor", "computeCapabilityMajor",
    "computeCapabilityMinor", "maxSharedMemoryPerMultiprocessor", "maxRegistersPerMultiprocessor",
) | texts("name")  # fmt: skip


def prepare(con: duckdb.DuckDBPyConnection, source: Source, enums: Enums) -> None:
    """Read what the file says of GPUs, CUDA device numbers and streams."""
    con.execute(_MAPS)
    described = "smCount" in source.columns("TARGET_INFO_GPU")
    table, columns, query = (
        ("TARGET_INFO_GPU", _GPU_COLUMNS, _GPU) if described
        else ("TARGET_INFO_CUDA_GPU", _CUDA_GPU_COLUMNS, _CUDA_GPU)
    )  # fmt: skip
    for batch in source.batches(table, columns):
        con.execute("insert into nsys_gpu " + query.format(batch=batch))
    for batch in source.batches("TARGET_INFO_CUDA_DEVICE", ints("gpuId", "cudaId", "pid")):
        con.execute(f"insert into nsys_cuda_device select pid, cudaId, any_value(gpuId) from {batch} group by 1, 2")
    stream_columns = ints("streamId", "processId", "contextId", "priority", "flag")
    for batch in source.batches("TARGET_INFO_CUDA_STREAM", stream_columns):
        # Priorities are negative, but some versions write them as unsigned 32-bit numbers.
        con.execute(
            "insert into nsys_stream_info select processId, contextId, streamId,"
            f" {case('max(flag)', enums.stream_kinds)},"
            " max(case when priority > 2147483647 then priority - 4294967296 else priority end)"
            f" from {batch} group by 1, 2, 3"
        )
    for batch in source.batches("TARGET_INFO_CUDA_NULL_STREAM", ints("streamId", "processId", "contextId")):
        con.execute(f"insert into nsys_null_stream select distinct processId, contextId, streamId from {batch}")
    for batch in source.batches("TARGET_INFO_CUDA_CONTEXT_INFO", ints("nullStreamId", "processId", "contextId")):
        con.execute(f"insert into nsys_null_stream select distinct processId, contextId, nullStreamId from {batch}")


def discover_devices(con: duckdb.DuckDBPyConnection, input_: int, keys: str, first: int) -> None:
    """Add the GPUs that (process key, CUDA device number) pairs mean; one GPU may have a number in each process.

    `keys` is a query with columns key and cuda. A GPU that the file does not describe keeps its number alone.
    """
    con.execute(
        "create or replace temp table nsys_new as with k as"
        f" (select distinct key, coalesce(cuda, 0) as cuda from ({keys})),"
        " listed as (select cuda, min(gpu) as gpu from nsys_gpu group by cuda)"
        " select k.key, k.cuda, coalesce(seen.gpu, listed.gpu, -1 - k.cuda) as gpu from k"
        " left join nsys_cuda_device seen on seen.pid = (k.key & 16777215) and seen.cuda = k.cuda"
        " left join listed on listed.cuda = k.cuda"
        " where not exists (from nsys_device d where d.key = k.key and d.cuda = k.cuda)"
    )
    con.execute(
        "insert into device by name with new as (select gpu, min(cuda) as ordinal from nsys_new"
        " where gpu not in (select gpu from nsys_device) group by gpu),"
        f" numbered as (select *, ({first} - 1 + row_number() over (order by ordinal, gpu))::integer as id from new),"
        " described as (from nsys_gpu qualify row_number() over (partition by gpu order by cuda) = 1)"
        f" select id, {input_} as input, ordinal, described.* exclude (gpu, cuda)"
        " from numbered left join described using (gpu) order by id"
    )
    con.execute(
        "insert into nsys_device with known as (select gpu, min(id) as id from nsys_device group by gpu),"
        " new as (select gpu, ({first} - 1 + row_number() over (order by min(cuda), gpu))::integer as id from nsys_new"
        " where gpu not in (select gpu from nsys_device) group by gpu)"
        " select key, cuda, gpu, coalesce(known.id, new.id) from nsys_new"
        " left join known using (gpu) left join new using (gpu)".replace("{first}", str(first))
    )
    con.execute("drop table nsys_new")


def add_idle_devices(con: duckdb.DuckDBPyConnection, input_: int, first: int) -> None:
    """Add every GPU the file describes: for a file in which none of them did anything."""
    con.execute(
        f"insert into device by name select ({first} - 1 + row_number() over (order by cuda, gpu))::integer as id,"
        f" {input_} as input, coalesce(cuda, gpu)::integer as ordinal, nsys_gpu.* exclude (gpu, cuda) from nsys_gpu"
    )


def discover_streams(con: duckdb.DuckDBPyConnection, keys: str, first: int) -> None:
    """Add streams, one for each (process key, context, number) of a query that also gives its CUDA device.

    Stream 7 is CUPTI's number for the null stream of the first context; it counts only where the file names no null
    stream at all.
    """
    con.execute(
        "insert into nsys_stream with k as (select key, context, number, min(cuda) as cuda from"
        f" ({keys}) group by all)"
        f" select key, context, number, cuda, {first} - 1 + row_number() over (order by key, context, number) from k"
        " where not exists (from nsys_stream s where s.key = k.key and s.context is not distinct from k.context"
        " and s.number = k.number)"
    )
    con.execute(
        "insert into stream by name select s.id, d.id as device, p.id as process, s.context, s.number,"
        " case when n.number is not null then 'null'"
        " when i.kind is not null and i.kind <> 'unknown' then i.kind"
        " when s.number = 7 and s.context = 1 and i.kind is null and not exists (from nsys_null_stream) then 'null'"
        " else 'unknown' end as kind, i.priority"
        " from nsys_stream s join nsys_process p on p.key = s.key"
        " left join nsys_device d on d.key = s.key and d.cuda = coalesce(s.cuda, 0)"
        " left join nsys_null_stream n on n.pid = p.pid and n.context = s.context and n.number = s.number"
        " left join nsys_stream_info i on i.pid = p.pid and i.context = s.context and i.number = s.number"
        f" where s.id >= {first} order by s.id"
    )
