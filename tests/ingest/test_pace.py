"""Progress of long reads: share and rate, once a second."""

from __future__ import annotations

import lzma
import sqlite3
from pathlib import Path

import pytest

from gpudiag.ingest import decompress, pace
from gpudiag.ingest.pace import Pace, TablePace


class Clock:
    """Stands for time: each look at it takes that long."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def test_share_and_rate_are_said() -> None:
    said: list[str] = []
    Pace(said.append, "unpacking a.xz", 200, clock=Clock(2)).reached(50, 8_000_000)
    assert said == ["unpacking a.xz: 25 %, 4.0 MB/s"]


def test_they_are_said_once_a_second() -> None:
    said: list[str] = []
    one = Pace(said.append, "reading", 100, "rows", Clock(0.25))
    for done in range(10):
        one.reached(done)
    assert len(said) == 2


def test_a_table_that_is_read_twice_counts_once() -> None:
    said: list[str] = []
    tables = TablePace(said.append, "reading a", lambda: 4000, Clock(1))
    for name, done in (("calls", 1000), ("kernels", 1000), ("calls", 1000)):
        tables.reached(name, done)
    assert [text.partition(",")[0] for text in said] == ["reading a: 25 %", "reading a: 50 %", "reading a: 50 %"]
    assert said[0].endswith("1,000 rows/s")


def test_an_empty_file_says_nothing() -> None:
    said: list[str] = []
    Pace(said.append, "reading", 0, clock=Clock(2)).reached(0)
    assert said == []


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "EVERY_S", 0.0)


@pytest.mark.usefixtures("at_once")
def test_unpacking_says_how_far_it_is(tmp_path: Path) -> None:
    file = tmp_path / "a.xz"
    file.write_bytes(lzma.compress(bytes(3 << 20)))
    said: list[str] = []
    decompress.unpack(file, "xz", tmp_path, say=said.append)
    assert said[-1].startswith("unpacking a.xz: 100 %, ")
    assert said[-1].endswith("B/s")


@pytest.mark.usefixtures("at_once")
def test_tables_of_an_export_say_how_far_they_are(tmp_path: Path) -> None:
    import duckdb

    from gpudiag.ingest.sources.base import ints
    from gpudiag.ingest.sources.sqlite import SqliteSource

    file = tmp_path / "a.sqlite"
    with sqlite3.connect(file) as made:
        for name, count in (("A", 100), ("B", 300)):
            made.execute(f"create table {name} (x integer)".replace("create table", "CREATE TABLE"))
            made.executemany(f"insert into {name} values (?)", [(n,) for n in range(count)])
    said: list[str] = []
    with duckdb.connect() as con:
        source = SqliteSource(file, con, said.append, "reading a.sqlite", ("A", "B", "C"))
        for table in ("A", "B"):
            for _ in source.batches(table, ints("x")):
                pass
        source.close()
    assert [text.partition(",")[0] for text in said] == ["reading a.sqlite: 25 %", "reading a.sqlite: 100 %"]
