"""Measure gpudiag as a user meets it:  python scripts/bench.py [--capture FILE] [--runs N] [--rows N] [-o FILE]

Every figure is a whole process: start-up (`gpudiag --help`), the report of a small real capture, and of a large
file made of it by scripts/enlarge.py. Memory is the peak resident size of the process, or of the largest of its
children. Where nsys is on the PATH, `nsys stats` and `nsys analyze` are measured on a copy of the same large file,
because they add indexes to it. The table is written to docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import enlarge

ROOT = Path(__file__).resolve().parents[1]
CAPTURE = ROOT / "fixtures/captures/healthy_low_occupancy_gemm/healthy.sqlite.xz"
GPUDIAG = str(Path(sys.executable).with_name("gpudiag"))
PAGE = """\
<!-- Written by scripts/bench.py. -->

# Performance

Measured on {machine}{note}.

Each run is a whole process with the file in the page cache. Memory is the largest process's resident peak.

| what | runs | min s | median s | max s | peak memory MB |
|---|--:|--:|--:|--:|--:|
{table}

The large file repeats the middle of the small capture (`scripts/enlarge.py`). `python scripts/bench.py` measures it all
anew, with `nsys stats` and `nsys analyze` beside it where nsys is on the PATH.
"""


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

    def markdown(self) -> str:
        seconds = [run.seconds for run in self.runs]
        peak = max(run.peak_bytes for run in self.runs)
        times = " | ".join(f"{f(seconds):.2f}" for f in (min, statistics.median, max))
        return f"| {self.what} | {len(seconds)} | {times} | {peak / 1e6:,.0f} |"


def measure(command: Sequence[str], env: Mapping[str, str], log: Path) -> Run:
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
        raise SystemExit(f"bench: {' '.join(command)} ended with {process.returncode}:\n{tail}")
    return Run(seconds, usage.ru_maxrss * 1024)


def explain(what: str, capture: Path, scratch: Path, runs: int) -> Line:
    """A capture's report."""
    command = (GPUDIAG, "explain", str(capture), "--output", str(scratch / "report.md"))
    return Line(what, tuple(measure(command, os.environ, scratch / "log") for _ in range(runs)))


def nsys(large: Path, scratch: Path) -> list[Line]:
    """What NVIDIA's own reports take on the same file."""
    lines = []
    for verb in ("stats", "analyze"):
        copy = scratch / f"nsys_{verb}.sqlite"
        shutil.copyfile(large, copy)
        run = measure(("nsys", verb, str(copy)), os.environ, scratch / "log")
        copy.unlink()
        lines.append(Line(f"`nsys {verb}`, the same large file", (run,)))
    return lines


def small_and_large(capture: Path, rows: int, runs: int, scratch: Path) -> list[Line]:
    """Everything that the table shows."""
    lines = [
        Line(
            "`gpudiag --help`",
            tuple(measure((GPUDIAG, "--help"), os.environ, scratch / "log") for _ in range(2 * runs)),
        )
    ]
    small, large = scratch / "small.sqlite", scratch / "large.sqlite"
    enlarge.unpack(capture, small)
    lines.append(explain(f"report of a capture of {size(small)}", small, scratch, runs))
    if rows:
        made = enlarge.enlarge(capture, large, rows)
        lines.append(explain(f"report of {made:,} event rows, {size(large)}", large, scratch, runs))
        if shutil.which("nsys"):
            lines += nsys(large, scratch)
    return lines


def size(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:,.1f} MB"


def machine() -> str:
    """What the figures were measured on and with."""
    cpu = first_line("/proc/cpuinfo", lambda line: line.startswith("model name")).partition(":")[2].strip()
    total = first_line("/proc/meminfo", lambda line: line.startswith("MemTotal"))
    memory = f"{int(total.split()[1]) / 1024**2:.0f} GiB" if total else "unknown memory"
    packages = ", ".join(f"{name} {version(name)}" for name in ("gpudiag", "duckdb", "polars", "pydantic"))
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores of {cpu or platform.machine()}, {memory}, Python {platform.python_version()}, {packages}"


def first_line(path: str, wanted: Callable[[str], bool]) -> str:
    """The first line of a file that is wanted; nothing when there is none."""
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as lines:
        return next((line for line in lines if wanted(line)), "")


def page(lines: Sequence[Line], note: str) -> str:
    """The Markdown page that shows them."""
    return PAGE.format(machine=machine(), note=note, table="\n".join(line.markdown() for line in lines))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--capture", type=Path, default=CAPTURE, help="the small capture (default: a bundled one)")
    parser.add_argument("--rows", type=int, default=8_000_000, help="event rows of the large file; 0 for none")
    parser.add_argument("--runs", type=int, default=3, help="runs of each (default: %(default)s)")
    parser.add_argument("--note", default="", help="what else to say of the machine")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs/performance.md")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpudiag-bench-") as folder:
        lines = small_and_large(args.capture, args.rows, args.runs, Path(folder))
    text = page(lines, args.note and f"; {args.note}")
    args.output.write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
