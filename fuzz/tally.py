"""Counts of the runs of `python -m fuzz`, as JSON beside the page that shows them."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fuzz.pool import SECONDS, Result
from gpudiag import __version__

DOCS = Path(__file__).resolve().parents[1] / "docs"
COUNTS, PAGE = DOCS / "fuzzing.json", DOCS / "fuzzing.md"
WHAT = {
    "sqlite": "Nsight Systems export, SQLite", "parquet": "Nsight Systems export, Parquet folder",
    "ncu-csv": "Nsight Compute page, CSV", "ncu-rep": "Nsight Compute report", "trace": "trace of torch.profiler",
    "smi": "log of nvidia-smi, also beside an export", "cprofile": "file of cProfile, also beside an export",
    "packed": "any of them as .gz, .xz or .zst", "report": "saved report, also two compared",
    "config": "gpudiag.toml and a baseline", "rules": "folder of rules, views and remedies",
    "unknown": "other files, pipes, links, strange names",
}  # fmt: skip
TEXT = """\
<!-- Written by `python -m fuzz --page`. -->

# Damaged inputs

{inputs:,} inputs, {found}, on {date}: seed {seed}, {hours:.1f} hours on {cores} cores of {machine}, Python {python},
{packages}.

| input | inputs | read | refused in a sentence | found | slowest s | largest MB |
|---|--:|--:|--:|--:|--:|--:|
{table}

Each input is made of a small sample, cut from a capture of this project, by one to five random steps: bits, bytes,
blocks and pages of the file; rows, types, times, ids and tables of an export; cells, units, columns and encodings of a
page; keys and figures of a report; queries, templates and values of a rule. It is given to the command line in a
process of its own, and what comes out is judged. *Read* means a report that every format can print, that gpudiag itself
reads again, and whose figures can be: no negative time, no share outside 0 to 1, budgets that add up. *Refused* means
one sentence on stderr that names the file, exit code 2, and no output. Anything else is *found*: a traceback, a signal,
more than {seconds:g} s of processor time, more than 2 GB of memory, a changed input, a file left behind. Memory is the
process's resident peak, of which some 100 MB are there before it begins. Nsight Compute's own reports are read by
NVIDIA's tools: where these are not installed, as here, what is tried is how they are refused. One in seven is asked for
as HTML, where only the page itself is looked at; one in ten is run twice, the second time from the cache, and one in
ten the second time with the rows of every table in another order, which must change nothing; one in seven is read as if
it were large.

`python -m fuzz --inputs 20000 --seed {seed} --page` does it again; `--only I` runs input number I alone.
Whatever was found has been fixed since; `tests/data/fuzz` keeps a small file for each cause, which the tests read.
"""


@dataclass
class Count:
    """Of one reader."""

    report: int = 0
    refused: int = 0
    found: int = 0
    slowest: float = 0.0
    slowest_input: int = 0
    largest: int = 0
    largest_input: int = 0

    @property
    def inputs(self) -> int:
        return self.report + self.refused + self.found


@dataclass
class Tally:
    """Counts by reader; what was found, and how often each sentence was said."""

    seed: int
    seconds: float = 0.0
    counts: dict[str, Count] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    notes: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, number: int, reader: str, result: Result) -> None:
        count = self.counts.setdefault(reader, Count())
        name = "found" if result.outcome == "broken" else result.outcome
        setattr(count, name, getattr(count, name) + 1)
        if result.seconds > count.slowest:
            count.slowest, count.slowest_input = result.seconds, number
        if result.peak > count.largest:
            count.largest, count.largest_input = result.peak, number
        if name == "found":
            self.kinds[result.kind] += 1
        self.notes.setdefault(f"{reader} {name}", Counter())[result.note or result.kind] += 1

    @property
    def inputs(self) -> int:
        return sum(count.inputs for count in self.counts.values())

    def text(self, sentences: int) -> str:
        """For the terminal; with so many of the sentences that were said of each reader's inputs."""
        lines = [f"seed {self.seed}: {self.inputs} inputs in {self.seconds:.0f} s"]
        for reader, count in sorted(self.counts.items()):
            lines.append(
                f"{reader:8} {count.report} read, {count.refused} refused, {count.found} found;"
                f" slowest {count.slowest:.1f} s (#{count.slowest_input}),"
                f" largest {count.largest / 1e6:.0f} MB (#{count.largest_input})"
            )
        lines += [f"found {count} × {kind}" for kind, count in self.kinds.most_common()]
        for name, notes in sorted(self.notes.items()):
            lines += [f"  {name}: {count} × {note}" for note, count in notes.most_common(sentences)]
        return "\n".join(lines)

    def record(self) -> None:
        """Write the counts, and the page that shows them."""
        packages = {"gpudiag": __version__} | {name: version(name) for name in ("duckdb", "polars", "pydantic")}
        content = {
            "seed": self.seed,
            "date": date.today().isoformat(),
            "seconds": round(self.seconds),
            "machine": _machine(),
            "python": platform.python_version(),
            "packages": packages | {"sqlite": sqlite3.sqlite_version},
            "readers": {reader: asdict(self.counts[reader]) for reader in WHAT if reader in self.counts},
            "kinds": dict(self.kinds),
        }
        COUNTS.write_text(json.dumps(content, indent=2) + "\n")
        PAGE.write_text(page(content))


def _machine() -> dict[str, Any]:
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        cpu = next(
            (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine()
        )
    return {"cores": len(os.sched_getaffinity(0)), "cpu": cpu}


def page(content: dict[str, Any]) -> str:
    """The Markdown page of recorded counts."""
    counts = {reader: Count(**values) for reader, values in content["readers"].items()}
    found = sum(count.found for count in counts.values())
    return TEXT.format(
        inputs=sum(count.inputs for count in counts.values()),
        found=f"{found} found" if found else "nothing found",
        date=content["date"],
        seed=content["seed"],
        cores=content["machine"]["cores"],
        machine=content["machine"]["cpu"],
        hours=content["seconds"] / 3600,
        python=content["python"],
        packages=", ".join(f"{name} {number}" for name, number in content["packages"].items()),
        table="\n".join(_row(reader, count) for reader, count in counts.items()),
        seconds=SECONDS,
    )


def _row(reader: str, count: Count) -> str:
    figures = f"{count.inputs:,} | {count.report:,} | {count.refused:,} | {count.found}"
    return f"| {WHAT[reader]} | {figures} | {count.slowest:.1f} | {count.largest / 1e6:,.0f} |"
