"""The benchmark's large file is still a capture: launches, device work and annotations fit together."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from benchmarks import enlarge
from paths import ROOT

CAPTURE = ROOT / "fixtures/captures/item_every_stage/slow.sqlite.xz"
CALLS, KERNELS, RANGES = "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> sqlite3.Connection:
    out = tmp_path_factory.mktemp("enlarge") / "large.sqlite"
    assert enlarge.enlarge(CAPTURE, out, 100_000) >= 100_000
    con = sqlite3.connect(out)
    con.text_factory = bytes
    return con


def count(con: sqlite3.Connection, sql: str) -> int:
    return int(con.execute(f"select count(*) from {sql}").fetchone()[0])


def test_no_correlation_is_used_twice(large: sqlite3.Connection) -> None:
    again = f"(select globalTid >> 24, correlationId from {CALLS} group by 1, 2 having count(*) > 1)"
    assert count(large, again) == 0


def test_every_kernel_follows_the_call_that_launched_it(large: sqlite3.Connection) -> None:
    launched = f"{KERNELS} k join {CALLS} c using (correlationId) where k.start >= c.start"
    assert count(large, launched) == count(large, KERNELS) > 10_000


def test_kernels_of_a_stream_do_not_overlap(large: sqlite3.Connection) -> None:
    lagged = (
        f'(select start, lag("end") over (partition by deviceId, contextId, streamId order by start) as before '
        f"from {KERNELS}) where before > start"
    )
    assert count(large, lagged) == 0


def test_an_existing_file_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "mine.sqlite"
    out.write_text("mine", "utf-8")
    with pytest.raises(SystemExit, match="exists"):
        enlarge.enlarge(CAPTURE, out, 1000)
    assert out.read_text("utf-8") == "mine"
