"""What a loop is made of: its turns in each process, and where a turn ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

import duckdb

Connection = duckdb.DuckDBPyConnection
Settings = dict[str, float]


@dataclass(slots=True)
class Turns:
    """The turns of one loop in one process, before warm-up is cut; bounds in ns."""

    process: int
    thread: int
    bounds: list[tuple[int, int]]


@dataclass(slots=True)
class Found:
    """A loop and who ran it. `source` is nvtx, period or unknown."""

    name: str
    path: str | None
    source: str
    runs: list[Turns] = field(default_factory=list)


def turn_bounds(
    con: Connection, starts: list[int], ends: list[int], process: int, settings: Settings
) -> list[tuple[int, int]]:
    """Start to next start; at a long pause and after the last turn, to the end of the GPU work it queued (ns)."""
    steps = [b - a for a, b in pairwise(starts)]
    pause = settings["break_factor"] * (median(steps) if steps else 0)
    bounds: list[tuple[int, int]] = []
    for index, start in enumerate(starts):
        following = starts[index + 1] if index + 1 < len(starts) else None
        if following is not None and following - start <= pause:
            bounds.append((start, following))
            continue
        end = max(start, ends[min(index, len(ends) - 1)])
        end = max(end, drain(con, process, start, end))
        bounds.append((start, min(end, following) if following is not None else end))
    return bounds


def drain(con: Connection, process: int, start: int, end: int) -> int:
    """When the GPU finished what the host queued between start and end (ns)."""
    row = con.execute(
        'select max(o."end") from gpu_op o join api_call a on a.id = o.api_call'
        " where o.process = ? and a.start between ? and ?",
        [process, start, end],
    ).fetchone()
    return int(row[0]) if row and row[0] is not None else end


def kernel_work(con: Connection, process: int, bounds: list[tuple[int, int]] | None = None) -> tuple[float, int]:
    """Kernel and graph time (ns) and count of a process, or of the part of it within these turns."""
    within = " and start >= ? and start < ?" if bounds else ""
    row = con.execute(
        f"select sum(\"end\" - start), count(*) from gpu_op where process = ? and kind in ('kernel', 'graph'){within}",
        [process, *((bounds[0][0], bounds[-1][1]) if bounds else ())],
    ).fetchone()
    return (float(row[0] or 0), int(row[1])) if row else (0.0, 0)
