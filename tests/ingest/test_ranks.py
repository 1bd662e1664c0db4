"""Captures of several ranks: what tells that they belong together, and that they then share their loops."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from gpudiag.ingest import ingest
from gpudiag.store.database import create
from timelines import Case, opened, rows


def captures(length: float, *, offset_us: float | None = 0, wait: float = 0) -> Case:
    """Return two inputs of six iterations, a kernel and an all-reduce each; those of the second last `length` µs."""
    tables: Case = {
        "input": [{"id": 0, "file": "a.rank0"}, {"id": 1, "file": "a.rank1"}],
        "process": [{"id": 0, "input": 0, "rank": 0}, {"id": 1, "input": 1, "rank": 1}],
        "thread": [{"id": 0, "process": 0}, {"id": 1, "process": 1}],
        "device": [{"id": 0, "input": 0}, {"id": 1, "input": 1}],
        "nvtx_range": [], "api_call": [], "gpu_op": [], "collective": [],
    }  # fmt: skip
    tables["input"][1]["clock_offset_ns"] = None if offset_us is None else round(offset_us * 1000)
    for rank, every in ((0, 1000.0), (1, length)):
        own: dict[str, Any] = {"process": rank, "repeat": 6, "every": every}
        begin = 100 if rank else 0
        tables["nvtx_range"].append({"name": "step", "start": begin, "duration": every, "thread": rank, **own})
        for name, start, duration in (("gemm()", 10, 500 + wait * rank), ("ncclDevKernel_AllReduce()", 900, 90)):
            call = {"label": f"{name}{rank}", "name": "cudaLaunchKernel", "start": begin + 5, "duration": 3}
            tables["api_call"].append({**call, "thread": rank, **own})
            op = {"api_call": call["label"], "label": f"op {name}{rank}", "name": name, "start": begin + start}
            tables["gpu_op"].append({**op, "duration": duration, "device": rank, "stream": 2 * rank, **own})
        tables["collective"].append({"gpu_op": f"op ncclDevKernel_AllReduce(){rank}", "op": "all_reduce", "repeat": 6})
    return tables


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "loops"),
    [
        pytest.param(captures(1000, offset_us=-100), 1, id="the ends of all collectives lie equally far apart"),
        pytest.param(captures(1000, offset_us=None), 1, id="clocks that no file states cannot disagree"),
        pytest.param(captures(1400, offset_us=-100), 2, id="two runs drift apart"),
        pytest.param(captures(1000, offset_us=60e6), 2, id="one run began a minute after the other"),
    ],
)
def test_ranks_of_one_job_share_their_loop(case: Case, loops: int) -> None:
    with opened(case, "rank_process") as con:
        found = rows(con, "select processes from loop")
        ranks = rows(con, "select rank_name, label, ranks from rank_process order by process")
    assert [row["processes"] for row in found] == ([2] if loops == 1 else [1, 1])
    labels = ["rank 0 (a.rank0)", "rank 1 (a.rank1)"] if loops == 1 else []
    assert [(row["label"], row["ranks"]) for row in ranks] == [(label, 2) for label in labels]
    assert all(row["label"].startswith(row["rank_name"]) for row in ranks)


def written(path: Path, began: int | None) -> Path:
    """A small Nsight Systems export that began at that moment (ns since 1970)."""
    with sqlite3.connect(path) as con:
        con.execute("create table StringIds (id, value)")
        con.execute("insert into StringIds values (1, 'gemm')")
        con.execute(
            'create table CUPTI_ACTIVITY_KIND_KERNEL (start, "end", deviceId, contextId, streamId, globalPid,'
            " correlationId, demangledName, shortName, gridX, gridY, gridZ, blockX, blockY, blockZ)"
        )
        values = (5, 9, 0, 1, 7, (1 << 48) | (100 << 24), 1, 1, 1, 1, 1, 1, 1, 1, 1)
        con.execute(f"insert into CUPTI_ACTIVITY_KIND_KERNEL values ({', '.join(map(str, values))})")
        if began is not None:
            con.execute("create table TARGET_INFO_SESSION_START_TIME (utcEpochNs)")
            con.execute("insert into TARGET_INFO_SESSION_START_TIME values (?)", [began])
    con.close()
    return path


@pytest.mark.parametrize(("began", "offset"), [(1_000_000_700, 700), (None, None)])
def test_clocks_are_joined_and_ranks_named_by_what_the_files_say(
    tmp_path: Path, began: int | None, offset: int | None
) -> None:
    con = create()
    ingest(written(tmp_path / "slow.rank0.sqlite", 1_000_000_000), con, tmp_path)
    ingest(written(tmp_path / "slow.rank12.sqlite", began), con, tmp_path)
    assert con.execute("select clock_offset_ns from input order by id").fetchall() == [(0,), (offset,)]
    assert con.execute("select rank from process order by id").fetchall() == [(0,), (12,)]
