"""Expressions that ask for a column of an SQLite table: in SQLite, in the driver's stream, in DuckDB.

kind: "text" or "int", as in `base.Columns`. present: whether the table has the column; it is NULL otherwise.
"""

from __future__ import annotations


def quoted(name: str) -> str:
    """A table's or column's name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def in_sqlite(name: str, kind: str, present: bool) -> str:
    """The column cast by SQLite, for rows that Python reads."""
    column = quoted(name)
    if not present:
        return f"null as {column}"
    value = f"nullif(cast({column} as text), '')" if kind == "text" else f"cast({column} as integer)"
    return f"{value} as {column}"


def streamed(name: str, kind: str) -> str:
    """The column for the driver's stream.

    The driver takes a column's type from its first rows, and fails on text that is not UTF-8: bytes, never NULL, avoid
    both.
    """
    column = quoted(name)
    return f"cast(coalesce({column}, '') as blob) as {column}" if kind == "text" else column


def in_duckdb(name: str, kind: str, present: bool) -> str:
    """The column of that stream, or of decoded pages, with its type in DuckDB."""
    column = quoted(name)
    if kind == "text":
        value = f"nullif(decode({column}, 'replace'), '')" if present else "null::varchar"
    else:
        value = f"{column}::bigint" if present else "null::bigint"
    return f"{value} as {column}"
