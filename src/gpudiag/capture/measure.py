"""The time of an iteration without a profiler, in fresh processes: n and the spread are kept.

A program that takes its number of steps is run with two of them: the difference of the fastest runs, divided by the
difference of the steps, holds no start-up. Of a PyTorch program the optimizer's steps are timed inside, which its code
does not notice. For other programs nothing is said: a whole run's time divided by its steps would count the start-up.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpudiag.capture.plan import STEPS, Plan
from gpudiag.capture.program import Program, look_at
from gpudiag.capture.pytorch import injection, step_hook
from gpudiag.capture.supervisor import ProgramRun, run
from gpudiag.errors import GpudiagError

Rank = Mapping[str, Any]
"""What one process wrote about its steps: `steps`, `warm_s` and `windows`."""


@dataclass(frozen=True)
class Unprofiled:
    """Seconds of one iteration, one value for each fresh process (or pair of them), and how they were found."""

    method: str
    seconds: tuple[float, ...] = ()
    warm_s: float | None = None
    """Seconds from a process's start until its warm-up was over, where that was seen."""
    whole_s: float | None = None
    """Seconds of a whole run of the program that ended by itself."""
    best_s: float | None = None
    """The time of one iteration where another than the median of `seconds` is meant."""
    pytorch: bool | None = None
    """Whether the program loads PyTorch, where that was looked for."""

    @property
    def iteration_s(self) -> float | None:
        """Return the seconds of one iteration, or nothing where that was not measured."""
        if self.best_s is not None or not self.seconds:
            return self.best_s
        return statistics.median(self.seconds)


def measure(plan: Plan, folder: Path) -> Unprofiled:
    """Time the program. Raises GpudiagError where it fails or cannot be started."""
    if not plan.runs:
        return Unprofiled("not measured: --runs 0 was given")
    if plan.steps:
        return _by_difference(plan, plan.steps, folder)
    program = look_at(plan.words())
    if program.python:
        return _by_optimizer_steps(plan, program, folder)
    return Unprofiled(f"not measured: give the program's number of steps as {STEPS}, with --steps")


def _by_difference(plan: Plan, steps: tuple[int, int], folder: Path) -> Unprofiled:
    """Time the steps by the fastest runs: what makes a start-up vary only ever makes it longer."""
    few, many = steps
    plan.say(f"running {few} steps once, untimed: a first run loads and compiles what later ones find")
    _ended(plan, few, folder)
    times: dict[int, list[float]] = {few: [], many: []}
    for number in range(1, plan.runs + 1):
        plan.say(f"measuring without a profiler, {number} of {plan.runs}: {few} and {many} steps")
        for count in steps if number % 2 else reversed(steps):  # whatever drifts favours neither
            times[count].append(_ended(plan, count, folder).seconds)
    base, whole = min(times[few]), max(times[many])
    apart = min(times[many]) - base
    doubt = sum(statistics.median(found) - min(found) for found in times.values())
    if apart <= 0 or doubt > plan.thresholds.start_up_doubt * apart:
        clear = plan.thresholds.wanted_doubt * max(apart, doubt)
        wanted = few + (many - few) * doubt / clear if doubt else 10.0 * many
        return Unprofiled(
            f"not measured: start-ups vary by {doubt:.2g} s, and {many - few} more steps took {max(apart, 0):.2g} s;"
            f" give numbers that lie further apart, such as --steps {few}:{_rounded_up(wanted)}", whole_s=whole,
        )  # fmt: skip
    seconds = tuple(sorted((found - base) / (many - few) for found in times[many]))
    step_s = apart / (many - few)
    warm = max(times[few])  # by then so few steps are done
    return Unprofiled(f"difference of the fastest runs of {few} and {many} steps", seconds, warm, whole, step_s)


def _rounded_up(number: float) -> int:
    """Return the next number that is 1, 2 or 5 and zeros."""
    power: int = 10 ** (len(str(int(number))) - 1)
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= number)


def _ended(plan: Plan, steps: int, folder: Path) -> ProgramRun:
    done = run(plan.words(steps), os.environ, folder / "unprofiled.log", plan.limit_s)
    if done.ended:
        raise GpudiagError(
            f"the program did not end within {plan.limit_s:.0f} s with {steps} steps: give fewer, or a longer --limit."
        )
    return succeeded(done)


def succeeded(done: ProgramRun) -> ProgramRun:
    """Return a run that ended well. Raises GpudiagError with the program's last words for another."""
    if done.code == 0:
        return done
    how = f"was ended by signal {-done.code}" if done.code < 0 else f"failed with exit code {done.code}"
    said = f", last saying: {done.last_words}" if done.last_words else ""
    raise GpudiagError(f"the program {how} without a profiler{said}; nothing was recorded.")


def _by_optimizer_steps(plan: Plan, program: Program, folder: Path) -> Unprofiled:
    hook = injection.install(folder / "hook")
    seconds: list[float] = []
    whole = warm = None
    pytorch = False
    for number in range(1, plan.runs + 1):
        which = f"{number} of {plan.runs}, at most {plan.limit_s:.0f} s (--runs 0 leaves this out)"
        plan.say(f"measuring without a profiler, {which}: optimizer steps after the first {plan.warm_up}")
        steps = folder / f"steps-{number}"
        steps.mkdir()
        done = _counted(plan, program, hook, steps, whole_run=number == 1)
        pytorch = pytorch or any(steps.glob(f"{step_hook.NAME}*"))
        found = _read(steps)
        if not done.ended:
            succeeded(done)
            whole = max(done.seconds, whole or 0.0)
        if not found:
            break
        # Ranks wait for each other: the slowest one's time is the iteration's.
        seconds.append(max(_step_s(rank) for rank in found))
        warm = max(warm or 0.0, *(rank["warm_s"] for rank in found))
    if not seconds:
        least = plan.thresholds.window_s
        return Unprofiled(
            f"not measured: no PyTorch optimizer made steps for {least} s after its first {plan.warm_up};"
            f" give the program's number of steps as {STEPS}, with --steps", whole_s=whole, pytorch=pytorch,
        )  # fmt: skip
    return Unprofiled(f"optimizer steps after the first {plan.warm_up}", tuple(seconds), warm, whole, pytorch=pytorch)


def _counted(plan: Plan, program: Program, hook: Path, steps: Path, *, whole_run: bool) -> ProgramRun:
    """Run once. The first run goes on until it is clear that the program lasts as long as the recording will need."""
    limits = plan.thresholds
    wishes = {
        "folder": str(steps), "warm_up": plan.warm_up, "window_s": limits.window_s,
        "window_steps": limits.window_steps, "windows": limits.windows,
    }  # fmt: skip

    def enough(passed: float) -> str:
        found = _read(steps)
        if not found or any(len(rank["windows"]) < limits.windows for rank in found):
            return ""
        if not whole_run:
            return "enough"
        warm, step_s = max(rank["warm_s"] for rank in found), max(_step_s(rank) for rank in found)
        return "enough" if passed >= delay(plan, warm) + range_s(plan, step_s) else ""

    words = [*program.launcher, *program.rank]
    env = injection.environment(hook, step_hook.WISHES, wishes)
    return run(words, env, steps / "unprofiled.log", plan.limit_s, watch=enough)


def _read(folder: Path) -> list[Rank]:
    found = [json.loads(file.read_text("utf-8")) for file in sorted(folder.glob(f"{step_hook.NAME}*.json"))]
    return [rank for rank in found if rank["windows"]]


def _step_s(rank: Rank) -> float:
    return float(statistics.median(seconds / steps for steps, seconds in rank["windows"]))


def range_s(plan: Plan, iteration_s: float) -> float:
    """Return the whole seconds in which a profiled program runs through enough iterations."""
    limits = plan.thresholds
    wanted = max(limits.least_s, limits.iterations * iteration_s * limits.slower)
    return min(float(int(wanted) + 1), plan.duration_s)


def delay(plan: Plan, warm_s: float) -> float:
    """Return the whole seconds after which a profiled program is warm, too."""
    return float(int(warm_s * plan.thresholds.slower) + 1)
