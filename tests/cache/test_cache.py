"""The cache: the same report from it as without it, whatever happens to it, and nothing else of the user's touched."""

from __future__ import annotations

import json
import lzma
import os
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result

from evaluation.corpus import CAPTURES
from evaluation.packed import plain, recording
from gpudiag import pipeline, prepare, tempdir
from gpudiag.cache import entries, identity, place
from gpudiag.cli import main
from gpudiag.lockfile import held
from gpudiag.options import Options
from gpudiag.report import formats, json_format
from gpudiag.store import database

pytestmark = pytest.mark.capture

SMALL = recording(CAPTURES / "game_of_life_small" / "slow")
FOLDER = CAPTURES / "item_every_stage" / "slow.parquetdir.tar.xz"
RULE = """\
code: ZZ01
kind: hygiene
id: mine
title: Something of mine
requires: [gpu_ops]
query: |
  {query}
message: There are {{{{ places|length }}}} of mine.
why: Because.
not_a_problem_when: Never.
what: Looks for it.
"""


@dataclass(frozen=True)
class Known:
    """A capture that was written long enough ago to be kept, its report, and what a cache keeps of it."""

    capture: Path
    report: str
    stores: Path


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    folder = tmp_path_factory.mktemp("known")
    file = folder / "run.sqlite"
    file.write_bytes(SMALL.read_bytes())
    time.sleep(2 * identity._FINE_NS / 1e9)
    with pytest.MonkeyPatch.context() as patch:
        cached_in(folder / "cache", patch)
        return Known(file, said(file), folder / "cache/gpudiag/stores")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache that also keeps small captures; where the kept stores lie."""
    cached_in(tmp_path / "cache", monkeypatch)
    return tmp_path / "cache" / "gpudiag" / "stores"


def cached_in(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("XDG_CACHE_HOME", str(folder))
    patch.setattr(prepare, "IN_MEMORY", 0)
    patch.setattr(identity, "_SETTLED_NS", 0)  # whoever has just edited the sources may run tests


@pytest.fixture
def entry(known: Known, cache: Path) -> Path:
    """The store that is kept of the known capture, in the cache of the test; not the answer."""
    without = shutil.ignore_patterns(f"*{entries.MEMO}")
    shutil.copytree(known.stores, place.stores(), dirs_exist_ok=True, ignore=without)
    (file,) = kept(cache)
    return file


@pytest.fixture
def capture(known: Known, tmp_path: Path) -> Path:
    """The same capture, to be changed."""
    file = tmp_path / "run.sqlite"
    shutil.copyfile(known.capture, file)
    time.sleep(2 * identity._FINE_NS / 1e9)
    return file


def said(*paths: Path, **options: object) -> str:
    return json_format.render(pipeline.explain(list(paths), replace(Options(), **options)))  # type: ignore[arg-type]


def read(*paths: Path, **options: object) -> list[str]:
    """As `said`, but only which files were read: no rule is asked."""

    def work(con: database.Connection, *_: object) -> list[str]:
        return [name for (name,) in con.execute('select file from "input" order by id').fetchall()]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare, "prepare", lambda *_, **__: None)
        return prepare.analysed(paths, replace(Options(), **options), work)  # type: ignore[arg-type]


def kept(cache: Path) -> list[Path]:
    """The stores."""
    return [entry.file for entry in entries.entries(cache) if not entry.answer]


def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on no capture can be read."""

    def refuse(*_: object) -> None:
        raise AssertionError("the capture was read")

    monkeypatch.setattr(prepare, "ingest", refuse)


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def test_every_format_is_the_same_from_the_cache(known: Known, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def written(**options: bool) -> dict[str, str]:
        made, picture = pipeline.pictured([known.capture], Options(**options))
        return {form.name: formats.render(made, form.name, picture) for form in formats.ALL}

    anew = written(cached=False)
    assert not cache.exists()
    assert written() == anew
    assert len(kept(cache)) == 1
    with monkeypatch.context() as patch:
        unread(patch)
        assert written() == anew
    monkeypatch.setattr(prepare, "IN_MEMORY", 10**9)
    assert written() == anew


def test_rule_thresholds_reuse_a_store_and_settings_do_not(
    known: Known, entry: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = said(known.capture, overrides={"settings.max_ops": 200.0})
    assert len(kept(cache)) == 2
    unread(monkeypatch)
    assert said(known.capture, overrides={"settings.max_ops": 200.0}) == short
    assert said(known.capture) == known.report
    assert said(known.capture, overrides={"H01.min_share": 0.99}) != known.report


def test_a_typing_error_does_not_cost_reading_again(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("explain", known.capture, "--iteration-time", "no such loop=3ms").exit_code == 2
    unread(monkeypatch)
    assert run("explain", known.capture).exit_code == 0


def rewritten(file: Path) -> None:
    """One other byte in the middle, by somebody who sets the time back."""
    status = file.stat()
    with file.open("r+b") as stream:
        stream.seek(status.st_size // 3)
        stream.write(b"\xff")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def replaced(file: Path) -> None:
    """Another capture under its name."""
    other = lzma.decompress((CAPTURES / "item_every_stage" / "slow.sqlite.xz").read_bytes())
    file.with_name("new").write_bytes(other)
    file.with_name("new").rename(file)


@pytest.mark.parametrize("change", [rewritten, replaced])
def test_a_changed_file_is_read_anew(change: Callable[[Path], None], capture: Path) -> None:
    before = identity.key([capture], Options())
    change(capture)
    time.sleep(2 * identity._FINE_NS / 1e9)
    assert identity.key([capture], Options()) != before


def test_the_name_and_the_order_are_part_of_it(capture: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.sqlite"
    link.symlink_to(capture)
    keys = {identity.key(paths, Options()) for paths in ([capture], [link], [capture, link], [link, capture])}
    assert len(keys) == 4


def test_a_file_of_an_export_folder_counts(tmp_path: Path) -> None:
    folder = tmp_path / "slow.parquetdir"
    shutil.copytree(plain(FOLDER), folder)
    time.sleep(2 * identity._FINE_NS / 1e9)
    before = identity.key([folder], Options())
    rewritten(max(folder.glob("*.parquet"), key=lambda file: file.stat().st_size))
    time.sleep(2 * identity._FINE_NS / 1e9)
    assert identity.key([folder], Options()) != before


def test_what_was_written_this_moment_is_not_kept(capture: Path, cache: Path) -> None:
    capture.touch()
    assert read(capture) == ["run.sqlite"]
    assert kept(cache) == []


def test_what_changes_while_it_is_read_is_not_kept(capture: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = prepare.ingest

    def meanwhile(path: Path, *rest: Any) -> None:
        reading(path, *rest)
        rewritten(path)

    monkeypatch.setattr(prepare, "ingest", meanwhile)
    assert read(capture) == ["run.sqlite"]
    assert kept(cache) == []


def flipped(file: Path) -> None:
    """Every block holds another byte than it did."""
    content = bytearray(file.read_bytes())
    for at in range(20_000, len(content), 4_096):
        content[at] ^= 0x10
    file.write_bytes(content)


def changed(statement: str) -> Callable[[Path], None]:
    """The store after a statement of somebody else's."""

    def change(file: Path) -> None:
        with duckdb.connect(str(file)) as con:
            con.execute(statement)

    return change


def another(file: Path) -> None:
    """Any other DuckDB database."""
    file.unlink()
    changed("create table theirs as select 1 as n")(file)


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "empty": lambda file: os.truncate(file, 0),
    "cut": lambda file: os.truncate(file, file.stat().st_size // 2),
    "not a store": lambda file: file.write_bytes(b"x" * 100_000) and None,
    "another database": another,
    "a table less": changed("drop table gpu_op"),
    "of another capture": changed("update kept_for set file = 'x'"),
    "a pipe": pipe,
    "header": lambda file: file.write_bytes(b"\0" * 4_096 + file.read_bytes()[4_096:]) and None,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_cannot_be_opened_is_read_anew(damage: Callable[[Path], None], known: Known, entry: Path) -> None:
    entry.chmod(0o600)
    damage(entry)
    assert read(known.capture) == ["run.sqlite"]
    database.reopen(str(entry)).close()


def test_damage_that_only_rules_notice_costs_time_only(known: Known, entry: Path) -> None:
    entry.chmod(0o600)
    flipped(entry)
    assert said(known.capture) == known.report
    whole = database.reopen(str(entry))
    database.read_all(whole)
    whole.close()


def with_rule(tmp_path: Path, query: str) -> Path:
    folder = tmp_path / "rules"
    folder.mkdir(exist_ok=True)
    (folder / "mine.yaml").write_text(RULE.format(query=query))
    return folder


def test_a_user_rule_reads_the_kept_store_and_cannot_change_it(
    known: Known, entry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unread(monkeypatch)
    content = entry.read_bytes()
    summary = said(known.capture, rule_dirs=[with_rule(tmp_path, "select id as loop from loop")])
    assert "There are 1 of mine." in summary
    said(known.capture, rule_dirs=[with_rule(tmp_path, "delete from loop")])
    assert entry.read_bytes() == content


def test_a_store_gone_before_a_user_rule_is_read_anew(
    known: Known, entry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking = pipeline.evaluated

    def gone(*args: Any) -> Any:
        monkeypatch.setattr(pipeline, "evaluated", looking)
        entry.unlink()  # another process needed room
        return looking(*args)

    monkeypatch.setattr(pipeline, "evaluated", gone)
    summary = said(known.capture, rule_dirs=[with_rule(tmp_path, "select id as loop from loop")])
    assert "There are 1 of mine." in summary


def test_two_at_once_get_the_same(known: Known, cache: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(lambda _: said(known.capture), range(2))) == {known.report}
    assert len(kept(cache)) == 1


def test_what_was_not_used_for_longest_goes_first(
    known: Known, entry: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = entry.with_name(f"{'0' * 32}-other.sqlite.duckdb")
    shutil.copyfile(entry, other)
    os.utime(entry, (1, 1))
    os.utime(other, (2, 2))
    read(known.capture)  # now `other` was not used for longer
    monkeypatch.setenv(place.SIZE, str(int(2.5 * entry.stat().st_size)))
    said(known.capture, overrides={"settings.max_ops": 200.0})
    assert len(kept(cache)) == 2
    assert entry.exists()
    assert not other.exists()


@pytest.mark.parametrize("limit", ["1kB", "0"])
def test_a_limit_too_small_keeps_nothing(
    limit: str, known: Known, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(place.SIZE, limit)
    assert read(known.capture) == ["run.sqlite"]
    assert kept(cache) == []


def test_a_limit_without_sense_is_one_sentence(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(place.SIZE, "much")
    done = run("explain", known.capture)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("gpudiag: GPUDIAG_CACHE_SIZE='much' is no size")


def a_file(root: Path, _: pytest.MonkeyPatch) -> None:
    root.mkdir()
    (root / "gpudiag").write_text("mine")


def open_to_others(root: Path, _: pytest.MonkeyPatch) -> None:
    (root / "gpudiag").mkdir(parents=True)
    (root / "gpudiag").chmod(0o777)


def of_another(root: Path, patch: pytest.MonkeyPatch) -> None:
    (root / "gpudiag").mkdir(parents=True)
    patch.setattr(os, "geteuid", lambda: 12345)


def no_home(_: Path, patch: pytest.MonkeyPatch) -> None:
    patch.delenv("XDG_CACHE_HOME")
    patch.setenv("HOME", "")
    patch.setattr(os.path, "expanduser", lambda path: path)


def full(_: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(place, "LEAVE_FREE", 10**18)


@pytest.mark.parametrize("trouble", [a_file, open_to_others, of_another, no_home, full])
def test_without_a_usable_cache_the_report_is_the_same(
    trouble: Callable[[Path, pytest.MonkeyPatch], None], known: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trouble(tmp_path / "cache", monkeypatch)
    steps: list[str] = []
    assert read(known.capture, progress=steps.append) == ["run.sqlite"]
    assert [step for step in steps if "the cache is not used: " in step or "not kept" in step]
    assert not list((tmp_path / "cache").rglob("*.duckdb"))


def test_a_cache_on_another_disk_is_filled_too(known: Known, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = Path("/dev/shm")
    if not os.access(elsewhere, os.W_OK) or elsewhere.stat().st_dev == known.capture.stat().st_dev:
        pytest.skip("there is only one disk")
    monkeypatch.setattr(tempdir.tempfile, "tempdir", str(elsewhere))
    assert read(known.capture) == ["run.sqlite"]
    assert len(kept(cache)) == len(list(cache.iterdir())) == 1
    unread(monkeypatch)
    assert read(known.capture) == ["run.sqlite"]


def test_files_of_killed_runs_are_removed_and_used_ones_kept(
    known: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempdir.tempfile, "tempdir", str(temporary))
    left = temporary / f"{tempdir.PREFIX}1"
    used = temporary / f"{tempdir.PREFIX}2"
    foreign = temporary / "gpudiag-3"
    for folder in (left, used, foreign):
        folder.mkdir()
        (folder / "store.duckdb").write_text("half")
    (temporary / f"{left.name}{tempdir.LOCK}").touch()
    stores = place.stores()
    (stores / ".1.part").write_text("half")
    with held(temporary / f"{used.name}{tempdir.LOCK}"), held(stores / ".2.part"):
        read(known.capture)
        assert {path.name for path in temporary.iterdir()} == {used.name, f"{used.name}.lock", foreign.name}
        assert [path.name for path in stores.glob(".*")] == [".2.part"]


def test_info_and_clear_of_nothing(cache: Path) -> None:
    assert "nothing is kept, of at most 10 GB" in run("cache", "info").stdout
    assert run("cache", "clear").stdout == "There was nothing to delete.\n"
    assert not cache.parent.exists()


def test_info_and_clear(entry: Path, cache: Path) -> None:
    summary = json.loads(run("cache", "info", "--format", "json").stdout)
    assert summary["folder"] == str(cache.parent)
    assert [(one["capture"], one["bytes"]) for one in summary["captures"]] == [("run.sqlite", entry.stat().st_size)]
    assert "run.sqlite" in run("cache", "info").stdout
    assert run("cache", "clear").stdout.startswith("Deleted 1 entry, ")
    assert kept(cache) == []


def test_only_the_user_can_read_what_is_kept(known: Known) -> None:
    files = [entry.file for entry in entries.entries(known.stores)]
    assert {file.suffix for file in files} == {entries.SUFFIX, entries.MEMO}
    assert [path.stat().st_mode & 0o777 for path in (known.stores.parent, known.stores)] == [0o700, 0o700]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o400}


def test_small_captures_are_not_worth_it(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "IN_MEMORY", 10_000_000)
    read(SMALL)
    assert not cache.exists()
