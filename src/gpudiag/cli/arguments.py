"""Arguments that several commands take, and how their values are read."""

from __future__ import annotations

import functools
import gc
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from gpudiag import memory
from gpudiag.cli.completion import captures
from gpudiag.errors import GpudiagError
from gpudiag.report import formats
from gpudiag.selection.spec import select, times
from gpudiag.text import parse


def _thresholds(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    """`CODE.param=value`, repeated, as {"CODE.param": value}."""
    thresholds = {}
    for value in values:
        match = re.fullmatch(r"([\w-]+\.\w+)=(.+)", value)
        if not match:
            raise click.BadParameter(f"{value!r} is not like H01.min_share=0.3.")
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
    times: dict[str, float] = {}
    for loop, time in loop_times(values):
        if loop in times:
            raise click.BadParameter(f"{f'the time of {loop}' if loop else 'a time'} is given twice: give it once.")
        times[loop] = time
    return times


def loop_times(values: Iterable[str]) -> Iterator[tuple[str, float]]:
    """Each `3.57ms` or `LOOP=3.57ms` as (loop name or "", nanoseconds)."""
    for value in values:
        match = re.fullmatch(r"(?:(.+)=)?(.*)", value, re.DOTALL)
        assert match is not None
        try:
            yield match[1] or "", parse.nanoseconds(match[2])
        except GpudiagError as error:
            raise click.BadParameter(str(error)) from None


FILES = click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, readable=False),  # reading it says more than click does
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
    help="markdown: for people, in colour on a terminal; json: for programs.  [default: what OUT ends in (.md, .json), "
    "else markdown]",
)
OUTPUT = click.option(
    "-o", "--output", metavar="OUT", type=click.Path(path_type=Path), help="Write here, not to stdout."
)
PLAIN = ("", ".txt", ".text", ".log", ".markdown")
"""Endings of a place that gets Markdown, which is plain text; also those of a place without one: `/dev/stdout`."""


def page_format(form: str | None, output: Path | None, other: str = "markdown") -> str:
    """The format of a page that is Markdown or JSON: as named, else by the place's ending, else the other one.

    Raises GpudiagError for an ending that says something else.
    """
    suffix = output.suffix.lower() if output else ""
    by_suffix = {".md": "markdown", ".json": "json"} | dict.fromkeys(PLAIN, other)
    if not form and suffix not in by_suffix:
        raise GpudiagError(f"{output}: nothing of this command ends in {suffix}; end it in .md or .json.")
    return form or by_suffix[suffix]


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


def _range(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> str | None:
    if len(values) > 1:
        raise click.BadParameter("only one range can be selected.")
    for value in values:
        try:
            times(value)
        except GpudiagError as error:
            raise click.BadParameter(str(error)) from None
    return values[0] if values else None


_SELECTING = (
    click.option(
        "--range",
        "within",
        metavar="START:END",
        multiple=True,
        callback=_range,
        help="Only this time, such as 2s:5s, 250ms: or :5s, counted from the beginning of the capture as Nsight "
        "Systems shows it; of several files, of the first one, where they say when they began. What overlaps the time "
        "counts, but only iterations that lie in it as a whole.",
    ),
    click.option(
        "--nvtx",
        metavar="NAME",
        multiple=True,
        help="Only NVTX ranges of this message, or of this name in the report, and the GPU work launched in them; "
        "NAME@DOMAIN for those of one domain. They are the loop if they repeat; else what repeats inside. Repeatable.",
    ),
    click.option(
        "--device",
        "devices",
        metavar="N",
        multiple=True,
        type=click.IntRange(0, 2**31 - 1),
        help="Only the GPU with this CUDA number, and the processes that use it. Repeatable.",
    ),
    click.option(
        "--process",
        "processes",
        metavar="PID|NAME",
        multiple=True,
        help="Only the process with this id, or those of this executable. Repeatable.",
    ),
    click.option(
        "--rank",
        "ranks",
        metavar="N",
        multiple=True,
        type=click.IntRange(0, 2**31 - 1),
        help="Only this rank; file names such as report.rank1.nsys-rep tell it. Repeatable.",
    ),
)
_Command = TypeVar("_Command", bound=Callable[..., None])


def selecting(command: _Command) -> _Command:
    """Options that select a part of a capture, handed over as one `selection`."""

    @functools.wraps(command)
    def selected(
        *args: Any,
        within: str | None,
        nvtx: tuple[str, ...],
        devices: tuple[int, ...],
        processes: tuple[str, ...],
        ranks: tuple[int, ...],
        **rest: Any,
    ) -> None:
        command(*args, selection=select(within, nvtx, devices, processes, ranks), **rest)

    for option in reversed(_SELECTING):
        option(selected)
    return cast("_Command", selected)


def _memory(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    try:
        return memory.limit(value) if value is not None else None
    except GpudiagError as error:
        raise click.BadParameter(str(error)) from None


MEMORY = click.option(
    "--memory-limit",
    metavar="SIZE",
    callback=_memory,
    help="About how much memory to take, such as 2GB; what does not fit goes to temporary files.  [default: 0.8 GB, "
    "and a little more where captures are many gigabytes]",
)
NO_CACHE = click.option(
    "--no-cache",
    is_flag=True,
    help="Read large captures anew and keep nothing for the next time; see `gpudiag cache`.",
)
VERBOSE = click.option("-v", "--verbose", is_flag=True, help="Name every stage on stderr.")


def tune_interpreter() -> None:
    """Tune for a process of a second: collecting garbage costs a tenth of it, waiting for other threads as much.

    Raises GpudiagError where the system allows the process too little memory to load what it needs.
    """
    from gpudiag.memory import refuse_narrow

    refuse_narrow()
    gc.disable()
    sys.setswitchinterval(0.0005)


def say(stage: str) -> None:
    click.echo(f"gpudiag: {stage}", err=True)


def ended(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


def deliver(text: str, output: Path | None = None, in_colour: bool = False) -> None:
    """Write a text to a file, or to stdout, there in colour for a person."""
    from gpudiag.report import terminal
    from gpudiag.report.output import to_file, to_stdout

    if output:
        to_file(text, output)
    elif in_colour:
        to_stdout(lambda stream: terminal.show(text, stream))
    else:
        to_stdout(lambda stream: stream.write(text))
