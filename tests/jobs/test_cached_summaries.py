"""Summaries of ranks in the cache: each file by itself, and nothing that is damaged or half written is believed."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from evaluation.packed import recording
from gpudiag.cache import Unkept, entries, identity, place
from gpudiag.jobs import map_rank, spread
from gpudiag.jobs.rank_summary import packed
from gpudiag.options import Options
from paths import ROOT

CAPTURES = ROOT / "fixtures" / "captures" / "ddp_one_bucket"
pytestmark = pytest.mark.capture


@pytest.fixture
def ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two captures that were written long enough ago to be known, beside an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(identity, "_SETTLED_NS", 0)
    files = [tmp_path / f"rank{number}.sqlite" for number in (0, 1)]
    for number, file in enumerate(files):
        shutil.copyfile(recording(CAPTURES / f"slow.rank{number}"), file)
    time.sleep(2 * identity._FINE_NS / 1e9)
    return files


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the captures that are read, as they are."""
    names: list[str] = []
    reading = map_rank._read

    def noted(path: Path, options: Options) -> object:
        names.append(path.name)
        return reading(path, options)

    monkeypatch.setattr(map_rank, "_read", noted)
    return names


def bytes_of(files: list[Path], options: Options) -> list[bytes]:
    return [packed(found) for found in spread.summaries(files, options)]


def kept() -> list[Path]:
    return [entry.file for entry in entries.entries(place.stores()) if entry.answer]


def test_one_more_rank_reads_one_file(ranks: list[Path], read: list[str]) -> None:
    first = bytes_of(ranks[:1], Options())
    both = bytes_of(ranks, Options())
    assert read == ["rank0.sqlite", "rank1.sqlite"]
    assert both[:1] == first
    assert both == bytes_of(ranks, Options(cached=False))


def test_a_damaged_summary_is_read_anew(ranks: list[Path], read: list[str]) -> None:
    sound = bytes_of(ranks[:1], Options())
    [file] = kept()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.chmod(0o600)
    for damaged in (bytes(content), bytes(content[: len(content) // 3]), b""):
        file.write_bytes(damaged)
        assert bytes_of(ranks[:1], Options()) == sound
    assert read == ["rank0.sqlite"] * 4
    assert bytes_of(ranks[:1], Options()) == sound
    assert len(read) == 4


def test_a_summary_of_another_version_is_read_anew(
    ranks: list[Path], read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = bytes_of(ranks[:1], Options())
    monkeypatch.setattr("gpudiag.jobs.rank_summary.FORMAT", 99)
    again = bytes_of(ranks[:1], Options())
    assert again[0].partition(b"\n")[2] == sound[0].partition(b"\n")[2]
    assert len(read) == 2


def test_a_full_disk_keeps_nothing_and_changes_nothing(
    ranks: list[Path], read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise Unkept("the disk is full")

    sound = bytes_of(ranks, Options(cached=False))
    monkeypatch.setattr(entries, "refuse_full", full)
    assert bytes_of(ranks, Options()) == sound
    assert kept() == []
    assert not [name for name in os.listdir(place.stores()) if name.endswith(entries.PART)]
    assert len(read) == 4
