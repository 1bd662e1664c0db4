"""`gpudiag next`."""

from __future__ import annotations

from pathlib import Path

import click

from gpudiag.cli.arguments import FILES, OUTPUT, PAGE_FORMAT, THRESHOLDS, TIMES, VERBOSE
from gpudiag.cli.common import deliver, hurry, say


@click.command("next")
@FILES
@PAGE_FORMAT
@OUTPUT
@THRESHOLDS
@TIMES
@VERBOSE
def next_steps(
    files: tuple[Path, ...],
    form: str,
    output: Path | None,
    overrides: dict[str, float],
    times: dict[str, float],
    verbose: bool,
) -> None:
    """Name the kernels worth profiling with Nsight Compute, and the commands that do it.

    FILE is a timeline that `explain` reads; kernels whose profiles are given beside it are not named again. Where
    something else than kernels comes first, the answer is what.

    \b
    gpudiag next report.nsys-rep
    gpudiag next report.nsys-rep transpose.csv
    """
    hurry()
    from gpudiag import nextsteps
    from gpudiag.report import nextpage
    from gpudiag.report import output as place
    from gpudiag.report.terminal import progress

    if output:
        place.check(output, files)
    with progress() as quiet:
        steps = nextsteps.next_steps(
            files, overrides=overrides, iteration_times=times, progress=say if verbose else quiet
        )
    if form == "json":
        deliver(nextpage.as_json(steps), output)
    else:
        deliver(nextpage.markdown(steps), output, in_colour=True)
