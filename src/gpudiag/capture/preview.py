"""Plan of a recording in words, for a dry run: nothing of it is run."""

from __future__ import annotations

import shlex

from gpudiag.capture.measure import Unprofiled
from gpudiag.capture.nsys import record
from gpudiag.capture.nsys.nsys_profile import NoNsysError, Nsys
from gpudiag.capture.plan import Plan
from gpudiag.capture.program import Program
from gpudiag.capture.pytorch import trace_recording
from gpudiag.capture.smi import sampler
from gpudiag.errors import GpudiagError


def say(plan: Plan, program: Program, recorder: Nsys | NoNsysError) -> None:
    """Say what would be run. How long the start-up takes is known only once the program has run."""
    counts = plan.steps or (None,)
    if plan.runs:
        for steps in counts:
            plan.say(f"would run without a profiler, {plan.runs} times: {shlex.join(plan.words(steps))}")
    if (sampling := sampler.command()) is not None:
        plan.say(f"would sample the GPU while it is recorded: {shlex.join(sampling)}")
    chosen = record.part(plan, Unprofiled("not measured yet"))
    if isinstance(recorder, NoNsysError):
        _say_without_nsys(plan, program, recorder)
        return
    words = record.command(plan, recorder, program, chosen, plan.output)
    plan.say(f"would record: {shlex.join(words)}")
    if plan.runs and plan.delay_s is None:
        plan.say("would add a --delay where the first runs tell when the program is warm")
    plan.say(f"would export to SQLite, clean that of the environment, and keep it in {plan.output}")


def _say_without_nsys(plan: Plan, program: Program, missing: NoNsysError) -> None:
    """Say what is missing, and what takes its place."""
    try:
        trace_recording.require(plan, program, missing)
    except GpudiagError as error:
        plan.say(f"would end here: {error}")
        return
    plan.say(f"{missing.reason}; for a recording by Nsight Systems {missing.remedy}")
    plan.say(f"would record by torch.profiler instead, if it is a PyTorch program: {shlex.join(plan.words())}")
    plan.say(f"would clean the trace of the machine's name and home folders, and keep it in {plan.output}")
