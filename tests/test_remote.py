"""Captures at addresses, by fsspec's own file system in memory and the one of this computer."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluation.packed import recording
from gpudiag import pipeline, remote
from gpudiag.cache import Unkept, identity
from gpudiag.errors import GpudiagError
from gpudiag.ingest.folder import expanded
from gpudiag.jobs import spread
from gpudiag.jobs.rank_summary import packed
from gpudiag.options import Options
from gpudiag.report import formats
from paths import ROOT

CAPTURES = ROOT / "fixtures" / "captures" / "ddp_one_bucket"
fsspec = pytest.importorskip("fsspec", reason="fsspec is an extra")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Two ranks in memory, as the command line gives their folder."""
    files = fsspec.filesystem("memory")
    for rank in (0, 1):
        content = recording(CAPTURES / f"slow.rank{rank}").read_bytes()
        files.pipe(f"/job/rank{rank}.sqlite", content)
        files.pipe(f"/job/rank{rank}.log", b"nothing to read")
    yield Path("memory://job")
    files.rm("/job", recursive=True)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("s3://bucket/run/rank0.sqlite", "s3://bucket/run/rank0.sqlite"),
        ("memory://job", "memory://job"),
        ("file:///srv/rank0.sqlite", "file:///srv/rank0.sqlite"),
        ("rank0.sqlite", None),
        ("/tmp/a:/b", None),
        ("C:/captures", None),
    ],
)
def test_an_address_survives_being_a_path(given: str, found: str | None) -> None:
    assert remote.address(Path(given)) == found


def test_a_folder_at_an_address_holds_its_timelines(folder: Path) -> None:
    assert expanded([folder]) == [folder / "rank0.sqlite", folder / "rank1.sqlite"]


@pytest.mark.capture
def test_a_capture_at_an_address_reads_as_on_this_computer(folder: Path, tmp_path: Path) -> None:
    here = tmp_path / "rank1.sqlite"
    shutil.copyfile(recording(CAPTURES / "slow.rank1"), here)
    there = formats.render(pipeline.explain([folder / "rank1.sqlite"], Options(cached=False)), "json")
    assert there == formats.render(pipeline.explain([here], Options(cached=False)), "json")


@pytest.mark.slow
@pytest.mark.capture
def test_workers_fetch_the_ranks_that_they_read() -> None:
    here = [recording(CAPTURES / f"slow.rank{rank}") for rank in (0, 1)]
    there = [Path(f"file://{path}") for path in here]
    alone = [packed(one) for one in spread.summaries(here, Options(cached=False))]
    assert [packed(one) for one in spread.summaries(there, Options(cached=False, workers=2))] == alone


def test_what_cannot_be_read_at_an_address_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(GpudiagError, match=r"^memory://job/rank7\.sqlite: there is no such file"):
        remote.fetched(folder / "rank7.sqlite", tmp_path)
    with pytest.raises(GpudiagError, match=r"^nowhere://job: cannot be read \(.*\); check the address"):
        remote.names(Path("nowhere://job"))


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> None:
        raise ImportError('HTTPFileSystem requires "requests" and "aiohttp" to be installed')

    monkeypatch.setattr("fsspec.core.url_to_fs", refuse)
    with pytest.raises(GpudiagError, match=r'is not installed \(HTTP.* requires "requests" and "aiohttp"'):
        remote.names(Path("https:/host/rank0.sqlite"))


def test_only_files_with_a_time_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "rank0.sqlite"
    monkeypatch.setattr(identity, "_SETTLED_NS", 0)
    assert identity.key([path], Options()) == identity.key([path], Options())
    monkeypatch.setattr(remote, "_STATED", ())
    with pytest.raises(Unkept, match="says nothing of when it was written"):
        identity.key([path], Options())
