"""The chain behind `gpudiag next`: as `explain`, but what it makes of the findings is what to profile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpudiag import pipeline
from gpudiag.options import Options
from gpudiag.proposals import NextSteps

if TYPE_CHECKING:
    from gpudiag.library import Library


def next_steps(paths: Sequence[Path], options: Options = pipeline.DEFAULT) -> NextSteps:
    """Read the captures and say which kernels are worth a profile. Raises GpudiagError as `pipeline.explain` does."""
    from gpudiag import candidates, proposals, summary
    from gpudiag.rank import rank
    from gpudiag.replay.worth import Ledger

    def work(con: pipeline.Connection, library: Library, _file: Path | None) -> NextSteps:
        settings = library.setting_values
        options.progress("looking for causes")
        evaluation = pipeline.evaluated(con, library)
        run = summary.run(con, settings, options.iteration_times)
        ledger = Ledger(con, settings, run.loops)
        findings, _, _ = rank(con, evaluation, library, run.loops, run.frameworks, ledger)
        verdict = summary.verdict(con, run, findings, settings)
        options.progress("weighing kernels")
        loops = candidates.views(con, library, evaluation, run, findings, ledger)
        files, part = [str(path) for path in paths], options.selection.options
        steps = proposals.next_steps(con, settings, loops, run, findings, verdict, files, part)
        # What the profiler cost the host may be all that keeps the kernels from setting the pace.
        slowed = [note.text for note in evaluation.notes if note.code == "Q02"]
        notes = slowed[:1] if not (steps.kernels or options.iteration_times) else []
        read = tuple(item.file for item in summary.inputs(con))
        return steps.model_copy(update={"inputs": read, "notes": (*steps.notes, *notes), "selection": run.selection})

    return pipeline.analysed(paths, options, work)
