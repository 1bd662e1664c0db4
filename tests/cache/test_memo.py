"""Answers that are kept: the same text as without them, and made anew wherever they might not be."""

from __future__ import annotations

import lzma
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evaluation.corpus import CAPTURES
from evaluation.packed import recording
from gpudiag import pipeline, prepare
from gpudiag.cache import entries, identity, place
from gpudiag.cli import main
from gpudiag.options import Options
from gpudiag.report import formats

pytestmark = pytest.mark.capture
SMALL = recording(CAPTURES / "game_of_life_small" / "slow")
FORMATS = ("markdown", "json", "html", "sarif", "github-comment")


@pytest.fixture
def capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A capture that was written long enough ago to be known, beside an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(identity, "_SETTLED_NS", 0)
    file = tmp_path / "run.sqlite"
    file.write_bytes(SMALL.read_bytes())
    time.sleep(2 * identity._FINE_NS / 1e9)
    return file


def explained(capture: Path, *options: str) -> str:
    done = CliRunner().invoke(main, ["explain", str(capture), "--full", *options])
    assert done.exit_code == 0, done.output
    return done.stdout


def memos() -> list[Path]:
    return [entry.file for entry in entries.entries(place.stores()) if entry.answer]


def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on no capture is read and no rule asked."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the capture was analysed")

    monkeypatch.setattr(prepare, "analysed", refuse)


def once(monkeypatch: pytest.MonkeyPatch, asked: list[object]) -> None:
    """From here on the capture is analysed the first time, and the same comes of it whenever it would be again."""
    analysed, made = prepare.analysed, []

    def answer(paths: Sequence[Path], *rest: Any) -> object:
        asked.append(paths)
        if not made:
            made.append(analysed(paths, *rest))
        return made[0]

    monkeypatch.setattr(prepare, "analysed", answer)


def test_all_formats_come_from_one_answer(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report, picture = pipeline.pictured([capture], Options(cached=False))
    anew = {form: formats.render(report, form, picture) for form in FORMATS}
    assert explained(capture, "--no-cache") == anew["markdown"]
    assert not (capture.parent / "cache").exists()
    explained(capture, "--format", "html")  # draws the picture, too
    assert len(memos()) == 1
    unread(monkeypatch)
    assert {form: explained(capture, "--format", form) for form in FORMATS} == anew


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def flipped(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)


def swapped(file: Path) -> None:
    """Another answer under its name."""
    content = file.read_bytes()
    file.unlink()
    other = file.with_name(f"{'0' * 32}-other.memo")
    other.write_bytes(content.replace(b"report=", b"report=0", 1))
    other.rename(file)


def piped(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def test_a_damaged_answer_is_made_anew(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = explained(capture)
    (memo,) = memos()
    read: list[object] = []
    once(monkeypatch, read)
    for damage in (cut, flipped, swapped, piped):
        memo.chmod(0o600)
        damage(memo)
        assert explained(capture) == first, damage
        assert memos() == [memo]
        assert memo.read_bytes().startswith(b"gpudiag memo 1 ")
    assert len(read) == 4


def test_a_changed_capture_is_explained_anew(capture: Path) -> None:
    first = explained(capture)
    capture.write_bytes(lzma.decompress((CAPTURES / "item_every_stage" / "slow.sqlite.xz").read_bytes()))
    time.sleep(2 * identity._FINE_NS / 1e9)
    assert explained(capture) != first
    assert len(memos()) == 2


def test_other_questions_have_other_answers(capture: Path) -> None:
    first = explained(capture)
    assert (
        explained(capture, "--set", "settings.min_share_expected=0.9", "--set", "settings.min_share_bound=0.9") != first
    )
    assert len(memos()) == 1  # thresholds of the user's are judged each time
    assert explained(capture) == first


def test_a_full_disk_keeps_no_answer(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "LEAVE_FREE", 10**18)
    assert explained(capture) == explained(capture, "--no-cache")
    assert not (capture.parent / "cache").exists() or memos() == []


def test_a_known_answer_loads_no_database(capture: Path) -> None:
    script = (
        "import sys\n"
        "from gpudiag.cache import identity\n"
        "identity._SETTLED_NS = 0\n"
        "from gpudiag.cli import main\n"
        "try: main(['explain', sys.argv[1]])\n"
        "except SystemExit: pass\n"
        "print('loaded:', *sorted({'duckdb', 'polars', 'numba', 'numpy'} & sys.modules.keys()))"
    )
    said = [
        subprocess.run([sys.executable, "-c", script, str(capture)], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert said[0].splitlines()[:-1] == said[1].splitlines()[:-1]
    assert said[0].splitlines()[-1] != "loaded:"
    assert said[1].splitlines()[-1] == "loaded:"
