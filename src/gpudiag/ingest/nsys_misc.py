"""The smaller tables of an Nsight Systems file: operating system calls, overhead, diagnostics, memory events."""

from __future__ import annotations

from gpudiag.ingest.nsys_api import SANE
from gpudiag.ingest.nsys_enums import case
from gpudiag.ingest.nsys_ids import Capture, discover_streams, discover_text_names, discover_threads
from gpudiag.ingest.source import ints, texts


def read_os_calls(capture: Capture) -> None:
    """Fill `os_call` for the processes that are known by now: others have nothing to do with the GPU."""
    con = capture.con
    for batch in capture.source.batches("OSRT_API", ints("start", "end", "globalTid", "nameId")):
        valid = f"(from {batch} where {SANE} and globalTid >> 24 in (select key from nsys_process))"
        discover_threads(capture, valid)
        discover_text_names(capture, valid, "nameId")
        con.execute(
            "insert into os_call by name"
            f' select {capture.next_id("os_call")} - 1 + row_number() over (order by rid) as id, start, "end",'
            f" t.id as thread, n.id as name from {valid} join nsys_thread t on t.tid = globalTid"
            " left join nsys_text_name n on n.string = nameId"
        )


def read_overhead(capture: Capture) -> None:
    """Fill `overhead` from both places that versions keep it in."""
    for table in ("PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD"):
        for batch in capture.source.batches(table, ints("start", "end", "globalTid", "nameId")):
            capture.con.execute(
                'insert into overhead by name select start, "end", t.id as thread, s.text as kind'
                f" from {batch} left join nsys_thread t on t.tid = globalTid left join nsys_string s on s.id = nameId"
                f" where {SANE} order by {batch}.rid"
            )


def read_diagnostics(capture: Capture) -> None:
    """Fill `diagnostic` with warnings and errors, once each, of processes that matter or of the capture as a whole.

    A capture of a process tree warns once for every helper process that uses no CUDA.
    """
    severity = case("severity", capture.enums.severities, "null")
    columns = ints("timestamp", "severity", "globalPid") | texts("text")
    for batch in capture.source.batches("DIAGNOSTIC_EVENT", columns):
        capture.con.execute(
            "insert into diagnostic by name select min(timestamp) as time, severity, text"
            f" from (select timestamp, {severity} as severity, text, globalPid >> 24 as key from {batch})"
            " where severity in ('warning', 'error') and text is not null"
            " and (key is null or key < 0 or key & 16777215 = 0 or key in (select key from nsys_process)"
            " or not exists (from nsys_process)) group by all order by time, text"
        )


def read_memory_events(capture: Capture) -> None:
    """Fill `memory_event` from allocations and frees of device memory."""
    enums = capture.enums
    columns = ints("start", "globalPid", "deviceId", "contextId", "bytes", "memKind", "memoryOperationType")
    for batch in capture.source.batches("CUDA_GPU_MEMORY_USAGE_EVENTS", columns):
        valid = f"(select *, globalPid >> 24 as key, null::bigint as streamId from {batch} where start >= 0)"
        discover_streams(capture, valid)
        capture.con.execute(
            f"insert into memory_event by name select start as time, p.id as process, d.id as device,"
            f" {case('memoryOperationType', enums.memory_operations, 'null')} as op,"
            f" {case('memKind', enums.memory_kinds)} as kind, bytes from {valid} e"
            " join nsys_process p on p.key = e.key"
            " left join nsys_device d on d.key = e.key and d.cuda = coalesce(e.deviceId, 0) order by e.rid"
        )
