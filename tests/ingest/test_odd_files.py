"""Files that are no files, that change while they are read, and names that mean something to a library: one sentence.

The captures are synthetic, made here, or copies of a fixture under another name.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from captures import named
from evaluation.corpus import CAPTURES
from evaluation.packed import recording
from gpudiag.errors import GpudiagError
from gpudiag.ingest import decompress as unpack
from gpudiag.ingest import duplicates, file_kind, ingest, registry
from gpudiag.ingest.folder import expanded
from gpudiag.ingest.ncu import report_blocks
from gpudiag.pipeline import explain
from gpudiag.store.database import create


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("capture") / "good.sqlite"
    file.write_bytes(recording(CAPTURES / "softmax_three_passes" / "slow").read_bytes())
    return file


def refusal(file: Path, work: Path) -> str:
    work.mkdir(exist_ok=True)
    with pytest.raises(GpudiagError) as error:
        ingest(file, create(), work)
    sentence = str(error.value)
    assert sentence.startswith(f"{file}: ") and sentence.endswith(".") and "\n" not in sentence.removeprefix(str(file))
    return sentence


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("report.sqlite", "x")
    return buffer.getvalue()


def tarred() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("report.sqlite"))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (zipped(), "an archive; unpack it"),
        (tarred(), "an archive; unpack it"),
        (gzip.compress(tarred()), "an archive; unpack it"),
        (b"BZh91AY&SY", "run `bunzip2` first"),
        (b"%PDF-1.7\n%\xe2\xe3", "a PDF document"),
        (pickle.dumps({"segments": []}), "a Python pickle, such as PyTorch's memory snapshot"),
        (b"\n<!DOCTYPE HTML>\n<html><title>Sign in</title>", "a web page, perhaps of a login"),
        (b'{"message": "Not Found"}', "this is JSON"),
        (
            b'{\n  "schema_version": 1,\n  "tool": {}}',
            "a report that `gpudiag explain` saved, in another form than .json",
        ),
        (b"gpudiag columns 1\n\x06D", "`python -m evaluation.packed unpack FILE`"),
        (b"gpudiag trace 1\n\x06D", "`python -m evaluation.packed unpack FILE`"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "`git lfs pull` first"),
        (b"\x7fELF\x02\x01", "a program; give what `nsys profile` recorded"),
        (bytes(4096), "begins with zeros only"),
    ],
    ids=[
        "zip",
        "tar",
        "tar.gz",
        "bz2",
        "pdf",
        "pickle",
        "html",
        "json",
        "saved-report",
        "packed",
        "packed-trace",
        "git-lfs",
        "program",
        "zeros",
    ],
)
def test_what_people_give_by_mistake_is_named(tmp_path: Path, content: bytes, advice: str) -> None:
    file = tmp_path / "report.sqlite"
    file.write_bytes(content)
    assert advice in refusal(file, tmp_path / "work")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("-", "standard input is not read"),
        ("https://example.com/report.sqlite", "download the file first"),
        ("a" * 300, r"name too long\); check the path"),
        ("a\0b", r"null byte\); check the path"),
    ],
    ids=["stdin", "address", "long", "null"],
)
def test_names_of_no_file(name: str, advice: str) -> None:
    with pytest.raises(GpudiagError, match=f"(?i){advice}"):
        file_kind.detect(Path(name))


def test_links_that_lead_nowhere(tmp_path: Path) -> None:
    loop, dangling = tmp_path / "loop.sqlite", tmp_path / "dangling.sqlite"
    loop.symlink_to(loop.name)
    dangling.symlink_to("nothing.sqlite")
    assert "symbolic links); check the path" in refusal(loop, tmp_path / "work")
    assert "no such file" in refusal(dangling, tmp_path / "work")


def tiny(file: Path) -> Path:
    """The least that is an export: one option and many texts."""
    con = sqlite3.connect(file)
    con.execute("create table StringIds (id integer primary key, value text)")
    con.executemany("insert into StringIds (value) values (?)", [(f"{n:0500}",) for n in range(1000)])
    con.execute("create table META_DATA_CAPTURE (name, value)")
    con.execute("insert into META_DATA_CAPTURE values ('COLLECT_CUDA_TRACE', 'true')")
    con.commit()
    con.close()
    return file


def test_names_that_mean_something_to_sqlite_and_duckdb(tmp_path: Path) -> None:
    export, folder = tiny(tmp_path / "tiny.sqlite"), tmp_path / "names"
    folder.mkdir()
    names = [b"a?mode=rwc.sqlite", b"file:a#b.sqlite", b"100%20.sqlite", b"new\nline.sqlite", b"-q'\".sqlite"]
    names += [b"[*].sqlite", b"\xff\xfe.sqlite", b"x" * 248 + b".sqlite"]
    for name in names:
        file = Path(os.fsdecode(os.fsencode(folder) + b"/" + name))
        file.symlink_to(export)
        con = create(small=True)
        ingest(file, con, tmp_path)
        ((found,),) = con.execute("select file from input").fetchall()
        assert found == name.decode("utf-8", "replace")
    assert len(list(folder.iterdir())) == len(names)


def test_a_database_that_was_being_written(tmp_path: Path) -> None:
    file, copy = tiny(tmp_path / "a.sqlite"), tmp_path / "b.sqlite"
    con = sqlite3.connect(file, isolation_level=None)
    con.execute("pragma cache_size = 5")  # so that half of it is in the file before it is committed
    con.execute("begin")
    con.execute("update StringIds set value = 'x' || value")
    shutil.copy(file, copy)
    shutil.copy(f"{file}-journal", f"{copy}-journal")
    con.execute("rollback")
    con.close()
    assert "being written when its writer stopped" in refusal(copy, tmp_path / "work")


@pytest.mark.capture
def test_a_database_of_which_a_part_lies_beside_it(capture: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
    shutil.copy(capture, file)
    con = sqlite3.connect(file)
    con.execute("pragma journal_mode = wal")
    con.execute("create table later (a)")
    assert "in a.sqlite-wal still" in refusal(file, tmp_path / "work")
    con.close()  # writes that part back
    ingest(file, create(small=True), tmp_path)
    shutil.copy(file, other)
    Path(f"{other}-wal").write_bytes(b"")  # what a viewer leaves beside it
    ingest(other, create(small=True), tmp_path)


def grow(file: Path) -> None:
    with file.open("ab") as end:
        end.write(bytes(4096))


def rewrite(file: Path) -> None:
    with file.open("r+b") as inside:
        inside.seek(file.stat().st_size // 2)
        inside.write(bytes(10_000))
    os.utime(file, ns=(1, 1))


def replace(file: Path) -> None:
    other = file.with_suffix(".new")
    shutil.copy(file, other)
    other.replace(file)


@pytest.mark.capture
@pytest.mark.parametrize("change", [grow, rewrite, replace, lambda file: os.truncate(file, 5000), Path.unlink],
                         ids=["grows", "rewritten", "replaced", "cut", "removed"])  # fmt: skip
def test_a_file_that_changes_while_it_is_read(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    file = tmp_path / "report.sqlite"
    shutil.copy(capture, file)
    read = registry.read

    def meanwhile(*args: object) -> None:
        change(file)
        read(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(registry, "read", meanwhile)
    assert "while it was read; wait until it is complete" in refusal(file, tmp_path / "work")


@pytest.mark.capture
def test_a_disk_that_fails(capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(registry, "read", broken)
    assert "(Input/output error)" in refusal(capture, tmp_path / "work")


@pytest.mark.capture
def test_what_follows_compressed_data_is_reported(capture: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.sqlite.gz"
    packed = gzip.compress(capture.read_bytes(), 1)
    file.write_bytes(packed + b"something else")
    assert "something else follows the compressed data" in refusal(file, tmp_path / "work")
    file.write_bytes(packed + packed)  # members after one another are one file, as gzip says
    assert unpack.unpack(file, "gz", tmp_path).stat().st_size == 2 * capture.stat().st_size


@pytest.mark.capture
@pytest.mark.parametrize("pack", [gzip.open, lzma.open], ids=["gz", "xz"])
def test_a_bomb_that_begins_like_an_export(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[..., io.BufferedIOBase]
) -> None:
    monkeypatch.setattr(unpack, "SMALL", 30_000_000)
    file, work = tmp_path / "bomb.sqlite", tmp_path / "work"
    with pack(file, "wb") as bomb:
        bomb.write(capture.read_bytes()[:4096])
        bomb.write(bytes(40_000_000))
    assert "unfolds to more than 28 MiB" in refusal(file, work)
    assert list(work.iterdir()) == []


def test_a_sparse_kernel_report_is_not_walked_through(tmp_path: Path) -> None:
    file = tmp_path / "k.ncu-rep"
    with file.open("wb") as sparse:
        sparse.write(b"NVR\0\x02\0\0\0\x08\x07")
        sparse.truncate(1 << 40)
    assert not report_blocks.is_cut(file)


@pytest.mark.capture
def test_a_file_given_twice(capture: Path, tmp_path: Path) -> None:
    link, copy = tmp_path / "link.sqlite", tmp_path / "copy.sqlite.gz"
    link.symlink_to(capture)
    copy.write_bytes(gzip.compress(capture.read_bytes(), 1))
    with pytest.raises(GpudiagError, match=r"good\.sqlite is given twice: give it once"):
        explain([capture, capture])
    with pytest.raises(GpudiagError, match="are the same file: give it once"):
        explain([capture, link])
    with pytest.raises(GpudiagError, match=r"copy\.sqlite\.gz holds the same as .*good\.sqlite"):
        explain([capture, copy])


@pytest.mark.capture
def test_both_pages_of_a_kernel_report_are_one(tmp_path: Path) -> None:
    folder = CAPTURES / "attention_materialised"
    pages = [named("attention_materialised/slow.raw.csv"), folder / "slow.details.csv.xz"]
    con = create(small=True)
    for page in pages:
        ingest(page, con, tmp_path)
    alone = con.execute("select count(*) from kernel_profile where input = 0").fetchall()
    ruled = con.execute("select count(*) from kernel_rule").fetchall()
    duplicates.settle(con, pages)
    assert con.execute("select count(*) from kernel_profile").fetchall() == alone
    assert (
        con.execute("select count(*) from kernel_rule semi join kernel_profile p on p.id = profile").fetchall() == ruled
    )
    assert con.execute("select 1 from kernel_metric group by profile, metric having count(*) > 1").fetchall() == []
    other = [pages[0], named("attention_materialised/fixed.raw.csv")]
    con = create(small=True)
    for page in other:
        ingest(page, con, tmp_path)
    duplicates.settle(con, other)
    assert len(con.execute("select distinct input from kernel_profile").fetchall()) == 2


def test_a_file_without_permission_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "closed.sqlite"
    file.write_bytes(b"x")
    file.chmod(0)
    command = [sys.executable, "-m", "gpudiag", "explain", str(file)]
    if os.geteuid() == 0:  # root reads everything, unless it gives that up
        if not shutil.which("setpriv"):
            pytest.skip("root reads every file")
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"gpudiag: {file}: cannot be read (Permission denied); check its permissions.\n"


def test_a_folder_of_packed_recordings_says_how_to_unpack(tmp_path: Path) -> None:
    for name in ("slow.columns", "label.json", "smi.csv.xz"):
        (tmp_path / name).write_bytes(b"gpudiag columns 1\n")
    with pytest.raises(GpudiagError, match=r"`python -m evaluation\.packed unpack FILE… --to FOLDER`"):
        expanded([tmp_path])
    (tmp_path / "slow.sqlite").write_bytes(b"")
    assert tmp_path / "slow.sqlite" in expanded([tmp_path])
