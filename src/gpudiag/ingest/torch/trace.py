"""A trace on its way into the store: its identifiers, its names, and the times it is read by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from gpudiag.ingest.rows import append

LONGEST = 16_384
"""Characters of a name that are kept."""


@dataclass
class Trace:
    """One trace. Everything of it belongs to one process."""

    con: duckdb.DuckDBPyConnection
    stated: Mapping[str, Any]
    """What the file states beside its events."""
    first: Mapping[str, int]
    """The identifiers this input begins with, by table."""
    origin: int
    """The moment that the input's clock counts from, on the clock of the events (ns)."""
    whole_microseconds: bool
    dropped: int = 0
    found: dict[str, int] = field(default_factory=dict)
    """Rows added, by table."""

    @property
    def input(self) -> int:
        return self.first["input"]

    @property
    def process(self) -> int:
        return self.first["process"]


_IDENTIFIED = (
    "input", "process", "thread", "device", "stream", "api_call", "gpu_op", "nvtx_range", "py_sample", "op",
    "module_call",
)  # fmt: skip


def firsts(con: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Return the next identifier of each table."""
    counted = ", ".join(f'(select coalesce(max(id) + 1, 0) from "{table}")' for table in _IDENTIFIED)
    return dict(zip(_IDENTIFIED, con.execute(f"select {counted}").fetchall()[0], strict=True))


def intern(con: duckdb.DuckDBPyConnection, pairs: Iterable[tuple[str, str]]) -> None:
    """Give (text, short) pairs that are not in `name` yet their identifiers."""
    wanted = sorted({(text[:LONGEST], short[:LONGEST]) for text, short in pairs})
    if not wanted:
        return
    texts = [text for text, _ in wanted]
    known = set(
        con.execute("select text, short from name where text in (select unnest(?::varchar[]))", [texts]).fetchall()
    )
    row = con.execute("select coalesce(max(id) + 1, 0) from name").fetchone()
    new = [pair for pair in wanted if pair not in known]
    append(con, "name", ("id", "text", "short"), [(id_, *pair) for id_, pair in enumerate(new, row[0] if row else 0)])


def intern_same(con: duckdb.DuckDBPyConnection, texts: str) -> None:
    """Intern the texts that a query gives, each with itself as its short form."""
    con.execute(
        "insert into name select (select coalesce(max(id), -1) from name) + row_number() over (order by text), text,"
        f" text from (select distinct left(text, {LONGEST}) as text from ({texts}) where text is not null) new"
        " anti join name on name.text = new.text and name.short = new.text"
    )


Spans = Sequence[tuple[int, int, int]]
"""Thread, start and end (ns), ascending; of two that begin at once the longer one comes first."""


def innermost(outer: Spans, inner: Spans) -> list[int]:
    """Return for each inner span the position of the innermost outer one around it on its thread, -1 for none."""
    result, open_, at = list[int](), list[int](), 0
    for thread, start, end in inner:
        while at < len(outer) and outer[at][:2] <= (thread, start):
            _close(outer, open_, outer[at][0], outer[at][1] + 1)
            open_.append(at)
            at += 1
        _close(outer, open_, thread, end)
        result.append(open_[-1] if open_ else -1)
    return result


def _close(outer: Spans, open_: list[int], thread: int, until: int) -> None:
    """Drop spans of another thread, and those that end before a moment."""
    while open_ and (outer[open_[-1]][0] != thread or outer[open_[-1]][2] < until):
        open_.pop()
