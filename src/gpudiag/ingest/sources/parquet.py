"""Folders written by `nsys export --type=parquetdir`: one <TABLE>.parquet a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from gpudiag.ingest.sources.base import Columns


class ParquetSource:
    """The tables of one folder."""

    def __init__(self, path: Path, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        self._files = {
            table_name(file): file for file in sorted(path.iterdir()) if file.suffix == ".parquet" and file.is_file()
        }
        self._types: dict[str, dict[str, str]] = {}

    def close(self) -> None:
        """Nothing is held open."""

    def columns(self, table: str) -> frozenset[str]:
        return frozenset(self._typed(table))

    def _typed(self, table: str) -> dict[str, str]:
        """Column → DuckDB type."""
        if table not in self._files:
            return {}
        if table not in self._types:
            rows = self._con.execute(f"describe select * from {self._scan(table)}").fetchall()
            self._types[table] = {row[0]: row[1] for row in rows}
        return self._types[table]

    def has(self, table: str) -> bool:
        if table not in self._files:
            return False
        return bool(self._con.execute(f"select 1 from {self._scan(table)} limit 1").fetchall())

    def rows(self, table: str, columns: Columns, where: str = "true") -> list[tuple[Any, ...]]:
        if table not in self._files:
            return []
        types = self._typed(table)
        body = ", ".join(_column(name, kind, types.get(name)) for name, kind in columns.items())
        scan = self._scan(table, ", file_row_number=true")
        return self._con.execute(
            f"select * exclude (rid) from (select file_row_number as rid, {body} from {scan})"
            f" where {where} order by rid"
        ).fetchall()

    def batches(self, table: str, columns: Columns) -> Iterator[str]:
        if not self.has(table):
            return
        types = self._typed(table)
        body = ", ".join(_column(name, kind, types.get(name)) for name, kind in columns.items())
        self._con.execute(
            f"create or replace temp view raw_parquet as select file_row_number + 1 as rid, {body}"
            f" from {self._scan(table, ', file_row_number=true')}"
        )
        yield "raw_parquet"
        self._con.execute("drop view if exists raw_parquet")

    def _scan(self, table: str, options: str = "") -> str:
        path = str(self._files[table].absolute()).replace("'", "''")
        # A file name is a pattern to DuckDB: brackets and stars in it must match themselves.
        for character in "[*?":
            path = path.replace(character, f"[{character}]")
        return f"read_parquet('{path}', binary_as_string=false{options})"


def table_name(file: Path) -> str:
    """The raw table a Parquet file holds: its stem, less what some versions put before the last dot."""
    return file.stem.rsplit(".", 1)[-1]


def _column(name: str, kind: str, stored: str | None) -> str:
    """SQL for a column as the wanted kind; `stored`: the type it has in the file, None where it is absent."""
    quoted = '"' + name.replace('"', '""') + '"'
    if stored is None:
        return f"null::{'varchar' if kind == 'text' else 'bigint'} as {quoted}"
    if kind == "text":
        # Bytes that are marked as text are that already: a cast between the two would read backslashes as escapes.
        text = f"decode({quoted}, 'replace')" if stored == "BLOB" else f"try_cast({quoted} as varchar)"
        return f"nullif({text}, '') as {quoted}"
    return f"try_cast({quoted} as bigint) as {quoted}"
