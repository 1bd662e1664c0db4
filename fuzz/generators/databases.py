"""Damage to the rows of an nsys export: values, times, ids, ranges, what the file says of itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from random import Random

from fuzz.generators import hostile
from fuzz.generators.sqlite_names import EVENTS, Con, column_of, columns, quoted, some, table_of, tables

IDS = (
    "correlationId", "globalTid", "globalPid", "deviceId", "contextId", "streamId", "nameId", "graphNodeId", "graphId",
    "textId", "domainId", "rangeId", "shortName", "demangledName", "eventId", "eventSyncId", "id", "copyKind",
    "syncType", "eventType", "jsonTextId", "callchainId",
)  # fmt: skip

Step = Callable[[Con, Random, bytes], None]


def cells(con: Con, random: Random, _: bytes) -> None:
    """A hostile value in a column, in one row or in many."""
    table = table_of(con, random)
    column = column_of(con, table, random)
    if column is None:
        return
    where = some(table, random)
    con.execute(f"update {quoted(table)} set {quoted(column)} = ? where {where}", (hostile.value(random),))


def scattered(con: Con, random: Random, _: bytes) -> None:
    """Another hostile value in each of many rows of a column."""
    table = table_of(con, random)
    column = column_of(con, table, random)
    if column is None:
        return
    rows = [row for (row,) in con.execute(f"select rowid from {quoted(table)} limit 300")]
    pool = [hostile.value(random) for _ in range(12)]
    pool = [one if not isinstance(one, str | bytes) else one[:2000] for one in pool]
    con.executemany(
        f"update {quoted(table)} set {quoted(column)} = ? where rowid = ?",
        [(random.choice(pool), row) for row in rows if random.random() < 0.5],
    )


TIMES = (
    "start = {n}", '"end" = {n}', 'start = "end", "end" = start', '"end" = start', '"end" = start - 1',
    "start = -start", 'start = start + {n}, "end" = "end" + {n}', 'start = start * 1000, "end" = "end" * 1000',
    'start = 0, "end" = 0', 'start = start / 1000000, "end" = "end" / 1000000', '"end" = "end" + {n}',
    "start = start - {n}", 'start = 9000000000 - start, "end" = 9000000000 - "end"',
    'start = 10 * rowid, "end" = 10 * rowid + {n}', 'start = 5000, "end" = 5000 + rowid',
    '"end" = 9223372036854775807', 'start = 9223372036854775806, "end" = 9223372036854775807',
    'start = 1 - 9223372036854775807 + rowid', "start = null", '"end" = null',
    'start = 3999999999999999990, "end" = 3999999999999999999',
    'start = start + 1000000000 * (rowid % 5), "end" = "end" + 1000000000 * (rowid % 5)',
    'start = cast(start as text)', 'start = start * 1.5, "end" = "end" * 1.5', '"end" = start + {n} * (rowid % 2)',
)  # fmt: skip


def times(con: Con, random: Random, _: bytes) -> None:
    """Times that are missing, negative, run backwards, overlap, stand still or leave the range."""
    table = table_of(con, random)
    if not {"start", "end"} <= set(columns(con, table)):
        return
    by = random.choice((1, 1000, 10**6, 10**9, 10**12, 10**15, 2**61, -(10**6), -(10**10)))
    where = some(table, random)
    change = random.choice(TIMES).replace("{n}", str(by))
    con.execute(f"update {quoted(table)} set {change} where {where}")


CHANGES = (
    "0", "-1", "null", "{c} + 1", "-{c}", "rowid", "rowid % 3", "rowid * 16777216", "{n}", "{n} + rowid % 2",
    "{c} | (1 << 62)", "{c} * 2", "9223372036854775807 - rowid", "abs(random()) % 5", "{c} & 15", "{c} + (1 << 32)",
    "cast({c} as text)", "{c} >> 24", "(rowid << 24) | (rowid % 7)", "{c} / 2", "-9223372036854775807 + rowid",
    "{c} + 0.5",
)  # fmt: skip


def ids(con: Con, random: Random, _: bytes) -> None:
    """Ids that are repeated, dangling, absurd, or so many that each row has its own."""
    table = table_of(con, random)
    column = column_of(con, table, random, IDS)
    if column is None:
        return
    change = (
        random.choice(CHANGES).replace("{c}", quoted(column)).replace("{n}", str(random.choice(hostile.NUMBERS[:20])))
    )
    change = change.replace("abs(random())", f"(rowid * {random.randrange(1, 10**6)})")
    where = some(table, random)
    con.execute(f"update {quoted(table)} set {quoted(column)} = {change} where {where}")


def rows(con: Con, random: Random, _: bytes) -> None:
    """Rows lost, repeated, or in another order."""
    table = table_of(con, random)
    name, listed = quoted(table), ", ".join(quoted(c) for c in columns(con, table))
    kind = random.randrange(5)
    if kind == 0:
        con.execute(f"delete from {name}")
    elif kind == 1:
        con.execute(f"delete from {name} where {some(table, random)}")
    elif kind == 2:
        con.execute(f"delete from {name} where rowid > (select min(rowid) + {random.randrange(3)} from {name})")
    elif kind == 3:
        for _time in range(random.choice((1, 1, 3))):
            con.execute(f"insert or ignore into {name} ({listed}) select {listed} from {name} limit 2000")
    else:
        con.execute(f"create temp table shuffled as select * from {name} order by rowid * 7919 % 1009")
        con.execute(f"delete from {name}")
        con.execute(f"insert or ignore into {name} select * from shuffled")
        con.execute("drop table shuffled")


def many(con: Con, random: Random, _: bytes) -> None:
    """Thousands of streams, devices, processes, threads, names or ranges."""
    count = random.choice((500, 3000, 20_000))
    kind = random.randrange(5)
    event = random.choice([name for name in EVENTS if name in tables(con)] or ["NVTX_EVENTS"])
    have = columns(con, event)
    if kind < 3 and have:
        column = random.choice([c for c in IDS if c in have] or have)
        listed = ", ".join(quoted(c) for c in have)
        picked = ", ".join(
            "k * 16777216 + 5" if c == column and "global" in c else "k" if c == column else f"t.{quoted(c)}"
            for c in have
        )
        if random.random() < 0.5:
            picked = picked.replace('t."start"', 't."start" + k * 1000').replace('t."end"', 't."end" + k * 1000')
        con.execute(
            f"with recursive c(k) as (select 1 union all select k + 1 from c where k < {count}) "
            f"insert or ignore into {quoted(event)} ({listed}) select {picked} from c cross join "
            f"(select * from {quoted(event)} limit 1 offset {random.randrange(30)}) t"
        )
    elif kind == 3 and "StringIds" in tables(con):
        con.executemany(
            "insert or ignore into StringIds (id, value) values (?, ?)",
            [(10**6 + k, f"name {k}" * (k % 9)) for k in range(count)],
        )
        if "NVTX_EVENTS" in tables(con) and "textId" in columns(con, "NVTX_EVENTS"):
            con.execute(f"update NVTX_EVENTS set textId = 1000000 + rowid % {count}")
    elif "NVTX_EVENTS" in tables(con):
        nest(con, random, count)


def nest(con: Con, random: Random, count: int) -> None:
    """Ranges within ranges within ranges, or each overlapping the next."""
    step = random.choice((0, 1, 10))
    backwards = random.random() < 0.6
    have = columns(con, "NVTX_EVENTS")
    row = con.execute('select * from NVTX_EVENTS where "end" is not null limit 1').fetchone()
    if row is None or "start" not in have:
        return
    base = dict(zip(have, row, strict=True))
    if not isinstance(base["start"], int):
        return
    made = []
    for k in range(min(count, 5000)):
        end = base["start"] + 10**8 + (-k if backwards else k) * step
        one = {**base, "start": base["start"] + k * step, "end": end}
        if "rangeId" in one:
            one["rangeId"] = k
        made.append(tuple(one[c] for c in have))
    con.executemany(f"insert or ignore into NVTX_EVENTS values ({', '.join('?' * len(have))})", made)


def ranges(con: Con, random: Random, _: bytes) -> None:
    """NVTX ranges of the wrong kind, without text or end, or woven into each other."""
    if "NVTX_EVENTS" not in tables(con):
        return
    have = columns(con, "NVTX_EVENTS")
    where = some("NVTX_EVENTS", random)
    changes = {
        "eventType": random.choice((0, 33, 34, 39, 43, 59, 60, 70, 75, 76, 99)), "text": hostile.text(random),
        "textId": None, "domainId": random.choice((0, 1, -1, 10**9)), "endGlobalTid": 7 << 24, "globalTid": None,
        "jsonText": '{"a": [' * 500, "rangeId": 5, "end": None, "binaryData": b"\xff\x00", "jsonTextId": 1,
    }  # fmt: skip
    column = random.choice([name for name in changes if name in have] or ["start"])
    con.execute(f"update NVTX_EVENTS set {quoted(column)} = ? where {where}", (changes.get(column),))
    if random.random() < 0.3:
        con.execute('update NVTX_EVENTS set "end" = "end" + 3 * ("end" - start) where rowid % 2')


def foreign(con: Con, random: Random, other: bytes) -> None:
    """A table of another capture in the place of this one's."""
    with closing(sqlite3.connect(":memory:")) as second:
        opened(second, other)
        names = tables(second)
        if not names:
            return
        table = random.choice([name for name in EVENTS if name in names] or names)
        made = second.execute("select sql from sqlite_master where name = ?", (table,)).fetchone()[0]
        found = second.execute(f"select * from {quoted(table)} limit 2000").fetchall()
    con.execute(f"drop table if exists {quoted(table)}")
    con.execute(made)
    if found:
        con.executemany(f"insert or ignore into {quoted(table)} values ({', '.join('?' * len(found[0]))})", found)


def described(con: Con, random: Random, _: bytes) -> None:
    """Return the file's own description: capture options, versions, devices, the names of its enumerations."""
    names = [
        n
        for n in tables(con)
        if n.startswith(
            ("META_", "EXPORT_", "TARGET_INFO", "ENUM_", "PROCESS", "Thread", "DIAG", "ANALYSIS", "StringIds")
        )
    ]
    if not names:
        return
    table = random.choice(names)
    column = column_of(con, table, random)
    if column is None:
        return
    name, kind = quoted(table), random.randrange(4)
    if kind == 0:
        con.execute(f"update {name} set {quoted(column)} = (select {quoted(column)} from {name} limit 1 offset 1)")
    elif kind == 1:
        con.execute(
            f"update {name} set {quoted(column)} = ? where rowid % 3 = ?", (hostile.value(random), random.randrange(3))
        )
    elif kind == 2:
        con.execute(f"delete from {name} where rowid % 2")
    else:
        con.execute(f"update {name} set {quoted(column)} = {quoted(column)} || ?", (hostile.text(random)[:5000],))


def not_utf8(con: Con, random: Random, _: bytes) -> None:
    """Text that is not UTF-8, or holds NUL."""
    table = random.choice(
        [name for name in ("StringIds", "NVTX_EVENTS", "META_DATA_CAPTURE", "TARGET_INFO_GPU") if name in tables(con)]
        or ["x"]
    )
    column = column_of(con, table, random, ("value", "text", "name", "jsonText")) if table != "x" else None
    if column:
        raw = random.choice(("ff", "c328", "eda080", "610062", "f8a1a1a1a1", "63616665cc81", "e9"))
        where = some(table, random)
        con.execute(
            f"update {quoted(table)} set {quoted(column)} = cast(x'{raw}' || {quoted(column)} as text) where {where}"
        )


def opened(con: Con, content: bytes) -> None:
    con.deserialize(content)
    con.text_factory = bytes_or_text


def bytes_or_text(raw: bytes) -> str | bytes:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw


STEPS: Mapping[str, Step] = {
    "cells": cells, "scattered": scattered, "times": times, "ids": ids, "rows": rows, "many": many, "ranges": ranges,
    "foreign": foreign, "described": described, "not-utf8": not_utf8,
}  # fmt: skip
