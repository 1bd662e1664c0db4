"""`gpudiag comment`."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpudiag.cli.arguments import (
    FILES,
    NO_CACHE,
    RULE_DIRS,
    THRESHOLDS,
    TIMES,
    VERBOSE,
    deliver,
    ended,
    say,
    tune_interpreter,
)
from gpudiag.cli.sections import FAILED, Command

if TYPE_CHECKING:
    from gpudiag.model import Diff, Report
    from gpudiag.options import Options

ENVIRONMENT = (
    ("GITHUB_TOKEN", "the token, or GH_TOKEN; it needs the permission `pull-requests: write`"),
    ("GITHUB_API_URL", "the API of a GitHub Enterprise server, such as https://HOST/api/v3"),
    ("GITHUB_REPOSITORY", "set in GitHub Actions: the default of --repo"),
    ("GITHUB_EVENT_PATH", "set in GitHub Actions: tells the pull request, also to a workflow_run"),
    ("HTTPS_PROXY", "a proxy to reach GitHub by; NO_PROXY names what needs none"),
)
EXAMPLES = (
    ("gpudiag comment report.json --repo owner/name --pr 7", "a report that `explain` saved before"),
    ("gpudiag comment report.sqlite --dry-run", "look first; needs no token"),
    ("gpudiag comment train.json --key train", "in GitHub Actions; a comment of its own for each program"),
    ("gpudiag comment head.json --base base.json", "what the pull request changes"),
)
EXIT_CODES = (
    ("0", "the comment is up to date; or no open pull request has this commit any more, and there is nothing to do"),
    FAILED,
)


@click.command(cls=Command, sections={"Environment": ENVIRONMENT, "Exit codes": EXIT_CODES}, examples=EXAMPLES)
@FILES
@click.option("--repo", metavar="OWNER/NAME", help="The repository. [default: in GitHub Actions, the workflow's]")
@click.option(
    "--pr",
    "number",
    metavar="NUMBER",
    type=click.IntRange(1, 2**31),
    help="The pull request. [default: in GitHub Actions, the one that started the workflow]",
)
@click.option(
    "--key",
    metavar="KEY",
    default="",
    help="Tells several comments on one pull request apart: each key has one of its own.",
)
@click.option(
    "--base",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A capture or saved report without the pull request's change: the comment says what changed. Repeatable: "
    "captures are then read as one run, saved reports as repeats.",
)
@click.option("--dry-run", is_flag=True, help="Print the comment and what would be done; send nothing.")
@RULE_DIRS
@THRESHOLDS
@TIMES
@NO_CACHE
@VERBOSE
def comment(
    files: tuple[Path, ...],
    repo: str | None,
    number: int | None,
    key: str,
    base: tuple[Path, ...],
    dry_run: bool,
    rule_dirs: tuple[Path, ...],
    overrides: dict[str, float],
    times: dict[str, float],
    no_cache: bool,
    verbose: bool,
) -> None:
    """Put the report on a GitHub pull request, as one comment that is kept up to date.

    FILE is what `explain` reads: captures, or one saved report (.json). The first run writes the comment, later runs
    change it. Comments of other accounts are never touched. Of a saved report, which may come from somebody else's
    pull request, only the figures and names are used: explanations, fixes and links are those of this gpudiag.
    """
    tune_interpreter()
    from gpudiag.github import pull_request
    from gpudiag.options import Options
    from gpudiag.report.github.comment import marker
    from gpudiag.report.terminal import progress
    from gpudiag.text.escape import one_line

    mark = marker(key)
    where = None if dry_run and not number else pull_request.target(repo, number, os.environ)
    with progress() as quiet:
        stage = say if verbose else quiet
        api = done = None
        if not dry_run:
            from gpudiag.github import client

            assert where is not None
            api = client.connect(os.environ, str(where), say=say if verbose else _silent)
            where = pull_request.find(api, where)
            if where is None:
                say("nothing to do: no open pull request has this commit; it was closed, or pushed to since.")
                return

        options = Options(rule_dirs, overrides, times, stage, not no_cache)
        report = _report(files, options)
        before = [_report(side, replace(options, iteration_times={})) for side in _sides(base)]
        body = _body(report, before, key)
        if api and where:
            done = pull_request.publish(api, where, body, mark)
    if done:
        deliver(f"{done.action} {one_line(done.url)}\n")
    else:
        _show(body, f"would create or update this comment on {where or 'the pull request'}")


def _report(paths: Sequence[Path], options: Options) -> Report:
    """The report of the captures; of a saved one, with our own words for the authored texts."""
    from gpudiag import pipeline
    from gpudiag.report import saved as savedreport

    if len(paths) != 1 or not savedreport.is_one(paths[0]):
        return pipeline.report(paths, options)
    from gpudiag.library.load import load

    report = pipeline.report(paths, replace(options, rule_dirs=()))
    return savedreport.trusted(report, load(options.rule_dirs))


def _sides(files: tuple[Path, ...]) -> list[tuple[Path, ...]]:
    """The files of each report: a saved one is a report by itself, captures make one together."""
    from gpudiag.report import saved as savedreport

    captures = tuple(file for file in files if not savedreport.is_one(file))
    return [*((file,) for file in files if file not in captures), *([captures] if captures else [])]


def _body(report: Report, base: Sequence[Report], key: str) -> str:
    """The comment: a report alone, or what changed from `base` to it."""
    from gpudiag.errors import GpudiagError
    from gpudiag.report.github import comment as page

    try:
        return page.change(_compared(base, report), report, key) if base else page.render(report, key)
    except _misfits() as error:
        # Models allow any figure in a few places; what a capture gives fits, what a file holds need not.
        kind = type(error).__name__
        raise GpudiagError(f"The saved report holds figures that do not fit together ({kind}): make it anew.") from None


def _compared(base: Sequence[Report], head: Report) -> Diff:
    from gpudiag.compare import compare
    from gpudiag.library.load import load

    rules = load()
    return compare(base, [head], rules.setting_values, rules.budget_parts)


def _misfits() -> tuple[type[Exception], ...]:
    from jinja2 import TemplateError

    return ArithmeticError, AttributeError, LookupError, TemplateError, TypeError, ValueError


def _silent(_: str) -> None:
    """No progress is wanted."""


def _show(body: str, then: str) -> None:
    """The comment on stdout. In GitHub Actions a line of it could command the runner: that is off meanwhile."""
    word = secrets.token_hex(16)
    in_actions = os.environ.get("GITHUB_ACTIONS") == "true"
    deliver(f"::stop-commands::{word}\n{ended(body)}::{word}::" if in_actions else body)
    say(then)
