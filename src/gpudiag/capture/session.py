"""One recording from the first run to the files: measure without a profiler, record, keep what is clean."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from gpudiag.capture import nsys_profile, record
from gpudiag.capture.measure import Unprofiled, measure
from gpudiag.capture.plan import Plan
from gpudiag.capture.program import look_at, require
from gpudiag.capture.workspace import workspace
from gpudiag.errors import GpudiagError

FACTS = "capture.json"


@dataclass(frozen=True)
class Captured:
    """Files of one recording, and the time of an iteration without a profiler, where it was measured."""

    files: tuple[Path, ...]
    unprofiled: Unprofiled

    @property
    def iteration_time(self) -> str | None:
        """The time as `--iteration-time` takes it."""
        seconds = self.unprofiled.iteration_s
        return None if seconds is None else f"{seconds * 1e3:.6g}ms"

    def explain_command(self) -> str:
        """Return the command that explains the files."""
        time = self.iteration_time
        return shlex.join(["gpudiag", "explain", *map(str, self.files), *(["--iteration-time", time] if time else [])])


def capture(plan: Plan) -> Captured | None:
    """Carry out a plan; a dry run says what would be done, and gives nothing.

    Raises GpudiagError where there is nothing to keep; then nothing is left of it.
    """
    plan = plan.checked()
    nsys = nsys_profile.find()
    program = look_at(plan.words())
    require(program)
    for sentence in nsys_profile.without(nsys, program):
        plan.say(sentence)
    if plan.dry_run:
        _preview(plan, nsys)
        return None
    with workspace(plan.output) as (private, kept):
        unprofiled = measure(plan, private)
        plan.say(f"without a profiler: {described(unprofiled)}")
        chosen = record.part(plan, unprofiled)
        words = record.command(plan, nsys, program, chosen, private)
        plan.say(f"recording: {shlex.join(words)}")
        files = record.record(plan, words, nsys, chosen, private, kept)
        captured = Captured(tuple(files), unprofiled)
        facts = kept / FACTS
        facts.write_text(json.dumps(_facts(captured, nsys.version, words), indent=2) + "\n", "utf-8")
    return captured


def described(unprofiled: Unprofiled) -> str:
    """Return the time of an iteration with n and its spread, or why there is none."""
    seconds, iteration = unprofiled.seconds, unprofiled.iteration_s
    if iteration is None:
        return unprofiled.method
    spread = f"{min(seconds) * 1e3:.4g} to {max(seconds) * 1e3:.4g} ms in {len(seconds)} fresh processes"
    return f"{iteration * 1e3:.4g} ms per step, {spread} ({unprofiled.method})"


def _preview(plan: Plan, nsys: nsys_profile.Nsys) -> None:
    """Say what would be run. How long the start-up takes is known only once the program has run."""
    counts = plan.steps or (None,)
    if plan.runs:
        for steps in counts:
            plan.say(f"would run without a profiler, {plan.runs} times: {shlex.join(plan.words(steps))}")
    chosen = record.part(plan, Unprofiled("not measured yet"))
    words = record.command(plan, nsys, look_at(plan.words()), chosen, plan.output)
    plan.say(f"would record: {shlex.join(words)}")
    if plan.runs and plan.delay_s is None:
        plan.say("would add a --delay where the first runs tell when the program is warm")
    plan.say(f"would export to SQLite, clean that of the environment, and keep it in {plan.output}")


def _facts(captured: Captured, version: str, words: list[str]) -> dict[str, object]:
    """Return what a later reader wants to know; the program's own command line may hold secrets and is left out."""
    unprofiled = captured.unprofiled
    options = [
        word for word in words if word.startswith(("--trace=", "--sample=", "--cpuctxsw=", "--python-", "--cuda-"))
    ]
    ranges = [word for word in words if word.startswith(("--delay=", "--duration=", "--capture-range"))]
    return {
        "unprofiled": {
            "method": unprofiled.method,
            "iteration_ms": None if unprofiled.iteration_s is None else unprofiled.iteration_s * 1e3,
            "per_process_ms": [seconds * 1e3 for seconds in unprofiled.seconds],
            "n": len(unprofiled.seconds),
        },
        "nsys": {"version": version, "options": options + ranges},
        "files": [file.name for file in captured.files],
    }


def unlikely(error: GpudiagError) -> bool:
    """Return whether an explanation was refused because of the measured time."""
    return "--iteration-time" in str(error)
