"""`gpudiag diff`."""

from __future__ import annotations

from collections.abc import Container, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpudiag.cli.arguments import (
    NO_CACHE,
    OUTPUT,
    THRESHOLDS,
    VERBOSE,
    deliver,
    loop_times,
    page_format,
    say,
    tune_interpreter,
)
from gpudiag.cli.completion import captures
from gpudiag.cli.sections import FAILED, Command
from gpudiag.errors import GpudiagError

if TYPE_CHECKING:
    from gpudiag.model import Diff

VERDICTS = (
    ("regression", "head is slower for equal work, and two recordings of one program do not differ by as much"),
    ("improvement", "head is faster, likewise"),
    ("noise", "no more difference than two recordings of one program have: the text says how much that is"),
    (
        "cannot_tell",
        "the profiler, chance or unequal work may have made the difference; the text says what would tell",
    ),
    ("incomparable", "another GPU, another kind of capture, no loop in common: the text says what"),
)
EXAMPLES = (
    ("gpudiag diff base.json head.nsys-rep", "the base's report was saved with `gpudiag explain -o base.json`"),
    ("gpudiag diff main.sqlite branch.sqlite --format markdown -o diff.md", "a page for a pull request"),
    ("gpudiag diff base.json head.json --fail-on-regression", "a gate for CI"),
    (
        "gpudiag diff base.json head.json --fail-on regression --fail-on new-high",
        "a stricter one: also where a grave fault came in, whatever the times can tell",
    ),
    (
        "gpudiag diff a1.sqlite b1.sqlite --base a2.sqlite --head b2.sqlite",
        "two recordings a side",
    ),
    (
        "gpudiag diff a.sqlite b.sqlite --base-time 3.57ms --head-time 3.21ms",
        "iteration times measured without the profiler; several of one side are repeats",
    ),
)
NAMED = 3
FAIL_ON = ("regression", "cannot-tell", "new-high")
EXIT_CODES = (
    ("0", "compared; also slower, or where it cannot be known, unless --fail-on asks for 1"),
    ("1", "what --fail-on or --fail-on-regression names has happened: stderr says what"),
    ("2", "incomparable: the reason stands on stderr, and the page or JSON that tells it is written all the same"),
    FAILED,
)


def _times(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, list[float]]:
    """`3.57ms` or `LOOP=3.57ms`, repeated, as {loop name or "": milliseconds}; one loop's are repeats."""
    times: dict[str, list[float]] = {}
    for loop, ns in loop_times(values):
        times.setdefault(loop, []).append(ns / 1e6)
    return times


@click.command(cls=Command, sections={"Verdicts": VERDICTS, "Exit codes": EXIT_CODES}, examples=EXAMPLES)
@click.argument("base", metavar="BASE", type=click.Path(path_type=Path, readable=False), shell_complete=captures)
@click.argument("head", metavar="HEAD", type=click.Path(path_type=Path, readable=False), shell_complete=captures)
@click.option(
    "--base",
    "more_base",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path, readable=False),
    help="Another recording of the base, of the same program: shows how much runs differ. Repeatable.",
)
@click.option(
    "--head",
    "more_head",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path, readable=False),
    help="Another recording of the head. Repeatable.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json"]),
    help="A few lines, a page, or everything for programs.  [default: what OUT ends in (.md, .json), else text]",
)
@OUTPUT
@click.option(
    "--base-time",
    "base_times",
    metavar="[LOOP=]TIME",
    multiple=True,
    callback=_times,
    help="How long an iteration of the base takes without the profiler. Repeat it for each run measured.",
)
@click.option(
    "--head-time",
    "head_times",
    metavar="[LOOP=]TIME",
    multiple=True,
    callback=_times,
    help="The same of the head.",
)
@click.option(
    "--fail-on",
    metavar="WHAT",
    multiple=True,
    type=click.Choice(FAIL_ON),
    help="Exit with 1 and say why: `regression`, if head is slower; `cannot-tell`, if that cannot be known; `new-high`,"
    " if a finding of high severity is new, whatever the times say. One that only became visible, because another"
    " cause no longer hides it, is not new. Repeatable.",
)
@click.option("--fail-on-regression", is_flag=True, help="The same as --fail-on regression.")
@THRESHOLDS
@NO_CACHE
@VERBOSE
def diff(
    base: Path,
    head: Path,
    more_base: tuple[Path, ...],
    more_head: tuple[Path, ...],
    form: str | None,
    output: Path | None,
    base_times: dict[str, list[float]],
    head_times: dict[str, list[float]],
    fail_on: tuple[str, ...],
    fail_on_regression: bool,
    overrides: dict[str, float],
    no_cache: bool,
    verbose: bool,
) -> None:
    """Compare two recordings: is HEAD faster or slower than BASE, by how much, and why.

    BASE and HEAD are captures that `explain` reads, or reports that it saved as JSON (several ranks, or a timeline
    with its kernels' profiles: save them as one report first). The answer is an interval that counts in what the
    profiler adds and what runs differ by. --set takes thresholds called settings.diff_….
    """
    tune_interpreter()
    from gpudiag import compare as comparison
    from gpudiag import pipeline
    from gpudiag.library import load as library
    from gpudiag.options import Options
    from gpudiag.report import diff as diffpage
    from gpudiag.report import output as place
    from gpudiag.report.terminal import progress

    files = (base, *more_base), (head, *more_head)
    if output:
        place.check(output, [*files[0], *files[1]])
    form = page_format(form, output, "text")
    rules = library.load().with_overrides(overrides)
    settings = _settings(overrides, rules.setting_values)
    with progress() as quiet:
        options = Options(progress=say if verbose else quiet, cached=not no_cache)
        sides = [[pipeline.report([file], options) for file in side] for side in files]
    found = comparison.compare(sides[0], sides[1], settings, rules.budget_parts, base_times, head_times)
    write = {"text": diffpage.text, "markdown": diffpage.markdown, "json": diffpage.as_json}[form]
    deliver(write(found), output, in_colour=form == "markdown")
    if found.state == "incomparable":
        raise GpudiagError(found.text)
    if found.state == "cannot_tell" and any(loop.host_bound for loop in found.loops):
        say("times measured without the profiler can be given here too: --base-time and --head-time.")
    reasons = _failures(found, {*fail_on, *(["regression"] if fail_on_regression else [])})
    for reason in reasons:
        say(reason)
    if reasons:
        raise click.exceptions.Exit(1)


def _failures(found: Diff, fail_on: Container[str]) -> list[str]:
    """Return the reasons why the command fails, a line each."""
    from gpudiag.text.escape import NAME_LIMIT, middle, one_line

    reasons = []
    if "regression" in fail_on and found.state == "regression":
        reasons.append("fails: head is slower (--fail-on regression).")
    if "cannot-tell" in fail_on and found.state == "cannot_tell":
        reasons.append("fails: it cannot be known whether head is slower (--fail-on cannot-tell).")
    new = [one for one in found.findings if one.state == "new" and one.severity == "high"]
    if "new-high" in fail_on and new:
        named = "; ".join(f"{one.code} {middle(one_line(one.title), NAME_LIMIT)}" for one in new[:NAMED])
        more = f" and {len(new) - NAMED} more" if len(new) > NAMED else ""
        reasons.append(f"fails: new and of high severity: {named}{more} (--fail-on new-high).")
    return reasons


def _settings(overrides: Mapping[str, float], values: dict[str, float]) -> dict[str, float]:
    """Other thresholds than those of the comparison would change the reports, of which one may be saved already."""
    other = next((name for name in overrides if not name.startswith("settings.diff_")), None)
    if other:
        raise GpudiagError(f"--set {other}: a comparison takes thresholds called settings.diff_… only.")
    from gpudiag.compare import change_state

    change_state.check(values)
    return values
