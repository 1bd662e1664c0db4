"""The smaller tables of an Nsight Systems file: operating system calls, overhead, diagnostics, memory events."""

from __future__ import annotations

from gpudiag.ingest.nsys.api import SANE
from gpudiag.ingest.nsys.enums import case
from gpudiag.ingest.nsys.ids import (
    Capture,
    discover_processes,
    discover_threads,
    extent,
    intern,
    numbered,
    process_map,
    settle,
    strings,
    thread_map,
)
from gpudiag.ingest.nsys.lookup import relation
from gpudiag.ingest.nsys.owners import owned
from gpudiag.ingest.rows import append
from gpudiag.ingest.sources.base import ints, texts


def read_os_calls(capture: Capture) -> None:
    """Fill `os_call` for the processes that are known by now: others have nothing to do with the GPU."""
    known = ", ".join(map(str, capture.processes))
    if not known:
        return
    for raw in capture.source.batches("OSRT_API", ints("start", "end", "globalTid", "nameId")):
        batch = owned(capture.alone, capture.source, "OSRT_API", raw, "globalTid")
        valid = f"(from {batch} where {SANE} and globalTid >> 24 in ({known}))"
        groups = capture.con.execute(
            f"select globalTid, nameId, count(*), min(rid), max(rid) from {valid} group by all"
        ).fetchall()
        if not groups:
            continue
        discover_threads(capture, {group[0] for group in groups})
        text = strings(capture, {group[1] for group in groups})
        intern(capture, ((name, name) for name in text.values()))
        names = [(string, capture.names[name, name]) for string, name in text.items()]
        capture.con.execute(
            'insert into os_call by name select id, start, "end", t.thread, n.name'
            f" from {numbered(capture, 'os_call', valid, extent(group[2:] for group in groups))}"
            f" join {thread_map(capture)} on t.tid = globalTid"
            f" left join {relation(capture.con, 'n', 'string, name', names)} on n.string = nameId"
        )
        settle(capture, sum(group[2] for group in groups))


def read_overhead(capture: Capture) -> None:
    """Fill `overhead` from both places that versions keep it in."""
    for table in ("PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD"):
        for batch in capture.source.batches(table, ints("start", "end", "globalTid", "nameId")):
            rows = capture.con.execute(f"select distinct nameId from {batch}").fetchall()
            text = strings(capture, {id_ for (id_,) in rows})
            kinds = {id_: words.replace("'", "''") for id_, words in text.items()}
            capture.con.execute(
                f'insert into overhead by name select start, "end", t.thread, {case("nameId", kinds, "null")} as kind'
                f" from {batch} left join {thread_map(capture)} on t.tid = globalTid where {SANE}"
            )


def read_diagnostics(capture: Capture) -> None:
    """Fill `diagnostic` with warnings and errors, once each, of processes that matter or of the capture as a whole.

    A capture of a process tree warns once for every helper process that uses no CUDA.
    """
    first: dict[tuple[str, str], int | None] = {}
    columns = ints("timestamp", "severity", "globalPid") | texts("text")
    for time, number, process, text in capture.source.rows("DIAGNOSTIC_EVENT", columns):
        severity, key = capture.enums.severities.get(number), None if process is None else process >> 24
        whole = key is None or key < 0 or not key & 0xFFFFFF or not capture.processes
        if severity not in ("warning", "error") or text is None or not (whole or key in capture.processes):
            continue
        text = text.partition("\n")[0].removesuffix(": Source ID=")  # the profiler adds a dump of its own state
        times = [moment for moment in (first.get((severity, text)), time) if moment is not None]
        first[severity, text] = min(times, default=None)
    capture.warnings.extend(text for _, text in first)
    append(capture.con, "diagnostic", ("time", "severity", "text"), [(time, *what) for what, time in first.items()])


def read_memory_events(capture: Capture) -> None:
    """Fill `memory_event` from allocations and frees of device memory."""
    enums = capture.enums
    columns = ints("start", "globalPid", "deviceId", "bytes", "memKind", "memoryOperationType")
    table = "CUDA_GPU_MEMORY_USAGE_EVENTS"
    for raw in capture.source.batches(table, columns):
        batch = owned(capture.alone, capture.source, table, raw, "globalPid")
        keys = capture.con.execute(f"select distinct globalPid >> 24 from {batch} where start >= 0").fetchall()
        discover_processes(capture, {key for (key,) in keys if key is not None})
        devices = [(key, cuda, id_) for (key, cuda), id_ in capture.gpus.devices.items()]
        capture.con.execute(
            f"insert into memory_event by name select start as time, p.process, d.device,"
            f" {case('memoryOperationType', enums.memory_operations, 'null')} as op,"
            f" {case('memKind', enums.memory_kinds)} as kind, bytes from {batch}"
            f" join {process_map(capture)} on p.key = globalPid >> 24"
            f" left join {relation(capture.con, 'd', 'key, cuda, device', devices)}"
            " on d.key = globalPid >> 24 and d.cuda = coalesce(deviceId, 0) where start >= 0"
        )
