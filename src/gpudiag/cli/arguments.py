"""Arguments that several commands take, and how their values are read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from gpudiag import duration
from gpudiag.cli.completion import captures
from gpudiag.errors import GpudiagError
from gpudiag.report import formats


def _thresholds(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    """`CODE.param=value`, repeated, as {"CODE.param": value}."""
    thresholds = {}
    for value in values:
        match = re.fullmatch(r"(\w+\.\w+)=(.+)", value)
        if not match:
            raise click.BadParameter(f"{value!r} is not like H01.min_idle_share=0.3.")
        try:
            number = float(match[2])
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise click.BadParameter(f"{match[2]!r} is no number: {match[1]} wants one, such as 0.3.")
        thresholds[match[1]] = number
    return thresholds


def _iteration_times(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    """`3.57ms` or `LOOP=3.57ms`, repeated, as {loop name or "": nanoseconds}."""
    return dict(loop_times(values))


def loop_times(values: Iterable[str]) -> Iterator[tuple[str, float]]:
    """Each `3.57ms` or `LOOP=3.57ms` as (loop name or "", nanoseconds)."""
    for value in values:
        match = re.fullmatch(r"(?:(.+)=)?(.*)", value, re.DOTALL)
        assert match is not None
        try:
            yield match[1] or "", duration.nanoseconds(match[2])
        except GpudiagError as error:
            raise click.BadParameter(str(error)) from None


FILES = click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    shell_complete=captures,
)
FORMAT = click.option(
    "--format",
    "form",
    metavar="FORMAT",
    type=click.Choice([form.name for form in formats.ALL]),
    help=f"One of the formats below.  [default: what OUT ends in, else {formats.ALL[0].name}]",
)
PAGE_FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "json"]),
    default="markdown",
    show_default=True,
    help="markdown: for people, in colour on a terminal; json: for programs.",
)
OUTPUT = click.option(
    "-o", "--output", metavar="OUT", type=click.Path(path_type=Path), help="Write here, not to stdout."
)
RULE_DIRS = click.option(
    "--rules",
    "rule_dirs",
    metavar="DIR",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder of your own rules, beside the built-in ones. Repeatable.",
)
THRESHOLDS = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="CODE.PARAM=VALUE",
    callback=_thresholds,
    help="Another threshold for a rule, such as S01.max_bytes=65536; `gpudiag rules show` names them. Repeatable.",
)
TIMES = click.option(
    "--iteration-time",
    "times",
    multiple=True,
    metavar="[LOOP=]TIME",
    callback=_iteration_times,
    help="How long one iteration takes without the profiler, such as 3.57ms, or step=3.57ms for the loop `step`: gains "
    "of CPU-bound loops then rest on it. Repeatable.",
)
VERBOSE = click.option("-v", "--verbose", is_flag=True, help="Name every stage on stderr.")
