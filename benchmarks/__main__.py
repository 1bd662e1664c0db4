"""Measure gpudiag as a user meets it:  python -m benchmarks [--capture FILE] [--runs N] [--rows N] [--growth]

Every figure is a whole process: start-up (`gpudiag --help`), the report of a small real capture, and of a large
file made of it by `python -m benchmarks.enlarge`, read anew and from the cache. Memory is the peak resident size of
the process, or of the largest of its children. Where nsys is on the PATH, `nsys stats` and `nsys analyze` are measured
on a copy of the same large file, because they add indexes to it. --growth adds files four and sixteen times as large,
which take 9 GB of disk. The tables are written to docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import enlarge
from benchmarks.machine import machine, size

ROOT = Path(__file__).resolve().parents[1]
CAPTURE = ROOT / "fixtures/captures/healthy_low_occupancy_gemm/healthy.sqlite.xz"
STAGE_TIMES, FLOORS, ENLARGE = (f"benchmarks.{name}" for name in ("stage_times", "floors", "enlarge"))
GPUDIAG = str(Path(sys.executable).with_name("gpudiag"))
PAGE = """\
<!-- Written by `python -m benchmarks`. -->

# Performance

Measured on {machine}{note}.

Each run is a whole process with the file in the page cache. Memory is the largest process's resident peak.

| what | runs | min s | median s | max s | peak memory MB |
|---|--:|--:|--:|--:|--:|
{table}

The large file repeats the middle of the small capture (`python -m benchmarks.enlarge`). *Read anew* is `--no-cache`;
*first time* also keeps what was read in the cache, which *again* then finds. Runs differ by a tenth: what else the
machine does.
{peers}{stages}{growth}
`python -m benchmarks --growth` measures it all anew, with `nsys stats` and `nsys analyze` beside it where nsys is on
the PATH.
"""
PEERS = """
## Beside NVIDIA's own reports

The same file on the same machine: medians, and how many times as long NVIDIA's took.

| | time | against read anew | against again |
|---|--:|--:|--:|
{table}
"""
STAGES = """
## Where the time goes

One report of the large file, read anew, by gpudiag's own stages; the median of {runs} runs each. The stages are also
NVTX ranges (domain `gpudiag`), so that `nsys profile gpudiag explain …` shows them.

| stage | s | part |
|---|--:|--:|
{table}

The floor: what the least work on the same file takes, as a process of its own.

| floor | s |
|---|--:|
{floors}
"""
GROWTH = """
## Growth

| event rows | file | s | µs a row | peak memory MB |
|--:|--:|--:|--:|--:|
{table}

Memory grows far more slowly than the file: what the database holds is bounded (`--memory-limit`), the rest goes to
temporary files.
"""
STAGE_NAMES = {
    "start": "start Python, import",
    "read CUDA calls": "read CUDA calls",
    "read GPU operations": "read GPU operations, tie them to their calls",
    "read annotations": "read NVTX ranges and samples, nest them",
    "read the rest": "read everything else",
    "find loops": "find loops",
    "make views": "make the views that rules share",
    "ask rules": "ask the rules",
    "price": "price and rank",
    "render": "write the page",
}


@dataclass(frozen=True)
class Run:
    """One process: how long it took, and the most memory that it or one of its children held."""

    seconds: float
    peak_bytes: int


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    what: str
    runs: tuple[Run, ...]

    @property
    def median(self) -> float:
        return statistics.median(run.seconds for run in self.runs)

    @property
    def peak(self) -> int:
        return max(run.peak_bytes for run in self.runs)

    def markdown(self) -> str:
        seconds = [run.seconds for run in self.runs]
        times = " | ".join(f"{f(seconds):.2f}" for f in (min, statistics.median, max))
        return f"| {self.what} | {len(seconds)} | {times} | {self.peak / 1e6:,.0f} |"


def measure(command: Sequence[str | Path], env: Mapping[str, str], log: Path) -> Run:
    """Run a command to its end. Raises SystemExit with the end of its output when it fails."""
    with log.open("wb") as out:
        began = time.perf_counter()
        # wait4, unlike subprocess, tells this child's own peak memory.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=dict(env))
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        tail = log.read_text("utf-8", "replace")[-2000:]
        raise SystemExit(f"bench: {' '.join(map(str, command))} ended with {process.returncode}:\n{tail}")
    return Run(seconds, usage.ru_maxrss * 1024)


def explain(what: str, capture: Path, scratch: Path, runs: int, *options: str) -> Line:
    """A capture's report; the cache, where it is used, is one of the benchmark's own."""
    command = (GPUDIAG, "explain", str(capture), "--output", str(scratch / "report.md"), *options)
    env = {**os.environ, "XDG_CACHE_HOME": str(scratch / "cache")}
    return Line(what, tuple(measure(command, env, scratch / "log") for _ in range(runs)))


def first_and_again(what: str, capture: Path, scratch: Path, runs: int) -> list[Line]:
    """The first report of a capture, each time with an empty cache, and the later ones."""
    firsts: list[Run] = []
    for _ in range(runs):
        shutil.rmtree(scratch / "cache", ignore_errors=True)
        firsts += explain("", capture, scratch, 1).runs
    return [Line(f"{what}, first time", tuple(firsts)), explain(f"{what}, again", capture, scratch, runs)]


def nsys(large: Path, scratch: Path) -> list[Line]:
    """Time NVIDIA's own reports on the same file."""
    lines = []
    for verb in ("stats", "analyze"):
        copy = scratch / f"nsys_{verb}.sqlite"
        shutil.copyfile(large, copy)
        run = measure(("nsys", verb, str(copy)), os.environ, scratch / "log")
        copy.unlink()
        lines.append(Line(f"`nsys {verb}`, the same large file", (run,)))
    return lines


def small_ones(capture: Path, runs: int, scratch: Path) -> list[Line]:
    """Start-up, and the report of a small capture."""
    lines = [
        Line(
            "`gpudiag --help`",
            tuple(measure((GPUDIAG, "--help"), os.environ, scratch / "log") for _ in range(2 * runs)),
        )
    ]
    small = scratch / "small.sqlite"
    enlarge.unpack(capture, small)
    lines.append(explain(f"report of a capture of {size(small)}", small, scratch, runs))
    return lines


def against(peers: Sequence[Line], anew: Line, again: Line) -> str:
    """Return how many times as long NVIDIA's reports take, each and both."""
    if not peers:
        return ""
    times = [(line.what, line.median) for line in peers]
    times.append(("both", sum(took for _, took in times)))
    rows = [
        f"| {what} | {took:.1f} s | {took / anew.median:.1f} × | {took / again.median:.0f} × |" for what, took in times
    ]
    return PEERS.format(table="\n".join(rows))


def stages(large: Path, scratch: Path, runs: int) -> str:
    """The time by stages, and the floors beside it."""
    found = []
    for _ in range(runs):
        began = time.perf_counter()
        done = subprocess.run([sys.executable, "-m", STAGE_TIMES, large], check=True, capture_output=True, text=True)
        found.append({**json.loads(done.stdout), "whole": time.perf_counter() - began})
    each_run = [by_stage(each) for each in found]
    seconds = {name: statistics.median(each[name] for each in each_run) for name in STAGE_NAMES}
    whole = sum(seconds.values())
    table = [f"| {words} | {seconds[name]:.2f} | {seconds[name] / whole:.0%} |" for name, words in STAGE_NAMES.items()]
    needed = scratch / "needed.json"
    needed.write_text(json.dumps(found[0]["needed"]), "utf-8")
    floors = {
        "`cat` to nowhere": ("sh", "-c", f"cat {large} >/dev/null"),
        "SQLite touching every value that is needed": (sys.executable, "-m", FLOORS, "sqlite", large, needed),
        "gpudiag's page reader decoding them, and nothing more": (sys.executable, "-m", FLOORS, "pages", large, needed),
    }
    lines = []
    for what, command in floors.items():
        took = statistics.median(measure(command, os.environ, scratch / "log").seconds for _ in range(runs))
        lines.append(f"| {what} | {took:.2f} |")
    return STAGES.format(runs=runs, table="\n".join(table), floors="\n".join(lines))


def by_stage(found: Mapping[str, Any]) -> dict[str, float]:
    """Seconds by the stages of the table, which do not overlap."""
    took = found["stages"]
    read = sum(took[name] for name in ("read CUDA calls", "read GPU operations", "read annotations"))
    rest = {"read the rest": took["ingest"] - read, "price": took["evaluate"] - took["ask rules"]}
    rest["start"] = found["whole"] - took["report"] - took["render"]
    return {name: rest[name] if name in rest else took[name] for name in STAGE_NAMES}


def growth(capture: Path, rows: int, scratch: Path, first: Line) -> str:
    """The same for larger files, one at a time."""
    table = []
    for times in (1, 4, 16):
        large = scratch / "growing.sqlite"
        made = enlarged(capture, large, times * rows)
        line = first if times == 1 else explain("", large, scratch, 1, "--no-cache")
        each = line.median / made * 1e6
        table.append(f"| {made:,} | {size(large)} | {line.median:.1f} | {each:.2f} | {line.peak / 1e6:,.0f} |")
        large.unlink()
    return GROWTH.format(table="\n".join(table))


def enlarged(capture: Path, large: Path, rows: int) -> int:
    """Makes the large file; its event rows. Not in this process, whose memory would count as its children's."""
    command = [sys.executable, "-m", ENLARGE, str(capture), str(large), "--rows", str(rows)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(re.search(r"([\d,]+) event rows", done.stderr)[1].replace(",", ""))  # type: ignore[index]


def page(args: argparse.Namespace, scratch: Path) -> str:
    """The Markdown page that shows all of it."""
    lines = small_ones(args.capture, args.runs, scratch)
    parts = {"peers": "", "stages": "", "growth": ""}
    if args.rows:
        large = scratch / "large.sqlite"
        made = enlarged(args.capture, large, args.rows)
        what = f"report of {made:,} event rows, {size(large)}"
        anew = explain(f"{what}, read anew", large, scratch, args.runs, "--no-cache")
        first, again = first_and_again(what, large, scratch, args.runs)
        peers = nsys(large, scratch) if shutil.which("nsys") else []
        lines += [anew, first, again, *peers]
        parts["peers"] = against(peers, anew, again)
        parts["stages"] = stages(large, scratch, args.runs)
        large.unlink()
        if args.growth:
            parts["growth"] = growth(args.capture, args.rows, scratch, anew)
    note = args.note and f"; {args.note}"
    return PAGE.format(machine=machine(), note=note, table="\n".join(line.markdown() for line in lines), **parts)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--capture", type=Path, default=CAPTURE, help="the small capture (default: a bundled one)")
    parser.add_argument("--rows", type=int, default=8_000_000, help="event rows of the large file; 0 for none")
    parser.add_argument("--runs", type=int, default=3, help="runs of each (default: %(default)s)")
    parser.add_argument("--growth", action="store_true", help="files four and sixteen times as large, too")
    parser.add_argument("--note", default="", help="what else to say of the machine")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs/performance.md")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpudiag-bench-") as folder:
        text = page(args, Path(folder))
    args.output.write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
