"""Cleaning of exports: a canary is planted in every place where Nsight Systems keeps the machine or its user.

The capture is a real one, copied to a temporary folder; the canaries in it are synthetic.
"""

from __future__ import annotations

import json
import lzma
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gpudiag.capture.redact import Removed, redact
from gpudiag.errors import GpudiagError
from gpudiag.model import Report
from gpudiag.pipeline import explain
from paths import CAPTURES

USER, HOST, TOKEN = "canaryuser", "canary-host7", "hf_canaryTOKEN0123456789"
HOME = f"/home/{USER}"
OPTIONS = {
    "PROCESS_0:ENVIRONMENT_VARIABLE": f'HF_TOKEN="{TOKEN}"',
    "PROCESS_1:ENVIRONMENT_VARIABLE": 'LD_PRELOAD="/canary.so"',
    "PROCESS_0:ARGUMENT_0": "--api-key=canaryARGUMENT123",
    "PROCESS_0:COMMAND": f"{HOME}/bin/canary",
    "PROCESS_0:WORKING_DIR": f"{HOME}/project",
    "PROCESS_0:USER_NAME": USER,
    "PROCESS_0:A_NEW_OPTION": "canary of a version to come",
    "DEVICE_DISPLAY_NAME": HOST,
}
TEXTS = (
    f"PATH=/canary/bin\0SECRET={TOKEN}\0HOME={HOME}\0",
    f"python3\0{HOME}/train.py\0--api-key=canaryARGUMENT123\0",
    f"{HOME}/project/train.py",
    "/Users/canary.name/other.py",
    f"NCCL INFO {HOST}:12 bootstrap",
    f"ssh {USER}@login",
    f"logged in with {TOKEN}",
    f"/mnt/{USER}/data",
)


def plant(db: sqlite3.Connection) -> None:
    db.execute("delete from META_DATA_CAPTURE where value = '(removed)'")
    db.executemany("insert into META_DATA_CAPTURE values (?, ?)", OPTIONS.items())
    exported = {"EXPORT_HOST": HOST, "EXPORT_USER": USER, "EXPORT_PARAM_INPUT_PATH_ABS": f"{HOME}/report.nsys-rep"}
    db.executemany("update META_DATA_EXPORT set value = ? where name = ?", [(v, k) for k, v in exported.items()])
    db.execute("create table TARGET_INFO_SYSTEM_ENV (globalVid, devStateName, name TEXT, nameEnum, value TEXT)")
    facts = {"Hostname": HOST, "DeviceEnvironment": f"A=canary;USER={USER}", "NicInfo": "canary", "CpuCores": "8"}
    db.executemany("insert into TARGET_INFO_SYSTEM_ENV values (1, '', ?, 1, ?)", facts.items())
    db.execute("create table ANALYSIS_FILE (id INTEGER, filename TEXT, content TEXT)")
    db.execute("insert into ANALYSIS_FILE values (1, '/canary/maps', 'canary')")
    db.execute("create table TARGET_INFO_NIC_INFO (name TEXT)")
    db.execute("insert into TARGET_INFO_NIC_INFO values ('canary0')")
    db.execute("insert into PROCESSES values (?, '/usr/bin/canary-of-another-process')", (999 << 24,))
    db.execute("alter table TARGET_INFO_GPU add column uuid TEXT")
    db.execute("update TARGET_INFO_GPU set uuid = 'canary'")
    db.execute("insert into DIAGNOSTIC_EVENT values (0, 2, ?, 0)", (f"Cannot write {HOME}/x on {HOST}.",))
    db.executemany("insert into StringIds values (?, ?)", enumerate(TEXTS, 900_000_001))
    db.execute("insert into StringIds values (900000099, 'step 1 of the canary program')")
    db.execute("create table ProcessStreams (globalPid INTEGER, filenameId INTEGER, contentId INTEGER)")
    db.execute("insert into ProcessStreams values (1, 1, 900000099)")
    # What is deleted stays in free pages.
    db.execute("pragma secure_delete = off")
    db.execute("create table gone (text TEXT)")
    db.executemany("insert into gone values (?)", [(f"canary {number} " * 50,) for number in range(200)])
    db.commit()
    db.execute("drop table gone")
    db.commit()


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planted")
    path = folder / "capture.sqlite"
    path.write_bytes(lzma.decompress((CAPTURES / "histogram" / "fixed.sqlite.xz").read_bytes()))
    with closing(sqlite3.connect(path)) as db:
        plant(db)
    return path


@pytest.fixture(scope="module")
def cleaned(planted: Path) -> tuple[Path, Removed]:
    target = planted.with_name("out") / planted.name
    target.parent.mkdir()
    before = planted.read_bytes()
    removed = redact(planted, target)
    assert planted.read_bytes() == before
    return target, removed


@pytest.mark.capture
def test_canaries_are_planted_and_gone(planted: Path, cleaned: tuple[Path, Removed]) -> None:
    assert planted.read_bytes().count(b"canary") > 500
    assert b"canary" not in cleaned[0].read_bytes()
    assert [file.name for file in cleaned[0].parent.iterdir()] == [cleaned[0].name]


@pytest.mark.capture
def test_it_says_what_it_removed(cleaned: tuple[Path, Removed]) -> None:
    expected = {
        "environment variables": 2, "command-line arguments": 1, "environments and command lines of processes": 2,
        "outputs of the program": 1, "names of other processes": 1, "network cards": 1, "host names": 3,
    }  # fmt: skip
    assert {kind: cleaned[1][kind] for kind in expected} == expected
    assert min(cleaned[1].values()) > 0


@pytest.mark.capture
def test_names_below_a_home_folder_stay(cleaned: tuple[Path, Removed]) -> None:
    with closing(sqlite3.connect(cleaned[0])) as db:
        texts = {text for (text,) in db.execute("select value from StringIds where id > 900000000")}
        assert db.execute("select value from TARGET_INFO_SYSTEM_ENV where name = 'CpuCores'").fetchone() == ("8",)
    assert {"/home/user/project/train.py", "/home/user/other.py"} <= texts


@pytest.mark.capture
def test_the_report_is_the_same(planted: Path, cleaned: tuple[Path, Removed]) -> None:
    def report(path: Path) -> dict[str, object]:
        made: Report = explain([path])
        found: dict[str, object] = json.loads(made.model_dump_json())
        return found

    assert report(planted) == report(cleaned[0])


@pytest.mark.capture
def test_a_second_time_there_is_nothing_left_to_remove(cleaned: tuple[Path, Removed], tmp_path: Path) -> None:
    assert not redact(cleaned[0], tmp_path / "again.sqlite")


def database(path: Path, *texts: str) -> Path:
    """A made-up export with these strings."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("create table StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        db.executemany("insert into StringIds values (?, ?)", enumerate(texts))
        db.commit()
    return path


def strings(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return [text for (text,) in db.execute("select value from StringIds order by id")]


def test_a_kernel_called_like_the_user_keeps_its_name(tmp_path: Path) -> None:
    source = database(
        tmp_path / "a.sqlite", "USER=transpose\0HOME=/data/transpose\0", "transpose", "/data/transpose/a.py"
    )
    redact(source, tmp_path / "b.sqlite")
    assert strings(tmp_path / "b.sqlite")[1:] == ["transpose", "/home/user/a.py"]


def test_text_that_is_no_utf8_stays_as_it_is(tmp_path: Path) -> None:
    source = database(tmp_path / "a.sqlite", "x")
    with closing(sqlite3.connect(source)) as db:
        db.execute("update StringIds set value = cast(x'2f686f6d652f616c6963652fff' as text)")  # /home/alice/\xff
        db.commit()
    redact(source, tmp_path / "b.sqlite")
    with closing(sqlite3.connect(tmp_path / "b.sqlite")) as db:
        found = db.execute("select hex(value), typeof(value) from StringIds").fetchone()
    assert found == (b"/home/user/\xff".hex().upper(), "text")


def test_what_a_log_beside_the_file_holds_is_cleaned_too(tmp_path: Path) -> None:
    live, source, target = (tmp_path / name for name in ("live.sqlite", "a.sqlite", "b.sqlite"))
    with closing(sqlite3.connect(database(live, "first"))) as db:
        db.execute("pragma journal_mode = wal")
        db.execute("insert into StringIds values (7, '/home/alice/a.py')")
        db.commit()
        shutil.copyfile(live, source)
        shutil.copyfile(f"{live}-wal", f"{source}-wal")
    redact(source, target)
    assert b"alice" not in target.read_bytes()
    assert strings(target) == ["first", "/home/user/a.py"]
    assert not list(tmp_path.glob("b.sqlite-*"))


def test_a_trigger_is_not_run(tmp_path: Path) -> None:
    source = database(tmp_path / "a.sqlite", "/home/alice/a.py", "kept")
    with closing(sqlite3.connect(source)) as db:
        db.execute("create trigger t after update on StringIds begin delete from StringIds; end")
        db.commit()
    redact(source, tmp_path / "b.sqlite")
    assert strings(tmp_path / "b.sqlite") == ["/home/user/a.py", "kept"]


@pytest.mark.parametrize("name", ["a.sqlite", "link.sqlite", "there.sqlite"])
def test_what_is_there_is_not_replaced(tmp_path: Path, name: str) -> None:
    source = database(tmp_path / "a.sqlite", "x")
    (tmp_path / "link.sqlite").symlink_to(source)
    (tmp_path / "there.sqlite").write_text("mine")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(GpudiagError, match=r"never written|is there already"):
        redact(source, tmp_path / name)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_other_files_are_refused_in_a_sentence(tmp_path: Path) -> None:
    text, other, damaged = tmp_path / "a.nsys-rep", tmp_path / "other.sqlite", tmp_path / "damaged.sqlite"
    text.write_bytes(b"NVIDIA Tegra Profiler Report")
    with closing(sqlite3.connect(other)) as db:
        db.execute("create table songs (name)")
    damaged.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 20)
    refused = {
        text: "is no SQLite export", other: "no export of Nsight Systems", damaged: "cannot be cleaned",
        tmp_path / "missing": "cannot be read",
    }  # fmt: skip
    for source, sentence in refused.items():
        with pytest.raises(GpudiagError, match=sentence):
            redact(source, tmp_path / "out.sqlite")
    assert sorted(tmp_path.iterdir()) == sorted([text, other, damaged])
