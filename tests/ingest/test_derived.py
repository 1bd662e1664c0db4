"""What follows from the tables read: whether GPUs are described, and operations tied to their calls."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gpudiag.model import Report
from gpudiag.pipeline import explain

PID = 100
TID = (1 << 48) | (PID << 24) | PID
GPU = "id, name, cuDevice, smCount, totalMemory, computeMajor, computeMinor"


def written(
    path: Path, gpus: Sequence[tuple[Any, ...]] = (), device: int = 0, untied: int = 0, captured: int = 0
) -> Path:
    """A loop of one launch, with a kernel of a single block that fills it; every `untied`-th kernel has no call.

    captured: launches before it that a stream captures into a graph.
    """
    con = sqlite3.connect(path)
    con.execute("create table StringIds (id, value)")
    con.executemany("insert into StringIds values (?, ?)", [(0, "cudaLaunchKernel_v7000"), (1, "lonely()"),
                     (2, "cudaStreamBeginCapture_v10000"), (3, "cudaStreamEndCapture_v10000")])  # fmt: skip
    con.execute('create table CUPTI_ACTIVITY_KIND_RUNTIME (start, "end", globalTid, correlationId, nameId)')
    con.execute(
        'create table CUPTI_ACTIVITY_KIND_KERNEL (start, "end", deviceId, contextId, streamId, globalPid,'
        " correlationId, demangledName, shortName, gridX, gridY, gridZ, blockX, blockY, blockZ)"
    )
    for number in range(200):
        start, call = number * 1_000_000, 0 if untied and number % untied == 0 else number + 1
        con.execute("insert into CUPTI_ACTIVITY_KIND_RUNTIME values (?, ?, ?, ?, 0)",
                    (start, start + 5000, TID, number + 1))  # fmt: skip
        con.execute("insert into CUPTI_ACTIVITY_KIND_KERNEL values (?, ?, ?, 1, 7, ?, ?, 1, 1, 1, 1, 1, 32, 1, 1)",
                    (start + 8000, start + 990_000, device, TID - PID, call))  # fmt: skip
    if captured:
        names = (2, *[0] * captured, 3)
        rows = [(1_000 * number, 1_000 * number + 500, TID, 1000 + number, name) for number, name in enumerate(names)]
        con.execute('update CUPTI_ACTIVITY_KIND_RUNTIME set start = start + 1000000, "end" = "end" + 1000000')
        con.execute('update CUPTI_ACTIVITY_KIND_KERNEL set start = start + 1000000, "end" = "end" + 1000000')
        con.executemany("insert into CUPTI_ACTIVITY_KIND_RUNTIME values (?, ?, ?, ?, ?)", rows)
    if gpus:
        con.execute(f"create table TARGET_INFO_GPU ({GPU})")
        con.executemany(f"insert into TARGET_INFO_GPU values ({', '.join('?' * len(gpus[0]))})", gpus)
    con.commit()
    con.close()
    return path


def not_evaluated(report: Report, code: str) -> str:
    return next((item.reason for item in report.not_evaluated if item.code == code), "")


DESCRIBED = (0, "NVIDIA A100", 0, 108, 40_000_000_000, 8, 0)


@pytest.mark.slow
def test_one_block_on_a_described_gpu_is_found(tmp_path: Path) -> None:
    report = explain([written(tmp_path / "run.sqlite", [DESCRIBED])])
    assert [finding.code for finding in report.findings] == ["L01"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gpus", "device"),
    [
        ([], 0),
        ([(0, "NVIDIA A100", 0, None, None, None, None)], 0),
        ([(0, "NVIDIA A100", 0, 0, 0, 0, 0)], 0),
        ([(0, "NVIDIA A100", 0, -1, -1, -1, -1)], 0),
        ([DESCRIBED], 5),
    ],
    ids=["no table", "null", "zero", "negative", "another device"],
)
def test_rules_without_facts_of_the_gpu_are_not_evaluated(tmp_path: Path, gpus: list[Any], device: int) -> None:
    report = explain([written(tmp_path / "run.sqlite", gpus, device)])
    assert "how many multiprocessors" in not_evaluated(report, "L01")
    assert "generation" in not_evaluated(report, "M06")
    assert "L01" not in report.clear
    assert report.verdict.state == "cannot_tell"


@pytest.mark.slow
def test_without_ties_to_calls_no_host_cause_is_judged(tmp_path: Path) -> None:
    report = explain([written(tmp_path / "run.sqlite", [(*DESCRIBED[:3], 1, *DESCRIBED[4:])], untied=2)])
    for code in ("H01", "H02", "S02", "D05"):
        assert "which calls started" in not_evaluated(report, code)
        assert code not in report.clear
    assert report.verdict.state == "cannot_tell"
    assert "50 %" in report.verdict.text


@pytest.mark.slow
def test_few_untied_operations_leave_the_verdict_alone(tmp_path: Path) -> None:
    report = explain([written(tmp_path / "run.sqlite", [(*DESCRIBED[:3], 1, *DESCRIBED[4:])], untied=100)])
    assert report.verdict.state == "healthy"
    assert not not_evaluated(report, "H01")


@pytest.mark.slow
def test_launches_captured_into_a_graph_need_no_kernel(tmp_path: Path) -> None:
    one_sm = (*DESCRIBED[:3], 1, *DESCRIBED[4:])
    report = explain([written(tmp_path / "run.sqlite", [one_sm], captured=150)])
    assert not not_evaluated(report, "H01")
    assert report.verdict.state == "healthy"
