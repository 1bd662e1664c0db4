"""`gpudiag.profile()` with a stand-in for torch.profiler: it takes the options, and writes a synthetic trace."""

from __future__ import annotations

import gc
import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import gpudiag
from torch_traces import Event, document, event, launched

COMPUTING = [*launched(10, steps=False), event("cpu_op", "aten::mm", 0, 9)]
CPU_ONLY = [event("cpu_op", "aten::mm", 0, 9)]


class StandIn(ModuleType):
    """torch.profiler as far as a recording uses it, and torch.cuda."""

    def __init__(self, *, cuda: bool) -> None:
        super().__init__("torch.profiler")
        self.events: list[Event] = list(COMPUTING if cuda else CPU_ONLY)
        self.options: dict[str, Any] = {}
        self.ProfilerActivity = type("ProfilerActivity", (), {"CPU": "CPU", "CUDA": "CUDA"})
        self.profile: Callable[..., Profiler] = lambda **options: Profiler(self, options)
        self.record_function: Callable[[str], Mark] = lambda name: Mark(self, name)
        self.torch = ModuleType("torch")
        self.torch.cuda = ModuleType("torch.cuda")  # type: ignore[attr-defined]
        self.torch.cuda.is_available = lambda: cuda

    @staticmethod
    def schedule(**numbers: int) -> dict[str, int]:
        return numbers


class Profiler:
    """Records from the start without a schedule; with one, after its warm-up, and as many steps as it says."""

    def __init__(self, module: StandIn, options: dict[str, Any]) -> None:
        module.options = options
        self._module, self._schedule, self._steps, self._done = module, options["schedule"], 0, False

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if not self._done and (not self._schedule or self._steps >= self._schedule["warmup"]):
            self._module.options["on_trace_ready"](self)

    def step(self) -> None:
        self._steps += 1
        if self._steps == self._schedule["warmup"] + self._schedule["active"]:
            self._done = True
            self._module.options["on_trace_ready"](self)

    def export_chrome_trace(self, path: str) -> None:
        text = json.dumps(document(self._module.events)).encode()
        Path(path).write_bytes(gzip.compress(text) if path.endswith(".gz") else text)


class Mark:
    """A range, which lasts 1 ms on the clock of the synthetic trace."""

    def __init__(self, module: StandIn, name: str) -> None:
        self._module, self._name = module, name

    def __enter__(self) -> None:
        number = int(self._name.partition("#")[2])
        self._module.events.append(event("user_annotation", self._name, 1000.0 * number, 990))

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    return stand_in(monkeypatch, cuda=True)


def stand_in(monkeypatch: pytest.MonkeyPatch, *, cuda: bool) -> StandIn:
    module = StandIn(cuda=cuda)
    monkeypatch.setitem(sys.modules, "torch", module.torch)
    monkeypatch.setitem(sys.modules, "torch.profiler", module)
    return module


def test_a_block_with_steps_becomes_a_report(torch: StandIn) -> None:
    with gpudiag.profile() as recording:
        for _ in range(10):
            recording.step()
    report = recording.report()
    assert report.loops.select("name", "source").row(0) == ("ProfilerStep", "nvtx")
    assert report.loops["iterations"][0] == 8, "nine marked ones, the first of which is set aside"
    assert report.findings["title"][0] in report.to_markdown()
    assert torch.options["activities"] == ["CPU", "CUDA"]
    wanted = {"with_stack": True, "record_shapes": True, "profile_memory": False, "schedule": None}
    assert {name: torch.options[name] for name in wanted} == wanted


def test_without_steps_what_repeats_is_found(torch: StandIn) -> None:
    with gpudiag.profile(stacks=False, shapes=False, memory=True) as recording:
        pass
    assert recording.report(iteration_time="0.24ms").loops["source"].to_list() == ["period"]
    assert [torch.options[name] for name in ("with_stack", "record_shapes", "profile_memory")] == [False, False, True]


def test_a_number_of_steps_is_a_schedule(torch: StandIn, tmp_path: Path) -> None:
    kept = tmp_path / "trace.json"
    with gpudiag.profile(kept, steps=5, warmup=2) as recording:
        for number in range(9):
            recording.step()
            assert kept.exists() == (number >= 6), "written when the last step is over"
    assert torch.options["schedule"] == {"wait": 0, "warmup": 2, "active": 5, "repeat": 1}
    assert recording.path == kept


def test_a_trace_without_a_path_goes_with_its_recording(torch: StandIn) -> None:
    with gpudiag.profile() as recording:
        pass
    trace = recording.path
    assert trace.name == "trace.json.gz" and trace.exists()
    torch.options.clear()  # the stand-in keeps what it was given
    del recording
    gc.collect()
    assert not trace.parent.exists()


def test_a_block_that_fails_keeps_what_was_recorded(torch: StandIn) -> None:
    with pytest.raises(ZeroDivisionError), gpudiag.profile() as recording:
        raise ZeroDivisionError
    assert recording.path.exists()


def test_without_a_gpu_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = stand_in(monkeypatch, cuda=False)
    with gpudiag.profile() as recording:
        pass
    assert torch.options["activities"] == ["CPU"]
    with pytest.raises(gpudiag.GpudiagError, match="holds work of the CPU only, no CUDA call"):
        recording.report()


def test_without_torch_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.profiler", None)
    with pytest.raises(gpudiag.GpudiagError, match="records with PyTorch, which cannot be loaded here"):
        gpudiag.profile()


def test_a_recording_used_otherwise_is_one_sentence(torch: StandIn) -> None:
    recording = gpudiag.profile()
    with pytest.raises(gpudiag.GpudiagError, match="Nothing was recorded: run the work in"):
        recording.report()
    with pytest.raises(gpudiag.GpudiagError, match=r"call p.step\(\) inside"):
        recording.step()
    with recording, pytest.raises(gpudiag.GpudiagError, match="The recording still runs"):
        recording.report()
    with pytest.raises(gpudiag.GpudiagError, match="A recording is made once"), recording:
        pass
    with gpudiag.profile(steps=3, warmup=4) as early:
        early.step()
    with pytest.raises(gpudiag.GpudiagError, match=r"was called 4 times.*it was called 1 time"):
        early.report()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"steps": 0}, "steps=0 is no number of iterations: give a whole number from 1 on"),
        ({"steps": 5, "warmup": -1}, "warmup=-1 is no number of iterations: give a whole number from 0 on"),
        ({"path": "trace.txt"}, "trace.txt has no suffix of a trace: end it in .json or .json.gz"),
        ({"path": "nowhere/trace.json"}, "there is no folder nowhere"),
    ],
)
def test_an_argument_without_sense_is_one_sentence(torch: StandIn, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(gpudiag.GpudiagError, match=said):
        gpudiag.profile(**arguments)
