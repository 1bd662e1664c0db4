"""A machine with stand-ins for the tools that record."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from recorders import RECORDS, exported, nsys


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an `nsys` that records, and a folder of its own for temporary files."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    exported(tmp_path / "exported")
    nsys(tmp_path, RECORDS)
    return tmp_path
