"""Where a report is written: what stands there decides how."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from gpudiag.errors import GpudiagError
from gpudiag.report import output, terminal


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "there" / "target.md", tmp_path / "link.md"
    target.parent.mkdir()
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    output.to_file("new", link)
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o600
    assert list(target.parent.iterdir()) == [target]


def test_a_link_to_nothing_yet_makes_its_target(tmp_path: Path) -> None:
    link = tmp_path / "link.md"
    link.symlink_to(tmp_path / "target.md")
    output.to_file("new", link)
    assert link.is_symlink()
    assert (tmp_path / "target.md").read_text() == "new"


def test_a_circle_of_links_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(GpudiagError, match="cannot be written"):
        output.to_file("new", tmp_path / "a")


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=output.to_file, args=("new", pipe))
    writer.start()
    assert pipe.read_text() == "new"
    writer.join()
    assert pipe.is_fifo()


def test_a_device_is_written_to(tmp_path: Path) -> None:
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    output.to_file("new", link)
    output.to_file("new", Path(os.devnull))
    assert link.is_symlink()
    assert Path(os.devnull).is_char_device()


def test_an_open_stream_is_written_to_not_replaced(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w+") as file:
        output.to_file("new", Path(f"/dev/fd/{file.fileno()}"))
        assert file.read() == "new"


def test_a_table_of_the_input_folder_is_an_input(tmp_path: Path) -> None:
    table = tmp_path / "StringIds.parquet"
    table.touch()
    with pytest.raises(GpudiagError, match="is an input"):
        output.check(table, [tmp_path])
    output.check(tmp_path / "report.md", [tmp_path])
    output.check(table, [tmp_path / "missing"])


def test_without_a_standard_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    monkeypatch.setattr("sys.stderr", None)
    with pytest.raises(GpudiagError, match="Standard output is closed"):
        output.to_stdout("new")
    with terminal.progress() as say:
        say("reading")
