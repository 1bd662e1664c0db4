"""Recording of programs with stand-ins: shell scripts in place of `nsys` and of the programs that are recorded.

`tests/recorders.py` says what the stand-ins are.
"""

from __future__ import annotations

import json
import lzma
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import samples
from gpudiag.capture import guard, measure, recorder_file, session, supervisor, workspace
from gpudiag.capture.__main__ import options
from gpudiag.capture.measure import Unprofiled
from gpudiag.capture.nsys.record import part
from gpudiag.capture.program import look_at
from gpudiag.capture.session import capture
from gpudiag.capture.smi import gpu
from gpudiag.cli import main
from gpudiag.cli.recording.capture import capture_command
from gpudiag.errors import GpudiagError
from gpudiag.model import Report
from gpudiag.options import Options
from paths import CAPTURES
from recorders import MARK, OPTIONS, RECORDS, assert_nothing_left, commands, exported, nsys, plan, torch, until


@pytest.mark.slow
def test_a_program_is_recorded_and_cleaned(place: Path) -> None:
    heard: list[str] = []
    captured = capture(replace(plan(place, "sh", "-c", "echo $TMPDIR"), say=heard.append))
    assert captured is not None
    assert captured.files == (place / "out" / "report.sqlite",)
    assert b"alice" not in captured.files[0].read_bytes()
    assert sorted(file.name for file in (place / "out").iterdir()) == ["capture.json", "report.sqlite"]
    assert list((place / "tmp").iterdir()) == []
    profiled, export = commands(place)
    assert "--trace=cuda,nvtx,osrt --sample=none --cpuctxsw=none" in profiled
    assert "--duration=30" in profiled and "--python-sampling" not in profiled and "--delay" not in profiled
    assert f"--env-var=TMPDIR={place / 'tmp'}" in profiled
    assert "--force-overwrite=true" in export and "--include-json=true" in export
    assert any("nsys profile" in said for said in heard)
    assert captured.explain_command() == f"gpudiag explain {captured.files[0]}"


@pytest.mark.slow
@pytest.mark.parametrize("helps", [True, False])
def test_events_lost_to_ranges_are_recorded_without(place: Path, helps: bool) -> None:
    """As nsys 2025.3.2 loses GPU work of JAX programs: the messages are its own, the rest is made up."""
    says = ("Error when processing events: Source ID=", "Not all CUDA events might have been collected.")
    given, whole, lossy = place / "exported", exported(place / "whole"), exported(place / "lossy", says=says)
    loses = f"tail -n 1 {place / 'log'} | grep -q {'nvtx' if helps else 'cuda'}"
    nsys(place, f"if {loses}; then cp {lossy} {given}; else cp {whole} {given}; fi\n{RECORDS}")
    heard: list[str] = []
    captured = capture(replace(plan(place, "true"), say=heard.append))
    assert captured is not None
    first, _, second, _ = commands(place)
    assert ("--trace=cuda,nvtx,osrt" in first, "--trace=cuda,osrt" in second) == (True, True)
    assert any("recording again without NVTX ranges" in said for said in heard)
    assert "nvtx" not in (place / "out" / "capture.json").read_text()
    assert (b"Error when processing" in captured.files[0].read_bytes()) is not helps
    assert list((place / "tmp").iterdir()) == []


@pytest.mark.slow
def test_a_second_recording_gets_a_folder_of_its_own(place: Path) -> None:
    first, second = (capture(plan(place, "true")) for _ in range(2))
    assert first is not None and second is not None
    assert second.files[0].parent == place / "out-2"


def clocked(monkeypatch: pytest.MonkeyPatch, seconds: Callable[[int, int], float]) -> list[int]:
    """Let runs without a profiler last what `seconds(steps, number of the run)` says: a clock would measure the
    machine, too. The program does run. Returns the steps of each run.
    """
    steps: list[int] = []

    def run(words: Sequence[str], *rest: object, **more: object) -> supervisor.ProgramRun:
        done = supervisor.run(words, *rest, **more)  # type: ignore[arg-type]
        assert done.seconds > 0
        steps.append(int(words[-1]))
        return replace(done, seconds=seconds(steps[-1], len(steps)))

    monkeypatch.setattr(measure, "run", run)
    return steps


def test_two_run_lengths_give_the_time_of_a_step(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = clocked(monkeypatch, lambda steps, number: 0.2 + 0.01 * steps)
    captured = capture(replace(plan(place, "sh", "-c", "exit 0", "{steps}"), steps=(5, 45), runs=2))
    assert captured is not None
    assert steps == [5, 5, 45, 45, 5]
    assert captured.unprofiled.iteration_s == pytest.approx(0.01)
    assert captured.explain_command().endswith(f"--iteration-time {captured.iteration_time}")
    facts = json.loads((place / "out" / "capture.json").read_text())["unprofiled"]
    assert facts["n"] == len(facts["per_process_ms"]) == 2
    assert commands(place)[0].endswith(" 45")


def test_a_step_lost_in_the_start_up_has_no_time(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each start takes 0.15 s longer than the one before, a step a millisecond.
    clocked(monkeypatch, lambda steps, number: 0.15 * number + 0.001 * steps)
    wanted = plan(place, "sh", "-c", "exit 0", "{steps}")
    captured = capture(replace(wanted, steps=(5, 45), runs=2))
    assert captured is not None and captured.iteration_time is None
    method = captured.unprofiled.method
    assert method.startswith("not measured: start-ups vary by") and "such as --steps 5:" in method
    assert "--iteration-time" not in captured.explain_command()


@pytest.mark.parametrize(
    ("whole", "begin"), [(None, 0), (8, 0), (18, 0), (90, 60)], ids=["endless", "short", "fits", "long"]
)
def test_of_a_program_that_ends_its_end_is_recorded(place: Path, whole: float | None, begin: float) -> None:
    assert part(plan(place, "true"), Unprofiled("not measured", whole_s=whole)).delay_s == begin


@pytest.mark.slow
def test_optimizer_steps_are_timed_and_the_range_is_warm(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a package that stands for PyTorch; the program would go on for ever, and has a `sitecustomize` itself."""
    torch(place, monkeypatch)
    nsys(place, 'timeout 0.5 "$@"\necho made-up > "$name.nsys-rep"\nexit 143\n')
    wanted = replace(plan(place, sys.executable, str(place / "lib" / "train.py")), duration_s=1.0, runs=2, warm_up=3)
    wanted = replace(wanted, thresholds=replace(wanted.thresholds, windows=1, least_s=0.1))
    captured = capture(wanted)
    assert captured is not None
    assert captured.unprofiled.iteration_s >= 0.02  # it sleeps so long, and more on a busy machine
    assert len(captured.unprofiled.seconds) == 2
    assert "--delay=1 " in commands(place)[0] and "--python-sampling=true" in commands(place)[0]
    assert (place / "lib" / "seen").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("torchrun --nnodes 1 train.py --lr 1", "torchrun --nnodes 1 --no-python P python3 -u train.py --lr 1"),
        ("python -m torch.distributed.run -m a.b", "python -m torch.distributed.run --no-python P python -u -m a.b"),
        ("torchrun --no-python sh run.sh", "torchrun --no-python P sh run.sh"),
        ("mpirun -n 2 -H one:1,two:1 sh run.sh", "mpirun -n 2 -H one:1,two:1 P sh run.sh"),
        ("mpirun --map-by test sh run.sh", "mpirun --map-by test P sh run.sh"),
        ("mpirun --oversubscribe sh run.sh", "mpirun --oversubscribe P sh run.sh"),
        ("srun -n 4 sh -c true", "srun -n 4 P sh -c true"),
        ("sh -c true", "P sh -c true"),
    ],
)  # fmt: skip
def test_each_rank_is_profiled(words: str, expected: str) -> None:
    assert " ".join(look_at(words.split()).around(["P"])) == expected


@pytest.mark.parametrize(
    ("words", "python"),
    [("env A=1 python train.py", True), ("bash train.sh", True), ("uv run train.py", True), ("sleep 3", False)],
)
def test_python_is_known_behind_what_starts_it(words: str, python: bool) -> None:
    assert look_at(words.split()).python == python


def test_a_script_without_its_interpreter_gets_advice(place: Path) -> None:
    script = place / "train.py"
    script.write_text("print()\n")
    with pytest.raises(GpudiagError, match=r"is no program by itself: write `python .*train.py` after `--`"):
        capture(plan(place, str(script)))


@pytest.mark.slow
@pytest.mark.parametrize(("text", "seconds"), [("5", "5"), ("1500ms", "2"), ("6s", "6")])
def test_times_may_have_units(place: Path, text: str, seconds: str) -> None:
    words = ["capture", "-d", str(place / "out"), "--runs", "0", "--no-explain", "--duration", text, "--", "true"]
    assert CliRunner().invoke(main, words).exit_code == 0
    assert f"--duration={seconds} " in commands(place)[0]
    wrong = CliRunner().invoke(main, ["capture", "--duration", "soon", "--", "true"])
    assert wrong.exit_code == 2 and "'soon' is not like 30s or 500ms" in wrong.stderr


def test_a_machine_without_a_gpu_is_said(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether there is a GPU is made up."""
    for present in (True, False):
        heard: list[str] = []
        monkeypatch.setattr(gpu, "is_present", lambda seen=present: seen)
        capture(replace(plan(place, "true"), dry_run=True, say=heard.append))
        assert any("no NVIDIA GPU is seen" in said for said in heard) is not present


@pytest.mark.slow
def test_each_rank_has_a_file(place: Path) -> None:
    mpirun = place / "bin" / "mpirun"
    mpirun.write_text(
        '#!/bin/sh\nshift 2\nfor OMPI_COMM_WORLD_RANK in 0 1; do export OMPI_COMM_WORLD_RANK; "$@"; done\n'
    )
    mpirun.chmod(0o755)
    nsys(place, RECORDS.replace('"$name.nsys-rep"', '"${name%.rank*}.rank$OMPI_COMM_WORLD_RANK.nsys-rep"'))
    captured = capture(plan(place, "mpirun", "-n", "2", "sh", "-c", "true"))
    assert captured is not None
    assert [file.name for file in captured.files] == ["report.rank0.sqlite", "report.rank1.sqlite"]
    assert "report.rank%q{OMPI_COMM_WORLD_RANK}" in commands(place)[0]


@pytest.mark.slow
@pytest.mark.usefixtures("leftovers")
def test_a_program_without_end_is_ended(place: Path) -> None:
    """The stand-in leaves an agent in a session of its own, as Nsight Systems does, and ignores what asks it to end."""
    nsys(place, f'setsid sleep {MARK} &\ntrap "" INT TERM\n"$@"\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpudiag.capture.nsys.record.SETTLE_S", 0.2)
        with pytest.raises(GpudiagError, match="wrote no report within the --limit"):
            capture(replace(plan(place, "sleep", MARK), limit_s=0.5, duration_s=0.4))
    assert_nothing_left(place)


@pytest.mark.slow
@pytest.mark.usefixtures("leftovers")
def test_a_recording_stops_at_its_size(place: Path) -> None:
    nsys(place, 'trap "echo made-up > $name.nsys-rep; exit 130" INT\nhead -c 3000000 /dev/zero > "$TMPDIR/part"\n'
         f"sleep {MARK} & wait\n")  # fmt: skip
    heard: list[str] = []
    assert capture(replace(plan(place, "true"), max_size=2_000_000, say=heard.append)) is not None
    assert any("size limit" in said for said in heard)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("listed", "traced"),
    [
        ("'cuda', 'nvtx', 'osrt'", "cuda,nvtx,osrt"),
        ("'cuda', 'cuda-sw', 'nvtx'", "cuda-sw,nvtx"),
        ("", "cuda,nvtx,osrt"),
    ],
)
def test_only_what_this_nsys_can_trace_is_traced(place: Path, listed: str, traced: str) -> None:
    nsys(place, RECORDS, (*OPTIONS, listed))
    assert capture(plan(place, "true")) is not None
    assert f"--trace={traced} " in commands(place)[0]


def test_a_dry_run_runs_nothing(place: Path) -> None:
    heard: list[str] = []
    assert capture(replace(plan(place, "touch", str(place / "ran")), dry_run=True, say=heard.append)) is None
    assert not (place / "ran").exists() and not (place / "out").exists()
    assert any("nsys profile" in said and said.endswith(f"touch {place / 'ran'}") for said in heard)


# As nsys 2025.3.2 printed it beside thousands of short processes, where 32,768 numbers of processes are all there are.
NOT_READ = """: > "${{name}}.qdstrm"
cat << 'END'
Importer error status: An unknown error occurred.
    Props {{
      Items {{
        Type: ErrorText
        Value: "{}"
      }}
    }}
Generated:
\t/tmp/report.qdstrm
END"""
FAILURES = {
    "killed half-way": ("kill -9 $$", "ended by signal 9 half-way"),
    "no host part": (': > "${name}.qdstrm"', "libdw is probably missing"),
    "numbers given out twice": (NOT_READ.format("Multiple different definitions of the same VmTidToPidInfo"),
                                "numbers were given out twice.*kernel.pid_max"),
    "another reason": (NOT_READ.format("Wrong event order"), "wrote no report of it: it says 'Wrong event order'"),
    "fails under nsys": ("echo gone; echo \"Generating 'x'\"; exit 3", "exit code 3, last saying: gone;"),
    "writes nothing": ("exit 0", "nsys wrote no report"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", FAILURES)
def test_a_failure_is_a_sentence_and_leaves_nothing(place: Path, case: str) -> None:
    body, sentence = FAILURES[case]
    nsys(place, f"{body}\n")
    with pytest.raises(GpudiagError, match=sentence):
        capture(plan(place, "true"))
    assert_nothing_left(place)


def test_without_nsys_the_package_is_named(place: Path) -> None:
    (place / "bin" / "nsys").unlink()
    with pytest.raises(GpudiagError, match=r"not on the PATH: install the package nsight-systems"):
        capture(plan(place, "true"))
    assert_nothing_left(place)


def test_an_nsys_too_old_to_stop_by_itself_is_refused(place: Path) -> None:
    nsys(place, RECORDS, tuple(option for option in OPTIONS if "--duration" not in option))
    with pytest.raises(GpudiagError, match=r"nsys 2023.4.4 .* cannot record \(--duration is not in its help\)"):
        capture(plan(place, "true"))
    assert_nothing_left(place)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_nothing_is_left_of_a_gpudiag_that_is_ended(place: Path, number: int) -> None:
    """The program has left its process group, as daemons do; what is killed cannot clean up after itself."""
    nsys(place, f'setsid sleep {MARK} &\necho $! > {place / "pid"}\n"$@"\n')
    words = [sys.executable, "-m", "gpudiag", "capture", "-d", place / "out", "--runs", "0", "--", "sleep", MARK]
    env = {**os.environ, "TMPDIR": str(place / "tmp")}
    running = subprocess.Popen(words, stderr=subprocess.PIPE, env=env, text=True)
    until((place / "pid").exists)
    running.send_signal(number)
    said = running.communicate()[1]
    assert "Traceback" not in said
    until(lambda: not (place / "out").exists())
    until(lambda: not list((place / "tmp").iterdir()))
    assert_nothing_left(place)


def test_a_process_that_just_loads_another_program_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment cannot be read in between: that is made up here, as it lasts for microseconds."""
    with subprocess.Popen(["sleep", MARK], env={**os.environ, guard.MARK: "of-a-test"}) as loading:
        looked = guard.marked
        looks: list[int] = []

        def blind_at_first(mark: str) -> list[int]:
            looks.append(1)
            return looked(mark) if len(looks) > 2 else []

        monkeypatch.setattr(guard, "marked", blind_at_first)
        guard.end("of-a-test")
        assert loading.wait(10) == -signal.SIGKILL


@pytest.mark.slow
def test_restricted_counters_of_the_cpu_do_not_matter(place: Path) -> None:
    """The refusal of an nsys that is asked for what `perf_event_paranoid` forbids is made up."""
    refuses = 'case "$words" in *--sample=none*--cpuctxsw=none*) ;; *) echo paranoid level 4; exit 1;; esac\n'
    nsys(place, refuses + RECORDS)
    script = place / "bin" / "nsys"
    script.write_text(script.read_text().replace("shift\nwhile", 'words="$*"\nshift\nwhile'))
    assert capture(plan(place, "true")) is not None


def test_a_program_that_fails_is_not_recorded(place: Path) -> None:
    failing = place / "train.py"
    failing.write_text("#!/bin/sh\necho CUDA out of memory >&2\nexit 7\n")
    failing.chmod(0o755)
    with pytest.raises(GpudiagError, match="exit code 7 without a profiler, last saying: CUDA out of memory"):
        capture(plan(place, str(failing)))
    assert not (place / "log").exists()
    assert_nothing_left(place)


@pytest.mark.slow
def test_a_program_without_gpu_work_is_said(place: Path) -> None:
    (place / "exported").unlink()
    exported(place / "exported", gpu_work=False)
    with pytest.raises(GpudiagError, match=r"no work on a GPU .*\(nsys says: No CUDA events collected"):
        capture(plan(place, "true"))
    assert_nothing_left(place)


def test_a_full_disk_is_said(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The free space is made up."""
    monkeypatch.setattr(workspace, "room", lambda _: 1_000_000)
    nsys(place, "echo No space left on device; exit 1\n")
    with pytest.raises(GpudiagError, match="the disk is full"):
        capture(plan(place, "true"))
    assert_nothing_left(place)


@pytest.mark.slow
def test_a_tmp_without_exec_is_avoided(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a folder may hold programs is made up."""
    monkeypatch.setattr(workspace, "_executes", lambda folder: (place / "tmp") not in folder.parents)
    assert capture(plan(place, "true")) is not None
    assert "--env-var" not in commands(place)[0] and f"--output={place / 'out'}/" in commands(place)[0]
    monkeypatch.setattr(workspace, "_executes", lambda _: False)
    with pytest.raises(GpudiagError, match="set TMPDIR"):
        capture(replace(plan(place, "true"), output=place / "other"))
    assert not (place / "other").exists() and list((place / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"command": ()}, "needs a command"),
        ({"command": ("a", "{steps}")}, "needs --steps"),
        ({"steps": (1, 2)}, "needs {steps} in the command"),
        ({"command": ("a", "{steps}"), "steps": (5, 5)}, "a smaller and a larger"),
        ({"command": ("no-such-program",)}, "there is no such program"),
    ],
)
def test_a_wrong_plan_is_a_sentence(place: Path, given: dict[str, object], sentence: str) -> None:
    nsys(place, '"$@"\n')
    with pytest.raises(GpudiagError, match=sentence):
        capture(replace(plan(place, "true"), **given))  # type: ignore[arg-type]
    assert_nothing_left(place)


@pytest.mark.slow
def test_a_process_in_a_session_of_its_own_is_found(tmp_path: Path) -> None:
    done = supervisor.run(
        ["sh", "-c", f"setsid sleep {MARK} & sleep 0.2; exit 5"], {"PATH": "/usr/bin:/bin"}, tmp_path / "log", 9
    )
    assert done.code == 5
    assert subprocess.run(["pgrep", "-f", MARK], capture_output=True, check=False).stdout == b""


@pytest.mark.slow
def test_the_recorder_runs_where_nothing_else_is_installed(place: Path) -> None:
    """Without site packages and without the folder of gpudiag, Python has the standard library alone."""
    recorder_file.write(place / "record.pyz")
    words = [sys.executable, "-IS", place / "record.pyz", "-d", place / "out", "--", "sh", "-c", "true"]
    env = {**os.environ, "TMPDIR": str(place / "tmp")}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    assert (done.returncode, done.stdout) == (0, f"gpudiag explain {place / 'out' / 'report.sqlite'}\n")
    (place / "bin" / "nsys").unlink()
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    with pytest.raises(GpudiagError, match="there already"):
        recorder_file.write(place / "record.pyz")


def test_the_recorder_has_the_options_of_the_command() -> None:
    command = {option for parameter in capture_command.params for option in parameter.opts if option.startswith("--")}
    of_the_report = {"--no-explain", "--kernels", "--set", "--write-recorder", "--format", "--output"}
    assert command - of_the_report == {
        option for action in options()._actions for option in action.option_strings if option.startswith("--")
    } - {"--help"}


@pytest.mark.slow
def test_the_report_rests_on_the_measured_time(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured and the report are made up."""
    asked: list[Options] = []

    def pictured(paths: Sequence[Path], options: Options) -> tuple[Report, None]:
        asked.append(options)
        return samples.launch_bound(), None

    monkeypatch.setattr("gpudiag.pipeline.pictured", pictured)
    monkeypatch.setattr(session, "measure", lambda *_: Unprofiled("made up", (0.004, 0.0036, 0.0035)))
    done = CliRunner().invoke(main, ["capture", "-d", str(place / "out"), "--format", "json", "--", "true"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["schema_version"] == 1
    assert asked[0].iteration_times == {"": pytest.approx(3.6e6)}
    assert "3.6 ms per step, 3.5 to 4 ms in 3 fresh processes" in done.stderr
    assert "--iteration-time 3.6ms" in done.stderr


@pytest.mark.slow
def test_thresholds_of_recordings_can_be_set(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured is made up."""
    monkeypatch.setattr(session, "measure", lambda *_: Unprofiled("made up", (0.03,), warm_s=1.0))
    words = ["capture", "-d", str(place / "out"), "--no-explain"]
    for given in ([], ["--set", "settings.capture_iterations=20", "--set", "settings.capture_least_s=0.5"]):
        assert CliRunner().invoke(main, [*words, *given, "--", "true"]).exit_code == 0
    profiled = [line for line in commands(place) if line.startswith("profile ")]
    assert ["--duration=5 " in profiled[0], "--duration=1 " in profiled[1]] == [True, True]
    wrong = CliRunner().invoke(main, [*words, "--set", "settings.capture_leest_s=1", "--", "true"])
    assert wrong.exit_code == 2 and "capture_least_s" in wrong.stderr


def test_a_wrong_place_for_the_report_is_said_at_once(place: Path) -> None:
    done = CliRunner().invoke(main, ["capture", "-o", str(place), "--", "true"])
    assert done.exit_code == 2 and "is a folder" in done.stderr
    assert not (place / "log").exists()


@pytest.mark.capture
def test_a_time_of_no_iteration_is_left_out_and_said(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured is made up; the recording is a real one of another program."""
    packed = CAPTURES / "histogram" / "fixed.sqlite.xz"
    (place / "exported").write_bytes(lzma.decompress(packed.read_bytes()))
    monkeypatch.setattr(session, "measure", lambda *_: Unprofiled("made up", (1e-9,)))
    done = CliRunner().invoke(main, ["capture", "-d", str(place / "out"), "--format", "json", "--", "true"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["run"]["loops"][0]["iteration_ms_unprofiled"] is None
    assert "the measured time is left out: " in done.stderr
