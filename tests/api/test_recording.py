"""`gpudiag.profile()` with a stand-in for torch.profiler: it takes the options, and writes a synthetic trace."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import pytest

import gpudiag
from torch_stand_in import StandIn, stand_in


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    return stand_in(monkeypatch, cuda=True)


@pytest.mark.slow
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


@pytest.mark.slow
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
