"""The interface between a reader and a file: its tables and columns, and their rows in bounded batches.

SQLite exports and Parquet folders are two sources of the same raw tables, so the SQL that fills the canonical tables
is written once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Protocol

ColumnType = Literal["int", "text"]
Columns = dict[str, ColumnType]


def ints(*names: str) -> dict[str, ColumnType]:
    """Column names as integer columns."""
    return dict.fromkeys(names, "int")


def texts(*names: str) -> dict[str, ColumnType]:
    """Column names as text columns."""
    return dict.fromkeys(names, "text")


class Source(Protocol):
    """One file or folder of raw tables, opened read-only."""

    def has(self, table: str) -> bool:
        """Return whether the table exists and has at least one row."""
        ...

    def columns(self, table: str) -> frozenset[str]:
        """The table's columns; empty when the table is missing."""
        ...

    def rows(self, table: str, columns: Columns, where: str = "true") -> list[tuple[Any, ...]]:
        """A small table's rows in file order: what the file describes, not what happened.

        Values are as in `batches`. `where` is a condition over the wanted columns in SQL that every source reads alike;
        a missing table has no rows.
        """
        ...

    def batches(self, table: str, columns: Columns) -> Iterator[str]:
        """Relations that may be named in FROM until the next one is asked for; they hold `rid` and the wanted columns.

        Rows come in file order and `rid` grows with it. A column the file does not have is NULL; text that is not
        UTF-8 is decoded with replacement characters; a missing or empty table gives no batch.
        """
        ...


def quoted(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
