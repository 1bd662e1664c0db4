"""Numbers known here as relations that queries join with: few as literals, many as a table."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

Numbers = tuple[int | None, ...]

_LITERALS = 1_000
"""Rows written into the query itself, which saves a statement; a hundred thousand would cost gigabytes to parse."""

_PREFIX = "nsys_map_"


def relation(con: duckdb.DuckDBPyConnection, name: str, columns: str, rows: Sequence[Numbers]) -> str:
    """A relation under a name, to be used before the next one of that name is made."""
    if not rows:
        nothing = ", ".join("null::bigint" for _ in columns.split(","))
        return f"(from (values ({nothing})) where false) as {name}({columns})"
    if len(rows) <= _LITERALS:
        body = ", ".join(f"({', '.join('null' if value is None else str(value) for value in row)})" for row in rows)
        return f"(values {body}) as {name}({columns})"
    import numpy as np

    arrays = {}
    for column, values in zip(columns.split(", "), zip(*rows, strict=True), strict=True):
        missing = np.fromiter((value is None for value in values), np.bool_, len(values))
        known = np.fromiter((0 if value is None else value for value in values), np.int64, len(values))
        arrays[column] = np.ma.masked_array(known, mask=missing) if missing.any() else known
    con.register(f"{_PREFIX}rows", arrays)
    try:
        con.execute(f"create or replace temp table {_PREFIX}{name} as from {_PREFIX}rows")
    finally:
        con.unregister(f"{_PREFIX}rows")
    return f"{_PREFIX}{name} as {name}"


def listed(con: duckdb.DuckDBPyConnection, name: str, numbers: Sequence[int]) -> str:
    """Return the text between the brackets of `in (…)`."""
    if numbers and len(numbers) <= _LITERALS:  # a filter, where a relation would be a join
        return ", ".join(map(str, numbers))
    return f"select id from {relation(con, name, 'id', [(number,) for number in numbers])}"


def drop(con: duckdb.DuckDBPyConnection) -> None:
    """Take away the tables that were made."""
    query = "select table_name from duckdb_tables() where temporary and starts_with(table_name, ?)"
    for (table,) in con.execute(query, [_PREFIX]).fetchall():
        con.execute(f"drop table {table}")
