"""A CSV page of Nsight Compute as three long frames: launches, metrics, rules. All cells are still text.

What precedes the header (`==PROF==` lines, the program's own output), and stray lines between rows, are dropped.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from gpudiag.errors import GpudiagError
from gpudiag.ingest.ncu.locale_numbers import PageKind

LIMIT = 72 * 1024**2
"""Most bytes of a page: it is held in memory, about twenty times over. It has room for four thousand launches with all
that `--set full` measures, which takes hours."""

MOST_COLUMNS = 30_000
"""Several times what ncu knows metrics; each column takes some 30 kB of memory, however short it is."""

_IDENTITY = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream",
    "Block Size", "Grid Size", "Device", "CC", "Section Name",
)  # fmt: skip
_LAUNCH = {
    "ID": "id", "Process ID": "process", "Kernel Name": "kernel", "Stream": "stream", "Block Size": "block",
    "Grid Size": "grid", "Device": "device", "CC": "cc",
}  # fmt: skip
_RULE = {
    "Section Name": "section", "Rule Name": "rule", "Rule Type": "kind", "Rule Description": "text",
    "Estimated Speedup Type": "scope", "Estimated Speedup": "estimate",
}  # fmt: skip
_HALF_ROW = 5
"""Cells from which a line that does not begin like a row is the rest of one, and no output of the program."""

_AGAIN = "export it again with `ncu --import REPORT --csv --page raw`"
_MISFIT = "its rows do not fit its header"
_NO_KERNEL = "no kernel was profiled, check the kernel filters given to ncu"


@dataclass(frozen=True, slots=True)
class Page:
    """One page. `launch` numbers the profiled launches in file order, from 0.

    launches: launch, id, process, kernel, stream, block, grid, device, cc.
    metrics: launch, section (null on a raw page), label, unit, text.
    rules: launch, section, rule, kind, text, scope, estimate; empty for a raw page.
    """

    kind: PageKind
    launches: pl.DataFrame
    metrics: pl.DataFrame
    rules: pl.DataFrame
    lost: int = 0
    """Rows that are cut short, of which what is there was read, or that begin in the middle."""


def decode(data: bytes) -> str:
    """The text of a page in whatever encoding a shell's redirection gave it."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def is_header(line: str) -> bool:
    """Return whether a line, perhaps cut short, is the header of a details, raw or summary page."""
    bare = line.replace('"', "")
    return bare.startswith(("ID,Process ID,", "Process ID,Process Name,")) and ",Kernel Name" in bare


def read(file: Path, path: Path | None = None) -> Page:
    """The page in `file`; GpudiagError when it is damaged, empty or of another kind, which names the user's `path`."""
    path = path or file
    if file.stat().st_size > LIMIT:
        raise GpudiagError(
            f"{path.name}: an Nsight Compute CSV of more than {LIMIT // 1024**2} MiB is not read; profile fewer"
            " launches, with ncu's `--launch-count` or `--kernel-name`."
        )
    text = decode(file.read_bytes())
    stray: list[str] = []
    rows = list(_rows(text, stray))
    if not rows:
        raise GpudiagError(f"{path.name}: no Nsight Compute table was found in it; {_AGAIN}.")
    header = _cells(path, rows[0])
    if "Invocations" in header or "ID" not in header:
        raise GpudiagError(f"{path.name}: this Nsight Compute summary holds no single launches; {_AGAIN}.")
    if len(header) > MOST_COLUMNS:
        raise GpudiagError(f"{path.name}: its {len(header):,} columns are more than ncu knows metrics; {_AGAIN}.")
    if any(is_header(row) for row in rows[1:]):
        raise GpudiagError(f"{path.name}: it holds several Nsight Compute pages; give one page per file.")
    if len(rows) == 1 and not text.endswith("\n"):
        raise GpudiagError(f"{path.name}: the file is cut off in its header; {_AGAIN}.")
    if len(rows) == 1:
        raise GpudiagError(f"{path.name}: a header without rows: {_NO_KERNEL}.")
    _refuse_cut(path, header, rows)
    short = sum(_is_short(header, row) for row in rows[1:])
    lost = short + sum(line.count('","') >= _HALF_ROW for line in stray)
    try:
        frame = pl.read_csv(io.BytesIO("\n".join(rows).encode()), infer_schema=False, null_values=[], quote_char='"')
    except pl.exceptions.PolarsError as error:
        raise GpudiagError(f"{path.name}: {_MISFIT}; {_AGAIN}.") from error
    page = _details(path, frame) if "Metric Name" in frame.columns else _raw(path, frame)
    return replace(page, lost=lost)


def _rows(text: str, stray: list[str]) -> Iterator[str]:
    """The header and the rows below it, and into `stray` the lines between; a row whose cell holds a line break comes
    in one part.
    """
    pending: list[str] = []
    quoted = header_seen = is_open = False
    for line in text.replace("\r\n", "\n").split("\n"):
        if not pending and not header_seen:
            if not is_header(line):
                continue
            header_seen, quoted = True, line.startswith('"')
        elif not pending and not line.startswith('"') and (quoted or not (line[:1].isdigit() or line.startswith(","))):
            stray.append(line)
            continue
        pending.append(line)
        is_open ^= line.count('"') % 2 == 1
        if not is_open:
            yield "\n".join(pending)
            pending = []
    if pending:
        yield "\n".join(pending)


def _cells(path: Path, row: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(row, newline="")))
    except csv.Error as error:
        raise GpudiagError(f"{path.name}: {_MISFIT}; {_AGAIN}.") from error


def _refuse_cut(path: Path, header: list[str], rows: list[str]) -> None:
    """A file that was cut off ends in half a row: an open quote, or too few cells."""
    last = rows[-1]
    cells = _cells(path, last)
    if last.count('"') % 2 or (len(cells) < _needed(header, cells) and len(rows) > 1):
        raise GpudiagError(f"{path.name}: the file is cut off in the middle of a row; {_AGAIN}.")


def _is_short(header: list[str], row: str) -> bool:
    """Return whether cells are missing at the row's end. The reader handles cells longer than the csv module reads."""
    try:
        cells = next(csv.reader([row]), [])
    except csv.Error:
        return False
    return len(cells) < _needed(header, cells)


def _needed(header: list[str], cells: list[str]) -> int:
    """Return how many cells a row that begins so has: metric rows of a details page end after the value."""
    if "Metric Value" not in header:
        return len(header)
    value = header.index("Metric Value")
    return value + 1 if len(cells) > value and cells[value] else len(header)


_MEASURED = ("ID", "Section Name", "Metric Name", "Metric Unit", "Metric Value")


def _details(path: Path, frame: pl.DataFrame) -> Page:
    if lost := [name for name in _MEASURED if name not in frame.columns]:
        raise GpudiagError(f"{path.name}: the column {lost[0]!r} is missing; {_AGAIN}.")
    key = [name for name in ("Process ID", "ID") if name in frame.columns]
    frame = frame.select([name for name in frame.columns if name in (*_LAUNCH, *_RULE, *_MEASURED)])
    firsts = frame.unique(key, keep="first", maintain_order=True).with_row_index("launch")
    firsts = firsts.with_columns(pl.col("launch").cast(pl.Int32))
    launches = _launches(firsts)
    firsts = firsts.select("launch", *key)
    numbered = frame.join(firsts, on=key, how="left", nulls_equal=True, maintain_order="left")
    metrics = numbered.filter(pl.col("Metric Name").fill_null("") != "").select(
        "launch",
        pl.col("Section Name").alias("section"),
        pl.col("Metric Name").alias("label"),
        pl.col("Metric Unit").fill_null("").alias("unit"),
        pl.col("Metric Value").fill_null("").alias("text"),
    )
    rule_name = pl.col("Rule Name") if "Rule Name" in frame.columns else pl.lit("")
    rules = numbered.filter(rule_name.fill_null("") != "").select("launch", *_columns(frame, _RULE))
    if metrics.is_empty():
        raise GpudiagError(f"{path.name}: it holds no metrics; {_AGAIN}.")
    return Page("details", launches, metrics, rules)


def _raw(path: Path, frame: pl.DataFrame) -> Page:
    # Columns of NVTX ranges carry "Domain:" in their names.
    columns = [name for name in frame.columns if name not in _IDENTITY and "Domain:" not in name]
    if not columns:
        raise GpudiagError(f"{path.name}: it holds no metrics; {_AGAIN}.")
    if frame["ID"][0]:
        raise GpudiagError(f"{path.name}: the row of units below the header is missing; {_AGAIN}.")
    numbered = frame.slice(1).with_row_index("launch").with_columns(pl.col("launch").cast(pl.Int32))
    if numbered.is_empty():
        raise GpudiagError(f"{path.name}: a header without rows: {_NO_KERNEL}.")
    units = pl.DataFrame(
        {"label": columns, "unit": [frame[name][0] or "" for name in columns]},
        schema={"label": pl.String, "unit": pl.String},
    )
    metrics = (
        numbered.unpivot(columns, index="launch", variable_name="label", value_name="text")
        .filter(pl.col("text").fill_null("") != "")
        .join(units, on="label", how="left", maintain_order="left")
        .select("launch", pl.lit(None, pl.String).alias("section"), "label", "unit", "text")
    )
    if metrics.is_empty():
        raise GpudiagError(f"{path.name}: it holds no metrics; {_AGAIN}.")
    rules = pl.DataFrame(schema={"launch": pl.Int32, **dict.fromkeys(_RULE.values(), pl.String)})
    return Page("raw", _launches(numbered), metrics, rules)


def _launches(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select("launch", *_columns(frame, _LAUNCH))


def _columns(frame: pl.DataFrame, wanted: dict[str, str]) -> list[pl.Expr]:
    """Columns by their new names; null where this version's page has none."""
    return [
        (pl.col(old) if old in frame.columns else pl.lit(None, pl.String)).alias(new) for old, new in wanted.items()
    ]
