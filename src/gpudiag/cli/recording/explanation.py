"""Report of what was recorded: of the timeline, and of its kernels where they are to be measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpudiag.capture import session
from gpudiag.capture.ncu import kernel_pass
from gpudiag.capture.ncu.kernel_pass import Ncu
from gpudiag.capture.plan import Plan
from gpudiag.capture.session import Captured
from gpudiag.capture.smi import sampler
from gpudiag.cli.arguments import say, tune_interpreter
from gpudiag.errors import GpudiagError

if TYPE_CHECKING:
    from gpudiag.model import Report, Run
    from gpudiag.options import Options
    from gpudiag.timeline.model import Picture


def of(plan: Plan, captured: Captured, ncu: Ncu | None, form: str, overrides: dict[str, float]) -> str:
    """Return the report in a format. ncu: what measures the kernels; without it the timeline is all."""
    tune_interpreter()
    from gpudiag.report import formats

    report, picture, captured = _pictured(captured, overrides)
    if ncu is not None:
        try:
            captured = session.add(captured, _measured(plan, captured, ncu, report.run, overrides))
            say(f"explaining: {captured.explain_command()}")
            report, picture, _ = _pictured(captured, overrides)
        except GpudiagError as error:
            say(f"the report is of the timeline alone: {error}")
    return formats.render(report, form, picture)


def _pictured(captured: Captured, overrides: dict[str, float]) -> tuple[Report, Picture | None, Captured]:
    """Return the report, and what it is of: without what the timeline does not fit, or what cannot be read beside it.

    Raises GpudiagError where the timeline itself cannot be explained.
    """
    from gpudiag import pipeline

    while True:
        try:
            return *pipeline.pictured(captured.files, _options(captured, overrides)), captured
        except GpudiagError as error:
            less = _less(captured, error)
            if less is None:
                raise
            captured = less


def _less(captured: Captured, error: GpudiagError) -> Captured | None:
    """Return the recording without what the error is about, and say so; None where that is the timeline."""
    if captured.iteration_time and session.unlikely(error):
        say(f"the measured time is left out: {error}")
        return replace(captured, time_fits=False)
    logs = [file for file in captured.files if file.name == sampler.NAME and str(file) in str(error)]
    if logs:
        say(f"the log of nvidia-smi is left out: {error}")
        return replace(captured, files=tuple(file for file in captured.files if file not in logs))
    return None


def _options(captured: Captured, overrides: dict[str, float]) -> Options:
    from gpudiag.options import Options

    seconds = captured.unprofiled.iteration_s if captured.time_fits else None
    return Options(overrides=overrides, iteration_times={"": seconds * 1e9} if seconds else {})


def _measured(plan: Plan, captured: Captured, ncu: Ncu, run: Run, overrides: dict[str, float]) -> list[Path]:
    """Return the counters of the kernels that matter. Raises GpudiagError where none can be measured."""
    from gpudiag import pipeline
    from gpudiag.cli.recording import kernel_choice

    steps = pipeline.next_steps(captured.files, _options(captured, overrides))
    kernels = kernel_choice.chosen(plan, steps, run)
    if not kernels:
        raise GpudiagError("the timeline shows no loop with kernels that could be.")
    return kernel_pass.measure(plan, ncu, kernels, captured.files[0].parent)
