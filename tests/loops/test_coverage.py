"""How much of the GPU's work the loops hold, and where the rest lies. All rows are synthetic."""

from __future__ import annotations

import random

import pytest

from gpudiag.diagnosis import loop_share, run_summary
from gpudiag.model import FarIterations, Loop, Outside, Run, Verdict
from gpudiag.report.wording import coverage_words
from gpudiag.selection.spec import Selection
from ranking import VIEWS
from timelines import Case, launched, library, opened

STEP = (("gemm()", 2.0, 10.0, 30.0), ("relu()", 6.0, 45.0, 10.0))


def alone(name: str, start: float, duration: float, **more: object) -> Case:
    return {"name": name, "start": start, "duration": duration, **more}


def annotated(*others: Case, start: float = 0) -> Case:
    """Twelve annotated iterations of 100 µs with 40 µs of work each, from `start` on, and other operations."""
    case = launched(12, 100, *STEP, start=start)
    case["nvtx_range"] = [{"name": "step", "start": start, "duration": 90, "repeat": 12, "every": 100}]
    return {**case, "gpu_op": [*case["gpu_op"], *others]}


def run_of(case: Case, selection: Selection | None = None) -> Run:
    with opened(case, *VIEWS, **({"selection": selection} if selection else {})) as con:
        return run_summary.run(con, library().setting_values, {})


def test_work_outside_the_iterations_is_no_part_of_them() -> None:
    case = annotated(alone("init()", 1000, 60), alone("eval()", 20_000, 30), start=5000)
    later = launched(12, 100, *STEP, start=9000)
    case["nvtx_range"] += [{"name": "step", "start": 9000, "duration": 90, "repeat": 12, "every": 100}]
    case["api_call"] += [{**row, "label": f"{row['label']} later"} for row in later["api_call"]]
    case["gpu_op"] += [{**row, "api_call": f"{row['api_call']} later"} for row in later["gpu_op"]]
    case["gpu_op"] += [alone("validate()", 8000, 50)]
    run = run_of(case)
    assert run.mode == "iterations"
    assert run.outside == Outside(before_ms=0.06, between_ms=0.05, after_ms=0.03)
    assert run.coverage == pytest.approx(960 / (960 + 140))


def test_a_pause_between_iterations_is_part_of_the_loops_time() -> None:
    case = annotated()
    for start in (2400, 4800):
        later = launched(12, 100, *STEP, start=start)
        case["nvtx_range"] += [{"name": "step", "start": start, "duration": 90, "repeat": 12, "every": 100}]
        case["api_call"] += [{**row, "label": f"{row['label']} {start}"} for row in later["api_call"]]
        case["gpu_op"] += [{**row, "api_call": f"{row['api_call']} {start}"} for row in later["gpu_op"]]
        (loop,) = run_of(case).loops
        if start == 2400:
            assert loop.paused_share is None  # a single pause may belong to the start
    assert loop.paused_share == pytest.approx(0.4, abs=0.1)  # 2.4 of 6 ms; the first iterations are warm-up


def test_warm_up_iterations_are_iterations() -> None:
    run = run_of(annotated())
    assert (run.coverage, run.outside) == (1.0, Outside(before_ms=0, between_ms=0, after_ms=0))


def test_time_counts_and_not_the_number_of_operations() -> None:
    many_tiny = alone("tiny()", 2000, 0.1, repeat=300, every=1)
    run = run_of(annotated(many_tiny))
    assert run.coverage == pytest.approx(480 / (480 + 30))


def test_streams_that_work_at_once_count_once() -> None:
    inside = alone("gemm()", 10, 30, repeat=12, every=100, stream=1)
    before = [alone("init()", 1000, 60), alone("init()", 1030, 60, stream=1)]
    case = annotated(*before, {**inside, "start": 5010}, start=5000)
    case["stream"] = [{"id": 0}, {"id": 1}]
    assert run_of(case).outside == Outside(before_ms=0.09, between_ms=0, after_ms=0)


def test_what_nothing_repeats_in_is_a_run() -> None:
    rng = random.Random(3)
    names = [f"kernel_{n}()" for n in range(40)]
    ops = [alone(rng.choice(names), 100 * n, rng.uniform(20, 60), label=None) for n in range(60)]
    calls = [{"label": f"c{n}", "name": "cudaLaunchKernel", "start": 100 * n - 5, "duration": 3} for n in range(60)]
    for number, op in enumerate(ops):
        op.pop("label")
        op["api_call"] = f"c{number}"
    run = run_of({"api_call": calls, "gpu_op": ops})
    assert (run.mode, run.coverage) == ("run", 1.0)
    assert [loop.source for loop in run.loops] == ["unknown"]


def test_a_selection_is_all_that_there_is() -> None:
    case = annotated(alone("init()", 1000, 60), start=5000)
    run = run_of(case, Selection(start=5_300_000, end=5_900_000))
    assert run.outside is not None
    assert run.outside.before_ms + run.outside.after_ms < 0.6 - 0.2, "what lies beyond the selection is not counted"
    assert run.coverage is not None
    assert run.coverage > 0.5


@pytest.mark.slow
def test_a_long_recording_is_measured_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    case = annotated(alone("init()", 1000, 2500), alone("init()", 1200, 10), start=5000)
    whole = run_of(case)
    monkeypatch.setattr("gpudiag.loops.iteration_bounds._AT_ONCE", 3)
    assert (run_of(case).coverage, run_of(case).outside) == (whole.coverage, whole.outside)


def run(coverage_: float | None, *, mode: str = "iterations", repeats: int | None = None, **outside: float) -> Run:
    loop = Loop(id=0, name="step", source="period", iterations=9, iteration_ms=1.0, repeats=repeats, share_of_span=1.0)
    known = Outside.model_validate({"before_ms": 0, "between_ms": 0, "after_ms": 0, **outside})
    return Run.model_validate({"mode": mode, "coverage": coverage_, "outside": known, "loops": (loop,)})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (run(1.0), "The loop holds all of the GPU's work."),
        (
            run(0.97, before_ms=2, after_ms=1),
            "The loop holds 97 % of the GPU's work; 2.0 % came before, 1.0 % after.",
        ),
        (
            run(1.0, repeats=25),
            "The loop holds all of the GPU's work. In each iteration the same operations come 25 times.",
        ),
        (run(0.75, between_ms=5), "The loop holds 75 % of the GPU's work; 25 % came between iterations."),
        (run(1.0, mode="run"), ""),
        (
            run(1.0, mode="run").model_copy(update={"loops": ()}),
            "Nothing was found that repeats: this report is about the run as a whole.",
        ),
        (
            run(0.4, mode="run", before_ms=1, after_ms=1),
            (
                "Nothing was found that repeats. The part of the run that is analysed holds 40 % of the GPU's work;"
                " 30 % came before, 30 % after."
            ),
        ),
        (run(None), ""),
        (Run(), ""),
    ],
)
def test_the_sentence(given: Run, text: str) -> None:
    assert coverage_words.sentence(given) == text


def test_loops_that_hold_little_are_not_called_the_program() -> None:
    settings = library().setting_values
    healthy = Verdict(state="healthy", text="The timeline is healthy.")
    little = loop_share.qualified(healthy, run(0.31, before_ms=9), settings)
    assert little.state == "cannot_tell"
    assert little.text.endswith(
        " The loops of this report hold only 31 % of the GPU's work: of the rest nothing is said."
    )
    marked = run(0.31, before_ms=9)
    loops = tuple(loop.model_copy(update={"source": "nvtx"}) for loop in marked.loops)
    assert loop_share.qualified(healthy, marked.model_copy(update={"loops": loops}), settings) == healthy
    problems = Verdict(state="problems", text="It waits.")
    assert loop_share.qualified(problems, run(0.31), settings).state == "problems"
    assert loop_share.qualified(healthy, run(0.8), settings) == healthy
    assert loop_share.qualified(healthy, Run(), settings) == healthy


def lasting(*lengths: float) -> Loop:
    """The loop whose iterations take these times (µs)."""
    starts = [sum(lengths[:number]) for number in range(len(lengths))]
    case: Case = {
        "loop": [{"id": 0, "name": "step"}],
        "iteration": [
            {"loop": 0, "start": start, "duration": length} for start, length in zip(starts, lengths, strict=True)
        ],
        "gpu_op": [alone("gemm()", start, 10) for start in starts],
    }
    (loop,) = run_of(case).loops
    return loop


def test_a_mean_that_a_long_iteration_draws_up_is_not_alone() -> None:
    loop = lasting(*[100.0] * 8, 500.0)
    assert loop.median_ms == pytest.approx(0.1)
    assert loop.far == FarIterations(count=1, of=9, least_ms=0.5, most_ms=0.5)


def test_a_mean_that_short_iterations_draw_down_is_not_alone() -> None:
    loop = lasting(*[100.0] * 7, 20.0, 40.0)
    assert loop.median_ms == pytest.approx(0.1)
    assert loop.far == FarIterations(count=2, of=9, least_ms=0.02, most_ms=0.04)


def test_a_median_far_from_the_mean_needs_no_outlier() -> None:
    loop = lasting(*[100.0] * 5, *[119.0] * 4)
    assert (loop.median_ms, loop.far) == (pytest.approx(0.1), None)


def test_a_mean_near_the_median_stands_for_the_iterations() -> None:
    """One of ten is long, which moves the mean by 4 %."""
    loop = lasting(*[100.0] * 9, 140.0)
    assert (loop.median_ms, loop.far) == (None, None)
