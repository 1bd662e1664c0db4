"""Make a large nsys export out of a small real one:  python -m benchmarks.enlarge CAPTURE OUT --rows 8000000

The middle of the busiest process (whole iterations of its commonest NVTX range, where it has one) is repeated, each
time later and with fresh correlation ids, until the traced-event tables hold the rows asked for. What came after it
moves back, what encloses it grows, everything else is left as it was: the result is an export that every tool reads.
Python samples are not repeated, because their text would be most of the file.
"""

from __future__ import annotations

import argparse
import gzip
import lzma
import shutil
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
WORK = tuple(f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET", "SYNCHRONIZATION"))
RANGES = "NVTX_EVENTS"
WARM_UP = 0.25  # this part of the calls is taken for start-up and left alone, at the end half as much


@dataclass(frozen=True)
class Cut:
    """The part to repeat: a time interval of one process."""

    start: int
    end: int
    process: int


def unpack(capture: Path, out: Path) -> None:
    """Copy the capture to `out`, decompressed."""
    openers: dict[str, Callable[..., BinaryIO]] = {".xz": lzma.open, ".gz": gzip.open}  # type: ignore[dict-item]
    with openers.get(capture.suffix, open)(capture, "rb") as source, out.open("wb") as target:
        shutil.copyfileobj(source, target)


def columns(con: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in con.execute(f'pragma table_info("{table}")')]


def find_cut(con: sqlite3.Connection) -> Cut:
    """Return where to cut: at iteration boundaries of the commonest NVTX range, else anywhere in the calls' middle."""
    process, calls = con.execute(
        f"select globalTid >> 24, count(*) from {CALLS} group by 1 order by 2 desc limit 1"
    ).fetchone()
    if calls < 100:
        raise SystemExit("enlarge: the capture has fewer than 100 CUDA calls; choose a longer one.")
    starts = [
        row[0] for row in con.execute(f"select start from {CALLS} where globalTid >> 24 = ? order by start", (process,))
    ]
    low, high = starts[int(calls * WARM_UP)], starts[int(calls * (1 - WARM_UP / 2)) - 1]
    iterations = iteration_starts(con, process, low, high)
    return Cut(iterations[0], iterations[-1], process) if len(iterations) > 2 else Cut(low, high, process)


def iteration_starts(con: sqlite3.Connection, process: int, low: int, high: int) -> list[int]:
    """Return when the commonest push/pop range began each time, within the interval; ranges differ by number only."""
    if "textId" not in columns(con, RANGES):
        return []
    con.create_function("unnumbered", 1, lambda text: "".join(c for c in text or "" if not c.isdigit()))
    label = "unnumbered(coalesce(n.text, (select value from StringIds where id = n.textId)))"
    inside = f'{RANGES} n where n.globalTid >> 24 = ? and n."end" is not null and n.start between ? and ?'
    commonest = con.execute(
        f"select {label}, n.globalTid, count(*) from {inside} group by 1, 2 order by 3 desc, min(n.start) limit 1",
        (process, low, high),
    ).fetchone()
    if commonest is None:
        return []
    rows = con.execute(
        f"select n.start from {inside} and {label} = ? and n.globalTid = ? order by 1",
        (process, low, high, *commonest[:2]),
    )
    return [row[0] for row in rows]


def select_part(con: sqlite3.Connection, cut: Cut) -> dict[str, int]:
    """Note the rows to repeat in temporary tables `part_TABLE`; how many each has."""
    conditions = {CALLS: f"start >= {cut.start} and start < {cut.end} and globalTid >> 24 = {cut.process}"}
    for table in WORK:
        here = columns(con, table)
        if here:
            of_process = f" and globalPid >> 24 = {cut.process}" if "globalPid" in here else ""
            conditions[table] = f"correlationId in (select id from part_correlation){of_process}"
    if here := columns(con, RANGES):
        samples = " and jsonText is null" if "jsonText" in here else ""
        conditions[RANGES] = f'start >= {cut.start} and "end" <= {cut.end} and globalTid >> 24 = {cut.process}{samples}'
    counts = {}
    for table, condition in conditions.items():
        con.execute(f"create temp table part_{table} as select rowid as row from {table} where {condition}")
        counts[table] = con.execute(f"select count(*) from part_{table}").fetchone()[0]
        if table == CALLS:
            con.execute(
                "create temp table part_correlation as "
                f"select distinct correlationId as id from {CALLS} where rowid in (select row from part_{CALLS})"
            )
    return {table: count for table, count in counts.items() if count}


def step(con: sqlite3.Connection, parts: dict[str, int], cut: Cut) -> int:
    """Return how much later each copy starts: neither calls nor device work of two copies may overlap."""
    lengths = [cut.end - cut.start]
    for tables in ((CALLS,), WORK):
        spans = [
            con.execute(
                f'select min(start), max("end") from {table} where rowid in (select row from part_{table})'
            ).fetchone()
            for table in tables
            if table in parts
        ]
        if spans:
            lengths.append(max(end for _, end in spans) - min(start for start, _ in spans))
    return max(lengths)


def move_back(con: sqlite3.Connection, parts: dict[str, int], cut: Cut, by: int) -> None:
    """Move what came after the repeated part `by` later; what encloses it ends as much later."""
    tables = [row[0] for row in con.execute("select name from sqlite_master where type = 'table'")]
    for table in tables:
        times = [c for c in ("start", "end", "timestamp") if c in columns(con, table)]
        if not times or table.startswith(("ENUM_", "META_", "TARGET_")):
            continue
        kept = f"where rowid not in (select row from part_{table})" if table in parts else ""
        moved = ", ".join(f'"{c}" = "{c}" + case when "{c}" >= {cut.end} then {by} else 0 end' for c in times)
        con.execute(f"update {table} set {moved} {kept}")
    if "ANALYSIS_DETAILS" in tables:
        con.execute(f"update ANALYSIS_DETAILS set duration = duration + {by}, stopTime = stopTime + {by}")


def repeat(con: sqlite3.Connection, parts: dict[str, int], copies: int, shift: int) -> None:
    """Append the copies, in the order of time as nsys does."""
    con.execute(
        "create temp table copy as with recursive c(k) as "
        f"(select 1 union all select k + 1 from c where k < {copies}) select k from c"
    )
    first, last = con.execute("select min(id), max(id) from part_correlation").fetchone()
    highest = con.execute(f"select max(correlationId) from {CALLS}").fetchone()[0]
    fresh, stride = highest + 1 - first, last - first + 1
    for table in parts:
        names = [name for name in columns(con, table) if name != "id"]
        values = {
            "start": f"t.start + k * {shift}",
            "end": f't."end" + k * {shift}',
            "correlationId": f"t.correlationId + {fresh} + (k - 1) * {stride}",
        }
        listed = ", ".join(f'"{name}"' for name in names)
        picked = ", ".join(values.get(name, f't."{name}"') for name in names)
        # `cross join` fixes the nesting in SQLite: copies outside, so that rows come out in time order.
        con.execute(
            f"insert into {table} ({listed}) select {picked} from copy cross join part_{table} p "
            f"cross join {table} t on t.rowid = p.row"
        )


def enlarge(capture: Path, out: Path, rows: int) -> int:
    """Write the enlarged export; returns the number of rows in the event tables."""
    if out.exists():
        raise SystemExit(f"enlarge: {out} exists; remove it or choose another name.")
    unpack(capture, out)
    con = sqlite3.connect(out, isolation_level=None)
    con.text_factory = lambda raw: raw.decode("utf-8", "replace")
    for pragma in ("journal_mode = off", "synchronous = off", "temp_store = memory", "cache_size = -200000"):
        con.execute(f"pragma {pragma}")
    con.execute("begin")
    cut = find_cut(con)
    parts = select_part(con, cut)
    present = [table for table in (CALLS, *WORK, RANGES) if columns(con, table)]
    have = sum(con.execute(f"select count(*) from {table}").fetchone()[0] for table in present)
    copies = max(1, -(-(rows - have) // sum(parts.values())))
    shift = step(con, parts, cut)
    move_back(con, parts, cut, copies * shift)
    repeat(con, parts, copies, shift)
    con.execute("commit")
    con.close()
    made: int = have + copies * sum(parts.values())
    return made


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("capture", type=Path, help="an nsys SQLite export: .sqlite, .sqlite.xz or .sqlite.gz")
    parser.add_argument("out", type=Path, help="the file to write")
    parser.add_argument("--rows", type=int, default=8_000_000, help="event rows wanted (default: %(default)s)")
    args = parser.parse_args()
    rows = enlarge(args.capture, args.out, args.rows)
    print(f"{args.out}: {rows:,} event rows, {args.out.stat().st_size / 1e6:,.0f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
