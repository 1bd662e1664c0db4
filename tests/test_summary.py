"""The verdict and the head of the report. All rows are synthetic."""

from __future__ import annotations

import pytest

from gpudiag import summary
from gpudiag.errors import GpudiagError
from gpudiag.model import Finding, Gain, Run, Verdict

from .test_rank import VIEWS, program
from .timelines import Case, launched, library, opened


def judged(case: Case, *findings: Finding) -> tuple[Run, Verdict]:
    with opened(case, *VIEWS) as con:
        run = summary.run(con, library().setting_values, {})
        return run, summary.verdict(con, run, findings, library().setting_values)


def test_a_capture_without_gpu_activity_says_why_nothing_can_be_said() -> None:
    case: Case = {"api_call": [{"name": "cudaMalloc", "start": 0, "duration": 5}]}
    run, verdict = judged(case)
    assert (run.loops, verdict.state) == ((), "cannot_tell")
    assert verdict.text.startswith("No GPU activity was recorded, because ")
    case["diagnostic"] = [{"severity": "warning", "text": "CUDA tracing was off."}]
    assert judged(case)[1].text == (
        "No GPU activity was recorded, because CUDA tracing was off; nothing can be said about the GPU."
    )


def test_a_handful_of_operations_is_too_little_to_judge() -> None:
    run, verdict = judged(launched(1, 100, ("a()", 0, 5, 10), ("b()", 20, 25, 10)))
    assert (run.loops, verdict.state) == ((), "cannot_tell")
    assert "Only 2 GPU operations were recorded" in verdict.text


def test_an_idle_gpu_without_a_finding_is_not_called_healthy() -> None:
    run, verdict = judged(program())
    assert verdict.state == "cannot_tell"
    assert verdict.text == "The GPU works only 40 % of `iter`, and no rule that could be evaluated says why."
    assert sum(run.loops[0].budget.values()) == pytest.approx(1)
    assert set(run.loops[0].budget) == set(summary.CATEGORIES)


def finding(gain: Gain) -> Finding:
    return Finding(
        rank=1, code="S01", id="x", status="draft", title="A value is read back", severity="high", confidence="high",
        fingerprint="f", gain=gain, message="m", why="w", not_a_problem_when="n",
    )  # fmt: skip


def test_the_first_finding_makes_the_verdict() -> None:
    measured = finding(Gain(kind="upper_bound", basis="loop", loop=0, share=0.5))
    verdict = judged(program(), measured)[1]
    assert verdict.state == "problems"
    assert verdict.text.startswith("A value is read back. Fixing it would save at most ")
    assert "`iter`" in verdict.text
    unknown = finding(Gain(kind="test_needed", basis="loop", loop=0, test="Try."))
    assert "only an experiment can tell" in judged(program(), unknown)[1].text


def test_an_iteration_time_for_a_loop_that_is_not_there_is_refused_with_the_nearest_name() -> None:
    with opened(program(), *VIEWS) as con:
        assert summary.run(con, library().setting_values, {"iter": 5e4}).loops[0].iteration_ms_unprofiled == 0.05
        with pytest.raises(GpudiagError, match=r"'itr'.*iter"):
            summary.run(con, library().setting_values, {"itr": 5e4})


def test_cold_start_is_told_apart_from_the_run() -> None:
    case = launched(20, 100, ("a()", 2, 10, 50), start=5000)
    case["nvtx_range"] = [{"name": "step", "start": 5000, "duration": 99, "repeat": 20, "every": 100}]
    case["api_call"].append({"name": "cudaMalloc", "start": 0, "duration": 100})
    run, _ = judged(case)
    assert run.cold_start_ms == pytest.approx(5.3)
    assert run.span_ms == pytest.approx(7, rel=0.01)
