"""Real captures: what the reader keeps is what the database holds."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from evaluation import packed
from gpudiag.ingest import ingest
from gpudiag.store.database import create
from paths import CAPTURES

pytestmark = pytest.mark.capture

FILES = [file for file in packed.recordings(CAPTURES) if file.name.startswith("slow")]

COUNTS = {
    "select count(*) from api_call": "select count(*) from CUPTI_ACTIVITY_KIND_RUNTIME r join StringIds s"
    " on s.id = r.nameId where s.value not like 'cuKernelGetName%'",
    "select count(*), sum(\"end\" - start) from gpu_op where kind = 'kernel'": 'select count(*), sum("end" - start)'
    " from CUPTI_ACTIVITY_KIND_KERNEL",
    "select count(*), sum(bytes) from gpu_op where kind = 'memcpy'": "select count(*), sum(bytes)"
    " from CUPTI_ACTIVITY_KIND_MEMCPY",
    "select count(*) from sync": "select count(*) from CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "select count(*) from nvtx_range": "select count(*) from NVTX_EVENTS where eventType in (59, 60)",
    "select count(*) from py_sample": "select count(*) from NVTX_EVENTS where jsonText like '%Python Periodic%'",
}


@pytest.mark.parametrize("capture", FILES, ids=lambda path: f"{path.parent.name}-{packed.stem(path)}")
def test_the_reader_keeps_every_row(capture: Path, tmp_path: Path) -> None:
    con = create()
    ingest(packed.opened(capture), con, tmp_path)
    raw = sqlite3.connect(packed.plain(capture))
    tables = {row[0] for row in raw.execute("select name from sqlite_master")}
    for ours, theirs in COUNTS.items():
        if theirs.partition("from ")[2].split()[0] in tables:
            assert con.execute(ours).fetchall() == raw.execute(theirs).fetchall(), ours
    # Every operation and every wait is tied to the call that made it; unified memory moves by itself.
    started = "coalesce(copy_kind, '') not like 'unified%' and (api_call is null or stream is null)"
    assert con.execute(f"select count(*) from gpu_op where {started}").fetchall() == [(0,)]
    states = dict(con.execute("select name, state from capability").fetchall())
    assert states["cuda_api"] == states["gpu_ops"] == states["sync"] == "recorded"
