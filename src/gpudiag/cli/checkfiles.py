"""The files that `gpudiag check` writes: the first gpudiag.toml, and the baseline with each of its changes named."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpudiag.cli.arguments import say

if TYPE_CHECKING:
    from gpudiag.gate.config import Config
    from gpudiag.gate.result import Baseline, KnownFinding
    from gpudiag.library.catalogue import Library
    from gpudiag.model import Report

BASELINE = "gpudiag-baseline.json"


def refuse_inputs(output: Path, files: Sequence[Path], config: Path | None, baseline: Path | None) -> None:
    """Raises GpudiagError where the answer would overwrite what it rests on, or a baseline yet to be written."""
    from gpudiag.errors import GpudiagError
    from gpudiag.report import output as place

    if baseline and "\0" in str(baseline):
        raise GpudiagError(f"{config}: the baseline's name holds a null byte; give it another.")
    place.check(output, [*files, *filter(None, (config, baseline))])
    if baseline and output.resolve() == baseline.resolve():
        raise GpudiagError(f"{output} is the baseline: give another place with -o.")


def update(report: Report, config: Config, before: Baseline | None, rules: Library, path: Path) -> Baseline:
    """Writes the new baseline. Raises GpudiagError where the report is no ground for one."""
    from gpudiag.errors import GpudiagError
    from gpudiag.gate import check as gate

    if report.verdict.state == "cannot_tell":
        raise GpudiagError(f"{path} was left as it is: this report cannot tell what is wrong with the program.")
    after = gate.updated_baseline(report, config, before, rules.setting_values, rules.budget_parts, date.today())
    _replace(before, after, path)
    return after


def prune(report: Report, before: Baseline, path: Path, passed: bool) -> None:
    """Removes what is gone, unless what fails may hide it."""
    from gpudiag.gate import check as gate

    if passed:
        _replace(before, gate.pruned_baseline(report, before), path)
    else:
        say(f"{path} was left as it is: the check fails, and what fails may hide what is not seen.")


def _replace(before: Baseline | None, after: Baseline, path: Path) -> None:
    """One line on stderr for each entry that came, went, or is now accepted at another worth."""
    from gpudiag.gate import baseline as baselines
    from gpudiag.report.output import to_file

    to_file(baselines.text(after), path)
    changes = baselines.changes(before, after)
    for sign, entry in changes:
        click.echo(f"{path}: {sign} {_named(entry)}", err=True)
    if not changes:
        click.echo(f"{path}: no change", err=True)


def _named(entry: KnownFinding) -> str:
    from gpudiag.text.escape import bare
    from gpudiag.text.format import pct

    at = next((name for place in entry.places for name in (place.file, place.nvtx, place.kernel) if name), entry.loop)
    worth = f", worth {pct(entry.worth)}" if entry.worth is not None else ""
    return bare(f"{entry.code} {entry.title}{f' at {at}' if at else ''}{worth}")


def start(report: Report, rules: Library, place: Path | None, arguments: Sequence[str]) -> None:
    """Writes a first gpudiag.toml, and says how to accept what it would fail for."""
    from gpudiag.errors import GpudiagError
    from gpudiag.gate import check as gate
    from gpudiag.gate import configfile, init
    from gpudiag.report.output import to_file
    from gpudiag.report.wording.words import plural

    path = place or Path(configfile.NAME)
    if path.name == configfile.SHARED:
        raise GpudiagError(f"--init writes no {path.name}: let it write another file, and copy its tables over.")
    if path.exists():
        raise GpudiagError(f"{path} exists: --init writes a new file only; name another one with --config.")
    config = [] if path.absolute() == Path.cwd() / configfile.NAME else ["--config", str(path)]
    check = shlex.join(["gpudiag", "check", *arguments, *config])
    accept = f"{check} --baseline {shlex.quote(str(path.parent / BASELINE))} --update-baseline"
    to_file(init.text(report, rules.setting_values, accept, BASELINE), path)
    say(f"wrote {path}: read it, then run `{check}`")
    known = rules.setting_values, rules.budget_parts
    found = gate.check(report, configfile.read(path), None, *known, date.today()).findings
    failing = sum(one.state == "failed" for one in found)
    if failing:
        them = "them" if failing > 1 else "it"
        say(f"{plural(failing, 'finding')} of today would fail; accept {them} with: {accept}")
        say(f"then take away the # before `baseline` in {path}: the option is not needed any more")
