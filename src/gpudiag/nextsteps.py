"""The chain behind `gpudiag next`: as `explain`, but what it makes of the findings is what to profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gpudiag import pipeline
from gpudiag.proposals import NextSteps


def next_steps(
    paths: Sequence[Path],
    *,
    overrides: Mapping[str, float] | None = None,
    iteration_times: Mapping[str, float] | None = None,
    progress: pipeline.Progress | None = None,
) -> NextSteps:
    """Read the captures and say which kernels are worth a profile. Raises GpudiagError as `pipeline.explain` does."""
    from gpudiag import candidates, proposals, summary
    from gpudiag.evaluate import evaluate_all
    from gpudiag.rank import rank
    from gpudiag.replay.worth import Ledger

    say = progress or (lambda _: None)
    with pipeline.opened(paths, overrides=overrides, progress=progress) as (con, library, _):
        settings = library.setting_values
        say("looking for causes")
        evaluation = evaluate_all(library, con)
        run = summary.run(con, settings, iteration_times or {})
        ledger = Ledger(con, settings, run.loops)
        findings, _, _ = rank(con, evaluation, library, run.loops, run.frameworks, ledger)
        verdict = summary.verdict(con, run, findings, settings)
        say("weighing kernels")
        loops = candidates.views(con, library, evaluation, run, findings, ledger)
        steps = proposals.next_steps(con, settings, loops, run, findings, verdict, [str(path) for path in paths])
        # What the profiler cost the host may be all that keeps the kernels from setting the pace.
        slowed = [note.text for note in evaluation.notes if note.code == "Q02"]
        notes = slowed[:1] if not (steps.kernels or iteration_times) else []
        read = tuple(item.file for item in summary.inputs(con))
        return steps.model_copy(update={"inputs": read, "notes": (*steps.notes, *notes)})
