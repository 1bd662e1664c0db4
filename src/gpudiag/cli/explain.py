"""`gpudiag explain`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from gpudiag.cli.arguments import (
    FILES,
    FORMAT,
    MEMORY,
    NO_CACHE,
    OUTPUT,
    PLAIN,
    RULE_DIRS,
    THRESHOLDS,
    TIMES,
    VERBOSE,
    deliver,
    say,
    selecting,
    tune_interpreter,
)
from gpudiag.cli.sections import FAILED, Command
from gpudiag.errors import GpudiagError
from gpudiag.report import formats
from gpudiag.selection.spec import Selection

if TYPE_CHECKING:
    from gpudiag.model import Report
    from gpudiag.options import Options
    from gpudiag.timeline.model import Picture

FILE_KINDS = (
    (".nsys-rep", "what `nsys profile` writes; nsys has to be on the PATH to open it"),
    (".sqlite", "its export, `nsys export --type=sqlite`; also packed as .gz, .xz or .zst"),
    (
        "folder",
        "its export, `nsys export --type=parquetdir`; or the ranks of one job, a report, export or trace of each",
    ),
    ("address", "of a file or folder, such as s3://bucket/ranks or https://host/run.sqlite, where fsspec is installed"),
    (".json.gz", "a trace of torch.profiler, `prof.export_chrome_trace`; also plain, or packed as .xz or .zst"),
    (".ncu-rep", "what `ncu` writes; opened by ncu on the PATH or by `pip install ncu-report`"),
    (".csv", "its export, `ncu --import FILE --csv --page raw`"),
    ("a log", "of `nvidia-smi --query-gpu=… --format=csv` or `nvidia-smi dmon`: clocks, power, heat, memory"),
    (".pstats", "what `python -m cProfile -o FILE` writes: functions of the host"),
    (".json", "one report that was saved before, to print it in another format"),
)
EXAMPLES = (
    ("gpudiag explain report.nsys-rep", "what to fix first"),
    ("gpudiag explain report.nsys-rep kernels.ncu-rep", "a timeline and what its kernels do, in one report"),
    ("gpudiag explain ranks/ --workers 8", "all ranks of one job, a file of each in a folder"),
    ("gpudiag explain report.sqlite --iteration-time step=3.57ms", "gains in real time, not in the profiler's"),
    ("gpudiag explain report.nsys-rep --range 2s:5s", "only these seconds of a long recording"),
    ("gpudiag explain report.nsys-rep --nvtx train_step", "the training step, not the evaluation"),
    ("gpudiag explain report.sqlite -o report.json --fail-on high", "in a script: the whole report as JSON"),
)
LINKING = ("markdown", "html")
"""Formats whose page can link to the pages of single ranks."""

EXIT_CODES = (("0", "done; nothing reached --fail-on"), ("1", "a finding is at least as severe as --fail-on"), FAILED)


class SeverityChoice(click.ParamType):  # type: ignore[type-arg]  # not generic in older versions of click
    """A severity of the vocabulary, which is read when one is given: it would load pydantic for every --help."""

    name = "severity"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the severity; fails for another word."""
        return _choice().convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the severities that begin so."""
        return _choice().shell_complete(ctx, param, incomplete)


def _choice() -> click.Choice[str]:
    from gpudiag.model import SEVERITIES

    return click.Choice(SEVERITIES)


@click.command(
    cls=Command,
    sections={
        "A FILE is one of these; several are read as one run": FILE_KINDS,
        "Formats": [(form.name, f"{form.about} ({form.suffix})") for form in formats.ALL],
        "Exit codes": EXIT_CODES,
    },
    examples=EXAMPLES,
)
@FILES
@FORMAT
@OUTPUT
@click.option(
    "--fail-on",
    metavar="SEVERITY",
    type=SeverityChoice(),
    help="Exit with 1 if a finding is at least this severe: info, low, medium or high. Findings of draft rules count; "
    "the smaller things and those of deprecated rules do not.",
)
@click.option(
    "--full",
    is_flag=True,
    help="Print the whole report on a terminal, too, which else gets what fits on one screen. A file or pipe always "
    "gets all of it.",
)
@click.option(
    "--rank-pages",
    is_flag=True,
    help="With -o OUT.html or OUT.md: write pages of single ranks of a large job beside OUT, such as OUT.rank3.html, "
    "and link them from it: of the slow ranks, and of the one that does least, to compare them with.",
)
@RULE_DIRS
@THRESHOLDS
@TIMES
@selecting
@click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(1, 512),
    help="Read the ranks of a large job in N processes; the report stays the same.",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Read the ranks of a large job on the Dask cluster there, such as tls://host:8786, whose workers see the "
    "files under the same paths. Needs the extra `jobs`.",
)
@MEMORY
@NO_CACHE
@VERBOSE
def explain(
    files: tuple[Path, ...],
    form: str | None,
    output: Path | None,
    full: bool,
    fail_on: str | None,
    rank_pages: bool,
    rule_dirs: tuple[Path, ...],
    overrides: dict[str, float],
    times: dict[str, float],
    selection: Selection,
    workers: int | None,
    scheduler: str | None,
    memory_limit: int | None,
    no_cache: bool,
    verbose: bool,
) -> None:
    """Explain what Nsight Systems or Nsight Compute recorded.

    Says what is slow, why, where, and what each fix is worth, the most important first. Files are opened read-only, and
    nothing is written beside them. What was read of large ones is kept in your cache (`gpudiag cache info`).
    """
    tune_interpreter()
    from gpudiag.options import Options
    from gpudiag.report import output as place
    from gpudiag.report.terminal import is_terminal, progress

    if output:
        place.check(output, files)
    if scheduler and not scheduler.startswith("tls://"):
        click.echo(f"gpudiag: {scheduler} is not tls://: whoever can reach it can run programs there.", err=True)
    short = not (full or form or output) and sys.stdout and is_terminal(sys.stdout)
    form = form or chosen(output)
    if rank_pages and not (output and form in LINKING):
        raise GpudiagError("--rank-pages writes pages beside a page: add -o with a file that ends in .html or .md.")
    with progress() as quiet:
        options = Options(
            rule_dirs, overrides, times, say if verbose else quiet, not no_cache, selection,
            workers=workers, scheduler=scheduler, memory_limit=memory_limit,
        )  # fmt: skip
        report, picture = _explained(files, options, form)
        if output and rank_pages:
            report = _with_rank_pages(report, files, options, output, form)
    if short:
        from gpudiag.report.short import show

        place.to_stdout(lambda stream: show(report, stream))
    else:
        deliver(formats.render(report, form, picture), output, in_colour=form == "markdown")
    if fail_on and fails(report, fail_on):
        raise click.exceptions.Exit(1)


def _explained(files: Sequence[Path], options: Options, form: str) -> tuple[Report, Picture | None]:
    from gpudiag import pipeline

    if formats.BY_NAME[form].drawn:
        return pipeline.pictured(files, options)
    return pipeline.report(files, options), None


def _with_rank_pages(report: Report, files: Sequence[Path], options: Options, output: Path, form: str) -> Report:
    """The report with links to pages of single ranks, which are written first. Raises GpudiagError."""
    from gpudiag.ingest.folder import expanded
    from gpudiag.report import output as place
    from gpudiag.report import rank_pages

    if report.job is None:
        click.echo("gpudiag: no pages of ranks are written: these files are no job of many ranks.", err=True)
        return report
    made = rank_pages.pages(report.job, output, expanded(files))
    for page in made:
        place.check(page.path, files)
    for page in made:
        alone = options if page.alone is None else replace(options, selection=Selection(ranks=(page.alone,)))
        options.progress(f"explaining {page.label} alone")
        of_rank, drawn = _explained([page.capture], alone, form)
        place.to_file(formats.render(of_rank, form, drawn), page.path)
    return rank_pages.linked(report, made)


def chosen(output: Path | None) -> str:
    """The format for a place that was given without one. Raises GpudiagError for an ending that names none."""
    form = formats.of_file(output) if output else None
    if output and form is None and output.suffix.lower() not in PLAIN:
        raise GpudiagError(
            f"{output}: no format ends in {output.suffix}; end it in {formats.suffixes()}, or name one with"
            " --format (.txt holds Markdown)."
        )
    return (form or formats.ALL[0]).name


def fails(report: Report, fail_on: str) -> bool:
    """Return whether a finding that is not of a deprecated rule is at least this severe."""
    severities = tuple(_choice().choices)
    gate = severities.index(fail_on)
    return any(f.status != "deprecated" and severities.index(f.severity) >= gate for f in report.findings)
