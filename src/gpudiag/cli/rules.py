"""`gpudiag rules`: list, show, check and write rules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpudiag.cli.arguments import RULE_DIRS, deliver, ended
from gpudiag.cli.completion import rule_codes
from gpudiag.cli.sections import FAILED, Group

if TYPE_CHECKING:
    from gpudiag.library.catalogue import Library


EXIT_CODES = (("0", "done"), FAILED)


@click.group(
    cls=Group,
    order={"Read rules": ("list", "show"), "Write rules": ("new", "check", "schema")},
    examples=(
        ("gpudiag rules show H01", "all about one rule"),
        ("gpudiag rules new sync my-smell --code U01 --dir my-rules", "a rule of your own, checked and used"),
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

    problems = authoring.check([directory] if directory else [], only=only)
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


def _print(markdown: str) -> None:
    from gpudiag.text.escape import console

    deliver(console(ended(markdown)), in_colour=True)


def _library(rule_dirs: tuple[Path, ...]) -> Library:
    from gpudiag.library import load as library

    return library.load(rule_dirs)
