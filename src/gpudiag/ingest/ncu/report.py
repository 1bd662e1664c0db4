"""Nsight Compute reports (.ncu-rep): read by NVIDIA's package `ncu-report`, or exported by the user's own `ncu`.

The format is private, and both readers are native code that a damaged file may crash: each runs in a process of its
own, in the work folder, with a time limit. Both ways end in the tables that a raw page of the same report gives.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import duckdb
import polars as pl

from gpudiag.errors import GpudiagError
from gpudiag.ingest import tool
from gpudiag.ingest.ncu import csv_page, reader, report_blocks

TIMEOUT_S = 600.0
"""A report of one launch takes a fifth of a second; a hung reader must not hang us."""

MEMORY = 8 * 1024**3
"""Most bytes of address space for NVIDIA's package, of which a report of one launch needs a hundredth."""

_INSTALL = "`pip install ncu-report`"
_LAUNCHES = {
    "launch": pl.Int32, "process": pl.String, "kernel": pl.String, "stream": pl.String, "block": pl.String,
    "grid": pl.String, "cc": pl.String,
}  # fmt: skip
_METRICS = {"launch": pl.Int32, "metric": pl.String, "value": pl.Float64, "text": pl.String}
_RULES = {"launch": pl.Int32, **dict.fromkeys(("section", "rule", "kind", "text", "scope", "estimate"), pl.String)}
_LINES = {
    "launch": pl.Int32, "file": pl.String, "line": pl.Int64, "sass": pl.String, "samples": pl.Int64,
    "not_issued": pl.Int64,
}  # fmt: skip


def read(path: Path, con: duckdb.DuckDBPyConnection, workdir: Path, name: Path, timeout_s: float = TIMEOUT_S) -> None:
    """Append one report to the store's tables; `name` is the user's file, of which `path` may be the content.

    Raises GpudiagError when the report is cut short or damaged, and when nothing here can read it.
    """
    if report_blocks.is_cut(path):
        raise GpudiagError(f"{name}: the report is cut short; copy it again, or profile again.")
    csv = f"`ncu --import {name.name} --csv --page raw > {name.stem[:60]}.csv` and give the .csv"
    failed = []
    if importlib.util.find_spec("ncu_report"):
        answer = workdir / "ncu-report.jsonl"
        refused = _ask_package(path, answer, workdir, timeout_s)
        if refused is None:
            _append_answer(answer, con, name)
            return
        failed.append(f"ncu-report {refused}")
    command = shutil.which("ncu")
    if command:
        refused = _export(command, path, workdir, name, timeout_s)
        if refused is None:
            _append_pages(workdir, con, name)
            return
        failed.append(f"`ncu`{_version(command)} {refused}".replace(str(path.resolve()), name.name))
    if not failed:
        raise GpudiagError(
            f"{name}: reading an Nsight Compute report needs NVIDIA's reader: {_INSTALL}, or where ncu is installed run"
            f" {csv}."
        )
    newer = "`pip install --upgrade ncu-report`" if importlib.util.find_spec("ncu_report") else _INSTALL
    raise GpudiagError(
        f"{name}: cannot be read ({'; '.join(failed)}); it may be damaged, or newer than its reader: {newer}, or with"
        f" the ncu that made it run {csv}."
    )


def _ask_package(path: Path, answer: Path, workdir: Path, timeout_s: float) -> str | None:
    """Let the package write its answer; the reason when it did not."""
    # Nothing of the user's environment reaches it but where Python and its packages are.
    env = {key: os.environ[key] for key in ("LD_LIBRARY_PATH", "PYTHONHOME") if key in os.environ}
    env |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", "-s", str(Path(__file__).with_name("report_worker.py")), str(path.resolve()),
               str(answer), str(int(timeout_s) + 1), str(MEMORY), str(csv_page.LIMIT)]  # fmt: skip
    with (workdir / "ncu-report.out").open("w+b") as said:
        refused = _run(command, env, workdir, said, said, timeout_s)
    return refused or (None if answer.stat().st_size else "found no profiled kernel in it")


def _export(ncu_tool: str, path: Path, workdir: Path, name: Path, timeout_s: float) -> str | None:
    """Let ncu write the raw page, for the metrics, and the details page, for its rules; the reason when it did not."""
    # Its home is where ncu copies its section files to, and the user's settings would change the page.
    env = {**os.environ, "HOME": str(workdir), "XDG_CONFIG_HOME": str(workdir), "LC_ALL": "C"}
    for page in ("raw", "details"):
        target = _page(workdir, page, name)
        target.parent.mkdir(exist_ok=True)
        command = [ncu_tool, "--import", str(path.resolve()), "--csv", "--page", page]
        with target.open("w+b") as out, (workdir / "ncu.err").open("w+b") as err:
            refused = _run(command, env, workdir, out, err, timeout_s)
        if refused and page == "raw":
            return refused
    return None


def _version(ncu_tool: str) -> str:
    """Return the tool's version, the usual reason why it refuses a report."""
    try:
        said = subprocess.run([ncu_tool, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    found = re.search(r"^Version ([\d.]+)", said, re.MULTILINE)
    return f" {found.group(1)}" if found else ""


def _page(workdir: Path, page: str, name: Path) -> Path:
    """Return the path of a page, under the report's name, which the errors of its reader will show."""
    return workdir / f"ncu-{page}" / name.name


def _run(
    command: list[str], env: Mapping[str, str], folder: Path, out: IO[bytes], err: IO[bytes], timeout_s: float
) -> str | None:
    """Run to the end; the reason when it failed."""
    try:
        code = tool.run(command, env, folder, out, err, timeout_s)
    except OSError as error:
        return f"cannot be run: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"did not finish within {timeout_s:.0f} s"
    if number := tool.ended_by(code):
        return f"crashed on it with signal {number}"
    return f"says: {_last_words(command[2], out, err) or f'exit code {code}'}" if code else None


def _last_words(report: str, *files: IO[bytes]) -> str:
    """Return the last sentence that ncu printed about the report, whose folders a long path would fill it with."""
    for file in files:
        lines = [line.strip().replace(report, Path(report).name) for line in tool.tail(file, 4096).splitlines()]
        if words := [line.removeprefix("==ERROR== ") for line in lines if line]:
            return words[-1].partition(". ")[0][:120].rstrip(".")
    return ""


def _append_answer(answer: Path, con: duckdb.DuckDBPyConnection, name: Path) -> None:
    """Write the package's answer in the shape of a raw page with rules."""
    names: list[str] = []
    launches: list[dict[str, Any]] = []
    metrics: list[pl.DataFrame] = []
    rules: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    for at, launch in enumerate(_said(answer)):
        names += launch["new"]
        launches.append({"launch": at, **{key: _text(launch[key]) for key in ("kernel", "stream", "cc")}})
        cells = launch["metrics"]
        metrics.append(pl.DataFrame({
            "launch": [at] * len(cells),
            "metric": [names[index] for index, _ in cells],
            "value": [None if isinstance(cell, str) else float(cell) for _, cell in cells],
            "text": [cell if isinstance(cell, str) else None for _, cell in cells],
        }, schema=_METRICS))  # fmt: skip
        rules += ({"launch": at, **rule} for rule in launch["rules"])
        lines += ({"launch": at, **line} for line in launch["lines"])
    page = csv_page.Page(
        "raw", pl.DataFrame(launches, schema=_LAUNCHES), pl.DataFrame(schema=_METRICS), pl.DataFrame(rules, _RULES)
    )
    reader.append(con, name.name, page, pl.concat(metrics), pl.DataFrame(lines, schema=_LINES, strict=False))


def _said(answer: Path) -> Iterator[dict[str, Any]]:
    with answer.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def _text(value: float | str | None) -> str | None:
    return f"{value:.0f}" if isinstance(value, float) else None if value is None else str(value)


def _append_pages(workdir: Path, con: duckdb.DuckDBPyConnection, name: Path) -> None:
    """The raw page's launches and metrics with the details page's rules, if that page is any good."""
    raw = _page(workdir, "raw", name)
    page = csv_page.read(raw)
    metrics = reader.metrics(raw, page)
    try:
        details = csv_page.read(_page(workdir, "details", name))
    except GpudiagError:  # no section was collected: there are no rules
        reader.append(con, name.name, page, metrics)
        return
    ours = page.launches.select("process", "id", pl.col("launch").alias("ours"))
    rules = (
        details.launches.select("launch", "process", "id")
        .join(ours, on=["process", "id"], nulls_equal=True)
        .join(details.rules, on="launch")
        .select(pl.col("ours").alias("launch"), *list(_RULES)[1:])
    )
    reader.append(con, name.name, csv_page.Page("raw", page.launches, page.metrics, rules), metrics)
