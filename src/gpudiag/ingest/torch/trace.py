"""A trace on its way into the store: its identifiers, its names, and the times it is read by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from gpudiag.ingest.rows import append

Numbers = npt.NDArray[np.int64]

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


@dataclass(frozen=True)
class Spans:
    """Spans of time by thread and start; of two that begin at once the longer one comes first."""

    thread: Numbers
    start: Numbers
    end: Numbers

    def __len__(self) -> int:
        return len(self.start)


def innermost(outer: Spans, inner: Spans) -> Numbers:
    """Return for each inner span the position of the innermost outer one around it on its thread, -1 for none."""
    result = np.full(len(inner), -1, dtype=np.int64)
    for thread in np.intersect1d(outer.thread, inner.thread):
        first, last = np.searchsorted(outer.thread, [thread, thread + 1])
        chosen = np.flatnonzero(inner.thread == thread)
        begun = np.searchsorted(outer.start[first:last], inner.start[chosen], side="right")
        found = _last_reaching(outer.end[first:last], begun, inner.end[chosen])
        result[chosen] = np.where(found >= 0, found + first, -1)
    return result


def _last_reaching(end: Numbers, begun: Numbers, until: Numbers) -> Numbers:
    """Return for each query the last of the first `begun` spans that ends at `until` or later, -1 for none.

    Mostly it is the last one. For the others the latest ends of blocks of 2, 4, 8, … spans say which block holds it.
    """
    found = begun - 1
    asked = np.flatnonzero((found >= 0) & (end[found] < until))
    latest, held = [end], [asked[:0]]  # by size of the blocks: their latest ends, and the queries answered by one
    before, found[asked] = found[asked], -1  # blocks that are left, of those of the same size
    while asked.size:
        odd = np.flatnonzero(before & 1)
        holds = latest[-1][before[odd] - 1] >= until[asked[odd]]
        held[-1] = asked[odd[holds]]
        found[held[-1]] = before[odd[holds]] - 1
        left = before > 1
        left[odd[holds]] = False
        asked, before = asked[left], before[left] >> 1
        pairs = latest[-1][: len(latest[-1]) & ~1]
        latest.append(np.maximum(pairs[::2], pairs[1::2]))
        held.append(asked[:0])
    down = asked[:0]
    for size in range(len(latest) - 1, 0, -1):
        down = np.concatenate([down, held[size]])
        second = 2 * found[down] + 1
        found[down] = second - (latest[size - 1][second] < until[down])
    return found


def spans(con: duckdb.DuckDBPyConnection, query: str) -> Spans:
    """Return the spans that a query gives as columns `thread`, `start` and `end` in their order."""
    found = con.execute(query).fetchnumpy()
    return Spans(*(np.asarray(found[key], dtype=np.int64) for key in ("thread", "start", "end")))


def spans_of(rows: Sequence[tuple[int, ...]]) -> Spans:
    """Return rows of (thread, start, end) as spans."""
    return Spans(*np.array(rows, dtype=np.int64).reshape(len(rows), 3).T)
