"""A machine with stand-ins for the tools that record."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from gpudiag.capture import guard
from recorders import RECORDS, exported, nsys

_QUIET_S = guard._QUIET_S


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an `nsys` that records, and a folder of its own for temporary files.

    What the stand-ins start ends with them, so that nobody waits for more of it; where one leaves something behind, the
    test uses `leftovers`.
    """
    monkeypatch.setattr(guard, "_QUIET_S", 0.02)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    exported(tmp_path / "exported")
    nsys(tmp_path, RECORDS)
    return tmp_path


@pytest.fixture
def leftovers(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes may outlive what started them: they are looked for as long as on a user's machine."""
    monkeypatch.setattr(guard, "_QUIET_S", _QUIET_S)
