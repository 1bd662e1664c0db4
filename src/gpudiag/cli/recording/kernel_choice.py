"""Kernels that `gpudiag capture --kernels` measures: those that `gpudiag next` proposes, else the longest ones."""

from __future__ import annotations

import math
import re
import shlex
from typing import TYPE_CHECKING

from gpudiag.capture.ncu.kernel_pass import MeasuredKernel
from gpudiag.capture.plan import Plan
from gpudiag.library import load
from gpudiag.next_steps import ncu_command

if TYPE_CHECKING:
    from gpudiag.model import Run
    from gpudiag.next_steps.proposals import NextSteps


def chosen(plan: Plan, steps: NextSteps, run: Run) -> list[MeasuredKernel]:
    """Return the kernels to measure, the most worthwhile first."""
    most, launches = int(plan.thresholds.kernels), int(load.load().setting_values["next_launches"])
    proposed = [(proposal.name, proposal.command) for proposal in steps.kernels[:most]]
    commands = proposed or [
        (name, ncu_command.command(name, "kernel", skip, launches, tagged=True))
        for name, skip in _longest(run, plan.warm_up)[:most]
    ]
    files = ncu_command.files(name for name, _ in commands)
    return [
        MeasuredKernel(name, _select(command), file)
        for (name, command), file in zip(commands, files, strict=True)
    ]  # fmt: skip


def _select(command: str) -> tuple[str, ...]:
    """Return the options of a proposed command that find the launches."""
    words = shlex.split(command)
    return tuple(words[words.index("-k") : words.index("-o")])


def _longest(run: Run, warm_up: int) -> list[tuple[str, int]]:
    """Return the base names of the kernels that take most of the run, and launches of them to skip."""
    times: dict[str, float] = {}
    launches: dict[str, float] = {}
    for loop in run.loops:
        for use in loop.kernels:
            if use.others is None and (name := base_name(use.name)):
                times[name] = times.get(name, 0.0) + use.ms * loop.iterations
                launches[name] = launches.get(name, 0.0) + use.launches
    ranked = sorted(times, key=lambda name: -times[name])
    return [(name, math.ceil(launches[name] * warm_up)) for name in ranked]


def base_name(name: str) -> str:
    """Return the function's name alone, as ncu's filter takes it; empty where it cannot be seen."""
    bare = name.replace("<unnamed>::", "").replace("(anonymous namespace)::", "")
    found = re.match(r"[^<(]+", bare)
    return found[0].strip().split(" ")[-1].split("::")[-1] if found else ""
