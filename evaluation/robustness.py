"""Move constants by a quarter, one at a time, and count the recordings where the answer changes:

    python -m evaluation.robustness [--jobs N] [--only NAMES] [--all]

For each constant of the loop finder (`loop_*` in rules/settings.yaml) that was judged or measured, times 0.75 and 1.25:
in how many validation recordings of the wild corpus another iteration is found, or another first finding. Of a cosine
its distance from 1 is moved. Only where the iteration changes is the recording explained anew. --all takes the other
settings too, which are always explained. A move out of the range that a setting allows is left out.
Results are appended to a file, so that a run that was stopped goes on; docs/robustness_of_constants.md is written from
them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import yaml

from evaluation.corpus import ROOT
from evaluation.price_page import table
from evaluation.wild.corpus import Label, labels
from evaluation.wild.judging import library
from gpudiag.errors import GpudiagError
from gpudiag.ingest import ingest
from gpudiag.library.catalogue import Library
from gpudiag.pipeline import build_report
from gpudiag.prepare import find_loops, prepare
from gpudiag.store import database

PAGE = ROOT / "docs" / "robustness_of_constants.md"
SETTINGS = ROOT / "rules" / "settings.yaml"
MOVES = (0.75, 1.25)
NEAR = 0.05  # of an iteration: less is the same
NOTICE = "<!-- Written by `python -m evaluation.robustness`. -->"
BASELINE = ("", 1.0)

Move = tuple[str, float]
Loops = tuple[float, ...]  # the median iteration of each loop (ms)


def constants(*, everything: bool = False) -> list[str]:
    """Names of the constants that somebody judged or measured."""
    stated = yaml.safe_load(SETTINGS.read_text("utf-8"))
    return [
        name
        for name, about in stated.items()
        if about["source"] in ("judgement", "measured") and (everything or name.startswith("loop_"))
    ]


def answers(label: Label, moves: Sequence[Move]) -> dict[Move, tuple[Loops, str]]:
    """Return the loops and the first finding of a recording, as it is and with each constant moved that may be."""
    found = {BASELINE: _explained(label, library())}
    with _ingested(label) as con:
        for move in moves:
            if (rules := _moved(move)) is None:
                continue
            # A constant of the loop finder changes nothing but the loops.
            same_loops = move[0].startswith("loop_") and same(_loops_of(con, rules), found[BASELINE][0])
            found[move] = found[BASELINE] if same_loops else _explained(label, rules)
    return found


def _moved(move: Move) -> Library | None:
    """Return the rules with a constant moved; None where that leaves the range of the setting."""
    name, factor = move
    setting = library().settings[name]
    value = 1 - (1 - setting.value) * factor if setting.unit == "cosine" else setting.value * factor
    try:
        return library().with_overrides({f"settings.{name}": value})
    except GpudiagError:
        return None


@contextmanager
def _ingested(label: Label) -> Iterator[database.Connection]:
    """The recording's canonical tables."""
    with tempfile.TemporaryDirectory() as folder:
        con = database.create(small=True)
        try:
            ingest(label.capture, con, Path(folder))
            yield con
        finally:
            con.close()


def _loops_of(con: database.Connection, rules: Library) -> Loops:
    """The median iteration of each loop, found anew and forgotten again."""
    con.execute("begin")
    try:
        find_loops(con, rules)
        return _medians(con)
    finally:
        con.execute("rollback")


def _medians(con: database.Connection) -> Loops:
    rows = con.execute(
        'select median("end" - start) / 1e6 from iteration where in_steady_state group by loop order by loop'
    ).fetchall()
    return tuple(float(row[0]) for row in rows)


def _explained(label: Label, rules: Library) -> tuple[Loops, str]:
    with _ingested(label) as con:
        prepare(con, rules)
        database.lock(con)
        report = build_report(con, rules, {})
        return _medians(con), report.findings[0].code if report.findings else report.verdict.state


def same(one: Loops, other: Loops) -> bool:
    """Return whether two sets of loops have the same iterations."""
    return len(one) == len(other) and all(abs(a - b) <= NEAR * b for a, b in zip(one, other, strict=True))


def _row(label: Label, moves: Sequence[Move]) -> list[dict[str, object]]:
    found = answers(label, moves)
    loops, first = found[BASELINE]
    return [
        {"recording": label.name, "constant": name, "factor": factor,
         "iteration": not same(found[name, factor][0], loops), "first": found[name, factor][1] != first}
        for name, factor in moves if (name, factor) in found
    ]  # fmt: skip


def page(rows: Iterable[dict[str, object]], names: Sequence[str]) -> str:
    """The table of what changed."""
    known = {(row["recording"], row["constant"], row["factor"]): row for row in rows}
    lines: list[list[object]] = []
    for name in names:
        for factor in MOVES:
            own = [row for row in known.values() if (row["constant"], row["factor"]) == (name, factor)]
            if own:
                changed = sorted(str(row["recording"]) for row in own if row["iteration"] or row["first"])
                lines.append([name, f"{factor - 1:+.0%}", len(own), sum(bool(row["iteration"]) for row in own),
                              sum(bool(row["first"]) for row in own), ", ".join(changed)])  # fmt: skip
    head = ["constant", "moved", "recordings", "another iteration", "another first finding", "which"]
    what = (
        "Validation recordings of the wild corpus in which one constant, moved by a quarter, changes the answer. A move"
        " out of the range of the constant is left out. A cosine says how alike two iterations are, 1 at most: its"
        " distance from 1 is moved by a quarter."
    )
    return "\n\n".join([NOTICE, "# Robustness of constants", what, table(head, lines)]) + "\n"


def main() -> int:
    """Measure what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes")
    parser.add_argument("--only", default="", help="these constants, separated by commas")
    parser.add_argument("--all", action="store_true", help="other settings than the loop finder's too")
    parser.add_argument("--results", type=Path, default=ROOT / "robustness.jsonl", help="the file that is appended to")
    args = parser.parse_args()
    names = constants(everything=args.all or bool(args.only))
    if args.only:
        wanted = args.only.split(",")
        if unknown := set(wanted) - set(names):
            parser.error(f"no such constant: {', '.join(sorted(unknown))}")
        names = wanted
    rows = [json.loads(line) for line in args.results.read_text().splitlines()] if args.results.exists() else []
    done = {(row["recording"], row["constant"], row["factor"]) for row in rows}
    tasks = []
    for label in labels():
        moves = [(n, f) for n in names for f in MOVES if (label.name, n, f) not in done]
        if label.split == "validation" and moves:
            tasks.append((label, moves))
    with ProcessPoolExecutor(args.jobs) as pool, args.results.open("a") as file:
        for new in pool.map(_row, *zip(*tasks, strict=True)) if tasks else ():
            file.write("".join(json.dumps(row) + "\n" for row in new))
            file.flush()
            rows += new
    PAGE.write_text(page(rows, constants(everything=True)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
