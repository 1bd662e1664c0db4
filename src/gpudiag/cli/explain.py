"""`gpudiag explain`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpudiag.cli.arguments import FILES, FORMAT, OUTPUT, RULE_DIRS, THRESHOLDS, TIMES, VERBOSE
from gpudiag.cli.common import deliver, hurry, say

if TYPE_CHECKING:
    from gpudiag.model import Report

# model.SEVERITIES, spelled again: the model would load pydantic for every --help.
SEVERITIES = ("info", "low", "medium", "high")


@click.command()
@FILES
@FORMAT
@OUTPUT
@click.option(
    "--fail-on",
    metavar="SEVERITY",
    type=click.Choice(SEVERITIES),
    help="Exit with 1 if a finding is at least this severe: info, low, medium or high. Findings of draft rules count; "
    "the smaller things and those of deprecated rules do not.",
)
@RULE_DIRS
@THRESHOLDS
@TIMES
@VERBOSE
def explain(
    files: tuple[Path, ...],
    form: str,
    output: Path | None,
    fail_on: str | None,
    rule_dirs: tuple[Path, ...],
    overrides: dict[str, float],
    times: dict[str, float],
    verbose: bool,
) -> None:
    """Explain what Nsight Systems or Nsight Compute recorded.

    FILE is a .nsys-rep, its SQLite export (also .gz or .xz), a parquet export folder,
    a .ncu-rep, or a CSV of ncu; or one report that `--format json` wrote, to print it in another format.

    \b
    gpudiag explain report.sqlite
    gpudiag explain report.sqlite --iteration-time decode_token=3.57ms
    gpudiag explain report.sqlite --format json -o report.json --fail-on high
    """
    hurry()
    from gpudiag import pipeline
    from gpudiag.report import formats
    from gpudiag.report import output as place
    from gpudiag.report.terminal import progress

    if output:
        place.check(output, files)
    with progress() as quiet:
        report = pipeline.report(
            files,
            rule_dirs=rule_dirs,
            overrides=overrides,
            iteration_times=times,
            progress=say if verbose else quiet,
        )
    deliver(formats.render(report, form), output, in_colour=form == "markdown")
    if fail_on and fails(report, fail_on):
        raise click.exceptions.Exit(1)


def fails(report: Report, fail_on: str) -> bool:
    gate = SEVERITIES.index(fail_on)
    return any(f.status != "deprecated" and SEVERITIES.index(f.severity) >= gate for f in report.findings)
