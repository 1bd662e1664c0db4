"""`gpudiag rules`: list, show, check and write rules."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpudiag.cli.arguments import (
    FILES,
    MEMORY,
    NO_CACHE,
    RULE_DIRS,
    THRESHOLDS,
    VERBOSE,
    deliver,
    ended,
    say,
    selecting,
    tune_interpreter,
)
from gpudiag.cli.completion import rule_codes
from gpudiag.cli.sections import FAILED, Group

if TYPE_CHECKING:
    from gpudiag.library.catalogue import Library
    from gpudiag.selection.spec import Selection

EXIT_CODES = (("0", "done"), FAILED)


@click.group(
    cls=Group,
    order={"Read rules": ("list", "show"), "Write rules": ("new", "try", "check", "schema")},
    examples=(
        ("gpudiag rules show H01", "all about one rule"),
        ("gpudiag rules new sync my-smell --code U01 --dir my-rules", "a rule of your own, checked and used"),
        ("gpudiag rules try U01 report.sqlite --rules my-rules", "its rows on a capture, and why it fires or does not"),
        ("gpudiag rules check my-rules", ""),
        ("gpudiag explain report.nsys-rep --rules my-rules", ""),
    ),
)
def rules() -> None:
    """List, show, check and write rules.

    A rule is a YAML file that says what is slow, from which threshold on, why, and how to fix it.
    """


@rules.command(
    "list",
    sections={"Exit codes": EXIT_CODES},
    examples=(("gpudiag rules list | grep sync/", "those about waiting"),),
)
@RULE_DIRS
def list_rules(rule_dirs: tuple[Path, ...]) -> None:
    """Print every rule, a line each.

    A line has the rule's code, title, name, kind, severity and state.
    """
    from gpudiag.authoring import scaffold as authoring

    _print(authoring.rule_index(_library(rule_dirs)))


@rules.command(
    sections={"Exit codes": EXIT_CODES},
    examples=(
        ("gpudiag rules show S01", "by its code, which every finding names"),
        ("gpudiag rules show launch-bound", "by its name"),
    ),
)
@click.argument("code", shell_complete=rule_codes)
@RULE_DIRS
def show(code: str, rule_dirs: tuple[Path, ...]) -> None:
    """Print what a rule looks for, its thresholds, why and the fix.

    CODE is a rule's code, such as H01, or its name, such as launch-bound. A threshold is changed with `gpudiag explain
    FILE --set CODE.PARAM=VALUE`.
    """
    from gpudiag.authoring import scaffold as authoring

    _print(authoring.rule_page(_library(rule_dirs), code))


@rules.command(
    sections={"Exit codes": (("0", "no problems"), ("1", "a rule has a problem: one a line on stdout"), FAILED)},
    examples=(
        ("gpudiag rules check my-rules", "your own rules"),
        ("gpudiag rules check my-rules --only U01", "while you write one of them"),
    ),
)
@click.argument(
    "directory", metavar="[DIR]", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--only", metavar="CODE", shell_complete=rule_codes, help="Check this rule alone.")
def check(directory: Path | None, only: str | None) -> None:
    """Check rules: their form, query, texts and tests.

    DIR is a folder of rules; the built-in ones are checked if none is given.
    """
    from gpudiag.authoring import scaffold as authoring
    from gpudiag.text.escape import inert, one_line

    problems = authoring.check([directory] if directory else [], only=only, jobs=os.cpu_count() or 1)
    deliver("".join(f"{inert(one_line(str(problem)))}\n" for problem in problems) or "no problems\n")
    if problems:
        raise click.exceptions.Exit(1)


@rules.command(
    sections={"Exit codes": EXIT_CODES},
    examples=(
        (
            "gpudiag rules new sync my-smell --code U01 --dir my-rules",
            "writes my-rules/sync/my-smell.yaml and my-smell.test.yaml",
        ),
    ),
)
@click.argument("family")
@click.argument("smell", metavar="ID")
@click.option("--code", metavar="CODE", required=True, help="A code that no other rule has, such as U01.")
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    default=Path("rules"),
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of your rules; it is made if it is not there.",
)
def new(family: str, smell: str, code: str, directory: Path) -> None:
    """Write a rule and its test to start from.

    FAMILY is a folder in it (sync, alloc, kernel/memory …); ID names what is wrong, not the cure. Nothing that is there
    is overwritten.
    """
    from gpudiag.authoring import scaffold as authoring

    deliver("".join(f"{path}\n" for path in authoring.scaffold(directory, family, smell, code)))


@rules.command(sections={"Exit codes": EXIT_CODES})
def schema() -> None:
    """Print the JSON Schema of a rule, for editors."""
    from gpudiag.authoring import scaffold as authoring

    deliver(ended(authoring.schema_json()))


@rules.command(
    "try",
    sections={"Exit codes": (("0", "done, whether the rule fires or not"), FAILED)},
    examples=(
        ("gpudiag rules try S01 report.sqlite", "why a built-in rule fires, or does not"),
        ("gpudiag rules try S01 report.sqlite --set S01.max_bytes=65536", "with another threshold"),
        ("gpudiag rules try my-rules/sync/my-smell.yaml report.sqlite", "while you write it"),
        ("gpudiag rules try U01 report.sqlite --rules my-rules", "with the views and suppressors beside it"),
    ),
)
@click.argument("rule", shell_complete=rule_codes)
@FILES
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="Show at most so many rows.",
)
@RULE_DIRS
@THRESHOLDS
@selecting
@MEMORY
@NO_CACHE
@VERBOSE
def try_rule(
    rule: str,
    files: tuple[Path, ...],
    limit: int,
    rule_dirs: tuple[Path, ...],
    overrides: dict[str, float],
    selection: Selection,
    memory_limit: int | None,
    no_cache: bool,
    verbose: bool,
) -> None:
    """Run one rule on a capture and say why it fires or does not.

    RULE is a rule's code, its name, or the path of its file; FILE is a capture that `gpudiag explain` reads. Shown are
    the rows of its query with the units that they have there, what it requires of the capture, the rules that can veto
    or weaken it, and the sentence that the report would print.
    """
    tune_interpreter()
    from gpudiag.authoring import trial, trial_page
    from gpudiag.options import Options
    from gpudiag.report.terminal import progress
    from gpudiag.text.escape import console

    with progress() as quiet:
        options = Options(rule_dirs, overrides, {}, say if verbose else quiet, not no_cache, selection, memory_limit)
        tried = trial.run(rule, files, options)
    deliver(console(trial_page.page(tried, limit)))


def _print(markdown: str) -> None:
    from gpudiag.text.escape import console

    deliver(console(ended(markdown)), in_colour=True)


def _library(rule_dirs: tuple[Path, ...]) -> Library:
    from gpudiag.library import load as library

    return library.load(rule_dirs)
