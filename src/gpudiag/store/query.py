"""Run one query and give its rows as JSON could hold them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any

import duckdb
from numpy.typing import NDArray

from gpudiag.model import Row


def run(
    con: duckdb.DuckDBPyConnection, sql: str, params: Mapping[str, float] | None = None, limit: int | None = None
) -> tuple[Row, ...]:
    """The query's rows, in its order, at most `limit`. Raises duckdb.Error."""
    return rows(con.execute(sql, dict(params or {})), limit)


def rows(cursor: duckdb.DuckDBPyConnection, limit: int | None = None) -> tuple[Row, ...]:
    """The rows of a query that was executed, at most `limit`. Raises duckdb.Error."""
    names = [str(column[0]) for column in cursor.description or ()]
    found = cursor.fetchall() if limit is None else cursor.fetchmany(limit)
    return tuple(dict(zip(names, map(plain, row), strict=True)) for row in found)


def keep(con: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, NDArray[Any]]) -> None:
    """Make a temporary table of arrays. Bound as parameters, half a million values would take a second."""
    con.execute(f"drop table if exists {table}").fetchall()  # ends a result still open: `register` would refuse
    con.register("given_arrays", dict(columns))
    try:
        con.execute(f"create temp table {table} as from given_arrays").fetchall()
    finally:
        con.unregister("given_arrays")


def settled(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows as they are ordered, and those that are equally bad in an order that depends on the rows alone.

    Queries order by what a row is worth: a share, or the part of it that could go. Between equals the database answers
    in any order, and on many cores in another one each time. Rows without such columns stay as they are.
    """
    if not rows or not _worth(rows[0]):
        return tuple(rows)
    return tuple(row for _, equals in groupby(rows, _worth) for row in _fixed(tuple(equals)))


def anyhow(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Rows whose order means nothing, in one that depends on the rows alone."""
    return _fixed(tuple(rows))


def _worth(row: Row) -> list[Any]:
    return [value for name, value in row.items() if name.endswith("share") or name.startswith("recoverable")]


def _fixed(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    return tuple(sorted(rows, key=lambda row: repr(list(row.values())))) if len(rows) > 1 else rows


def plain(value: Any) -> Any:
    """A DuckDB value as JSON has it; what JSON cannot hold (not a number, infinite) is null."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return value if value is None or isinstance(value, bool | int | str) else str(value)
