"""The command line: arguments and exit codes. Everything heavy is imported by the command that needs it.

Exit codes: 0 done; 1 a finding at or above --fail-on, or a rule with a problem; 2 a wrong argument or an input that
cannot be read; 129, 130, 143 hung up, interrupted, terminated.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

import click

from gpudiag import __version__
from gpudiag.arguments import FILES, FORMAT, OUTPUT, RULE_DIRS, THRESHOLDS, TIMES, VERBOSE

if TYPE_CHECKING:
    from gpudiag.library import Library
    from gpudiag.model import Report

# model.SEVERITIES, spelled again: the model would load pydantic for every --help.
SEVERITIES = ("info", "low", "medium", "high")

INTERRUPTED = 130
GRACE_S = 3
"""How long tidying may take after a signal to end."""


class Failure(click.ClickException):
    """One sentence on stderr, exit code 2."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        from gpudiag.report.escape import one_line  # a file's name or damaged content may hold anything

        click.echo(f"gpudiag: {one_line(self.format_message())}", file=file, err=True)


def _user_errors() -> tuple[type[Exception], ...]:
    from gpudiag.errors import GpudiagError

    return (GpudiagError,)


@contextmanager
def _tidy_end() -> Iterator[None]:
    """A signal to end unwinds the program, so that its work folder goes with it."""

    def end(number: int, _: object) -> NoReturn:
        # `timeout` signals twice, the second time while the folder is being removed.
        for other in taken:
            signal.signal(other, signal.SIG_IGN)
        received.append(number)
        signal.alarm(GRACE_S)  # an exception at the wrong place may leave a lock behind: end all the same
        raise SystemExit(128 + number)

    received: list[int] = []
    # What is ignored already stays ignored: `nohup`.
    taken = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        if received:  # DuckDB reports a signal during a query as an error of its own, or of the file
            raise SystemExit(128 + received[0]) from None
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _hold_standard_streams() -> None:
    """After `>&-` the next file opened would take the stream's number, and receive what is written there."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


class Commands(click.Group):
    """A group whose commands may raise GpudiagError and be interrupted."""

    def invoke(self, ctx: click.Context) -> Any:
        _hold_standard_streams()
        try:
            with _tidy_end():
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except _user_errors() as error:
            raise Failure(str(error)) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="gpudiag %(version)s")
def main() -> None:
    """Say what is slow in a GPU program, why, where, and what each fix is worth.

    \b
    nsys profile -o report python train.py
    gpudiag explain report.nsys-rep
    """


@main.command()
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
    a .ncu-rep, or a CSV of ncu.

    \b
    gpudiag explain report.sqlite
    gpudiag explain report.sqlite --iteration-time decode_token=3.57ms
    gpudiag explain report.sqlite --format json -o report.json --fail-on high
    """
    _hurry()
    from gpudiag import pipeline
    from gpudiag.report import output as place
    from gpudiag.report.terminal import progress

    if output:
        place.check(output, files)
    with progress() as quiet:
        report = pipeline.explain(
            files,
            rule_dirs=rule_dirs,
            overrides=overrides,
            iteration_times=times,
            progress=_say if verbose else quiet,
        )
    if form == "json":
        from gpudiag.report import jsonformat

        _deliver(jsonformat.render(report), output)
    else:
        from gpudiag.report import markdown

        _deliver(markdown.render(report), output, in_colour=True)
    if fail_on and _fails(report, fail_on):
        raise click.exceptions.Exit(1)


@main.command("next")
@FILES
@FORMAT
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
    _hurry()
    from gpudiag import nextsteps
    from gpudiag.report import nextpage
    from gpudiag.report import output as place
    from gpudiag.report.terminal import progress

    if output:
        place.check(output, files)
    with progress() as quiet:
        steps = nextsteps.next_steps(
            files, overrides=overrides, iteration_times=times, progress=_say if verbose else quiet
        )
    if form == "json":
        _deliver(nextpage.as_json(steps), output)
    else:
        _deliver(nextpage.markdown(steps), output, in_colour=True)


@main.group()
def rules() -> None:
    """List, show, check and write rules.

    \b
    gpudiag rules show H01
    gpudiag rules new sync my-smell --code U01 --dir my-rules
    gpudiag rules check my-rules
    """


@rules.command("list")
@RULE_DIRS
def list_rules(rule_dirs: tuple[Path, ...]) -> None:
    """Every rule, a line each."""
    from gpudiag import authoring

    _deliver(_ended(authoring.rule_index(_library(rule_dirs))), in_colour=True)


@rules.command()
@click.argument("code")
@RULE_DIRS
def show(code: str, rule_dirs: tuple[Path, ...]) -> None:
    """What a rule looks for, its thresholds, why it matters and how to fix it. CODE is a code or an id."""
    from gpudiag import authoring

    _deliver(_ended(authoring.rule_page(_library(rule_dirs), code)), in_colour=True)


@rules.command()
@click.argument(
    "directory", metavar="[DIR]", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--only", metavar="CODE", help="Check this rule alone.")
def check(directory: Path | None, only: str | None) -> None:
    """Check the rules in DIR (the built-in ones if none is given): form, query, texts, tests."""
    from gpudiag import authoring

    problems = authoring.check([directory] if directory else [], only=only)
    _deliver("".join(f"{problem}\n" for problem in problems) or "no problems\n")
    if problems:
        raise click.exceptions.Exit(1)


@rules.command()
@click.argument("family")
@click.argument("smell", metavar="ID")
@click.option("--code", required=True, help="A code that no other rule has, such as U01.")
@click.option(
    "--dir", "directory", default=Path("rules"), show_default=True, type=click.Path(file_okay=False, path_type=Path)
)
def new(family: str, smell: str, code: str, directory: Path) -> None:
    """Write a rule and its test to start from.

    FAMILY is the folder (sync, alloc, kernel/memory …), ID names the smell, not the cure.
    """
    from gpudiag import authoring

    _deliver("".join(f"{path}\n" for path in authoring.scaffold(directory, family, smell, code)))


@rules.command()
def schema() -> None:
    """The JSON Schema of a rule, for editors."""
    from gpudiag import authoring

    _deliver(_ended(authoring.schema_json()))


def _hurry() -> None:
    """A process of a second: collecting garbage costs a tenth of it, waiting for another thread's slice as much."""
    gc.disable()
    sys.setswitchinterval(0.0005)


def _library(rule_dirs: tuple[Path, ...]) -> Library:
    from gpudiag import library

    return library.load(rule_dirs)


def _fails(report: Report, fail_on: str) -> bool:
    gate = SEVERITIES.index(fail_on)
    return any(f.status != "deprecated" and SEVERITIES.index(f.severity) >= gate for f in report.findings)


def _say(stage: str) -> None:
    click.echo(f"gpudiag: {stage}", err=True)


def _ended(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


def _deliver(text: str, output: Path | None = None, in_colour: bool = False) -> None:
    from gpudiag.report.output import to_file, to_stdout

    if output is None:
        to_stdout(text, in_colour=in_colour)
    else:
        to_file(text, output)
