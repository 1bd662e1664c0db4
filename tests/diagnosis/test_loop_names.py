"""Former names of loops: whoever calls a loop by its kernel is understood, and warned of its present name."""

from __future__ import annotations

import warnings

import pytest

from comparing import SETTINGS, loop, report
from evaluation.packed import recording
from gpudiag.compare import given_times, loop_matching
from gpudiag.diagnosis import loop_names
from gpudiag.errors import GpudiagError
from gpudiag.library.former_names import FormerNameWarning
from gpudiag.model import Loop
from gpudiag.options import Options
from gpudiag.pipeline import explain
from paths import ROOT

UNMARKED = recording(ROOT / "fixtures" / "wild" / "captures" / "cg_solver.none")


def unmarked(name: str, marker: str, number: int = 1) -> Loop:
    return loop(id=number, name=name, nvtx_path=None, source="period", marker=marker)


def test_a_loop_is_found_by_each_of_its_names() -> None:
    loops = [unmarked("step", "every gemm"), loop(id=2, name="eval", nvtx_path="run / eval")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [loop_names.called(name, loops, "--iteration-time") for name in ("step", "eval", "run / eval", "x")]
    assert [[one.id for one in each] for each in found] == [[1], [2], [2], []]
    with pytest.warns(FormerNameWarning, match="--iteration-time: 'every gemm' is now called 'step'"):
        assert loop_names.called("every gemm", loops, "--iteration-time") == loops[:1]
    assert loop_names.called("every relu", loops, "--iteration-time") == []


def test_a_range_that_is_called_like_a_marker_is_meant() -> None:
    """Somebody may call a range so."""
    loops = [unmarked("step", "every gemm"), loop(id=2, name="every gemm")]
    assert loop_names.called("every gemm", loops, "--iteration-time") == loops[1:]


def test_times_to_compare_may_use_the_former_name() -> None:
    base = report(unmarked("step", "every gemm"))
    pairs = loop_matching.paired(base, base, SETTINGS)
    with pytest.warns(FormerNameWarning, match="--base-time"):
        assert given_times.of({"every gemm": [9.9]}, base, pairs, 0, SETTINGS).times == {1: [9.9]}
    with pytest.raises(GpudiagError, match="there are: step"):
        given_times.of({"every relu": [9.9]}, base, pairs, 0, SETTINGS)


@pytest.mark.capture
def test_iteration_time_may_use_the_former_name() -> None:
    [found] = explain([UNMARKED]).run.loops
    assert found.name == "step"
    assert found.marker
    given = {found.marker: 0.9 * found.iteration_ms * 1e6}
    with pytest.warns(FormerNameWarning, match=f"{found.marker!r} is now called 'step'"):
        [timed] = explain([UNMARKED], Options(iteration_times=given)).run.loops
    assert timed.given_ms == pytest.approx(0.9 * found.iteration_ms)
    with pytest.raises(GpudiagError, match="--iteration-time names 'every other'"):
        explain([UNMARKED], Options(iteration_times={"every other": 1e6}))
