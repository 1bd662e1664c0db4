"""Damage to the tables of an nsys export themselves: columns, kinds of tables, the table of tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from random import Random

from fuzz.generators import databases, hostile
from fuzz.generators.databases import Step, opened
from fuzz.generators.sqlite_names import Con, columns, quoted, table_of

MASTER = (
    "rootpage = (select rootpage from sqlite_master where name = :other)", "rootpage = 0", "rootpage = -1",
    "rootpage = 99999999", "rootpage = 1", "rootpage = null", "type = 'view'", "type = 'index'", "sql = null",
    "sql = 'create table x(a'", "sql = substr(sql, 1, length(sql) / 2)", "name = :other", "name = null",
    "tbl_name = 'x'", "name = x'ff00'", "sql = 'create table ' || name || '(a, b, c)'",
    "sql = replace(sql, 'INTEGER', 'TEXT')", "sql = replace(sql, '(', '(/*' || char(10) || '*/')",
    "rootpage = rootpage + 1", "sql = upper(sql)", "sql = sql || ' strict'", "rootpage = 'x'",
)  # fmt: skip


def schema(con: Con, random: Random, _: bytes) -> None:
    """Columns and tables missing, renamed, of another type, or of a kind that no export has."""
    table = table_of(con, random)
    name, have = quoted(table), columns(con, table)
    if not have:
        return
    column = quoted(random.choice(have))
    word = quoted(hostile.text(random)[:200].replace("\x00", "") or "x")
    listed = ", ".join(map(quoted, have))
    typed = ", ".join(f"{quoted(c)} {random.choice(('text', 'blob', 'integer', 'real', '', 'numeric'))}" for c in have)
    first = f"{quoted(have[0])} primary key"
    rest = "".join(f", {quoted(c)}" for c in have[1:])
    start = quoted("start" if "start" in have else have[0])
    times_key = ", ".join(f"{quoted(c)}{' integer primary key' if quoted(c) == start else ''}" for c in have)
    kept = [c for c in have if quoted(c) != column]
    moved = f"alter table {name} rename to moved"
    refill = f"insert or ignore into {name} select * from moved"
    fewer = ", ".join(map(quoted, kept)) or "x"
    endless = "with recursive c(k) as (select 1 union all select k + 1 from c) select k as start from c"
    options: tuple[tuple[str, ...], ...] = (
        (f"alter table {name} drop column {column}",),
        (f"alter table {name} rename column {column} to {word}",),
        (f"alter table {name} rename to {word}",),
        (f"drop table {name}",),
        (f"alter table {name} add column {word}",),
        (f"create table {word} (a, b)", f"insert into {word} values (1, 2)"),
        (moved, f"create view {name} as select * from moved"),
        (moved, f"create view {name} as {endless}"),
        (moved, f"create table {name} ({first}{rest}) without rowid", refill),
        (moved, f"create table {name} ({typed})", refill),
        (moved, f"create table {name} ({times_key})", refill),
        (moved, f"create virtual table {name} using fts5({', '.join(map(quoted, have[:8]))})"),
        (moved, f'create virtual table {name} using rtree(id, start, "end")'),
        (f"alter table {name} add column later integer generated always as (1 / 0) virtual",),
        (f"alter table {name} add column big integer generated always as (zeroblob(500000000)) virtual",),
        (
            moved,
            f"create table {name} ({fewer}, {column} generated always as (1) stored)",
            f"insert into {name} ({fewer}) select {fewer} from moved",
        ),
        (f"create table wide ({', '.join(f'c{k}' for k in range(1900))})",),
        (f"create trigger t after insert on {name} begin delete from {name}; end",),
        (f"create index i on {name} ({column})", f"create index j on {name} ({listed})"),
        (moved, f"create table {name} as select {listed}, {column} as {quoted(have[0].upper() + ' ')} from moved"),
        (moved, f"create table {name.upper()} as select * from moved"),
    )
    for statement in random.choice(options):
        con.execute(statement)


def master(con: Con, random: Random, _: bytes) -> None:
    """The table of tables itself: wrong roots, types and statements."""
    con.execute("pragma writable_schema = on")
    table = table_of(con, random)
    other = table_of(con, random)
    change = random.choice(MASTER)
    con.execute(
        f"update sqlite_master set {change} where name = :table",
        {"table": table, "other": other} if ":other" in change else {"table": table},
    )


STEPS: Mapping[str, Step] = {**databases.STEPS, "schema": schema, "master": master}


def damaged(name: str, content: bytes, random: Random, other: bytes) -> bytes:
    """The export after that step; unchanged where SQLite refuses it."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as con:
        try:
            opened(con, content)
            con.execute("pragma legacy_alter_table = on")
            con.execute("begin")
            STEPS[name](con, random, other)
            con.execute("commit")
            return con.serialize()
        except (sqlite3.Error, UnicodeDecodeError):  # the second where it quotes what is not UTF-8
            return content
