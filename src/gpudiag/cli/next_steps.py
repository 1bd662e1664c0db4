"""`gpudiag next`."""

from __future__ import annotations

from pathlib import Path

import click

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
    form: str,
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

    if output:
        place.check(output, files)
    with progress() as quiet:
        options = Options((), overrides, times, say if verbose else quiet, not no_cache, selection, memory_limit)
        steps = pipeline.next_steps(files, options)
    if form == "json":
        deliver(page.as_json(steps), output)
    else:
        deliver(page.markdown(steps), output, in_colour=True)
