"""Times given for an iteration: taken where they can be its own, divided where they are of several, else refused."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import gpudiag
from captures import report_of
from evaluation import corpus
from evaluation.packed import recording
from gpudiag.cli import main
from gpudiag.diagnosis import iteration_time_check
from gpudiag.errors import GpudiagError
from gpudiag.gate.budgets import check_budgets
from gpudiag.gate.config import Budget, Config
from gpudiag.model import Loop, Report
from gpudiag.next_steps.proposals import NextSteps
from gpudiag.options import Options
from gpudiag.pipeline import explain, next_steps
from gpudiag.report import markdown
from gpudiag.report.wording.words import duration

pytestmark = pytest.mark.capture

CAPTURE = recording(corpus.CAPTURES / "rollout_eager" / "slow")
SETTINGS = corpus.library().setting_values


def recorded() -> Loop:
    return report_of(CAPTURE).run.loops[0]


@cache
def timed(times: float, name: str = "") -> Report:
    return explain([CAPTURE], Options(iteration_times={name: times * recorded().iteration_ms * 1e6}))


def loop(ms: float = 10.0, busy: float = 0.9, **changes: Any) -> Loop:
    budget = {"compute": busy, "idle_launch": 1 - busy}
    facts = {"id": 1, "name": "step", "source": "nvtx", "iterations": 200, "iteration_ms": ms, "share_of_span": 1}
    return Loop.model_validate({**facts, "budget": budget, **changes})


@pytest.mark.parametrize("name", ["", "iter"])
def test_the_time_of_eight_iterations_is_divided(name: str) -> None:
    report, each = timed(8, name), recorded().iteration_ms
    found = report.run.loops[0]
    assert found.iteration_ms_unprofiled == pytest.approx(each)
    assert (found.given_ms, found.given_iterations) == (pytest.approx(8 * each), 8)
    assert report.findings[0].gain.before_ms == pytest.approx(each)
    assert any("is 8 times the iteration found" in note.text for note in report.notes)
    assert any("is 8 times the iteration found" in note for note in steps(8).notes)


@cache
def steps(times: float) -> NextSteps:
    return next_steps([CAPTURE], Options(iteration_times={"": times * recorded().iteration_ms * 1e6}))


def test_eight_iterations_and_one_are_worth_the_same() -> None:
    once, eight = timed(0.9), timed(7.8)
    shares = [report.findings[0].gain.share for report in (once, eight)]
    assert shares[0] == pytest.approx(shares[1], abs=0.2)
    assert once.verdict.state == eight.verdict.state


def test_a_budget_is_of_the_time_that_was_given() -> None:
    report = timed(8)
    given = report.run.loops[0].given_ms
    assert given is not None
    config = Config(budgets={"iter": Budget.model_validate({"iteration_time": f"{given * 0.9:.6f} ms"})})
    (found,) = check_budgets(config, report, SETTINGS)
    assert (found.state, found.measured) == ("broken", pytest.approx(given))


@pytest.mark.parametrize(
    ("ms", "iterations"), [(9.5, 1), (12.9, 1), (7.5, 1), (79.0, 8), (190.0, 19), (1015.0, 101), (1.24, 1 / 8)]
)
def test_a_time_is_that_of_as_many_iterations(ms: float, iterations: float) -> None:
    found = iteration_time_check.fit(loop(source="period"), ms, SETTINGS)
    assert found.iterations == pytest.approx(iterations, rel=0.02)
    assert found.unprofiled_ms == pytest.approx(ms / found.iterations)


@pytest.mark.parametrize(
    ("ms", "why"),
    [
        (15.0, "is 1.5 times the recorded 10.0 ms"),
        (4.2, "is less than the 9.00 ms in which the GPU works"),
        (1.24, "is less than the 9.00 ms in which the GPU works"),  # a range of the user's own has no parts
        (9900.0, "of which only 200 were recorded"),
    ],
)
def test_a_time_that_cannot_be_is_refused_in_a_sentence(ms: float, why: str) -> None:
    with pytest.raises(GpudiagError, match=why) as error:
        iteration_time_check.fit(loop(), ms, SETTINGS)
    assert str(error.value).count(". ") == 0
    assert "give the time of one of its iterations" in str(error.value)


def test_a_loop_that_the_profiler_slowed_is_no_part_of_one() -> None:
    assert iteration_time_check.fit(loop(busy=0.1), 5.0, SETTINGS).iterations == 1


def test_where_no_time_is_given_one_is_guessed() -> None:
    """Measured without the profiler it lies between the least and the most; beside a given time nothing is guessed."""
    measured, guess = corpus.iteration_ms("rollout_eager", "slow"), recorded().guessed
    assert measured and guess
    assert guess.least_ms <= measured <= guess.most_ms <= recorded().iteration_ms
    assert timed(0.8).run.loops[0].guessed is None


def test_gains_are_of_the_time_without_the_profiler() -> None:
    """Where it is guessed, pages say so; what is saved is of that time."""
    report = report_of(CAPTURE)
    loop, first = report.run.loops[0], report.findings[0]
    assert loop.guessed and first.gain.before_ms == loop.usual_ms == loop.guessed.usual_ms < loop.iteration_ms
    said = f"without the profiler, an iteration of `iter` goes from perhaps {duration(loop.usual_ms)} to"
    assert said in markdown.render(report)


@pytest.mark.parametrize("command", ["explain", "check", "next"])
def test_an_impossible_time_ends_each_command_with_2(command: str, tmp_path: Path) -> None:
    settings = tmp_path / "gpudiag.toml"
    settings.write_text("[budgets.iter]\nidle = 0.5\n")
    files = [str(CAPTURE), "--iteration-time", f"{1.5 * recorded().iteration_ms:.6f}ms"]
    found = CliRunner().invoke(main, [command, *files, *(["--config", str(settings)] if command == "check" else [])])
    assert (found.exit_code, found.stdout) == (2, "")
    assert "cannot be right for 'iter'" in found.stderr


def test_an_impossible_time_is_refused_from_python() -> None:
    with pytest.raises(GpudiagError, match="cannot be right for 'iter'"):
        gpudiag.explain(CAPTURE, iteration_time={"iter": f"{1.5 * recorded().iteration_ms:.6f}ms"})


def test_a_time_with_more_in_it_than_was_recorded_is_said() -> None:
    """Windows without the profiler also hold validation: the recorded iteration computes no less for that."""
    longer = iteration_time_check.longer(loop(iteration_ms_unprofiled=12.0), "`step`", 0.98, 0.9)
    assert longer.startswith("The GPU computes 98 % of `step` as recorded, 10.0 ms an iteration; what the 12.0 ms")
    assert iteration_time_check.longer(loop(iteration_ms_unprofiled=9.0), "`step`", 0.98, 0.9) == ""
    assert iteration_time_check.longer(loop(iteration_ms_unprofiled=12.0), "`step`", 0.8, 0.9) == ""
    assert iteration_time_check.longer(loop(), "`step`", 0.98, 0.9) == ""
