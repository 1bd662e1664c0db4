"""No capture carries the machine it was made on: environment, host names, addresses, home folders."""

from __future__ import annotations

import importlib.util
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.corpus import CAPTURES, ROOT

_spec = importlib.util.spec_from_file_location("privacy", ROOT / "fixtures" / "kit" / "privacy.py")
assert _spec is not None and _spec.loader is not None
privacy = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(privacy)

FIXTURES = CAPTURES.parent
FOLDERS = sorted(path for name in ("captures", "repeats") for path in (FIXTURES / name).iterdir() if path.is_dir())


@pytest.mark.capture
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(FIXTURES)))
def test_a_capture_names_no_machine_and_no_person(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    assert {path: found for path in files if (found := privacy.scan(path))} == {}


@pytest.mark.capture
def test_every_file_beside_the_captures_is_scanned() -> None:
    loose = [
        path
        for name in ("captures", "repeats", "wild/captures")
        for path in (FIXTURES / name).iterdir()
        if path.is_file()
    ]
    assert {path: found for path in loose if (found := privacy.scan(path))} == {}


LEAKS = {
    "NUL in text (environment block)": "A\0B",
    "home folder": "/home/somebody/train.py",
    "environment variable": "a HTTPS_PROXY=proxy",
    "secret": "MY_API_KEY: x",
    "key": "sk-" + "a" * 20,
    "e-mail address": "to first.last+tag-@example.org",
    "private address": "at 192.168.0.12",
    "MAC address": "0A:1b:2c:3d:4e:5f",
    "GPU serial": "gpu-0123abcd-0123",
}


def test_the_scanner_finds_what_it_should(tmp_path: Path) -> None:
    leak = tmp_path / "leak.csv"
    leak.write_text("a,b\nHOME=/home/somebody,1\n")
    assert privacy.scan(leak)
    assert LEAKS.keys() == privacy.PATTERNS.keys()
    for what, text in LEAKS.items():
        leak.write_text(f"a,b\n{text},1\n")
        assert [found for _, found, _ in privacy.scan(leak)] == [what]


def test_the_scanner_reads_each_cell_of_a_database(tmp_path: Path) -> None:
    file = tmp_path / "leak.sqlite"
    with closing(sqlite3.connect(file)) as con, con:
        con.execute('create table "of all" (id integer, "what ""it"" says" text collate nocase)')
        cells = ["/HOME/SOMEBODY", "/home/somebody", LEAKS["MAC address"].encode(), 1, None]
        con.executemany('insert into "of all" values (?, ?)', [(cell, cell) for cell in cells])
        con.execute("create table meta (name, value)")
        con.execute("insert into meta values ('Hostname', 'box'), ('Version', '1')")
    places = {place.partition(":")[2]: what for place, what, _ in privacy.scan(file)}
    assert places.keys() == {"of all.id", 'of all.what "it" says', "meta"}
    found = sorted(what for _, what, _ in privacy.scan(file))
    assert found == ["MAC address", "MAC address", "home folder", "home folder", "value of Hostname"]


@pytest.mark.slow
@pytest.mark.parametrize("what", privacy.FIRST)
def test_what_is_looked_for_first_hides_nothing(what: str) -> None:
    @given(st.from_regex(privacy.PATTERNS[what]))
    def is_in_each_match(text: str) -> None:
        assert privacy.FIRST[what].search(text)

    is_in_each_match()
