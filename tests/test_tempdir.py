"""The folder of a run, among many runs."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpudiag import tempdir
from gpudiag.errors import GpudiagError
from gpudiag.lockfile import held


def test_a_lock_taken_by_a_cleaning_run_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []

    @contextmanager
    def contested(path: Path) -> Iterator[None]:
        asked.append(path)
        if len(asked) < 3:
            raise FileExistsError(errno.EEXIST, "File exists")
        with held(path):
            yield

    monkeypatch.setattr(tempdir, "held", contested)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with tempdir.work_folder() as folder:
        assert folder.is_dir()
    assert len(set(asked)) == 3
    assert not any(tmp_path.iterdir())


def test_a_folder_that_nobody_gets_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def taken(path: Path) -> Iterator[None]:
        raise FileExistsError(errno.EEXIST, "File exists")
        yield

    monkeypatch.setattr(tempdir, "held", taken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(GpudiagError, match="working copy cannot be kept"), tempdir.work_folder():
        pass
