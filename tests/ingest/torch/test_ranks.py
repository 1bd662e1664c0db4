"""Traces of several ranks: files or a folder, joined by their collectives."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from gpudiag.errors import GpudiagError
from gpudiag.model import Report
from gpudiag.options import Options
from gpudiag.pipeline import explain
from torch_traces import BASE, Event, call, document, event, work

pytestmark = pytest.mark.slow


def events(steps: range, late: float) -> list[Event]:
    """Steps of 2 ms on the job's clock: a kernel, which takes `late` µs longer, and an all-reduce that ends for all."""
    found: list[Event] = []
    for step in steps:
        begin, number = 2000.0 * step, 10 * step
        found.append(event("user_annotation", f"ProfilerStep#{step}", begin, 1990))
        found += [
            call("cudaLaunchKernel", begin + 5, 5 + late / 300, number + 1),
            call("cudaLaunchKernel", begin + 15, 5, number + 2),
        ]
        found.append(work("kernel", "gemm(float*)", begin + 20, 900 + late, number + 1))
        name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        about = {"Collective name": "allreduce", "In msg nelems": 10**6, "Out msg nelems": 10**6, "Group size": 2,
                 "dtype": "BFloat16", "Process Group Name": "0"}  # fmt: skip
        found.append(work("kernel", name, begin + 925 + late, 1000 - late, number + 2, **about))
    return found


def rank(path: Path, number: int, late: float, steps: range = range(10), base: int = BASE) -> Path:
    stated = {"distributedInfo": {"backend": "nccl", "rank": number, "world_size": 2}, "baseTimeNanoseconds": base}
    path.write_bytes(gzip.compress(json.dumps(document(events(steps, late), **stated)).encode()))
    return path


def report(*paths: Path) -> Report:
    return explain(list(paths), Options(cached=False))


def test_the_traces_of_a_folder_are_ranks_of_one_job(tmp_path: Path) -> None:
    rank(tmp_path / "host_1.pt.trace.json.gz", 0, 0)
    rank(tmp_path / "host_2.pt.trace.json.gz", 1, 600)
    found = report(tmp_path)
    assert [item.kind for item in found.inputs] == ["torch", "torch"]
    (loop,) = found.run.loops
    assert (loop.name, loop.iterations) == ("ProfilerStep", 18)
    assert found.findings[0].code.startswith("N")


def test_other_json_in_a_folder_of_traces_is_left_out(tmp_path: Path) -> None:
    rank(tmp_path / "a.pt.trace.json.gz", 0, 0)
    (tmp_path / "settings.json").write_text('{"learning_rate": 0.1}')
    (tmp_path / "b.json").write_bytes(gzip.decompress(rank(tmp_path.parent / "b.json.gz", 1, 600).read_bytes()))
    assert [Path(item.file).name for item in report(tmp_path).inputs] == ["a.pt.trace.json.gz", "b.json"]


def test_a_rank_that_recorded_more_steps_is_joined_all_the_same(tmp_path: Path) -> None:
    paths = [rank(tmp_path / "a.json.gz", 0, 0), rank(tmp_path / "b.json.gz", 1, 600, range(14))]
    found = report(*paths)
    assert found.verdict.state in ("problems", "cannot_tell")
    assert {loop.name for loop in found.run.loops} == {"ProfilerStep"}


def test_one_rank_given_twice_is_refused_in_a_sentence(tmp_path: Path) -> None:
    paths = [rank(tmp_path / "a.json.gz", 1, 0), rank(tmp_path / "b.json.gz", 1, 600)]
    with pytest.raises(GpudiagError, match="are both of rank 1: give one trace of each rank"):
        report(*paths)


def test_clocks_are_set_by_the_time_that_traces_state(tmp_path: Path) -> None:
    from gpudiag.ingest import ingest
    from gpudiag.store.database import create

    con = create()
    for number in range(2):
        path = rank(tmp_path / f"{number}.json.gz", number, 0, base=BASE + 5000 * number)
        ingest(path, con, tmp_path)
    assert con.execute("select clock_offset_ns from input order by id").fetchall() == [(0,), (5000,)]


def test_a_folder_without_a_trace_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("none")
    with pytest.raises(GpudiagError, match=r"this folder holds no .*traces of torch\.profiler"):
        report(tmp_path)
