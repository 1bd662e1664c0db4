"""Compare the time tree with busy and idle time computed from the raw tables, and write docs/time_tree.md:

    python -m evaluation.tree_check [--check]

Twenty recordings, drawn by a seed. The comparison takes nothing from the store but where each loop's steady iterations
begin and end: kernels, graphs, copies and sets come from the SQLite export itself, and their union by device is made
here. Busy is computing, exposed communication and exposed copies; idle is the rest. Two readings are given: a gap of
less than `idle_noise_ns` between two operations counts as busy where the tree says so, and never.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation import packed
from evaluation.corpus import ROOT
from evaluation.price_page import table
from evaluation.wild.judging import library
from gpudiag.ingest import ingest
from gpudiag.prepare import prepare
from gpudiag.store import database

PAGE = ROOT / "docs" / "time_tree.md"
DRAWN, SEED = 20, 19
AGREES = 0.001  # of the loop
HEAD = ("recording", "idle, tree", "idle, raw tables", "with every gap", "agrees")
NOTICE = "<!-- Written by `python -m evaluation.tree_check`. -->"
_OPERATIONS = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")

Spans = NDArray[np.int64]


@dataclass(frozen=True)
class Row:
    """Idle shares of a recording's longest loop, 0 to 1: by the tree, by the raw tables, and with every gap counted."""

    name: str
    tree: float
    raw: float
    strict: float
    leaves: float  # sum of all leaves

    @property
    def agrees(self) -> bool:
        """Return whether the raw tables say the same, and the leaves are the whole."""
        return abs(self.tree - self.raw) <= AGREES and abs(self.leaves - 1) <= AGREES


def drawn() -> list[Path]:
    """Return the recordings: single processes, of both corpora, drawn by the seed."""
    found = [
        path
        for folder in ("fixtures/captures", "fixtures/wild/captures")
        for path in packed.recordings(ROOT / folder)
        if ".rank" not in path.name
    ]
    return sorted(random.Random(SEED).sample(found, DRAWN))  # noqa: S311  a draw, no secret


def compared(recording: Path) -> Row | None:
    """Return the row of a recording; None where it has no loop."""
    with tempfile.TemporaryDirectory() as scratch:
        file = packed.plain(recording)
        con = database.create(small=True)
        try:
            ingest(file, con, Path(scratch))
            prepare(con, library())
            share = dict(con.execute("select loop, sum(ns) from loop_tree group by loop").fetchall())
            if not share:
                return None
            loop = max(share, key=lambda one: (share[one], -one))
            leaves = dict(con.execute("select leaf, share from loop_tree where loop = ?", [loop]).fetchall())
            windows = con.execute('select start, "end" from steady_interval where loop = ?', [loop]).fetchall()
        finally:
            con.close()
        noise = (library().setting_values[name] for name in ("idle_noise_ns", "idle_noise_share"))
        raw, strict = idle(file, windows, *noise)
    busy = sum(leaves.get(leaf, 0.0) for leaf in ("computing", "exposed_communication", "exposed_copy"))
    return Row(
        str(recording.with_name(packed.stem(recording)).relative_to(ROOT / "fixtures")),
        1 - busy,
        raw,
        strict,
        sum(leaves.values()),
    )


def idle(file: Path, windows: Sequence[tuple[int, int]], noise_ns: float, noise_share: float) -> tuple[float, float]:
    """Return the idle share of the devices in use, without short gaps where they are noise, and with all of them."""
    whole = short = gaps = 0
    for spans in _by_device(file).values():
        if not any(((spans[:, 0] < end) & (spans[:, 1] > start)).any() for start, end in windows):
            continue  # a device that the loop does not use
        for start, end in windows:
            inside = spans[(spans[:, 0] < end) & (spans[:, 1] > start)].clip(start, end)
            ends = np.maximum.accumulate(np.concatenate(([start], inside[:, 1])))
            between = np.maximum(np.concatenate((inside[:, 0], [end])) - ends, 0)
            whole += end - start
            gaps += int(between.sum())
            short += int(between[between < noise_ns].sum())
    kept = gaps if short > noise_share * whole else gaps - short
    return kept / whole, gaps / whole


def _by_device(file: Path) -> dict[int, Spans]:
    """Read when the GPU worked (ns), in order, for each device."""
    con = sqlite3.connect(file)
    try:
        tables = {name for (name,) in con.execute("select name from sqlite_master")}
        rows = [
            row
            for kind in _OPERATIONS
            if f"CUPTI_ACTIVITY_KIND_{kind}" in tables
            for row in con.execute(f'select deviceId, start, "end" from CUPTI_ACTIVITY_KIND_{kind} where "end" > start')
        ]
    finally:
        con.close()
    found: dict[int, list[tuple[int, int]]] = {}
    for device, start, end in rows:
        found.setdefault(device, []).append((start, end))
    return {device: np.array(sorted(spans), dtype=np.int64) for device, spans in found.items()}


def page(rows: Sequence[Row]) -> str:
    """Return the page."""
    right = sum(row.agrees for row in rows)
    cells = [
        (row.name, f"{row.tree:.3%}", f"{row.raw:.3%}", f"{row.strict:.3%}",
         "" if row.agrees else "**no**")
        for row in rows
    ]  # fmt: skip
    body = f"""
# The time tree beside the raw tables

The [time tree](glossary.md) of {len(rows)} recordings, drawn by a seed from all that are kept, beside idle time
computed from the tables of the export alone: the union of kernels, graphs, copies and sets on each device, over the
steady iterations of the longest loop. They agree within {AGREES:.1%} of the loop, and the leaves add up to the whole,
in {right} of {len(rows)}.

Where gaps of less than 1.5 µs between queued operations add up to less than a twentieth of a loop, the tree counts them
as busy: the GPU starts one kernel after another in about that time, and no host could help. The last figure counts
every gap as idle.

{table(HEAD, cells)}

`python -m evaluation.tree_check` makes it again.
"""
    return NOTICE + "\n" + body


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page is not what it says")
    args = parser.parse_args()
    with ProcessPoolExecutor(2) as pool:
        rows = [row for row in pool.map(compared, drawn()) if row]
    text = page(rows)
    if args.check:
        if text == PAGE.read_text("utf-8"):
            return 0
        print(f"{PAGE.relative_to(ROOT)}: stale; run python -m evaluation.tree_check", file=sys.stderr)
        return 1
    PAGE.write_text(text, "utf-8")
    print(f"{sum(row.agrees for row in rows)} of {len(rows)} agree; wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
