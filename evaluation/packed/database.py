"""Read SQLite databases as columns, and write them back: the same rows in the same order, of the same types."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROWID = -1  # the position of a table's row ids among its columns
PRAGMAS = ("page_size", "user_version", "application_id")  # settings that a database keeps


class CannotPackError(Exception):
    """A database that this format does not hold; the message says why."""


@dataclass
class Table:
    """A table's statement and its columns by position; row ids too where they are not 1, 2, 3, …"""

    sql: str
    name: str
    names: list[str]
    rows: int
    columns: dict[int, Sequence[Any]]


@dataclass
class Database:
    """The content of a file: `settings` in the order of PRAGMAS, `statements` of its indices, views and triggers."""

    settings: list[int]
    tables: list[Table] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)


def read(file: Path) -> Database:
    """Read a database. Raises CannotPackError for what cannot be written back as it was."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)) as con:
        found = Database([con.execute(f"pragma {name}").fetchone()[0] for name in PRAGMAS])
        if con.execute("pragma encoding").fetchone()[0] != "UTF-8":
            raise CannotPackError(f"{file}: the text is not UTF-8")
        for kind, name, sql in con.execute("select type, name, sql from sqlite_master order by rowid").fetchall():
            if sql is None:
                continue  # an index that its table brings
            if kind != "table":
                found.statements.append(sql)
            elif name.startswith("sqlite_") or sql.lower().startswith("create virtual"):
                raise CannotPackError(f"{file}: {name} is SQLite's own or virtual")
            else:
                found.tables.append(_table(con, name, sql))
    return found


def write(database: Database, file: Path) -> None:
    """Write a database to a file that does not exist."""
    with closing(sqlite3.connect(file, isolation_level=None)) as con:
        con.execute("pragma journal_mode = off")
        con.execute("pragma synchronous = off")
        for name, value in zip(PRAGMAS, database.settings, strict=True):
            con.execute(f"pragma {name} = {value}")
        con.execute("begin")
        for table in database.tables:
            con.execute(table.sql)
            if not table.rows:
                continue
            names = [_quoted("rowid" if place == ROWID else table.names[place]) for place in table.columns]
            into = f"insert into {_quoted(table.name)} ({', '.join(names)}) values ({', '.join('?' * len(names))})"
            con.executemany(into, zip(*table.columns.values(), strict=True))
        for statement in database.statements:
            con.execute(statement)
        con.execute("commit")


def _table(con: sqlite3.Connection, name: str, sql: str) -> Table:
    about = con.execute(f"pragma table_info({_quoted(name)})").fetchall()
    names = [str(row[1]) for row in about]
    keys = [place for place, row in enumerate(about) if row[5] and str(row[2]).upper() == "INTEGER"]
    try:
        rows = con.execute(f"select rowid, * from {_quoted(name)} order by rowid").fetchall()
    except sqlite3.OperationalError as error:
        raise CannotPackError(f"{name}: {error}") from error
    columns: dict[int, Sequence[Any]] = dict(enumerate(zip(*rows, strict=True), start=ROWID)) if rows else {}
    usual = [tuple(range(1, len(rows) + 1)), *(columns[key] for key in keys if columns and len(keys) == 1)]
    if columns and columns[ROWID] in usual:
        del columns[ROWID]
    return Table(sql, name, names, len(rows), columns)


def described(sql: str) -> tuple[str, list[str]]:
    """Return the name and the columns of the table that a statement makes."""
    with closing(sqlite3.connect(":memory:")) as con:
        con.execute(sql)
        (name,) = con.execute("select name from sqlite_master where type = 'table'").fetchone()
        return str(name), [str(row[1]) for row in con.execute(f"pragma table_info({_quoted(name)})")]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
