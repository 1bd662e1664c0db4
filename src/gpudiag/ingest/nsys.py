"""Nsight Systems exports: raw tables into canonical ones, the same way for SQLite files and Parquet folders."""

from __future__ import annotations

from pathlib import Path

import duckdb

from gpudiag.ingest import (
    nsys_api,
    nsys_capabilities,
    nsys_gpu_ops,
    nsys_gpus,
    nsys_ids,
    nsys_misc,
    nsys_nvtx,
    nsys_sync,
)
from gpudiag.ingest.nsys_enums import read_enums
from gpudiag.ingest.source import Source, texts
from gpudiag.errors import GpudiagError

_EVENT_TABLES = (
    nsys_api.TABLE, "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "NVTX_EVENTS", "OSRT_API", "PROFILER_OVERHEAD", "DIAGNOSTIC_EVENT",
    "META_DATA_CAPTURE", "TARGET_INFO_SESSION_START_TIME", "ANALYSIS_DETAILS", "COMPOSITE_EVENTS", "SCHED_EVENTS",
)  # fmt: skip
"""A finished export has at least one of these; the remains of a failed one have none."""

_IDENTIFIED = ("input", "process", "thread", "device", "stream", "api_call", "gpu_op", "nvtx_range")
_TEMPORARY = (*nsys_api.TEMPORARY, *nsys_sync.TEMPORARY, *nsys_nvtx.TEMPORARY, *nsys_ids.TEMPORARY)


def read(source: Source, con: duckdb.DuckDBPyConnection, file: str) -> None:
    """Add one export to the store.

    `file` is the name of the user's file, without its folder. Raises GpudiagError when the export holds no events at
    all. The process environment, command lines, host and user names that exports carry are never selected.
    """
    if not any(source.has(table) for table in _EVENT_TABLES):
        raise GpudiagError(
            f"{file}: this is what a failed export left behind, without events or metadata; export the report again"
            " with `nsys export --type=sqlite --include-json=true --force-overwrite=true REPORT.nsys-rep`."
        )
    first = {table: nsys_ids.next_id(con, table) for table in _IDENTIFIED}
    capture = nsys_ids.Capture(con, source, first["input"], read_enums(con, source), first)
    _input(capture, file)
    nsys_ids.prepare(capture)
    dropped = nsys_api.read_api_calls(capture)
    dropped += nsys_gpu_ops.read_gpu_ops(capture)
    dropped += nsys_sync.read_syncs(capture)
    nsys_sync.read_event_edges(capture)
    nsys_sync.read_collectives(capture)
    dropped += nsys_nvtx.read_nvtx(capture)
    nsys_misc.read_memory_events(capture)
    nsys_misc.read_os_calls(capture)
    nsys_misc.read_overhead(capture)
    nsys_misc.read_diagnostics(capture)
    if nsys_ids.next_id(con, "device") == first["device"]:
        nsys_gpus.add_idle_devices(con, capture.input, first["device"])
    if dropped:
        con.execute(
            "insert into diagnostic values (null, 'warning', ?)",
            [f"{dropped} rows of {file} were left out: their times are missing, negative or run backwards."],
        )
    nsys_capabilities.write(capture)
    con.execute("drop view if exists nsys_stream_ids;" + "".join(f"drop table if exists {t};" for t in _TEMPORARY))


_METADATA = {
    "EXPORT_PRODUCT_NAME": "producer",
    "EXPORT_PRODUCT_VERSION": "producer_version",
    "EXPORT_SCHEMA_VERSION": "schema_version",
}


def _input(capture: nsys_ids.Capture, file: str) -> None:
    stated: dict[str, str | None] = {"producer": "Nsight Systems"}
    for table in ("META_DATA_EXPORT", "EXPORT_META_DATA"):
        for batch in capture.source.batches(table, texts("name", "value")):
            wanted = ", ".join(f"'{name}'" for name in _METADATA)
            rows = capture.con.execute(f"select name, value from {batch} where name in ({wanted})").fetchall()
            stated |= {_METADATA[name]: value for name, value in rows if value}
    producer = (stated["producer"] or "").removeprefix("NVIDIA ")
    capture.con.execute(
        "insert into input by name select ? as id, 'nsys' as kind, ? as producer, ? as producer_version,"
        " ? as schema_version, ? as file, 0 as clock_offset_ns",
        [
            capture.input,
            producer,
            stated.get("producer_version"),
            stated.get("schema_version"),
            Path(file).name,
        ],
    )
