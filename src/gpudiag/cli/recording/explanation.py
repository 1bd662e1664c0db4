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
from gpudiag.cli.arguments import say, tune_interpreter
from gpudiag.errors import GpudiagError

if TYPE_CHECKING:
    from gpudiag.model import Report, Run
    from gpudiag.options import Options
    from gpudiag.timeline.model import Picture


def of(plan: Plan, captured: Captured, ncu: Ncu | None, form: str, overrides: dict[str, float]) -> str:
    """Return the report in a format. ncu: what measures the kernels; without it the timeline is all."""
    tune_interpreter()
    from gpudiag.options import Options
    from gpudiag.report import formats

    seconds = captured.unprofiled.iteration_s
    options = Options(overrides=overrides, iteration_times={"": seconds * 1e9} if seconds else {})
    report, picture, options = _pictured(captured, options)
    if ncu is not None:
        try:
            captured = session.add(captured, _measured(plan, captured, ncu, report.run, options))
            say(f"explaining: {captured.explain_command()}")
            report, picture, _ = _pictured(captured, options)
        except GpudiagError as error:
            say(f"the report is of the timeline alone: {error}")
    return formats.render(report, form, picture)


def _pictured(captured: Captured, options: Options) -> tuple[Report, Picture | None, Options]:
    """Return the report, and the options: without the measured time where that is none of an iteration recorded."""
    from gpudiag import pipeline

    try:
        report, picture = pipeline.pictured(captured.files, options)
    except GpudiagError as error:
        if not (options.iteration_times and session.unlikely(error)):
            raise
        say(f"the measured time is left out: {error}")
        options = replace(options, iteration_times={})
        report, picture = pipeline.pictured(captured.files, options)
    return report, picture, options


def _measured(plan: Plan, captured: Captured, ncu: Ncu, run: Run, options: Options) -> list[Path]:
    """Return the counters of the kernels that matter. Raises GpudiagError where none can be measured."""
    from gpudiag import pipeline
    from gpudiag.cli.recording import kernel_choice

    kernels = kernel_choice.chosen(plan, pipeline.next_steps(captured.files, options), run)
    if not kernels:
        raise GpudiagError("the timeline shows no loop with kernels that could be.")
    return kernel_pass.measure(plan, ncu, kernels, captured.files[0].parent)
