"""Score the wild corpus, programs as people write them, and write docs/wild.md:  python -m evaluation.wild [--check]

For each recording in fixtures/wild/captures: whether the iteration found takes as long as the program's own, by its own
clock in the same recording; and whether the first finding names the fault. Development and validation apart.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from evaluation.corpus import ROOT
from gpudiag.ingest import ingest
from gpudiag.library.load import load
from gpudiag.pipeline import build_report, prepare
from gpudiag.store import database

WILD = ROOT / "fixtures" / "wild"
PAGE = ROOT / "docs" / "wild.md"
NEAR = 0.05  # of an iteration: within it the loop found is the program's
ENOUGH = 1 / 3  # of the program's iterations that the loop found has to hold before their times are compared
NOTICE = "<!-- Written by `python -m evaluation.wild`; change the programs or the rules instead. -->"


@dataclass(frozen=True)
class Score:
    """One recording. Times in ms for one iteration; accepted: codes that name the fault."""

    program: str
    fault: str
    split: str
    own_ms: float
    found_ms: float | None
    state: str
    accepted: tuple[str, ...]
    first: tuple[str, ...]

    @property
    def iteration_found(self) -> bool:
        return self.found_ms is not None and abs(self.found_ms / self.own_ms - 1) <= NEAR

    @property
    def hit(self) -> bool | None:
        """Return whether the first finding names the fault; None where nothing was planted that a timeline shows."""
        return bool(self.first) and self.first[0] in self.accepted if self.accepted else None


@cache
def splits() -> dict[str, str]:
    """Program → development or validation."""
    document = yaml.safe_load((WILD / "split.yaml").read_text())
    return {name: split for split, names in document.items() for name in names}


def recordings() -> list[Path]:
    """The captures, by name."""
    return sorted((WILD / "captures").glob("*.sqlite.xz"))


def judge(capture: Path) -> Score:
    """Explain a recording as a user would, and compare with what the program and its label say."""
    program, fault = capture.name.removesuffix(".sqlite.xz").split(".")
    label = yaml.safe_load((WILD / "labels.yaml").read_text()).get(program, {}).get(fault, {})
    times = json.loads((WILD / "times.json").read_text())[f"{program}.{fault}"]
    with tempfile.TemporaryDirectory() as folder:
        con = database.create(small=True)
        try:
            ingest(capture, con, Path(folder))
            library = load()
            prepare(con, library)
            database.lock(con)
            report = build_report(con, library, {})
            loop = max(report.run.loops, key=lambda one: one.share_of_span, default=None)
            found = _found(con, loop.id) if loop else None
            own = _own(con, times["ticks_ns"], found)
        finally:
            con.close()
    return Score(
        program, fault, splits()[program], own, found[2] if found else None, report.verdict.state,
        tuple(label.get("codes", ())) if "needs" not in label else (), tuple(one.code for one in report.findings[:3]),
    )  # fmt: skip


def _found(con: Any, loop: int) -> tuple[int, int, float] | None:
    """Return when the analysed iterations of a loop begin and end (ns), and their median (ms), if there are any."""
    row = con.execute(
        'select min(start), max("end"), median("end" - start) / 1e6 from iteration where loop = ? and in_steady_state',
        [loop],
    ).fetchall()[0]
    return (int(row[0]), int(row[1]), float(row[2])) if row[0] is not None else None


def _own(con: Any, ticks: Sequence[int], found: tuple[int, int, float] | None) -> float:
    """The median of the program's own iterations (ms), as far as the loop found holds them.

    An iteration ends when the GPU has done what was launched up to the program's tick: a host may run far ahead.
    """
    rows = con.execute(
        'select a.start, o."end" from gpu_op o join api_call a on a.id = o.api_call order by 1'
    ).fetchnumpy()
    done = np.maximum.accumulate(np.asarray(rows["end"], dtype=np.int64))
    at = np.searchsorted(np.asarray(rows["start"]), ticks) - 1
    moments = np.maximum(np.where(at >= 0, done[np.maximum(at, 0)], 0), ticks)
    steps, middles = np.diff(moments) / 1e6, (moments[1:] + moments[:-1]) / 2
    inside = np.zeros(len(steps), dtype=bool)
    if found:
        inside = (middles >= found[0]) & (middles <= found[1])
    if inside.sum() < ENOUGH * len(steps):
        inside = np.arange(len(steps)) >= len(steps) // 10
    return float(np.median(steps[inside]))


def page(scores: Sequence[Score]) -> str:
    """The whole page."""
    faulty = [score for score in scores if score.hit is not None]
    lines = [
        NOTICE,
        "# Programs as people write them\n",
        "Recordings of programs that nobody annotated, as a user records them: trainers of third parties, token loops,",
        "samplers, solvers and pipelines, each with faults that a flag plants",
        "([fixtures](../fixtures/wild/README.md)). An iteration counts as found within",
        f"{NEAR:.0%} of the program's own in the same recording. The first finding is right where it names",
        "the fault.\n",
        "| | development | validation |",
        "|---|--:|--:|",
        _row("iteration found", scores, lambda score: score.iteration_found),
        _row("first finding right", faulty, lambda score: bool(score.hit)),
        _row("among the first three", faulty, lambda score: bool(set(score.first) & set(score.accepted))),
        "",
        "| program | fault | split | own, ms | found, ms | | first findings | accepted | |",
        "|---|---|---|--:|--:|---|---|---|---|",
    ]
    for score in scores:
        found = f"{score.found_ms:.3g}" if score.found_ms else "none"
        right = {None: "", True: "right", False: "**missed**"}[score.hit]
        lines.append(
            f"| {score.program} | {score.fault} | {score.split} | {score.own_ms:.3g} | {found} |"
            f" {'' if score.iteration_found else '**other**'} | {', '.join(score.first) or score.state} |"
            f" {', '.join(score.accepted)} | {right} |"
        )
    return "\n".join(lines) + "\n"


def _row(name: str, scores: Sequence[Score], right: Any) -> str:
    cells = []
    for split in ("development", "validation"):
        own = [score for score in scores if score.split == split]
        cells.append(f"{sum(map(right, own))} of {len(own)}")
    return f"| {name} | {' | '.join(cells)} |"


def scored(captures: Iterable[Path]) -> list[Score]:
    """Judge them all, two at a time."""
    with ProcessPoolExecutor(2) as pool:
        return list(pool.map(judge, captures))


def main() -> int:
    """Write the page, or say whether it is stale."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where the page is stale")
    args = parser.parse_args()
    text = page(scored(recordings()))
    if args.check:
        if PAGE.read_text() != text:
            print("docs/wild.md is stale; run python -m evaluation.wild", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(text)
    print("\n".join(line for line in text.splitlines()[6:13]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
