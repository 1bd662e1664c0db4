"""Nsight Compute pages (`ncu --csv --page raw` or `--page details`) into the canonical tables.

Both pages give the same metric names and base units, so that one view serves both: `labels` knows the details
page's labels, `locale_numbers` the locale, `units` the units, `rule_text` what only ncu's rules say.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import duckdb
import polars as pl

from gpudiag.errors import GpudiagError
from gpudiag.ingest.ncu import csv_page, labels, locale_numbers, lost, rule_text, units
from gpudiag.ingest.ncu import names as ncu_names
from gpudiag.ingest.ncu.csv_page import Page
from gpudiag.ingest.ncu.evidence import EVIDENCE, capabilities
from gpudiag.ingest.numba import as_first_compiled

Connection = duckdb.DuckDBPyConnection

MOST_VALUE, MOST_A_SECOND, MOST_PERCENT = 1e15, 1e19, 1000
"""No counter of a launch comes near: a petabyte, days in ns. Rates are of one-bit operations, up to 2e16 a second on an
H200. Of a peak, a few counters read a little above 100 %."""

_ESTIMATE = re.compile(r"Est(?:\.|imated) (Local )?Speedup: *([0-9]+(?:[.,][0-9]+)?) *%")


class _Stream:
    """A frame as DuckDB can scan it without pyarrow."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


def looks_like(head: bytes) -> bool:
    """Return whether a file that begins so is a CSV page of Nsight Compute (details, raw, or a summary)."""
    return any(csv_page.is_header(line) for line in csv_page.decode(head).splitlines())


def read(file: Path, con: Connection, path: Path | None = None) -> None:
    """Append one CSV page to the store's tables; `path` is the user's file, of which `file` may be the content.

    Raises GpudiagError when it cannot be read.
    """
    path = path or file
    page = csv_page.read(file, path)
    append(con, os.fsencode(path.name).decode("utf-8", "replace"), page, metrics(path, page))


def append(con: Connection, file: str, page: Page, metrics: pl.DataFrame, lines: pl.DataFrame | None = None) -> None:
    """Append a page with the metrics it names; `lines`, where known: launch, and the columns of kernel_line."""
    read = ncu_names.complete(metrics)
    metrics = _possible(read)
    witnesses = {name for names, _ in EVIDENCE.values() for name in names}
    unread = lost.sentences(file, page, read, metrics, witnesses)
    launches = _profiles(page.launches, metrics)
    input_id = _next(con, "input")
    first = _next(con, "kernel_profile")
    con.execute(
        "insert into input (id, kind, producer, file, clock_offset_ns) values (?, 'ncu', 'Nsight Compute', ?, 0)",
        [input_id, file],
    )
    con.executemany(
        "insert into capability (input, name, state, how) values (?, ?, ?, ?)",
        [(input_id, name, state, how) for name, (state, how) in capabilities(page, metrics, lines).items()],
    )
    if unread:
        con.executemany("insert into diagnostic values (null, 'left_out', ?)", [[text] for text in unread])
    _insert_profiles(con, launches, input_id, first)
    at = (pl.col("launch") + first).alias("profile")
    _insert(con, "kernel_metric", metrics.select(at, "metric", "value", "text"))
    _insert(con, "kernel_rule", _rules(page.rules).with_columns(at).drop("launch"))
    if lines is not None:
        _insert(con, "kernel_line", lines.with_columns(at).drop("launch"))


def metrics(path: Path, page: Page) -> pl.DataFrame:
    """The page's metrics under their raw names in base units: launch, metric, value, text; each once a launch."""
    rows = _named(page)
    # A page repeats few cells (0, 100, device attributes) very often: each is read once.
    cells = rows.select("text", "unit").unique().with_columns(locale_numbers.tidy(pl.col("text")).alias("cell"))
    lists = rows.filter(pl.col("metric") == "launch__tpc_enabled")["text"].unique()  # "0,1" is no number there
    written = _notation(path, page, cells.filter(~pl.col("text").is_in(lists.implode())))
    exponents = {unit: units.exponent(unit) for unit in cells["unit"].unique().to_list()}
    powers = pl.col("unit").replace_strict(exponents, return_dtype=pl.Int32)
    cells = cells.with_columns(locale_numbers.number(pl.col("cell"), powers, written, page.kind).alias("value"))
    word = pl.when(pl.col("value").is_null()).then(pl.col("text")).alias("text")
    found = rows.join(cells, on=["text", "unit"], how="left", maintain_order="left")
    return _with_sentences(found.select("launch", "metric", "value", word), page)


def _possible(metrics: pl.DataFrame) -> pl.DataFrame:
    """Counters that cannot be become texts, from which nothing is concluded: of a damaged page, or by noise between
    passes, for which a minimum over units may read a little below nothing.
    """
    value = pl.col("value")
    parts = pl.col("metric").str.contains(r"(\.pct|_pct)\b") & (value > MOST_PERCENT)
    most = pl.when(pl.col("metric").str.contains("per_second")).then(MOST_A_SECOND).otherwise(MOST_VALUE)
    impossible = (value < 0) | (value > most) | value.is_nan() | parts
    return metrics.with_columns(
        pl.when(~impossible).then(value).alias("value"),
        pl.when(impossible).then(pl.coalesce("text", value.cast(pl.String))).otherwise(pl.col("text")).alias("text"),
    )


def _named(page: Page) -> pl.DataFrame:
    """The page's cells with the raw metric name of each."""
    if page.kind == "raw":
        return page.metrics.with_columns(pl.col("label").alias("metric"))
    names = page.metrics.select("section", "label").unique()
    metrics = [labels.metric(*pair) for pair in names.rows()]
    names = names.with_columns(pl.Series("metric", metrics, dtype=pl.String))
    return page.metrics.join(names, on=["section", "label"], how="left", maintain_order="left")


def _notation(path: Path, page: Page, cells: pl.DataFrame) -> locale_numbers.Notation:
    """Return the file's notation of numbers; on a raw page it is recognised by values without a unit, if any."""
    localised = cells if page.kind == "details" else cells.filter(pl.col("unit") == "")
    try:
        found = locale_numbers.notation(locale_numbers.shapes(localised["cell"]), page.kind)
        if found is None and page.kind == "raw":
            found = locale_numbers.notation(locale_numbers.shapes(cells["cell"]), page.kind)
    except locale_numbers.MixedNotation:
        raise GpudiagError(
            f"{path.name}: its numbers are written in more than one locale; export it again with LC_ALL=C."
        ) from None
    return found or locale_numbers.Notation()


def _with_sentences(metrics: pl.DataFrame, page: Page) -> pl.DataFrame:
    """Each name once a launch, with what only the rules' sentences state; a printed metric comes first and wins."""
    if page.kind == "raw":
        return metrics
    stated = [
        (launch, metric, value, None)
        for launch, rule, text in page.rules.select("launch", "rule", "text").rows()
        for metric, value in rule_text.facts(rule, text or "")
    ]
    both = pl.concat([metrics, pl.DataFrame(stated, schema=metrics.schema, orient="row")])
    return both.unique(["launch", "metric"], keep="first", maintain_order=True)


def _profiles(launches: pl.DataFrame, metrics: pl.DataFrame) -> pl.DataFrame:
    """One row a launch: launch, kernel, device_name, cc, grid, block, duration_ns, process, stream."""
    wanted = {
        "gpu__time_duration.sum": "duration_ns",
        "launch__grid_size": "grid_metric",
        "launch__block_size": "block_metric",
    }
    for metric, column in wanted.items():
        one = metrics.filter(pl.col("metric") == metric).select("launch", pl.col("value").alias(column))
        launches = launches.join(one, on="launch", how="left", maintain_order="left")
    display = metrics.filter(pl.col("metric") == "device__attribute_display_name")
    display = display.select("launch", pl.col("text").alias("device_name"))
    return launches.join(display, on="launch", how="left", maintain_order="left").select(
        "launch",
        pl.col("kernel").fill_null("(unnamed kernel)"),
        "device_name",
        "cc",
        pl.coalesce(_product("grid"), pl.col("grid_metric")).cast(pl.Int64, strict=False).alias("grid"),
        pl.coalesce(_product("block"), pl.col("block_metric")).cast(pl.Int32, strict=False).alias("block"),
        "duration_ns",
        pl.col("process").cast(pl.Int64, strict=False),
        pl.col("stream").cast(pl.Int64, strict=False),
    )


def _product(column: str) -> pl.Expr:
    """`(32, 32, 1)` → 1024; null for anything else."""
    triple = pl.col(column).str.extract_groups(r"^\((\d+), (\d+), (\d+)\)$")
    x, y, z = (triple.struct.field(str(i)).cast(pl.Float64, strict=False) for i in (1, 2, 3))
    return x * y * z


def _rules(rules: pl.DataFrame) -> pl.DataFrame:
    """Return the messages of ncu's rules, with the estimate from its columns or (older versions) from the sentence."""
    estimates = [_estimate(*row) for row in rules.select("text", "scope", "estimate").rows()]
    return rules.drop("scope").with_columns(
        pl.col("section").replace(labels.SECTIONS),
        pl.Series("estimate", [e[0] for e in estimates], dtype=pl.Float64),
        pl.Series("estimate_kind", [e[1] for e in estimates], dtype=pl.String),
    )


def _estimate(text: str | None, scope: str | None, estimate: str | None) -> tuple[float | None, str | None]:
    """(percent, global or local). The column keeps the point in every locale; a comma is taken for one."""
    if estimate:
        try:
            return float(estimate.replace(",", ".")), scope or None
        except ValueError:
            return None, None
    found = _ESTIMATE.search(text or "")
    if found is None:
        return None, None
    return float(found.group(2).replace(",", ".")), "local" if found.group(1) else "global"


def _insert_profiles(con: Connection, launches: pl.DataFrame, input_id: int, first: int) -> None:
    texts = launches["kernel"].unique(maintain_order=True).to_list()
    compiled = {text: as_first_compiled(text) for text in texts}
    interned = _intern(con, list(dict.fromkeys(compiled.values())))
    names = {text: interned[name] for text, name in compiled.items()}
    profiles = launches.select(
        (pl.col("launch") + first).alias("id"),
        pl.lit(input_id, pl.Int32).alias("input"),
        pl.col("launch").alias("ordinal"),
        pl.col("kernel").replace_strict(names, return_dtype=pl.Int32).alias("name"),
        "device_name", "cc", "grid", "block", "duration_ns", "process", "stream",
    )  # fmt: skip
    _insert(con, "kernel_profile", profiles)


def _intern(con: Connection, texts: list[str]) -> dict[str, int]:
    """Identifiers of kernel names, those the store already has included."""
    query = "select text, min(id) from name where list_contains(?, text) group by 1"
    known = dict(con.execute(query, [texts]).fetchall())
    new = [text for text in texts if text not in known]
    rows = [(at, text, short_name(text)) for at, text in enumerate(new, _next(con, "name"))]
    if rows:
        con.executemany("insert into name (id, text, short) values (?, ?, ?)", rows)
    return {**known, **{text: at for at, text, _ in rows}}


def short_name(kernel: str) -> str:
    """A kernel's base name: without parameters, template arguments, namespaces and return type."""
    bare = kernel.replace("(anonymous namespace)", "").replace("<unnamed>", "")
    depth = 0
    kept: list[str] = []
    for character in bare:
        if character in "<[":
            depth += 1
        elif character in ">]":
            depth = max(depth - 1, 0)
        elif character == "(" and depth == 0 and kept:
            break
        elif depth == 0:
            kept.append(character)
    words = "".join(kept).split("::")[-1].split()
    return words[-1] if words else kernel


def _next(con: Connection, table: str) -> int:
    """The first free identifier of a table."""
    row = con.execute(f"select coalesce(max(id) + 1, 0) from {table}").fetchall()
    return int(row[0][0])


def _insert(con: Connection, table: str, frame: pl.DataFrame) -> None:
    if frame.is_empty():
        return
    columns = ", ".join(f'"{name}"' for name in frame.columns)
    con.register("ncu_frame", _Stream(frame))
    try:
        con.execute(f'insert into "{table}" ({columns}) select {columns} from ncu_frame')
    finally:
        con.unregister("ncu_frame")
