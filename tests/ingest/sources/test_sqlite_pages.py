"""The page decoder gives what SQLite gives, or refuses."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudiag.ingest.sources import sqlite
from gpudiag.ingest.sources.base import ints

pytest.importorskip("numba")
from gpudiag.ingest.sources.sqlite_pages import Pages, Unsuited

INTEGER = st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200) | st.sampled_from([0, 1])


def make(path: Path, rows: list[tuple[object, ...]], page: int = 512) -> int:
    con = sqlite3.connect(path)
    con.execute(f"pragma page_size = {page}")
    con.execute("create table t (a, b, c)")
    con.executemany("insert into t values (?, ?, ?)", rows)
    con.commit()
    root = con.execute("select rootpage from sqlite_master").fetchone()[0]
    con.close()
    return int(root)


def decoded(path: Path, root: int, wanted: list[int]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    with closing(Pages(path)) as pages:
        for ids, columns in pages.batches(root, 3, wanted):
            rows += zip(ids.tolist(), *(column.tolist() for column in columns), strict=True)
    return rows


@settings(deadline=None)
@given(st.lists(st.tuples(INTEGER, INTEGER, INTEGER), max_size=300))
def test_integers_and_nulls(rows: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.sqlite"
        root = make(path, rows)
        assert decoded(path, root, [0, 2]) == [(i + 1, a, c) for i, (a, _, c) in enumerate(rows)]


def test_text_is_skipped_when_unwanted_and_refused_when_wanted(tmp_path: Path) -> None:
    root = make(tmp_path / "t.sqlite", [(1, "text", 3)] * 50)
    assert decoded(tmp_path / "t.sqlite", root, [0, 2]) == [(i, 1, 3) for i in range(1, 51)]
    with pytest.raises(Unsuited):
        decoded(tmp_path / "t.sqlite", root, [1])
    root = make(tmp_path / "long.sqlite", [(1, "x" * 2000, 3)] * 50)
    with pytest.raises(Unsuited):
        decoded(tmp_path / "long.sqlite", root, [0])


def test_damaged_pages_never_crash(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    root = make(path, [(i, -i, i * i) for i in range(3000)])
    good = path.read_bytes()
    refused = 0
    for place in range(600, len(good) - 200, 1777):
        path.write_bytes(good[:place] + b"\xa5" * 100 + good[place + 100 :])
        try:
            decoded(path, root, [0, 1, 2])
        except Unsuited:
            refused += 1
    assert refused


def test_the_reader_goes_on_after_a_page_that_is_not_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "PAGES_FROM", 100)
    monkeypatch.setattr("gpudiag.ingest.sources.sqlite_pages.BATCH_BYTES", 8 << 10)
    rows: list[tuple[object, ...]] = [(i, None if i % 7 else i, "no number" if i > 1500 else i) for i in range(2000)]
    make(tmp_path / "t.sqlite", rows)
    con = duckdb.connect()
    source = sqlite.SqliteSource(tmp_path / "t.sqlite", con)
    seen: list[tuple[object, ...]] = []
    views = set()
    for batch in source.batches("t", ints("a", "b", "absent")):
        views.add(batch)
        seen += con.execute(f"select rid, a, b, absent from {batch} order by rid").fetchall()
    assert seen == [(i + 1, a, b, None) for i, (a, b, _) in enumerate(rows)]
    assert views == {"raw_view"}
    # A wanted column becomes text halfway: the general reader begins where the decoder stopped, and says what is wrong.
    read: list[int] = []
    with pytest.raises(duckdb.Error):
        read.extend(con.execute(f"select count(*) from {b}").fetchall()[0][0] for b in source.batches("t", ints("c")))
    assert 500 <= sum(read) <= 1501
    source.close()


def test_once_the_decoder_is_loaded_it_reads_smaller_tables_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "PAGES_FROM", 1000)
    monkeypatch.setattr(sqlite, "PAGES_ONCE_LOADED", 100)
    rows = {"small": 50, "middling": 500, "large": 2000}
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as file:
        for name, count in rows.items():
            file.execute(f"create table {name} (a)")
            file.executemany(f"insert into {name} values (?)", [(i,) for i in range(count)])
        file.commit()
    con = duckdb.connect()
    with closing(sqlite.SqliteSource(tmp_path / "t.sqlite", con)) as source:
        read: dict[str, list[tuple[str, int]]] = {}
        for name in ("middling", "large", "middling", "small"):
            for batch in source.batches(name, ints("a")):
                read.setdefault(name, []).append((batch, con.execute(f"select sum(a) from {batch}").fetchall()[0][0]))
    sums = {name: count * (count - 1) // 2 for name, count in rows.items()}
    assert read == {
        "middling": [("raw_batch", sums["middling"]), ("raw_view", sums["middling"])],
        "large": [("raw_view", sums["large"])],
        "small": [("raw_batch", sums["small"])],
    }
