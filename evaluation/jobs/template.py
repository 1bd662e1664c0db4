"""The real ranks that generated ones are made of: their collectives, and their events on one time axis."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.corpus import ROOT
from evaluation.packed import recording

CAPTURES = [ROOT / "fixtures" / "captures" / "ddp_one_bucket" / f"slow.rank{rank}" for rank in (0, 1)]
"""Data-parallel training whose one message an iteration nothing hides: a rank's own work is all between messages."""

STEADY = 8
"""Iterations at the end of the recordings that are repeated to make longer ones."""

Floats = NDArray[np.float64]
TIMES = (("start", "end"), ("timestamp",))


@dataclass(frozen=True, slots=True)
class Template:
    """A real rank, lengthened. start, end: its collectives (ns); gap: the longest time before each of them in which
    its GPU had nothing to do, as two columns (ns).
    """

    file: Path
    start: Floats
    end: Floats
    gap: Floats


def templates(folder: Path, repeats: int) -> list[Template]:
    """The two real ranks with their steady iterations `repeats` times over, as files in a folder."""
    made = []
    for number, capture in enumerate(CAPTURES):
        file = folder / f"template{number}.sqlite"
        shutil.copyfile(recording(capture), file)
        with closing(sqlite3.connect(file)) as db:
            _lengthen(db, repeats)
            made.append(Template(file, *_collectives(db)))
    return made


def timed_tables(db: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """Tables of events, with their columns of times."""
    found: dict[str, tuple[str, ...]] = {}
    for (table,) in db.execute("select name from sqlite_master where type = 'table'").fetchall():
        columns = {row[1] for row in db.execute(f'pragma table_info("{table}")')}
        times = next((times for times in TIMES if set(times) <= columns), None)
        if times:
            found[table] = times
    return found


_NCCL = """
select k.start, k.end from CUPTI_ACTIVITY_KIND_KERNEL k join StringIds s on s.id = k.shortName
where s.value like 'nccl%' and k.end - k.start > ? order by k.start
"""
_ITERATIONS = """
select n.start from NVTX_EVENTS n left join StringIds s on s.id = n.textId
where coalesce(n.text, s.value) like 'iter%' order by n.start
"""
_GPU = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")


def _lengthen(db: sqlite3.Connection, repeats: int) -> None:
    """Write the last iterations several times over, one after another."""
    ends = [end for _, end in db.execute(_NCCL, [1_000_000])]
    # By the host, which runs ahead of the GPU: whole iterations as it begins them, and all that it launches in them.
    begun = [start for (start,) in db.execute(_ITERATIONS)]
    first, last = begun[-STEADY - 1], begun[-1]
    period = max(ends[-1] - ends[-STEADY - 1], last - first)
    step = 1 + max(
        row[0] or 0
        for table in (*_GPU, "CUPTI_ACTIVITY_KIND_RUNTIME")
        for row in db.execute(f'select max(correlationId) from "{table}"')
    )
    db.execute(
        "create temp table called as select correlationId as id, max(start) >= ? as later"
        " from CUPTI_ACTIVITY_KIND_RUNTIME"
        " group by correlationId having max(start) >= ?",
        [last, first],
    )
    tables = timed_tables(db)
    for table in tables.keys() | {"CUPTI_ACTIVITY_KIND_CUDA_EVENT"}:
        times = tables.get(table, ())
        columns = [row[1] for row in db.execute(f'pragma table_info("{table}")')]
        # What the GPU did belongs to the call that launched it, which may lie an iteration before.
        launched = "correlationId" in columns
        inside, later = (
            (
                "correlationId in (select id from called where not later)",
                "correlationId in (select id from called where later)",
            )
            if launched
            else (f'"{times[0]}" >= {first} and "{times[0]}" < {last}', f'"{times[0]}" >= {last}')
        )
        if times:
            moved = ", ".join(f'"{name}" = "{name}" + {period * (repeats - 1)}' for name in times)
            db.execute(f'update "{table}" set {moved} where {later}')
        chosen = ", ".join(f'"{name}"' for name in columns)
        rows = db.execute(f'select {chosen} from "{table}" where {inside}').fetchall()
        for copy in range(1, repeats):
            more = [period * copy if c in times else step * copy if c == "correlationId" else None for c in columns]
            db.executemany(
                f'insert into "{table}" values ({", ".join("?" * len(columns))})',
                [[v + m if m and v is not None else v for v, m in zip(row, more, strict=True)] for row in rows],
            )
    db.commit()
    db.execute("vacuum")


def _collectives(db: sqlite3.Connection) -> tuple[Floats, Floats, Floats]:
    rows = np.array(db.execute(_NCCL, [0]).fetchall(), dtype=float)
    busy = np.array(
        sorted(row for table in _GPU for row in db.execute(f'select start, end from "{table}"')), dtype=float
    )
    reach = np.maximum.accumulate(busy[:, 1])
    idle_from, idle_to = reach[:-1], busy[1:, 0]
    gaps = np.zeros((len(rows), 2))
    for number, (start, _) in enumerate(rows):
        since = rows[number - 1, 1] if number else busy[0, 0]
        inside = np.flatnonzero((idle_from >= since) & (idle_to <= start) & (idle_to > idle_from))
        if len(inside):
            longest = inside[np.argmax((idle_to - idle_from)[inside])]
            gaps[number] = idle_from[longest], idle_to[longest]
    return rows[:, 0], rows[:, 1], gaps
