"""SQLite exports: any table as DuckDB relations, streamed through ADBC without pyarrow."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import adbc_driver_manager
import adbc_driver_sqlite
import duckdb

from gpudiag.ingest.limits import INTERRUPTIBLE, LONGEST_DEFAULT, MOST_TABLES, STEPS, STEPS_A_BYTE
from gpudiag.ingest.pace import TablePace
from gpudiag.ingest.sources.base import Columns
from gpudiag.ingest.sources.sqlite_columns import in_duckdb, in_sqlite, quoted, streamed
from gpudiag.ingest.sources.sqlite_tree import Trees

BATCH_ROWS = 1_000_000
"""Rows staged at once: bounds memory to about 200 MB for the widest table."""

PAGES_FROM = 500_000
"""Rows from which decoding pages pays for loading the compiler's cached code."""

PAGES_ONCE_LOADED = 50_000
"""The same once that code is loaded, for a table before."""

ARROW_ROWS = 16_384
"""Rows of one Arrow batch: the driver's default of 1,024 costs 15 % more time."""


def uri(path: Path) -> str:
    """An SQLite URI that neither locks the file nor looks for a journal beside it."""
    return f"file:{quote(os.fsencode(path.resolve()))}?mode=ro&immutable=1"


def schema(path: Path) -> tuple[sqlite3.Connection, Trees]:
    """The database, open, and the pages of its schema, checked. Raises sqlite3.Error."""
    trees = Trees(path)
    try:
        if (count := trees.check(1)) > MOST_TABLES:
            raise sqlite3.DatabaseError(f"it states {count:,} tables")
        con = sqlite3.connect(uri(path), uri=True)
    except BaseException:
        trees.close()
        raise
    con.set_progress_handler(_deadline(path.stat().st_size), INTERRUPTIBLE)
    return con, trees


def _deadline(size: int) -> Callable[[], bool]:
    """A progress handler that ends a query once all together took more steps than a file of `size` bytes can need.

    Python hears a signal whenever SQLite calls it. Steps are the same on every machine, however busy.
    """
    calls = (STEPS + STEPS_A_BYTE * size) // INTERRUPTIBLE
    taken = count(1)
    return lambda: next(taken) > calls


def tables(con: sqlite3.Connection) -> set[str]:
    """The names of the stored tables. A view may be endless, and a virtual table runs code: neither is an export's."""
    con.text_factory = lambda raw: raw.decode("utf-8", "replace")  # names in a damaged file need not be UTF-8
    found = con.execute(
        "select name from sqlite_master where type = 'table' and typeof(name) = 'text' and sql like 'create table%'"
    )
    return {name for (name,) in found}


class SqliteSource:
    """The tables of one SQLite database. say: hears the progress over the tables `expected`, as that of `what`."""

    def __init__(
        self,
        path: Path,
        con: duckdb.DuckDBPyConnection,
        say: Callable[[str], None] = lambda _: None,
        what: str = "reading",
        expected: Collection[str] = (),
    ) -> None:
        self._con = con
        self._pace = TablePace(say, what, lambda: sum(b - a for a, b in map(self._extent, filter(self.has, expected))))
        self._path = path
        self._say = say
        self._uri = uri(path)
        self._schema, self._trees = schema(path)
        self._tables = tables(self._schema)
        self._roots = self._schema.execute(
            "select tbl_name, rootpage from sqlite_master where rootpage > 0 and typeof(rootpage) = 'integer'"
        ).fetchall()
        self._checked: set[str] = set()
        self._columns: dict[str, frozenset[str]] = {}
        self._stream: _Reader | None = None
        self._decoder_loaded = False

    def close(self) -> None:
        self._schema.close()
        self._trees.close()
        if self._stream:
            self._stream.close()
            self._con.execute("drop table if exists raw_batch")

    def columns(self, table: str) -> frozenset[str]:
        if table not in self._columns:
            rows = self._schema.execute(f"pragma table_info({quoted(table)})").fetchall() if self._holds(table) else []
            if any(len(str(row[4])) > LONGEST_DEFAULT for row in rows):
                raise sqlite3.DatabaseError(f"a column of {table} has an endless default value")
            self._columns[table] = frozenset(row[1] for row in rows)
        return self._columns[table]

    def _holds(self, table: str) -> bool:
        return table in self._tables

    def _check(self, table: str) -> None:
        """Check the pages of a table before all of it is read. Raises sqlite3.DatabaseError."""
        if table not in self._checked:
            for name, root in self._roots:
                if name == table:
                    self._trees.check(root)
            self._checked.add(table)

    def _number(self, table: str) -> str:
        """Return SQLite's name of the row number: the first of its names that is no column's."""
        columns = self._schema.execute(f"pragma table_xinfo({quoted(table)})").fetchall()
        taken = {str(row[1]).lower() for row in columns}
        for name in ("rowid", "_rowid_", "oid"):
            if name not in taken:
                return name
        raise sqlite3.DatabaseError(f"columns of {table} take all names of its rows' numbers")

    def has(self, table: str) -> bool:
        if not self._holds(table):
            return False
        return self._schema.execute(f"select 1 from {quoted(table)} limit 1").fetchone() is not None

    def rows(self, table: str, columns: Columns, where: str = "true") -> list[tuple[Any, ...]]:
        if not self._holds(table):
            return []
        present = self.columns(table)
        self._check(table)
        body = ", ".join(in_sqlite(name, kind, name in present) for name, kind in columns.items())
        # In WHERE a name means the stored column, before its cast: so that an index on it is used.
        query = f"select {body} from {quoted(table)} where {where}"
        return self._schema.execute(query).fetchall()

    def batches(self, table: str, columns: Columns) -> Iterator[str]:
        if not self.has(table):
            return
        first, last = self._extent(table)
        begin = first
        if last - first >= (min(PAGES_ONCE_LOADED, PAGES_FROM) if self._decoder_loaded else PAGES_FROM):
            for view, read_to in self._pages(table, columns):
                first = read_to + 1
                self._pace.reached(table, read_to - begin)
                yield view
        if first <= last:
            self._check(table)
            for view, read_to in self._streamed(table, columns, self._number(table), first, last):
                self._pace.reached(table, read_to - begin)
                yield view

    def _extent(self, table: str) -> tuple[int, int]:
        """Return the first and the last row's number of a table that has rows."""
        number, name = self._number(table), quoted(table)
        # Asked for together, SQLite would read the whole table.
        query = f"select (select min({number}) from {name}), (select max({number}) from {name})"
        found: tuple[int, int] = self._schema.execute(query).fetchone()
        return found

    def _streamed(self, table: str, columns: Columns, number: str, first: int, last: int) -> Iterator[tuple[str, int]]:
        """Batches of the rows from one number to another, with the last number of each."""
        present = self.columns(table)
        wanted = ", ".join(streamed(name, kind) for name, kind in columns.items() if name in present)
        body = ", ".join(in_duckdb(name, kind, name in present) for name, kind in columns.items())
        self._stream = self._stream or _Reader(self._uri)
        rows, start = 0, first
        # By number of rows, not by ranges of ids: ids may be as far apart as times are.
        while start <= last:
            query = (
                f"select {number} as rid{', ' + wanted if wanted else ''} from {quoted(table)}"
                f" where {number} >= {start} order by {number} limit {BATCH_ROWS}"
            )
            with self._stream.open(query) as stream:
                self._con.register("raw_stream", stream)
                try:
                    self._con.execute(f"create or replace temp table raw_batch as select rid, {body} from raw_stream")
                finally:
                    self._con.unregister("raw_stream")
            found, read_to = self._con.execute("select count(*), max(rid) from raw_batch").fetchall()[0]
            if not found:
                break
            rows, start = rows + found, read_to + 1
            yield "raw_batch", read_to
        # The driver ends a stream at a damaged page as if it were the end of the table.
        counted = self._schema.execute(f"select count(*) from {quoted(table)} where {number} >= {first}").fetchone()[0]
        if rows != counted:
            raise sqlite3.DatabaseError(f"{counted - rows} rows of {table} cannot be read")

    def _pages(self, table: str, columns: Columns) -> Iterator[tuple[str, int]]:
        """Batches of a large plain table with the last row id of each; ends early where it is not plain."""
        stored = self._schema.execute(f"pragma table_xinfo({quoted(table)})").fetchall()
        names = [row[1] for row in stored]
        wanted = [name for name in columns if name in names]
        row = self._schema.execute(
            "select rootpage from sqlite_master where type = 'table' and name = ?", (table,)
        ).fetchone()
        why = _why_not(columns, wanted, stored)
        if why is None and row is not None:
            try:
                from gpudiag.ingest.sources.sqlite_pages import Unsuited
            except ImportError:
                why = "numba is not installed"
            else:
                try:
                    yield from self._decoded(columns, names, wanted, row[0])
                except Unsuited as unsuited:
                    why = str(unsuited)
        if why:
            self._say(f"reading {table} with SQLite, which takes longer: {why}")

    def _decoded(
        self, columns: Columns, names: Sequence[str], wanted: Sequence[str], root: int
    ) -> Iterator[tuple[str, int]]:
        from gpudiag.ingest.sources.sqlite_pages import Pages

        self._decoder_loaded = True
        body = ", ".join(in_duckdb(name, kind, name in names) for name, kind in columns.items())
        with closing(Pages(self._path)) as pages:
            try:
                for rowids, values in pages.batches(root, len(names), [names.index(name) for name in wanted]):
                    if len(rowids):
                        self._con.register("raw_pages", {"rid": rowids, **dict(zip(wanted, values, strict=True))})
                        self._con.execute(f"create or replace temp view raw_view as select rid, {body} from raw_pages")
                        yield "raw_view", int(rowids[-1])
            finally:
                self._con.execute("drop view if exists raw_view")
                self._con.unregister("raw_pages")


def _why_not(columns: Columns, wanted: Sequence[str], stored: Sequence[tuple[Any, ...]]) -> str | None:
    """Explain why a table's pages cannot be decoded, as far as its columns show."""
    if "text" in columns.values():
        return "it holds text"
    if not wanted:
        return "it has none of the columns that are needed"
    # A key column may stand for the row id (and is then stored as NULL); a generated one is not stored at all.
    return "it has a key or generated columns" if any(row[5] or row[6] for row in stored) else None


class _Reader:
    """A connection whose queries are Arrow streams, which DuckDB reads once."""

    def __init__(self, uri: str) -> None:
        self._database = adbc_driver_manager.AdbcDatabase(driver=adbc_driver_sqlite._driver_path(), uri=uri)
        self._connection = adbc_driver_manager.AdbcConnection(self._database)

    @contextmanager
    def open(self, query: str) -> Iterator[Any]:
        statement = adbc_driver_manager.AdbcStatement(self._connection)
        try:
            statement.set_options(**{"adbc.sqlite.query.batch_rows": str(ARROW_ROWS)})
            statement.set_sql_query(query)
            handle, _ = statement.execute_query()
            yield handle
            del handle
        finally:
            statement.close()

    def close(self) -> None:
        self._connection.close()
        self._database.close()
