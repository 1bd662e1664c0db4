"""Traces of torch.profiler: the events of Kineto's JSON into canonical tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from gpudiag.ingest import clock
from gpudiag.ingest.rows import append
from gpudiag.ingest.torch import (
    capabilities,
    document,
    gpu,
    host,
    memory,
    modules,
    python_stacks,
    refusals,
    staging,
)
from gpudiag.ingest.torch.trace import Trace, firsts
from gpudiag.tracing import stage

_TEMPORARY = (staging.EVENTS, *host.TEMPORARY, *gpu.TEMPORARY, *python_stacks.TEMPORARY, *memory.TEMPORARY)
_RANK = re.compile(r"(?:^|[^a-z])rank[ _.-]?(\d{1,6})(?!\d)", re.I)
_EPOCH_NS = 1_000_000_000_000_000_000
"""A moment in 2001: times that count from 1970 lie behind it, those of a computer's start before."""


def read(
    file: Path,
    con: duckdb.DuckDBPyConnection,
    workdir: Path,
    shown: Path,
    name: str,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Add one trace to the store; `say` hears the progress.

    Raises GpudiagError where it is damaged, or holds no CUDA work.
    """
    with stage("cut out events"):
        stated, parts = document.cut(file, workdir, shown, say)
    say(f"reading the events of {shown.name}")
    try:
        with stage("read events"):
            staging.load(con, parts, shown)
        refusals.refuse(con, stated, shown)
        con.execute("begin")
        try:
            _fill(con, stated, name, parts)
        except BaseException:
            con.execute("rollback")
            raise
        con.execute("commit")
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
        con.execute("".join(f"drop table if exists {table};" for table in _TEMPORARY))


def _fill(con: duckdb.DuckDBPyConnection, stated: Mapping[str, Any], name: str, parts: Sequence[Path]) -> None:
    origin, unusable, fractions = con.execute(
        f"""
        select min(start) filter ("end" is not null), count(*) filter (ph = 'X' and (start is null or "end" is null)),
               count(*) filter (start % 1000 <> 0 or "end" % 1000 <> 0)
        from {staging.EVENTS} where ph = 'X' and cat not in ('Trace', 'overhead')
        """
    ).fetchall()[0]
    trace = Trace(con, stated, firsts(con), origin or 0, not fractions, unusable)
    _input(trace, name)
    with stage("read CUDA calls"):
        host.read_process(trace, _rank(stated, name))
        host.read_calls(trace)
    with stage("read GPU operations"):
        gpu.read_devices(trace)
        gpu.read_operations(trace)
        gpu.read_collectives(trace)
        host.read_waits(trace)
    with stage("read annotations"):
        host.read_annotations(trace)
        modules.read_modules(trace)
        python_stacks.read_stacks(trace)
    host.read_overhead(trace)
    with stage("read memory"):
        memory.read_memory(trace, parts)
    if trace.dropped:
        text = f"{name}: {trace.dropped} events with impossible times"
        con.execute("insert into diagnostic values (null, 'left_out', ?)", [text])
    capabilities.write(trace)


def _input(trace: Trace, name: str) -> None:
    version = trace.stated.get("schemaVersion")
    row = (
        trace.input, "torch", "torch.profiler", None, str(version)[:40] if version is not None else None, name,
        clock.offset(trace.con, trace.input, _began(trace)),
    )  # fmt: skip
    columns = ("id", "kind", "producer", "producer_version", "schema_version", "file", "clock_offset_ns")
    append(trace.con, "input", columns, [row])


def _began(trace: Trace) -> int | None:
    """Return when the input's clock began, in ns since 1970. Versions without a base count from there."""
    base = trace.stated.get("baseTimeNanoseconds")
    began = trace.origin + (base if isinstance(base, int) else 0)
    return began if _EPOCH_NS < began < 1 << 62 else None


def _rank(stated: Mapping[str, Any], name: str) -> int | None:
    """Return the rank that the trace states, else the one in its name."""
    job = stated.get("distributedInfo")
    rank = job.get("rank") if isinstance(job, dict) else None
    if isinstance(rank, int) and 0 <= rank < 1 << 31:
        return rank
    named = _RANK.findall(Path(name).name)
    return int(named[-1]) if named else None
