"""Nsight Systems exports: raw tables into canonical ones, the same way for SQLite files and Parquet folders."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb

from gpudiag.errors import GpudiagError
from gpudiag.ingest import clock
from gpudiag.ingest.nsys import api, capabilities, devices, gpu_ops, ids, lookup, nvtx, other_events, sync
from gpudiag.ingest.nsys.enums import read_enums
from gpudiag.ingest.rows import append
from gpudiag.ingest.sources.base import Source, ints, texts
from gpudiag.tracing import stage

_EVENT_TABLES = (
    api.TABLE, "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "NVTX_EVENTS", "OSRT_API", "PROFILER_OVERHEAD", "DIAGNOSTIC_EVENT",
    "META_DATA_CAPTURE", "TARGET_INFO_SESSION_START_TIME", "ANALYSIS_DETAILS", "COMPOSITE_EVENTS", "SCHED_EVENTS",
)  # fmt: skip
"""A finished export has at least one of these; the remains of a failed one have none."""


TABLES = (
    *(table for table in _EVENT_TABLES if table.startswith(("CUPTI", "NVTX", "OSRT"))), *sync.TABLES, "StringIds",
)  # fmt: skip
"""Tables of which all rows are read, the large ones among them."""

_TEMPORARY = (*api.TEMPORARY, *sync.TEMPORARY, *nvtx.TEMPORARY)


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
    # One transaction: thousands of small statements would each be written through to the disk.
    con.execute("begin")
    try:
        _read(ids.start(con, source, read_enums(source)), file)
    except ids.Beyond as reason:
        con.execute("rollback")
        raise GpudiagError(f"{file}: {reason}") from None
    except BaseException:
        con.execute("rollback")
        raise
    con.execute("commit")


def _read(capture: ids.Capture, file: str) -> None:
    con = capture.con
    _input(capture, file)
    with stage("read CUDA calls"):
        api.read_api_calls(capture)
    with stage("read GPU operations"):
        gpu_ops.read_gpu_ops(capture)
    sync.read_syncs(capture)
    sync.read_event_edges(capture)
    sync.read_collectives(capture)
    with stage("read annotations"):
        nvtx.read_nvtx(capture)
    sync.read_messages(capture)
    other_events.read_memory_events(capture)
    other_events.read_os_calls(capture)
    other_events.read_overhead(capture)
    other_events.read_diagnostics(capture)
    if not capture.found("device"):
        capture.add("device", devices.idle_devices(capture.gpus, capture.input, capture.next["device"]))
    if capture.dropped:
        lost = f"{file}: {capture.dropped} rows without a process, or with impossible times"
        con.execute("insert into diagnostic values (null, 'left_out', ?)", [lost])
    ids.save(capture)
    _name_rank(capture, file)
    capabilities.write(capture)
    con.execute("".join(f"drop table if exists {table};" for table in _TEMPORARY))
    lookup.drop(con)


_METADATA = {
    "EXPORT_PRODUCT_NAME": "producer",
    "EXPORT_PRODUCT_VERSION": "producer_version",
    "EXPORT_SCHEMA_VERSION": "schema_version",
}


def _input(capture: ids.Capture, file: str) -> None:
    stated: dict[str, str | None] = {"producer": "Nsight Systems"}
    wanted = "name in (" + ", ".join(f"'{name}'" for name in _METADATA) + ")"
    for table in ("META_DATA_EXPORT", "EXPORT_META_DATA"):
        rows = capture.source.rows(table, texts("name", "value"), wanted)
        stated |= {_METADATA[name]: value for name, value in rows if value}
    producer = (stated["producer"] or "").removeprefix("NVIDIA ")
    append(
        capture.con,
        "input",
        ("id", "kind", "producer", "producer_version", "schema_version", "file", "clock_offset_ns", "host"),
        [
            (
                capture.input,
                "nsys",
                producer,
                stated.get("producer_version"),
                stated.get("schema_version"),
                Path(file).name,
                _clock_offset(capture),
                _host(capture),
            )
        ],
    )


def _host(capture: ids.Capture) -> str | None:
    """Return the machine's name, where the file states one; the environment in the same table stays unread."""
    rows = capture.source.rows("TARGET_INFO_SYSTEM_ENV", texts("name", "value"), "name = 'Hostname'")
    return next((value for _, value in rows if value), None)


def _clock_offset(capture: ids.Capture) -> int | None:
    """Return what to add to this input's times to get the first input's clock; None when a start time is unknown."""
    rows = capture.source.rows("TARGET_INFO_SESSION_START_TIME", ints("utcEpochNs"))
    began = next((value for (value,) in rows if value is not None), None)
    return clock.offset(capture.con, capture.input, began)


_RANK = re.compile(r"(?:^|[^a-z])rank[ _.-]?(\d{1,6})(?!\d)", re.I)


def _name_rank(capture: ids.Capture, file: str) -> None:
    """The rank a file name states (`report.rank1.nsys-rep`), for the one process of the file that used the GPU."""
    stated = _RANK.findall(Path(file).name)
    if stated:
        capture.con.execute(
            "update process set rank = ? where input = ? and id in (select process from gpu_op) and (select"
            " count(distinct process) from gpu_op where id >= ?) = 1",
            [int(stated[-1]), capture.input, capture.first["gpu_op"]],
        )
