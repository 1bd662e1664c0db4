"""Pages of Nsight Compute packed with what all of them share: what comes back is what was packed, byte by byte."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from captures import named
from evaluation.packed import __main__ as command
from evaluation.packed import fileformat, opened, page, pages, plain
from paths import CAPTURES

NAMES = [name for name, *_ in pages.metrics()]
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
CELL = st.one_of(st.sampled_from(["", "0", "1", "%", "Kbyte"]), TEXT)


def text_of(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return text.getvalue()


@given(st.data(), st.integers(1, 4))
def test_any_page_comes_back_as_it_was(data: st.DataObject, launches: int) -> None:
    names = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6))
    size = len(names)
    rows = [data.draw(st.lists(CELL, min_size=size, max_size=size)) for _ in range(1 + launches)]
    text = text_of([names, *rows])
    assert pages.load(pages.dump(text)) == text


def test_what_cannot_come_back_is_refused() -> None:
    known = NAMES[0]
    for text in (f"{known}\n%\n1\n", text_of([[known], ["%"], ["1", "2"]]), text_of([[known]]), ""):
        with pytest.raises(pages.CannotPackPageError, match="no raw page"):
            pages.dump(text)
    with pytest.raises(pages.CannotPackPageError, match="nowhere is not in the list"):
        pages.dump(text_of([["nowhere"], ["%"], ["1"]]))


def test_a_damaged_page_is_not_read() -> None:
    packed = bytearray(page(CAPTURES / "histogram" / "slow.raw.csv").read_bytes())
    packed[-5] ^= 1
    with pytest.raises(fileformat.DamagedError, match="checksum"):
        pages.load(bytes(packed))
    with pytest.raises(fileformat.DamagedError, match="no packed page"):
        pages.load(b"x")


def test_new_metrics_are_added_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "FILE", tmp_path / "metrics.xz")
    pages.metrics.cache_clear()
    try:
        first = text_of([["a", "b"], ["%", ""], ["1", "2"]])
        assert pages.add([first, first]) == 2
        packed = pages.dump(first)
        assert pages.add([text_of([["c", "a"], ["", "%"], ["3", "4"]])]) == 1
        assert pages.metrics() == (("a", "%", "1"), ("b", "", "2"), ("c", "", ""))
        assert pages.load(packed) == first
    finally:
        pages.metrics.cache_clear()


def test_a_page_packed_by_the_command_comes_back(tmp_path: Path) -> None:
    place = tmp_path / "captures" / "some_program" / "slow.raw.csv"
    place.parent.mkdir(parents=True)
    export = page(place)
    export.write_bytes(page(CAPTURES / "transpose" / "slow-naive.raw.csv").read_bytes())
    before = plain(export).read_bytes()
    target, _, size = command.pack(export)
    assert (target.name, target.stat().st_size, export.exists()) == ("slow.raw.csv.page", size, False)
    assert page(place) == target and opened(target).name == "slow.raw.csv"
    assert opened(target).read_bytes() == before
    again = command.unpack(target, tmp_path)
    assert (again.name, plain(again).read_bytes()) == ("slow.raw.csv.xz", before)
    assert named("histogram/slow.raw.csv").read_text().startswith('"ID","Process ID"')
