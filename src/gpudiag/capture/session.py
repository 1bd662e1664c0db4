"""One recording from the first run to the files: measure without a profiler, record, keep what is clean."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpudiag.capture import preview
from gpudiag.capture.measure import Unprofiled, measure
from gpudiag.capture.nsys import nsys_profile, record
from gpudiag.capture.nsys.nsys_profile import NoNsysError, Nsys
from gpudiag.capture.plan import Plan
from gpudiag.capture.program import Program, look_at, require
from gpudiag.capture.pytorch import trace_recording
from gpudiag.capture.smi import gpu, sampler
from gpudiag.capture.smi.sampler import Sampler
from gpudiag.capture.workspace import workspace
from gpudiag.errors import GpudiagError

FACTS = "capture.json"


@dataclass(frozen=True)
class Captured:
    """Files of one recording, and the time of an iteration without a profiler, where it was measured."""

    files: tuple[Path, ...]
    unprofiled: Unprofiled
    time_fits: bool = True
    """False once that time has proved to be none of an iteration that was recorded."""

    @property
    def iteration_time(self) -> str | None:
        """The time as `--iteration-time` takes it."""
        seconds = self.unprofiled.iteration_s if self.time_fits else None
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
    program = look_at(plan.words())
    require(program)
    recorder = _recorder(plan, program)
    if not gpu.is_present():
        plan.say("no NVIDIA GPU is seen on this machine: a program that does no work on one cannot be explained")
    if plan.dry_run:
        preview.say(plan, program, recorder)
        return None
    with workspace(plan.output) as (private, kept):
        unprofiled = measure(plan, private)
        if unprofiled.pytorch is False and isinstance(recorder, NoNsysError):
            raise recorder
        plan.say(f"without a profiler: {described(unprofiled)}")
        chosen = record.part(plan, unprofiled)
        with Sampler(sampler.command(), private / sampler.NAME) as beside:
            if isinstance(recorder, NoNsysError):
                taken = trace_recording.part(plan, unprofiled, chosen)
                plan.say(f"recording by torch.profiler: {taken}: {shlex.join(plan.words())}")
                files = trace_recording.record(plan, program, taken, recorder, beside, private, kept)
                about = {"torch_profiler": vars(taken)}
            else:
                words = record.command(plan, recorder, program, chosen, private)
                plan.say(f"recording: {shlex.join(words)}")
                files, words = record.record(plan, words, recorder, chosen, beside, private, kept)
                about = {"nsys": {"version": recorder.version, "options": nsys_profile.harmless(words)}}
        files += beside.kept(kept, plan.say)
        captured = Captured(tuple(files), unprofiled)
        (kept / FACTS).write_text(json.dumps(_facts(captured) | about, indent=2) + "\n", "utf-8")
    return captured


def _recorder(plan: Plan, program: Program) -> Nsys | NoNsysError:
    """Return the nsys that records, or why there is none where PyTorch's profiler takes its place.

    Raises GpudiagError where neither can record. A dry run shows a program's plan all the same.
    """
    try:
        nsys = nsys_profile.find()
    except NoNsysError as missing:
        if not plan.dry_run:
            trace_recording.require(plan, program, missing)
            plan.say(
                f"{missing.reason}: a PyTorch program is recorded by its own profiler instead, which sees no calls of"
                f" the operating system; for a full recording {missing.remedy}"
            )
        return missing
    for sentence in nsys_profile.without(nsys, program):
        plan.say(sentence)
    return nsys


def add(captured: Captured, files: Sequence[Path]) -> Captured:
    """Return the recording with more files, which lie beside the others and are noted with them."""
    facts = captured.files[0].parent / FACTS
    captured = replace(captured, files=(*captured.files, *files))
    known = json.loads(facts.read_text("utf-8")) | {"files": [file.name for file in captured.files]}
    facts.write_text(json.dumps(known, indent=2) + "\n", "utf-8")
    return captured


def described(unprofiled: Unprofiled) -> str:
    """Return the time of an iteration with n and its spread, or why there is none."""
    seconds, iteration = unprofiled.seconds, unprofiled.iteration_s
    if iteration is None:
        return unprofiled.method
    spread = f"{min(seconds) * 1e3:.4g} to {max(seconds) * 1e3:.4g} ms in {len(seconds)} fresh processes"
    return f"{iteration * 1e3:.4g} ms per step, {spread} ({unprofiled.method})"


def _facts(captured: Captured) -> dict[str, object]:
    """Return what a later reader wants to know; the program's own command line may hold secrets and is left out."""
    unprofiled = captured.unprofiled
    return {
        "unprofiled": {
            "method": unprofiled.method,
            "iteration_ms": None if unprofiled.iteration_s is None else unprofiled.iteration_s * 1e3,
            "per_process_ms": [seconds * 1e3 for seconds in unprofiled.seconds],
            "n": len(unprofiled.seconds),
        },
        "files": [file.name for file in captured.files],
    }


def unlikely(error: GpudiagError) -> bool:
    """Return whether an explanation was refused because of the measured time."""
    return "--iteration-time" in str(error)
