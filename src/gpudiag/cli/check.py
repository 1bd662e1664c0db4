"""`gpudiag check`."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpudiag.cli.arguments import (
    FILES,
    MEMORY,
    NO_CACHE,
    OUTPUT,
    PAGE_FORMAT,
    RULE_DIRS,
    THRESHOLDS,
    TIMES,
    VERBOSE,
    deliver,
    page_format,
    say,
    selecting,
    tune_interpreter,
)
from gpudiag.cli.sections import FAILED, Command
from gpudiag.selection.spec import Selection

if TYPE_CHECKING:
    from gpudiag.gate.config import Config
    from gpudiag.gate.result import Baseline


LIMITS = (
    ("budgets.LOOP", "of one loop: iteration_time, launches, idle, exposed_copies, exposed_communication, compute"),
    ("findings", "which findings fail: fail_on, max_gain; which do not: allow, baseline, suppress"),
    ("missing", '"fail" or "ignore": what becomes of a limit that cannot be checked'),
)
EXAMPLES = (
    ("gpudiag check report.sqlite --init", "write limits to start from: today's figures with a margin"),
    ("gpudiag check report.sqlite", "hold a capture, or a report that `explain` saved, to them"),
    ("gpudiag check report.sqlite --iteration-time step=41ms", "with the time of an iteration without the profiler"),
    (
        "gpudiag check report.sqlite --baseline gpudiag-baseline.json --update-baseline",
        "accept the findings of today; new ones fail from now on",
    ),
    ("gpudiag check report.sqlite --prune-baseline", "if it passes, forget known findings that are gone"),
)
EXIT_CODES = (
    ("0", "every limit is kept, and no finding fails"),
    ("1", "a limit is broken, a finding fails, or something could not be checked"),
    FAILED,
)


@click.command(
    cls=Command, sections={"What gpudiag.toml may hold": LIMITS, "Exit codes": EXIT_CODES}, examples=EXAMPLES
)
@FILES
@click.option(
    "--config",
    "config_file",
    metavar="TOML",
    type=click.Path(path_type=Path),
    help="The limits. Without it: gpudiag.toml, or [tool.gpudiag] in pyproject.toml, here or in a folder above, as far "
    "up as the repository goes.",
)
@click.option(
    "--baseline",
    "baseline_file",
    metavar="JSON",
    type=click.Path(path_type=Path),
    help="Findings known and accepted: only others fail, and those that grew clearly. [default: findings.baseline "
    "of the configuration]",
)
@click.option(
    "--update-baseline",
    is_flag=True,
    help="Accept the findings of these files: write them into the baseline first, and name each change.",
)
@click.option(
    "--prune-baseline",
    is_flag=True,
    help="If the check passes, remove from the baseline what is gone, and name it. Adds nothing.",
)
@click.option("--init", is_flag=True, help="Write a gpudiag.toml to start from: today's figures with a margin.")
@PAGE_FORMAT
@OUTPUT
@RULE_DIRS
@THRESHOLDS
@TIMES
@selecting
@MEMORY
@NO_CACHE
@VERBOSE
def check(
    files: tuple[Path, ...],
    config_file: Path | None,
    baseline_file: Path | None,
    update_baseline: bool,
    prune_baseline: bool,
    init: bool,
    form: str | None,
    output: Path | None,
    rule_dirs: tuple[Path, ...],
    overrides: dict[str, float],
    times: dict[str, float],
    selection: Selection,
    memory_limit: int | None,
    no_cache: bool,
    verbose: bool,
) -> None:
    """Hold a program to its performance budgets: a gate for CI.

    FILE is a capture that `explain` reads, or one report that `explain --format json` wrote. The limits stand in
    gpudiag.toml.
    """
    tune_interpreter()
    from gpudiag import pipeline
    from gpudiag.cli.checkfiles import prune, refuse_inputs, start, update
    from gpudiag.gate import check as gate
    from gpudiag.library import load as library
    from gpudiag.options import Options
    from gpudiag.report import check as checkpage
    from gpudiag.report.terminal import progress

    form = page_format(form, None if init else output)
    path = None if init else _config_path(config_file, bool(baseline_file))
    changes = "--update-baseline" if update_baseline else "--prune-baseline" if prune_baseline else ""
    config, baseline_path = _limits(path, baseline_file, changes)
    if output:
        refuse_inputs(output, files, path, baseline_path)
    before = None if init else _baseline(baseline_path, new=update_baseline)
    rules = library.load(rule_dirs).with_overrides(overrides)
    with progress() as quiet:
        options = Options(rule_dirs, overrides, times, say if verbose else quiet, not no_cache, selection, memory_limit)
        report = pipeline.report(files, options)
    if init:
        start(report, rules, config_file or output, [*map(str, files), *_again(rule_dirs, times, selection)])
        return
    if update_baseline and baseline_path:
        before = update(report, config, before, rules, baseline_path)
    named = str(path) if path else None, str(baseline_path) if baseline_path else None
    result = gate.check(
        report, config, before, rules.setting_values, rules.budget_parts, date.today(),
        files=[str(file) for file in files], config_name=named[0], baseline_name=named[1], codes=rules.by_code,
    )  # fmt: skip
    deliver(checkpage.as_json(result) if form == "json" else checkpage.markdown(result), output, form == "markdown")
    if prune_baseline and baseline_path and before:
        prune(report, before, baseline_path, result.passed)
    if not result.passed:
        if output:
            say(f"check failed: {checkpage.in_short(result)}; see {output}")
        raise click.exceptions.Exit(1)


def _again(rule_dirs: tuple[Path, ...], times: dict[str, float], selection: Selection) -> list[str]:
    """The options that the next call needs, too."""
    rules = [word for folder in rule_dirs for word in ("--rules", str(folder))]
    named = {f"{loop}=" if loop else "": value for loop, value in times.items()}
    given = rules + [word for loop, ns in named.items() for word in ("--iteration-time", f"{loop}{ns / 1e6:.12g}ms")]
    return given + selection.options


def _config_path(given: Path | None, with_baseline: bool) -> Path | None:
    from gpudiag.errors import GpudiagError
    from gpudiag.gate import configfile

    path = given or configfile.find(Path.cwd())
    if path is None and not with_baseline:
        raise GpudiagError(
            f"There is no {configfile.NAME} here or above, as far as the repository goes: name one with --config, or "
            "let `gpudiag check --init` write one."
        )
    return path if given else _short(path)


def _short(path: Path | None) -> Path | None:
    """As seen from here, where it lies here."""
    return path.relative_to(Path.cwd()) if path and path.is_relative_to(Path.cwd()) else path


def _limits(path: Path | None, baseline: Path | None, changes: str) -> tuple[Config, Path | None]:
    """The configuration and the place of the baseline. Raises GpudiagError, also where nothing could ever fail."""
    from gpudiag.errors import GpudiagError
    from gpudiag.gate import configfile
    from gpudiag.gate.config import Config

    config = configfile.read(path) if path else Config()
    if baseline is None and path and config.findings.baseline:
        baseline = path.parent / config.findings.baseline
    if changes and baseline is None:
        raise GpudiagError(f"{changes} wants to know which: give --baseline, or findings.baseline in the TOML.")
    if path and not config.limits_something(with_baseline=baseline is not None):
        raise GpudiagError(f"{path} sets no limit: give [budgets.…], findings.fail_on, max_gain or a baseline.")
    return config, baseline


def _baseline(path: Path | None, *, new: bool) -> Baseline | None:
    from gpudiag.gate import baseline as baselines

    return baselines.read(path) if path and not (new and not path.exists()) else None
