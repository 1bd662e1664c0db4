"""Rows of Python values into a canonical table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from gpudiag.schema import BY_NAME

Rows = list[tuple[Any, ...]]


def append(con: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str], rows: Rows) -> None:
    """Insert rows in one statement, whatever their number."""
    if not rows:
        return
    types = {column.name: column.type for column in BY_NAME[table].columns}
    values = ", ".join(f"unnest(${n}::{types[name]}[])" for n, name in enumerate(columns, 1))
    listed = ", ".join(f'"{name}"' for name in columns)
    con.execute(
        f'insert into "{table}" ({listed}) select {values}', [list(column) for column in zip(*rows, strict=True)]
    )
