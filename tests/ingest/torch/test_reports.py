"""Reports of synthetic traces: what the finder of loops and the rules make of what only torch.profiler records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from comparing import between
from gpudiag.diagnosis import run_summary
from gpudiag.library.catalogue import Library
from gpudiag.model import Loop, Report
from gpudiag.options import Options
from gpudiag.pipeline import explain
from gpudiag.prepare import analysed
from gpudiag.report import markdown
from gpudiag.store.database import Connection
from torch_traces import Event, call, event, launched, work, written

pytestmark = pytest.mark.slow

LOADER = "torch/utils/data/dataloader.py"


def report(*paths: Path) -> Report:
    return explain(list(paths), Options(cached=False))


def loops(path: Path) -> tuple[Loop, ...]:
    """Only the loops, for which no rule is asked."""

    def work(con: Connection, library: Library, _: Path | None) -> tuple[Loop, ...]:
        return run_summary.run(con, library.setting_values, {}).loops

    return analysed([path], Options(cached=False), work)


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report of eight steps of a few kernels."""
    return report(written(tmp_path_factory.mktemp("eight") / "trace.json", launched(8)))


def starving(count: int, *names: str, worker: bool = False) -> list[Event]:
    """Iterations of 10 ms, 6 of which are spent in these functions, the outermost first; then 4 ms of kernels."""
    events: list[Event] = []
    for number in range(count):
        begin, own = 10_000.0 * number, number * 100
        events.append(event("user_annotation", f"ProfilerStep#{number}", begin, 9_990))
        for depth, name in enumerate(names):
            ids = {"Python id": own + depth + 1, "Python parent id": own + depth if depth else None}
            events.append(event("python_function", name, begin + depth, 6_000 - 2 * depth, **ids))
        if worker:
            name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
            events.append(event("user_annotation", name, begin + 5, 5_990))
        for kernel in range(16):
            correlation = number * 16 + kernel + 1
            events.append(call("cudaLaunchKernel", begin + 6_010 + 8 * kernel, 5, correlation))
            events.append(work("kernel", "gemm(float*)", begin + 6_020 + 248 * kernel, 245, correlation))
    return events


def test_input_of_the_launching_thread_is_d01_in_its_function(tmp_path: Path) -> None:
    names = ("train.py(3): epoch", f"{LOADER}(631): __next__", "data.py(9): __getitem__")
    found = report(written(tmp_path / "trace.json", starving(8, *names), with_stack=1)).findings[0]
    assert found.code == "D01"
    assert [(place.file, place.function, place.line) for place in found.where[:2]] == [
        ("train.py", "epoch", None),
        ("data.py", "__getitem__", None),
    ]


def test_input_that_workers_prepare_is_d02(tmp_path: Path) -> None:
    found = report(written(tmp_path / "trace.json", starving(8, worker=True))).findings[0]
    assert found.code == "D02"


@pytest.mark.parametrize("count", [2, 3, 8])
def test_the_profilers_steps_are_iterations_however_few(tmp_path: Path, count: int) -> None:
    (loop,) = loops(written(tmp_path / "trace.json", launched(count)))
    assert (loop.name, loop.source, loop.iterations) == ("ProfilerStep", "nvtx", count - 1)


@pytest.mark.parametrize(
    "name", ["nccl:all_reduce", "## forward ##", "Optimizer.step#SGD.step", "enumerate(DataLoader)#x"]
)
def test_what_pytorch_annotates_by_itself_is_no_loop(tmp_path: Path, name: str) -> None:
    events = [
        {**one, "name": name} if one["cat"] == "user_annotation" else one
        for number, one in enumerate(launched(9))
        if number
    ]
    assert all(loop.source != "nvtx" for loop in loops(written(tmp_path / "trace.json", events)))


def test_annotations_beside_the_profilers_steps_are_no_loop(tmp_path: Path) -> None:
    other = [event("user_annotation", "mine", 1000.0 * number + 100, 200, 77) for number in range(8)]
    other += [call("cudaStreamQuery", 1000.0 * number + 110, 2, 900 + number, tid=77) for number in range(8)]
    found = loops(written(tmp_path / "trace.json", [*launched(8), *other]))
    assert [loop.name for loop in found] == ["ProfilerStep"]


def test_a_single_step_with_next_to_no_work_is_not_judged(tmp_path: Path) -> None:
    found = report(written(tmp_path / "trace.json", launched(1)[:3]))
    assert (found.verdict.state, found.run.loops) == ("cannot_tell", ())


def rules_waiting(found: Report, reason: str) -> set[str]:
    return {item.code for item in found.not_evaluated if reason in item.reason}


def test_what_a_trace_never_holds_is_not_evaluated(eight: Report) -> None:
    waiting = rules_waiting(eight, "operating system calls were not recorded")
    assert {"D04", "D06"} <= waiting
    assert not waiting & set(eight.clear)


def gain(found: Report) -> Any:
    return next(item.gain for item in found.findings if item.code == "H01")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    """Reports of tiny kernels: without stacks, with one function recorded, and with a row of functions at each call."""
    events = [event("user_annotation", f"ProfilerStep#{number}", 1200.0 * number, 1190) for number in range(8)]
    for number in range(8):
        for kernel in range(40):
            at, correlation = 1200.0 * number + 29 * kernel, number * 40 + kernel + 1
            events.append(call("cudaLaunchKernel", at, 9, correlation))
            events.append(work("kernel", "add(float*)", at + 6, 2, correlation))
    stack = event("python_function", "train.py(3): epoch", 0, 9_600, **{"Python id": 1, "Python parent id": None})
    many = [
        event("python_function", "train.py(7): add", one["ts"] - 15 + 3 * inner, 2, **{"Python id": number * 4 + inner})
        for number, one in enumerate((one for one in events if one["cat"] == "cuda_runtime"), 1)
        for inner in range(4)
    ]
    folder = tmp_path_factory.mktemp("tiny")
    cases = {"plain": events, "one": [*events, stack], "many": [*events, stack, *many]}
    return {name: report(written(folder / f"{name}.json", case)) for name, case in cases.items()}


def test_recorded_functions_cost_the_host_time(tiny: dict[str, Report]) -> None:
    assert gain(tiny["many"]).share < gain(tiny["one"]).share < gain(tiny["plain"]).share


def test_the_note_on_the_profiler_counts_functions(tiny: dict[str, Report]) -> None:
    notes = {name: next(note.text for note in one.notes if note.code == "Q02") for name, one in tiny.items()}
    assert "about 4.00 µs to each CUDA call" in notes["plain"]
    assert "about 9.99 µs to each CUDA call" in notes["many"]


def compiled(count: int, functions: int) -> list[Event]:
    """Iterations of one kernel of 190 µs, before which the host does 400 µs of work in so many functions."""
    events = [event("python_function", "train.py(3): epoch", 0, 410.0 * count, **{"Python id": 1})]
    for number in range(count):
        at, correlation = 410.0 * number, number + 1
        events.append(event("user_annotation", f"ProfilerStep#{number}", at, 409))
        for inner in range(functions):
            ids = {"Python id": number * functions + inner + 2, "Python parent id": 1}
            events.append(event("python_function", "train.py(7): guard", at + inner * 400 / functions, 0.5, **ids))
        events.append(call("cudaLaunchKernel", at + 401, 5, correlation))
        events.append(work("kernel", "add(float*)", at + 408, 190, correlation))
    return [*events, call("cudaDeviceSynchronize", 410.0 * count + 10, 200, count + 1)]


@pytest.mark.parametrize(("functions", "listed"), [(300, False), (2, True)])
def test_idle_time_that_recording_made_leads_no_report(tmp_path: Path, functions: int, listed: bool) -> None:
    found = report(written(tmp_path / "trace.json", compiled(6, functions)))
    assert any(one.code in ("H01", "H02") for one in found.findings) == listed


def test_advice_names_the_option_of_the_profiler_used(eight: Report) -> None:
    note = next(note.text for note in eight.notes if note.code == "Q03")
    assert "record with `with_stack=True`" in note


def test_two_profilers_are_compared_only_by_given_times(eight: Report) -> None:
    head = eight
    base = head.model_copy(update={"inputs": tuple(one.model_copy(update={"kind": "nsys"}) for one in head.inputs)})
    refused = between(base, head)
    assert refused.state == "incomparable"
    assert "recorded by Nsight Systems and head by torch.profiler" in refused.text
    times = {"ProfilerStep": [0.9]}
    assert between(base, head, base_times=times, head_times=times).state != "incomparable"
    assert between(head, head).state == "noise"


def test_a_finding_about_kernels_names_their_operator(tmp_path: Path) -> None:
    """Products of 32-bit numbers, all made by one operator."""
    events = []
    for one in launched(8):
        if one["cat"] == "kernel":
            one = {**one, "name": "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n"}
        if one["cat"] == "cuda_runtime":
            events.append(event("cpu_op", "aten::mm", one["ts"] - 2, 10, **{"Input Dims": [[64, 32], [32, 16]]}))
        events.append(one)
    found = report(written(tmp_path / "trace.json", events))
    places = [place for finding in (*found.findings, *found.minor) if finding.code == "P02" for place in finding.where]
    assert {place.operator for place in places} == {"aten::mm [[64,32],[32,16]]"}
    assert any("operator `aten::mm [[64,32],[32,16]]`" in line for line in markdown.render(found).splitlines())


def test_a_row_of_kernels_to_fuse_names_its_operators(tmp_path: Path) -> None:
    """Three element-wise operators over one array, in the function of a module."""
    names = ("aten::mul", "aten::add", "aten::sigmoid")
    events = [event("python_function", "nn.Module: Gate_0", 0, 8_000, **{"Python id": 1})]
    for number in range(8):
        at = 1_000.0 * number
        events.append(event("user_annotation", f"ProfilerStep#{number}", at, 990))
        for place, name in enumerate(names):
            start, correlation = at + 20 * place, number * 3 + place + 1
            events.append(event("cpu_op", name, start, 15))
            events.append(call("cudaLaunchKernel", start + 5, 5, correlation))
            more = {"grid": [4096, 1, 1], "block": [256, 1, 1]}
            kernel = f"void at::native::vectorized_elementwise_kernel<4, at::native::{name[6:]}_functor>(int)"
            events.append(work("kernel", kernel, at + 12 + 320 * place, 319, correlation, **more))
    found = report(written(tmp_path / "trace.json", events))
    (chain,) = (one for one in found.findings if one.code == "H03")
    assert {place.operator for place in chain.where} == {"aten::mul, aten::add, aten::sigmoid"}
