"""Recording by PyTorch's profiler where nsys is missing, with a package that stands for PyTorch: `tests/recorders.py`.

The hook itself runs as it does in a real program: Python loads it at start-up, in a process of its own.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpudiag.capture import recorder_file, session, workspace
from gpudiag.capture.measure import Unprofiled
from gpudiag.capture.nsys.nsys_profile import Range
from gpudiag.capture.plan import Plan
from gpudiag.capture.pytorch.trace_recording import TraceRange, part
from gpudiag.capture.session import capture
from gpudiag.cli import main
from gpudiag.errors import GpudiagError
from recorders import OPTIONS, RECORDS, assert_nothing_left, nsys, plan, torch, traced
from torch_traces import event


@pytest.fixture
def alone(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with the stand-in for PyTorch, and without nsys."""
    (place / "bin" / "nsys").unlink()
    torch(place, monkeypatch)
    return place


def quick(place: Path, program: str) -> Plan:
    wanted = plan(place, sys.executable, str(place / "lib" / program))
    few = replace(wanted.thresholds, windows=1, window_s=0.1, least_s=0.1, trace_least_s=0.1, trace_most_s=0.3)
    return replace(wanted, duration_s=1.0, runs=1, warm_up=3, thresholds=replace(few, trace_iterations=4))


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured before the recording is made up: the time of a step, of which seconds would be run."""
    measured = Unprofiled("made up", (0.02,), warm_s=0.1, pytorch=True)
    monkeypatch.setattr(session, "measure", lambda *_: measured)


@pytest.mark.slow
def test_the_steps_after_the_warm_up_are_recorded(alone: Path) -> None:
    heard: list[str] = []
    captured = capture(replace(quick(alone, "train.py"), say=heard.append))
    assert captured is not None
    assert captured.files == (alone / "out" / "trace.json.gz",)
    marks = (alone / "marks").read_text().split()
    assert marks[0] == "ProfilerStep#0" and len(marks) == len(set(marks)) in (4, 5, 6)
    assert heard[0].startswith("nsys is not on the PATH: a PyTorch program is recorded by its own profiler instead")
    facts = json.loads((alone / "out" / "capture.json").read_text())
    assert facts["torch_profiler"]["begin_step"] == 3
    assert captured.unprofiled.iteration_s >= 0.02  # it sleeps so long, and more on a busy machine
    assert list((alone / "tmp").iterdir()) == []


@pytest.mark.slow
@pytest.mark.usefixtures("timed")
def test_a_trace_names_neither_the_machine_nor_its_user(alone: Path) -> None:
    captured = capture(quick(alone, "train.py"))
    assert captured is not None
    text = gzip.decompress(captured.files[0].read_bytes()).decode()
    assert "alice" not in text and "/home/user/train.py(3): step" in text


@pytest.mark.slow
def test_a_program_without_an_optimizer_is_recorded_by_time(alone: Path) -> None:
    """Its main thread is in the middle of something when recording begins."""
    heard: list[str] = []
    captured = capture(replace(quick(alone, "infer.py"), runs=0, say=heard.append))
    assert captured is not None and captured.iteration_time is None
    assert any("0.3 s, as soon as it uses the GPU" in said for said in heard)
    assert (alone / "marks").read_text() == ""


@pytest.mark.slow
def test_a_program_whose_main_thread_waits_is_recorded(alone: Path) -> None:
    assert capture(replace(quick(alone, "serve.py"), runs=0)) is not None


@pytest.mark.parametrize(
    ("seen", "expected"),
    [(True, TraceRange(10, 0.0, 20, 30.0)), (None, TraceRange(0, 2.0, 0, 5.0))],
    ids=["optimizer", "two run lengths"],
)
def test_steps_are_waited_for_only_where_they_were_seen(place: Path, seen: bool | None, expected: TraceRange) -> None:
    measured = Unprofiled("made up", (0.03,), warm_s=1.0, pytorch=seen)
    assert part(plan(place, "true"), measured, Range(2.0, 5.0, profiler_range=False)) == expected


@pytest.mark.slow
def test_its_report_has_the_measured_time(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"windows": 1, "window_s": 0.1, "least_s": 0.1, "trace_least_s": 0.1, "trace_iterations": 4}
    words = [word for name, value in few.items() for word in ("--set", f"settings.capture_{name}={value}")]
    words += ["--runs", "1", "--warm-up", "3", "--duration", "1s", "--format", "json"]
    words += ["--", sys.executable, str(alone / "lib" / "train.py")]
    done = CliRunner().invoke(main, ["capture", "-d", str(alone / "out"), *words])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["inputs"][0]["kind"] == "torch"
    assert report["run"]["loops"][0]["name"] == "ProfilerStep"


@pytest.mark.slow
@pytest.mark.usefixtures("timed")
def test_an_nsys_that_cannot_record_is_replaced(alone: Path) -> None:
    nsys(alone, RECORDS, tuple(option for option in OPTIONS if "--duration" not in option))
    heard: list[str] = []
    assert capture(replace(quick(alone, "train.py"), say=heard.append)) is not None
    assert "(--duration is not in its help): a PyTorch program is recorded by its own profiler" in heard[0]
    assert not (alone / "log").exists()


@pytest.mark.slow
def test_each_rank_writes_a_trace(alone: Path) -> None:
    mpirun = alone / "bin" / "mpirun"
    mpirun.write_text(
        '#!/bin/sh\nshift 2\nfor OMPI_COMM_WORLD_RANK in 0 1; do export OMPI_COMM_WORLD_RANK; "$@" & done; wait\n'
    )
    mpirun.chmod(0o755)
    wanted = quick(alone, "train.py")
    captured = capture(replace(wanted, command=("mpirun", "-n", "2", *wanted.command)))
    assert captured is not None
    assert [file.name for file in captured.files] == ["trace.rank0.json.gz", "trace.rank1.json.gz"]


@pytest.mark.slow
def test_a_python_program_without_torch_needs_nsys(alone: Path) -> None:
    program = alone / "lib" / "plain.py"
    program.write_text("print('hello')\n")
    with pytest.raises(GpudiagError, match=r"nsys is not on the PATH: install the package nsight-systems"):
        capture(quick(alone, "plain.py"))
    with pytest.raises(GpudiagError, match=r"nsys is not on the PATH: install"):
        capture(replace(quick(alone, "plain.py"), runs=0))
    assert_nothing_left(alone)


def test_where_torch_is_not_installed_nothing_is_run(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH")
    program = alone / "lib" / "touch.py"
    program.write_text("import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n")
    with pytest.raises(GpudiagError, match=r"nsys is not on the PATH: install"):
        capture(quick(alone, "touch.py"))
    assert not (alone / "lib" / "ran").exists()
    assert_nothing_left(alone)


@pytest.mark.slow
@pytest.mark.usefixtures("timed")
def test_a_profiler_that_fails_is_a_sentence(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_CUPTI", "1")
    with pytest.raises(GpudiagError, match=r"cannot record the program \(RuntimeError: CUPTI is busy\): install"):
        capture(quick(alone, "train.py"))
    assert_nothing_left(alone)


@pytest.mark.slow
@pytest.mark.usefixtures("timed")
def test_a_trace_without_gpu_work_is_said(alone: Path) -> None:
    traced(alone, [event("cpu_op", "aten::mm", 0, 9)])
    with pytest.raises(GpudiagError, match="no work on a GPU while PyTorch's profiler recorded it"):
        capture(quick(alone, "train.py"))
    assert_nothing_left(alone)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import torch, sys\nsys.exit('out of memory')\n", "exit code 1 under PyTorch's profiler, last saying: out of"),
        ("import torch, os\nos._exit(0)\n", "the program ended before it had begun to use the GPU"),
        ("import torch, os\nos.kill(os.getpid(), 9)\n", "was ended by signal 9 under PyTorch's profiler"),
    ],
    ids=["fails", "ends at once", "killed"],
)
def test_a_failure_under_the_profiler_is_a_sentence(alone: Path, text: str, sentence: str) -> None:
    (alone / "lib" / "broken.py").write_text(text)
    with pytest.raises(GpudiagError, match=sentence):
        capture(replace(quick(alone, "broken.py"), runs=0))
    assert_nothing_left(alone)


@pytest.mark.slow
@pytest.mark.usefixtures("timed")
def test_a_full_disk_under_the_profiler_is_said(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The free space is made up, and so is the error of the profiler that wants to write."""
    monkeypatch.setattr(workspace, "room", lambda _: 1_000_000)
    monkeypatch.setenv("NO_CUPTI", "1")
    with pytest.raises(GpudiagError, match="the disk is full"):
        capture(quick(alone, "train.py"))
    assert_nothing_left(alone)


@pytest.mark.slow
def test_the_recorders_file_records_without_nsys(alone: Path) -> None:
    """Without site packages and without the folder of gpudiag, Python has the standard library alone."""
    recorder_file.write(alone / "record.pyz")
    words = [sys.executable, "-S", alone / "record.pyz", "-d", alone / "out", "--runs", "0", "--duration", "0.3", "--"]
    env = {**os.environ, "TMPDIR": str(alone / "tmp")}
    words += [sys.executable, alone / "lib" / "infer.py"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    assert (done.returncode, done.stdout) == (0, f"gpudiag explain {alone / 'out' / 'trace.json.gz'}\n"), done.stderr


def test_what_only_nsys_does_is_refused(alone: Path) -> None:
    with pytest.raises(GpudiagError, match="--graph-nodes needs Nsight Systems, but nsys is not on the PATH: leave"):
        capture(replace(quick(alone, "train.py"), graph_nodes=True))
    assert_nothing_left(alone)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ((sys.executable, "train.py"), "would record by torch.profiler instead, if it is a PyTorch program: "),
        (("sleep", "3"), "would end here: recording needs Nsight Systems, but nsys is not on the PATH: install"),
    ],
    ids=["Python", "another"],
)
def test_a_dry_run_without_nsys_says_the_plan(alone: Path, command: tuple[str, ...], said: str) -> None:
    heard: list[str] = []
    assert capture(replace(plan(alone, *command), dry_run=True, say=heard.append)) is None
    assert any(line.startswith("would run without a profiler, 3 times: ") for line in heard)
    assert any(line.startswith(said) for line in heard)
    assert_nothing_left(alone)
