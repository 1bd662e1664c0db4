"""Tables and columns of an export, chosen at random."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from random import Random

EVENTS = (
    "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "NVTX_EVENTS", "OSRT_API", "CUDA_GPU_MEMORY_USAGE_EVENTS", "PROFILER_OVERHEAD",
    "DIAGNOSTIC_EVENT",
)  # fmt: skip

Con = sqlite3.Connection


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def tables(con: Con) -> list[str]:
    rows = con.execute(
        "select name from sqlite_master where type = 'table' and typeof(name) = 'text' and sql like 'create table%'"
    ).fetchall()
    return sorted(str(name) for (name,) in rows if not name.startswith("sqlite_"))


def columns(con: Con, table: str) -> list[str]:
    return [row[1] for row in con.execute(f"pragma table_info({quoted(table)})")]


def table_of(con: Con, random: Random) -> str:
    """A table, most often one of events, else one that others refer to."""
    names = tables(con)
    events = [name for name in EVENTS if name in names]
    return random.choice(events) if events and random.random() < 0.65 else random.choice(names or ["sqlite_master"])


def column_of(con: Con, table: str, random: Random, among: Iterable[str] = ()) -> str | None:
    names = columns(con, table)
    wanted = [name for name in names if name in among]
    return random.choice(wanted or names) if wanted or (names and not among) else None


def some(table: str, random: Random) -> str:
    """A condition: one row, some, half of them, all."""
    return random.choice(
        (
            f"rowid = (select min(rowid) + {random.randrange(40)} from {quoted(table)})",
            f"abs(rowid * 7919 + {random.randrange(99)}) % 10 = 0",
            f"abs(rowid * 7919 + {random.randrange(99)}) % 2 = 0",
            "true",
        )
    )
