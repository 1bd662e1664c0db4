"""Run one query and give its rows as JSON could hold them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import duckdb

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
