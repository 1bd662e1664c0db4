"""A complete reader in a hundred lines: what `ingest` asks of a folder of its own, shown on a format made up for it.

A file holds one process with one thread and one stream; a line (here they end at /) is one thing, times are in µs:

    toy-trace 1 / gpu Toy-GPU 40 / range 0 500 step / call 10 8 cudaLaunchKernel 1 / kernel 30 3 add 1
"""

from __future__ import annotations

from typing import Any

import duckdb

from gpudiag.errors import GpudiagError
from gpudiag.ingest.registry import InputFile, Reader

MAGIC = b"toy-trace 1\n"
CAPABILITIES = {
    "cuda_api": ("recorded", "the format always holds the calls"),
    "gpu_ops": ("recorded", "the format always holds the kernels"),
    "nvtx": ("recorded", "the format always holds the ranges"),
    "sync": ("not_recorded", "the format has no waits"),
    "os_calls": ("not_recorded", "the format has no system calls"),
    "memory": ("unknown", "the format does not say"),
}


def read(given: InputFile) -> None:
    """Add one file to the store. Raises GpudiagError with the line that cannot be read."""
    with given.file.open(encoding="utf-8", errors="replace") as lines:
        next(lines)
        parsed = [_parsed(given, number, line.split()) for number, line in enumerate(lines, 2) if line.strip()]
    con = given.con
    con.execute("begin")  # all of a file or nothing
    try:
        _fill(con, given.name, parsed)
    except BaseException:
        con.execute("rollback")
        raise
    con.execute("commit")


def _parsed(given: InputFile, number: int, words: list[str]) -> tuple[Any, ...]:
    try:
        match words:
            case ["gpu", name, sms]:
                return "gpu", name, int(sms)
            case ["range", start, length, name]:
                return "range", int(start) * 1000, int(length) * 1000, name, None
            case ["call" | "kernel" as what, start, length, name, correlation]:
                return what, int(start) * 1000, int(length) * 1000, name, int(correlation)
    except ValueError:
        pass
    raise GpudiagError(f"{given.shown}:{number}: this is no line of a toy trace; record it again.")


def _fill(con: duckdb.DuckDBPyConnection, file: str, parsed: list[tuple[Any, ...]]) -> None:
    """Canonical rows: dense ids that go on where other inputs ended, times in ns, texts that repeat in `name`."""
    tables = ("input", "device", "process", "thread", "stream", "name", "api_call", "gpu_op", "nvtx_range")
    first = {table: _next(con, table) for table in tables}
    own = {table: first[table] for table in tables[:5]}
    _insert(con, "input", id=own["input"], kind="toy", producer="Toy Profiler", file=file, clock_offset_ns=0)
    for capability, (state, how) in CAPABILITIES.items():
        _insert(con, "capability", input=own["input"], name=capability, state=state, how=how)
    _insert(con, "process", id=own["process"], input=own["input"], pid=1, name="toy")
    _insert(con, "thread", id=own["thread"], process=own["process"], tid=1, name="main")
    for _, name, sms in (one for one in parsed if one[0] == "gpu"):
        _insert(con, "device", id=own["device"], input=own["input"], ordinal=0, name=name, sm_count=sms)
    _insert(con, "stream", id=own["stream"], device=own["device"], process=own["process"], context=1, number=7)
    events = [one for one in parsed if one[0] != "gpu"]
    names = {name: id_ for id_, name in enumerate(dict.fromkeys(one[3] for one in events), first["name"])}
    for text, id_ in names.items():
        _insert(con, "name", id=id_, text=text, short=text)
    calls: dict[int, int] = {}
    where = {"process": own["process"]}
    for what, start, length, name, correlation in sorted(events, key=lambda one: one[0]):
        row = {"start": start, "end": start + length, "name": names[name], **where}
        table = {"call": "api_call", "kernel": "gpu_op", "range": "nvtx_range"}[what]
        id_, first[table] = first[table], first[table] + 1
        if what == "call":
            calls[correlation] = id_
            row |= {"thread": own["thread"], "correlation": correlation, "return_code": 0}
        elif what == "kernel":
            row |= {"device": own["device"], "stream": own["stream"], "kind": "kernel"}
            row |= {"correlation": correlation, "api_call": calls.get(correlation)}
        else:
            row |= {"thread": own["thread"], "kind": "push_pop", "depth": 0}
        _insert(con, table, id=id_, **row)


def _next(con: duckdb.DuckDBPyConnection, table: str) -> int:
    return int(con.execute(f'select coalesce(max(id) + 1, 0) from "{table}"').fetchall()[0][0])


def _insert(con: duckdb.DuckDBPyConnection, table: str, **row: Any) -> None:
    columns, places = ", ".join(f'"{name}"' for name in row), ", ".join("?" for _ in row)
    con.execute(f'insert into "{table}" ({columns}) values ({places})', list(row.values()))


READER = Reader("toy", lambda head: head.startswith(MAGIC), read)
