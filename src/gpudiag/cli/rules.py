"""`gpudiag rules`: list, show, check and write rules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpudiag.cli.arguments import RULE_DIRS
from gpudiag.cli.common import deliver, ended

if TYPE_CHECKING:
    from gpudiag.library import Library


@click.group()
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

    deliver(ended(authoring.rule_index(_library(rule_dirs))), in_colour=True)


@rules.command()
@click.argument("code")
@RULE_DIRS
def show(code: str, rule_dirs: tuple[Path, ...]) -> None:
    """What a rule looks for, its thresholds, why it matters and how to fix it. CODE is a code or an id."""
    from gpudiag import authoring

    deliver(ended(authoring.rule_page(_library(rule_dirs), code)), in_colour=True)


@rules.command()
@click.argument(
    "directory", metavar="[DIR]", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--only", metavar="CODE", help="Check this rule alone.")
def check(directory: Path | None, only: str | None) -> None:
    """Check the rules in DIR (the built-in ones if none is given): form, query, texts, tests."""
    from gpudiag import authoring

    problems = authoring.check([directory] if directory else [], only=only)
    deliver("".join(f"{problem}\n" for problem in problems) or "no problems\n")
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

    deliver("".join(f"{path}\n" for path in authoring.scaffold(directory, family, smell, code)))


@rules.command()
def schema() -> None:
    """The JSON Schema of a rule, for editors."""
    from gpudiag import authoring

    deliver(ended(authoring.schema_json()))


def _library(rule_dirs: tuple[Path, ...]) -> Library:
    from gpudiag import library

    return library.load(rule_dirs)
