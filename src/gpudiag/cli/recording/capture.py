"""`gpudiag capture`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from gpudiag.capture import plan as defaults
from gpudiag.capture import recorder_file
from gpudiag.capture.ncu import kernel_pass
from gpudiag.capture.ncu.kernel_pass import Ncu
from gpudiag.capture.plan import Plan
from gpudiag.capture.session import capture
from gpudiag.capture.thresholds import Thresholds
from gpudiag.cli.arguments import FORMAT, OUTPUT, THRESHOLDS, deliver, ended, say
from gpudiag.cli.explain import chosen
from gpudiag.cli.recording import explanation
from gpudiag.cli.sections import FAILED, Command
from gpudiag.errors import GpudiagError
from gpudiag.report import output as place
from gpudiag.text import parse

EXAMPLES = (
    ("gpudiag capture -- python train.py", "time the training steps, record some, explain them"),
    ("gpudiag capture --steps 50:150 -- python rollout.py --steps {steps}", "any program that takes a number of steps"),
    ("gpudiag capture --duration 5s --runs 0 -- ./server", "five seconds of a program that never ends"),
    ("gpudiag capture -- torchrun --nproc-per-node=2 train.py", "every rank, each in a file of its own"),
    ("gpudiag capture --kernels -- ./solver", "then the counters of the kernels that matter, in the same report"),
    ("gpudiag capture --dry-run -- python train.py", "only say what would be run"),
    ("gpudiag capture --no-explain -- ./solver", "leave the files, to be explained elsewhere"),
    ("gpudiag capture --write-recorder record.pyz", "for a machine without gpudiag: python record.pyz -- ./solver"),
)
WRITES = (
    ("report.sqlite", "the recording, cleaned; report.rank0.sqlite … of several ranks"),
    ("trace.json.gz", "instead of it, of a PyTorch program where nsys is not installed"),
    ("smi.csv", "the GPU's clocks, power, heat and memory meanwhile, where nvidia-smi is installed"),
    ("KERNEL.csv", "with --kernels: the counters of each kernel that was measured"),
    ("capture.json", "the time without a profiler, of each process, and what was recorded"),
    ("report.nsys-rep", "only with --keep-report: as nsys wrote it, with the environment in it; KERNEL.ncu-rep too"),
)


def _steps(_: click.Context, __: click.Parameter, value: str | None) -> tuple[int, int] | None:
    if value is None:
        return None
    found = re.fullmatch(r"(\d{1,9}):(\d{1,9})", value)
    if not found:
        raise click.BadParameter(f"{value!r} is not like 50:150.")
    return int(found[1]), int(found[2])


def _seconds(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    # As `timeout` and the recorder's file do: a number alone is seconds.
    time = parse.duration(f"{value}s" if re.fullmatch(r"\d+(\.\d+)?", value, re.ASCII) else value)
    if not time or time > parse.LONGEST:
        raise click.BadParameter(f"{value!r} is not like 30s or 500ms, or is longer than a day.")
    return time / 1e9


def _bytes(_: click.Context, __: click.Parameter, value: str) -> int:
    size = parse.size(value)
    if not size:
        raise click.BadParameter(f"{value!r} is not like 500MB or 2GB.")
    return size


@click.command(
    "capture",
    cls=Command,
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    sections={
        "Files in DIR": WRITES,
        "Exit codes": (("0", "done"), FAILED),
    },
    examples=EXAMPLES,
)
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "-d",
    "--output-dir",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=defaults.FOLDER,
    show_default=True,
    help="Where the files go; where it is there already, DIR-2 and so on.",
)
@click.option(
    "--steps",
    metavar="FEW:MANY",
    callback=_steps,
    help="Run COMMAND with these two numbers in place of {steps}; a step is timed by the difference.",
)
@click.option(
    "--runs",
    type=click.IntRange(0, 100),
    default=defaults.RUNS,
    show_default=True,
    help="Fresh processes for the time without a profiler; 0 measures nothing.",
)
@click.option(
    "--warm-up",
    type=click.IntRange(1, 100_000),
    default=defaults.WARM_UP,
    show_default=True,
    help="Optimizer steps that are not timed.",
)
@click.option(
    "--delay",
    metavar="TIME",
    callback=_seconds,
    help="Record so long after the program's start.  [default: when it is warm, where that was seen, else at once]",
)
@click.option(
    "--duration",
    metavar="TIME",
    default=f"{defaults.DURATION_S:.0f}s",
    show_default=True,
    callback=_seconds,
    help="Record no longer than this; the program is ended then.",
)
@click.option(
    "--limit",
    metavar="TIME",
    default=f"{defaults.LIMIT_S:.0f}s",
    show_default=True,
    callback=_seconds,
    help="No run takes longer than this; a program that has not ended is ended.",
)
@click.option(
    "--max-size",
    metavar="SIZE",
    default="2GB",
    show_default=True,
    callback=_bytes,
    help="Stop recording at this size, or at half of the free space.",
)
@click.option(
    "--profiler-range",
    is_flag=True,
    help="Record only between the program's own cudaProfilerStart and cudaProfilerStop.",
)
@click.option("--graph-nodes", is_flag=True, help="Record the kernels inside CUDA graphs, too; that slows them down.")
@click.option("--keep-report", is_flag=True, help="Keep the .nsys-rep, too; it holds the program's environment.")
@click.option(
    "--kernels",
    is_flag=True,
    help="Then measure the kernels that matter most with ncu, in a run for each, and explain all together.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be run, and run nothing but nsys --help.")
@click.option("--no-explain", is_flag=True, help="Leave the files, and print the command that explains them.")
@click.option(
    "--write-recorder",
    "recorder",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the recorder as one file instead, which needs only Python and nsys: `python FILE -- COMMAND`.",
)
@THRESHOLDS
@FORMAT
@OUTPUT
def capture_command(
    command: tuple[str, ...],
    folder: Path,
    steps: tuple[int, int] | None,
    runs: int,
    warm_up: int,
    delay: float | None,
    duration: float,
    limit: float,
    max_size: int,
    profiler_range: bool,
    graph_nodes: bool,
    keep_report: bool,
    kernels: bool,
    dry_run: bool,
    no_explain: bool,
    recorder: Path | None,
    overrides: dict[str, float],
    form: str | None,
    output: Path | None,
) -> None:
    """Record a program and explain it: one command from program to report.

    First it runs COMMAND without a profiler, in fresh processes, and times an iteration: by the optimizer's steps of a
    PyTorch program, or by --steps. Then it records some seconds under Nsight Systems, with options that suit the
    program, the ranks and the nsys that is installed, or by PyTorch's profiler where it is not, and explains them with
    the time that was measured. What it does and each command line is said on stderr. The program runs with your
    environment, which is removed from the file that is kept. Nothing it started is left running.
    """
    if recorder:
        recorder_file.write(recorder)
        return
    form = form or chosen(output)
    if output:
        place.check(output)  # before minutes of work
    plan = Plan(
        command, folder, steps, runs, warm_up, delay, duration, limit, max_size, profiler_range, graph_nodes,
        keep_report, dry_run, say, _thresholds(overrides),
    )  # fmt: skip
    if kernels and no_explain:
        raise GpudiagError("--kernels chooses kernels by the report: leave --no-explain out.")
    ncu = _counters(plan) if kernels else None
    captured = capture(plan)
    if captured is None:
        return
    if no_explain:
        deliver(ended(captured.explain_command()))
        return
    say(f"explaining: {captured.explain_command()}")
    deliver(explanation.of(plan, captured, ncu, form, overrides), output, in_colour=form == "markdown")


def _thresholds(overrides: dict[str, float]) -> Thresholds:
    """Return those of recordings. Raises GpudiagError where one is set that is none."""
    from gpudiag.library import load

    return Thresholds.of(load.load().with_overrides(overrides).setting_values)


def _counters(plan: Plan) -> Ncu | None:
    """Return the ncu that measures kernels, or say why there is none: the timeline is explained all the same."""
    try:
        ncu = kernel_pass.find(plan)
    except GpudiagError as error:
        say(f"the report will be of the timeline alone: {error}")
        return None
    if plan.dry_run:
        say("would then measure the kernels that matter most, after the others and in a run for each, with ncu")
    return ncu
