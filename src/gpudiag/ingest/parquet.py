"""Folders written by `nsys export --type=parquetdir`: one <TABLE>.parquet a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from gpudiag.ingest.source import Columns


class ParquetSource:
    """The tables of one folder."""

    def __init__(self, path: Path, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        self._files = {
            table_name(file): file for file in sorted(path.iterdir()) if file.suffix == ".parquet" and file.is_file()
        }
        self._columns: dict[str, frozenset[str]] = {}

    def close(self) -> None:
        """Nothing is held open."""

    def columns(self, table: str) -> frozenset[str]:
        if table not in self._files:
            return frozenset()
        if table not in self._columns:
            rows = self._con.execute(f"describe select * from {self._scan(table)}").fetchall()
            self._columns[table] = frozenset(row[0] for row in rows)
        return self._columns[table]

    def has(self, table: str) -> bool:
        if table not in self._files:
            return False
        return bool(self._con.execute(f"select 1 from {self._scan(table)} limit 1").fetchall())

    def rows(self, table: str, columns: Columns, where: str = "true") -> list[tuple[Any, ...]]:
        if table not in self._files:
            return []
        present = self.columns(table)
        body = ", ".join(_column(name, kind, name in present) for name, kind in columns.items())
        scan = self._scan(table, ", file_row_number=true")
        return self._con.execute(
            f"select * exclude (rid) from (select file_row_number as rid, {body} from {scan})"
            f" where {where} order by rid"
        ).fetchall()

    def batches(self, table: str, columns: Columns) -> Iterator[str]:
        if not self.has(table):
            return
        present = self.columns(table)
        body = ", ".join(_column(name, kind, name in present) for name, kind in columns.items())
        self._con.execute(
            f"create or replace temp view raw_parquet as select file_row_number + 1 as rid, {body}"
            f" from {self._scan(table, ', file_row_number=true')}"
        )
        yield "raw_parquet"
        self._con.execute("drop view if exists raw_parquet")

    def _scan(self, table: str, options: str = "") -> str:
        path = str(self._files[table].resolve()).replace("'", "''")
        # A file name is a pattern to DuckDB: brackets and stars in it must match themselves.
        for character in "[*?":
            path = path.replace(character, f"[{character}]")
        return f"read_parquet('{path}', binary_as_string=false{options})"


def table_name(file: Path) -> str:
    """The raw table a Parquet file holds: its stem, less what some versions put before the last dot."""
    return file.stem.rsplit(".", 1)[-1]


def _column(name: str, kind: str, present: bool) -> str:
    quoted = '"' + name.replace('"', '""') + '"'
    if not present:
        return f"null::{'varchar' if kind == 'text' else 'bigint'} as {quoted}"
    if kind == "text":
        return f"nullif(decode({quoted}::blob, 'replace'), '') as {quoted}"
    return f"try_cast({quoted} as bigint) as {quoted}"
