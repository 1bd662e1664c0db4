"""Recordings packed as columns: what comes back is what was packed, to the last digit and type."""

from __future__ import annotations

import lzma
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.packed import __main__ as command
from evaluation.packed import database, fileformat, is_page, plain, recording, recordings, stem, stored
from evaluation.packed.database import CannotPackError
from paths import CAPTURES

INTS = st.integers(-(2**63), 2**63 - 1)
SMALL = st.integers(0, 5)
VALUES = st.one_of(
    st.none(), INTS, SMALL, st.floats(allow_nan=False), st.text(st.characters(codec="utf-8"), max_size=8),
    st.binary(max_size=8),
)  # fmt: skip
CALL = st.tuples(INTS, INTS, SMALL, SMALL)
EVENT = st.tuples(st.one_of(INTS, SMALL), st.one_of(st.none(), INTS, SMALL), SMALL, VALUES)


def made(file: Path, calls: list[Any], events: list[Any], free: list[Any]) -> Path:
    """A database with calls, events that belong to them, and a table whose columns hold anything."""
    with closing(sqlite3.connect(file)) as con, con:
        con.execute(
            'create table CUPTI_ACTIVITY_KIND_RUNTIME (start integer, "end" integer, correlationId int, nameId int)'
        )
        con.execute('create table events (start integer, "end" integer, correlationId integer, text)')
        con.execute('create table "of any kind" (id integer primary key, "a b", c)')
        con.execute("create table empty (x real)")
        con.execute("create index by_text on events (text)")
        con.execute("create view pairs as select * from events")
        con.execute("pragma user_version = 7")
        con.executemany("insert into CUPTI_ACTIVITY_KIND_RUNTIME values (?, ?, ?, ?)", calls)
        con.executemany("insert into events values (?, ?, ?, ?)", events)
        con.executemany('insert into "of any kind" ("a b", c) values (?, ?)', free)
        con.execute("delete from events where rowid % 5 = 3")
    return file


def content(file: Path) -> dict[str, Any]:
    """All that a database says of itself and holds; values as SQLite writes them out."""
    with closing(sqlite3.connect(file)) as con:
        schema = con.execute("select type, name, tbl_name, sql from sqlite_master order by rowid").fetchall()
        held: dict[str, Any] = {"schema": schema, "version": con.execute("pragma user_version").fetchone()}
        for kind, name, _, _ in schema:
            if kind == "table":
                columns = [row[1] for row in con.execute(f'pragma table_info("{name}")')]
                shown = ", ".join(f'typeof("{column}"), quote("{column}"), "{column}"' for column in columns)
                held[name] = con.execute(f'select rowid, {shown} from "{name}" order by rowid').fetchall()
        return held


def there_and_back(file: Path) -> Path:
    """The database once packed and unpacked."""
    again = file.with_name("again.sqlite")
    database.write(fileformat.load(fileformat.dump(database.read(file))), again)
    return again


@given(st.lists(CALL, max_size=60), st.lists(EVENT, max_size=60), st.lists(st.tuples(VALUES, VALUES), max_size=20))
def test_any_database_comes_back_as_it_was(calls: list[Any], events: list[Any], free: list[Any]) -> None:
    with TemporaryDirectory() as folder:
        file = made(Path(folder, "some.sqlite"), calls, events, free)
        assert content(there_and_back(file)) == content(file)


@pytest.mark.slow
@given(st.integers(0, 2**40), st.lists(st.tuples(st.integers(0, 2000), SMALL, st.integers(0, 9)), min_size=1))
def test_long_tables_come_back_as_they_were(began: int, pattern: list[tuple[int, int, int]]) -> None:
    """Events in a pattern, as loops make them: long enough for every way of coding."""
    calls, now = [], began
    for place in range(1500):
        took, name, gap = pattern[place % len(pattern)]
        now += gap * 1000 + place % 7
        calls.append((now, now + took, place, name))
        now += took
    events = [(start + 400, end + 9000 + key % 3, key, f"kernel {name}") for start, end, key, name in calls[::2]]
    with TemporaryDirectory() as folder:
        file = made(Path(folder, "some.sqlite"), calls, events, [])
        packed = fileformat.dump(database.read(file))
        assert packed == fileformat.dump(database.read(file))
        assert len(packed) < len(lzma.compress(file.read_bytes()))
        assert content(there_and_back(file)) == content(file)


def test_a_recording_packed_by_the_command_comes_back(tmp_path: Path) -> None:
    export = tmp_path / "captures" / "some_program" / "slow.sqlite.xz"
    export.parent.mkdir(parents=True)
    export.write_bytes((CAPTURES / "histogram" / "slow.sqlite.xz").read_bytes())
    before = content(plain(export))
    target, _, size = command.pack(export)
    assert (target.name, target.stat().st_size, export.exists()) == ("slow.columns", size, False)
    assert stored(export.with_name("slow")) == target
    assert content(recording(export.with_name("slow"))) == before
    assert content(plain(command.unpack(target, tmp_path))) == before


def test_recordings_that_stay_are_kept_as_exports() -> None:
    files = [*CAPTURES.glob("*/*.sqlite.xz"), *CAPTURES.glob("*/*.pt.trace.json.xz"), *CAPTURES.glob("*/*.raw.csv.xz")]
    assert sorted(f"{file.parent.name}/{file.stem if is_page(file) else stem(file)}" for file in files) == sorted(
        command.KEPT
    )


def test_what_cannot_come_back_is_refused(tmp_path: Path) -> None:
    for number, statement in enumerate(
        ("create table a (b primary key) without rowid", "create virtual table a using fts5(b)")
    ):
        file = tmp_path / f"{number}.sqlite"
        with closing(sqlite3.connect(file)) as con, con:
            con.execute(statement)
        with pytest.raises(CannotPackError):
            database.read(file)


def test_a_damaged_file_is_not_read() -> None:
    data = bytearray((CAPTURES / "histogram" / "fixed.sqlite.xz").read_bytes())
    with pytest.raises(fileformat.DamagedError, match="no file of packed columns"):
        fileformat.load(bytes(data))
    packed = bytearray(next(one for one in recordings(CAPTURES) if one.suffix == ".columns").read_bytes())
    packed[-5] ^= 1
    with pytest.raises(fileformat.DamagedError, match="checksum"):
        fileformat.load(bytes(packed))
