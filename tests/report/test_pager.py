"""A pager for what is taller than the terminal, and only for that."""

import os
import stat
from pathlib import Path

import pytest

from gpudiag.report import pager


@pytest.fixture
def paged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file to which a pager writes its settings and what it was given."""
    script, file = tmp_path / "my pager", tmp_path / "paged"
    script.write_text(f"#!/bin/sh\necho \"$LESS $1\" >'{file}'\ncat >>'{file}'\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PAGER", f"'{script}' -x")
    monkeypatch.delenv("LESS", raising=False)
    return file


def shown(text: str, lines: int, tmp_path: Path) -> str:
    """What stands on the terminal itself."""
    terminal = tmp_path / "terminal"
    with terminal.open("w", encoding="utf-8") as stream:
        pager.show(text, stream, lines)
    return terminal.read_text("utf-8")


def test_what_is_taller_goes_to_the_pager(paged: Path, tmp_path: Path) -> None:
    assert shown("a\nµ\nc\n", 2, tmp_path) == ""
    assert paged.read_text("utf-8") == "FRX -x\na\nµ\nc\n"


def test_what_fits_does_not(paged: Path, tmp_path: Path) -> None:
    assert shown("a\nb\n", 3, tmp_path) == "a\nb\n"
    assert not paged.exists()


@pytest.mark.parametrize("name", ["", "cat", "/no/such/pager", "'"])
def test_without_a_pager_all_is_printed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", name)
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    assert shown("a\nb\n", 1, tmp_path) == "a\nb\n"


def test_a_pager_that_is_left_early_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "true")
    assert shown("line\n" * 100_000, 40, tmp_path) == ""
