"""Convert a table's columns to 64-bit integers and their kinds, and back.

NULL takes the value of the row before, which costs nothing. A text or blob becomes its place in the file's list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.packed.columns import Columns, Ints
from evaluation.packed.database import ROWID, Table, described
from evaluation.packed.streams import Reader, Writer

CALLS, KEY = "CUPTI_ACTIVITY_KIND_RUNTIME", "correlationId"  # rows of other tables belong to one call each
SPAN = ("start", "end")  # the end is coded as the time since the start
NULL, INTEGER, REAL, TEXT, BLOB, MIXED = range(6)
KIND = {type(None): NULL, int: INTEGER, float: REAL, str: TEXT, bytes: BLOB}

Listed = dict[str | bytes, int]
"""Text or blob → its place in the list."""


@dataclass
class Laid:
    """A table as integers: its columns by place, what each stands for, and the places of its span."""

    name: str
    names: list[str]
    statement: int  # its place in the list
    rows: int
    codes: dict[int, Ints]
    kinds: dict[int, Ints]
    span: tuple[int, int] | None


def lay_out(table: Table, listed: Listed) -> Laid:
    """Convert a table to integers; texts and blobs are added to the list."""
    statement = listed.setdefault(table.sql, len(listed))
    kinds = {place: np.array([KIND[type(value)] for value in column]) for place, column in table.columns.items()}
    codes = {place: _codes(column, listed) for place, column in table.columns.items()}
    span = _span(table.names, kinds)
    if span:
        codes[span[1]] -= codes[span[0]]
        codes[span[1]][kinds[span[1]] == NULL] = 0
    return Laid(table.name, table.names, statement, table.rows, codes, kinds, span)


def put(table: Laid, writer: Writer, calls: dict[str, Ints]) -> list[Any]:
    """Write a table; returns its entry in the manifest. `calls` is filled by the table CALLS, which comes first."""
    known: dict[str, Ints] = {}
    joined: Columns = {}
    entries = []
    for place in _sequence(table.codes, table.span):
        column, kinds = table.codes[place], table.kinds[place]
        entry: list[Any] = [place, int(kinds[0])]
        if (kinds != kinds[0]).any():
            entry = [place, MIXED, writer.put(kinds, known, {})]
        if entry[1] != NULL:
            carries = [str(table.span[1])] if table.span and place == table.span[0] else []
            entry += writer.put(column, known, joined, carries)
        known[str(place)] = column
        if place != ROWID and table.names[place] == KEY:
            joined = _joined(column, calls)
        entries.append(entry)
    _note_calls(table.name, table.names, known, calls)
    return [table.statement, table.rows, int(bool(table.span)), entries]


def take(manifest: Sequence[Any], reader: Reader, listed: Sequence[str | bytes], calls: dict[str, Ints]) -> Table:
    """Read a table, of which `put` returned the entry."""
    statement, rows, has_span, entries = manifest
    sql = str(listed[statement])
    name, names = described(sql)
    known: dict[str, Ints] = {}
    joined: Columns = {}
    kinds: dict[int, Ints] = {}
    for place, kind, *entry in entries:
        kinds[place] = np.full(rows, kind) if kind != MIXED else reader.take(entry.pop(0), rows, known, {})
        known[str(place)] = np.zeros(rows, np.int64) if kind == NULL else reader.take(entry, rows, known, joined)
        if place != ROWID and names[place] == KEY:
            joined = _joined(known[str(place)], calls)
    _note_calls(name, names, known, calls)
    if has_span:
        start, end = (str(names.index(side)) for side in SPAN)
        known[end] = known[end] + known[start]
    columns: dict[int, Sequence[Any]] = {
        place: _restored(known[str(place)], kinds[place], listed) for place in sorted(kinds)
    }
    return Table(sql, name, names, rows, columns)


def _restored(codes: Ints, kinds: Ints, listed: Sequence[str | bytes]) -> list[Any]:
    """Return a column's values from their integers and kinds."""
    values: list[Any] = codes.tolist()
    for kind in np.unique(kinds).tolist():
        if kind == INTEGER:
            continue
        rows = np.flatnonzero(kinds == kind).tolist()
        floats = codes.view(np.float64)
        for row in rows:
            values[row] = None if kind == NULL else float(floats[row]) if kind == REAL else listed[values[row]]
    return values


def _codes(column: Sequence[Any], listed: Listed) -> Ints:
    codes, last = [], 0
    for value in column:
        if isinstance(value, float):
            last = int(np.float64(value).view(np.int64))
        elif isinstance(value, int):
            last = value
        elif value is not None:
            last = listed.setdefault(value, len(listed))
        codes.append(last)
    return np.array(codes, np.int64)


def _span(names: Sequence[str], kinds: dict[int, Ints]) -> tuple[int, int] | None:
    """Return the places of start and end, where a table has both as integers."""
    if not set(SPAN) <= set(names):
        return None
    start, end = (names.index(side) for side in SPAN)
    whole = start in kinds and (kinds[start] == INTEGER).all() and (kinds[end] <= INTEGER).all()
    return (start, end) if whole else None


def _sequence(codes: dict[int, Ints], span: tuple[int, int] | None) -> list[int]:
    """Return the places in the order of coding: few values first, and the start last, as the others say most of it."""
    start = span[0] if span else None
    return sorted(codes, key=lambda place: (place == start, len(np.unique(codes[place])), place))


def _joined(keys: Ints, calls: dict[str, Ints]) -> Columns:
    """Return when the call of each row began, how long it took and when it ended; 0 for rows without one."""
    if not calls or not len(calls[KEY]):
        return {}
    order = np.argsort(calls[KEY], kind="stable")
    rows = order[np.searchsorted(calls[KEY][order], keys).clip(max=len(order) - 1)]
    found = calls[KEY][rows] == keys
    start, length = (np.where(found, calls[side][rows], 0) for side in SPAN)
    return {"start": start, "length": length, "stop": start + length}


def _note_calls(name: str, names: Sequence[str], known: Columns, calls: dict[str, Ints]) -> None:
    """Keep what other tables are joined with, where this is the table of calls and has all of it."""
    if name == CALLS and {KEY, *SPAN} <= set(names) and known:
        calls.update({side: known[str(names.index(side))] for side in (KEY, *SPAN)})
