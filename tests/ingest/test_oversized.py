"""Small files that would take a reader's memory or time end soon, with a report or in one sentence.

Each is read in a process that may take 10 s of a processor and 3 GB of addresses: what needs more is killed.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from fuzz.generators import oversized
from gpudiag import pipeline
from gpudiag.errors import GpudiagError
from gpudiag.ingest.sources import sqlite
from gpudiag.options import Options

pytestmark = pytest.mark.slow

SECONDS, ADDRESSES, BYTES = 30, 3 << 30, 1_000_000_000
# Work without end, and not slow work on a slow machine, is what the seconds of processor time stop.
_PEAK = """
import re, sys
from gpudiag.cli import main
try:
    main(sys.argv[1:])
finally:
    with open("/proc/self/status") as file:
        print(re.search(r"VmHWM:\\s+(\\d+)", file.read())[1])
"""


def limited(words: Sequence[str], folder: Path, addresses: int = ADDRESSES) -> tuple[int, str, int]:
    """The command's exit code, what it said, and the most bytes that it held."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))

    done = subprocess.run(
        [sys.executable, "-c", _PEAK, *words], preexec_fn=limit, capture_output=True, text=True, timeout=600,
        check=False, cwd=folder,
    )  # fmt: skip
    return done.returncode, done.stderr, 1024 * int(done.stdout.split()[-1]) if done.stdout else 0


def explained(content: bytes, folder: Path) -> tuple[int, str]:
    """Exit code and sentence; the memory is checked."""
    file = folder / "report.sqlite"
    file.write_bytes(content)
    code, said, held = limited(["explain", file.name, "--no-cache", "-o", "out.json"], folder)
    assert code in (0, 2), (code, said)
    assert held < BYTES, said
    assert said.count("\n") == (code == 2), said
    return code, said


@pytest.mark.parametrize("table", [oversized.NVTX, "StringIds"])
def test_rows_that_share_a_value_are_refused(table: str, tmp_path: Path) -> None:
    code, said = explained(oversized.shared_chain(table=table), tmp_path)
    assert code == 2 and "longer than the file" in said


@pytest.mark.parametrize("table", [oversized.RUNTIME, oversized.KERNEL, "META_DATA_CAPTURE"])
def test_pages_in_a_circle_are_refused(table: str, tmp_path: Path) -> None:
    code, said = explained(oversized.circle(table=table), tmp_path)
    assert code == 2 and "reached twice" in said


def test_a_hundred_thousand_tables_are_refused(tmp_path: Path) -> None:
    code, said = explained(oversized.crowd(100_000), tmp_path)
    assert code == 2 and "tables" in said


@pytest.mark.parametrize("names", [1, 2], ids=["one function", "with driver calls"])
def test_overlapping_calls_take_little_memory(names: int, tmp_path: Path) -> None:
    assert explained(oversized.overlapping(10_000, names), tmp_path)[0] == 0


def test_a_column_named_rowid_is_read(tmp_path: Path) -> None:
    assert explained(oversized.named_rowid(), tmp_path)[0] == 0


def test_an_endless_default_value_is_refused(tmp_path: Path) -> None:
    content = oversized.changed(
        oversized.export(20_000),
        f'insert into {oversized.NVTX} select start, "end", 59, globalTid, 3, null from {oversized.RUNTIME}',
        f"alter table {oversized.NVTX} add column jsonText text default '{'x' * 900_000}'",
    )
    assert explained(content, tmp_path)[0] == 2


@pytest.mark.parametrize("addresses", [300, 500, 800, 1200])
def test_too_little_memory_is_one_true_sentence(addresses: int, tmp_path: Path) -> None:
    (tmp_path / "report.sqlite").write_bytes(oversized.export())
    command = [sys.executable, "-m", "gpudiag", "explain", "report.sqlite", "--no-cache", "-o", "out.json"]
    limit = f'ulimit -v {addresses}000; exec "$@"'
    done = subprocess.run(
        ["sh", "-c", limit, "sh", *command], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 2, done.stderr
    assert "ulimit -v" in done.stderr and done.stderr.count("\n") == 1


def test_a_query_without_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file is known that gets past the checks of its pages; one that did would end in a sentence all the same."""
    (tmp_path / "report.sqlite").write_bytes(oversized.export())
    monkeypatch.setattr(sqlite, "STEPS", 1_000_000)
    endless = "with recursive n(a) as (select 0 union all select a + 1 from n) select max(a) from n"
    monkeypatch.setattr(sqlite.SqliteSource, "has", lambda source, _: source._schema.execute(endless).fetchone())
    with pytest.raises(GpudiagError, match="reading it takes longer than a file of its size can need"):
        pipeline.explain([tmp_path / "report.sqlite"], Options(cached=False))
