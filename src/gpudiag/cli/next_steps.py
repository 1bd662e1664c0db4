"""`gpudiag record` and `gpudiag next`: what to record first, and what then; neither records anything."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import click

from gpudiag.capture.program import look_at
from gpudiag.cli.arguments import (
    FILES,
    MEMORY,
    NO_CACHE,
    OUTPUT,
    PAGE_FORMAT,
    THRESHOLDS,
    TIMES,
    VERBOSE,
    deliver,
    page_format,
    say,
    selecting,
    tune_interpreter,
)
from gpudiag.cli.sections import FAILED, Command
from gpudiag.selection.spec import Selection


@click.command(
    "next",
    cls=Command,
    sections={"Exit codes": (("0", "done, also where no kernel is worth a profile"), FAILED)},
    examples=(
        ("gpudiag next report.nsys-rep", "which kernels, and the ncu command for each"),
        ("gpudiag next report.nsys-rep transpose.csv", "what is left once transpose.csv holds the first of them"),
        ("gpudiag next report.nsys-rep --iteration-time step=3.57ms", "judged by the time without the profiler"),
    ),
)
@FILES
@PAGE_FORMAT
@OUTPUT
@THRESHOLDS
@TIMES
@selecting
@MEMORY
@NO_CACHE
@VERBOSE
def next_steps(
    files: tuple[Path, ...],
    form: str | None,
    output: Path | None,
    overrides: dict[str, float],
    times: dict[str, float],
    selection: Selection,
    memory_limit: int | None,
    no_cache: bool,
    verbose: bool,
) -> None:
    """Name the kernels worth a profile with Nsight Compute, and how.

    FILE is a timeline (.nsys-rep, or its .sqlite or parquet export); kernels whose profiles (.ncu-rep, .csv) are given
    beside it are not named again. Where something else than kernels comes first, the answer is what.
    """
    tune_interpreter()
    from gpudiag import pipeline
    from gpudiag.options import Options
    from gpudiag.report import next_steps as page
    from gpudiag.report import output as place
    from gpudiag.report.terminal import progress

    form = page_format(form, output)
    if output:
        place.check(output, files)
    with progress() as quiet:
        options = Options((), overrides, times, say if verbose else quiet, not no_cache, selection, memory_limit)
        steps = pipeline.next_steps(files, options)
    if form == "json":
        deliver(page.as_json(steps), output)
    else:
        deliver(page.markdown(steps), output, in_colour=True)


TRACE = ("nsys", "profile", "--trace=cuda,nvtx,osrt,cublas,cudnn", "--sample=none", "--cpuctxsw=none")
PYTHON = ("--python-sampling=true", "--python-sampling-frequency=1000")
PLACEHOLDER = ("python", "train.py")
MISSING = "nsys is not on this PATH: it comes with the CUDA toolkit and with Nsight Systems.\n\n"


@click.command(
    cls=Command,
    context_settings={"ignore_unknown_options": True},
    examples=(("gpudiag record python train.py --steps 50", "the command that records this program"),),
    sections={"Exit codes": (("0", "done"), FAILED)},
)
@click.argument("command", metavar="[COMMAND]...", nargs=-1, type=click.UNPROCESSED)
def record(command: tuple[str, ...]) -> None:
    """Say which profiler command records a program; nothing is run.

    COMMAND is how you start the program, with its arguments.
    """
    deliver(answer(command, nsys=shutil.which("nsys") is not None))


def answer(command: tuple[str, ...], *, nsys: bool) -> str:
    """The commands to paste. nsys: whether it is on the PATH."""
    program = command or PLACEHOLDER
    # A starter that is not installed here is known by the script that it is given.
    python = look_at(program).python or any(word.endswith(".py") for word in program)
    options = PYTHON if python else ()
    trace = f"{shlex.join(TRACE)} \\\n    {shlex.join([*options, '-o', 'report', *program])}"
    return (
        f"{'' if nsys else MISSING}"
        "Record 20 to 100 iterations with Nsight Systems, then ask:\n\n"
        f"  {trace}\n"
        "  gpudiag explain report.nsys-rep\n\n"
        "`gpudiag next report.nsys-rep` then says which kernels to measure with Nsight Compute, and how.\n"
        "A trace of torch.profiler (`prof.export_chrome_trace`) can be explained as well.\n"
    )
