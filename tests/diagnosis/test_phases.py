"""The phases of an iteration, by Python samples or NVTX ranges, and the phase of a finding. All is synthetic."""

from __future__ import annotations

from typing import Any

import pytest

from gpudiag.diagnosis import phases
from gpudiag.model import Phase, Place
from gpudiag.report.wording import words
from samples import launch_bound, launch_bound_finding
from timelines import Case, launched, opened

# A product that runs for 30 of each 100 µs, launched at 2, and a sum for 10, launched at 60.
STEP = (("gemm()", 2.0, 10.0, 30.0), ("sum()", 60.0, 70.0, 10.0))
MODULE = {"function": "<module>", "file": "/home/a/train.py", "line": 40}
CALL = {"function": "_call_impl", "file": "/usr/lib/python3/dist-packages/torch/nn/modules/module.py", "line": 1787}
FORWARD = {"function": "forward", "file": "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py", "line": 9}
OPTIMIZER = {"function": "step", "file": "/usr/lib/python3/dist-packages/torch/optim/adamw.py", "line": 220}


def line(number: int) -> dict[str, Any]:
    return {"function": "train_step", "file": "/home/a/train.py", "line": number}


def sampled(time: float, *frames: Any) -> Case:
    return {"time": time, "repeat": 40, "every": 100, "frames": [*frames, MODULE]}


def found(case: Case) -> tuple[Phase, ...]:
    with opened(case, "loop_phase", "call_phase") as con:
        settings = {"min_phase_share": 0.02, "phase_seen": 0.5, "most_unseen_phases": 0.1}
        return phases.of_loops(con, settings).get(0, ())


def shares(case: Case) -> dict[str, float]:
    return {phase.name: pytest.approx(phase.share, abs=0.02) for phase in found(case)}


def two_lines() -> Case:
    case = launched(40, 100, *STEP)
    case["py_sample"] = [sampled(5, FORWARD, CALL, line(10)), sampled(55, OPTIMIZER, line(11))]
    return case


def test_lines_of_the_function_that_holds_the_loop_are_phases() -> None:
    assert shares(two_lines()) == {"forward": 0.6, "step": 0.4}
    first, second = found(two_lines())
    assert first.place == Place(file="/home/a/train.py", line=10, function="forward")
    assert first.computing_share == pytest.approx(0.3, abs=0.02)
    assert second.computing_share == pytest.approx(0.1, abs=0.02)


def test_a_line_hardly_ever_sampled_leaves_all_shares_unsaid() -> None:
    """The line launches what follows the product, and is met in every fourth iteration."""
    case = two_lines()
    case["py_sample"][1] |= {"repeat": 10, "every": 400}
    assert found(case) == ()


def by_autograd(name: str) -> Case:
    """The same, but a thread of this name launches what both lines ask for, and has two lines of its own."""
    case = two_lines()
    case["thread"] = [{"id": 0, "process": 0, "name": name}, {"id": 1, "process": 0, "name": "python3"}]
    rule = {"function": "backward", "file": "/home/a/ops.py"}
    own = [
        {"time": at, "repeat": 40, "every": 100, "frames": [{**rule, "line": at}]}  # nobody's callee
        for at in (5, 55)
    ]
    case["py_sample"] = [*own, *({**row, "thread": 1} for row in case["py_sample"])]
    return case


def test_a_backward_pass_belongs_to_the_line_that_calls_it() -> None:
    assert shares(by_autograd("pt_autograd_0")) == {"forward": 0.6, "step": 0.4}


def test_another_thread_that_drives_the_loop_is_followed() -> None:
    assert {phase.place.line for phase in found(by_autograd("worker"))} == {5, 55}


def test_one_line_is_no_division() -> None:
    case = launched(40, 100, *STEP)
    case["py_sample"] = [sampled(5, FORWARD, line(10)), sampled(55, OPTIMIZER, line(10))]
    assert found(case) == ()


def test_without_samples_and_ranges_no_phase_is_named() -> None:
    assert found(launched(40, 100, *STEP)) == ()


def test_a_recursive_function_is_divided_where_it_is_entered() -> None:
    case = launched(40, 100, *STEP)
    case["py_sample"] = [sampled(5, line(3), line(10)), sampled(55, line(4), line(11))]
    assert {phase.place.line for phase in found(case)} == {10, 11}


def test_calls_of_one_function_from_two_lines_differ() -> None:
    case = launched(40, 100, *STEP)
    case["py_sample"] = [sampled(5, FORWARD, line(10)), sampled(55, FORWARD, line(11))]
    assert shares(case) == {"forward, line 10": 0.6, "forward, line 11": 0.4}


def test_a_line_of_a_script_is_named_by_its_number() -> None:
    case = launched(40, 100, *STEP)
    script = {"function": "<module>", "file": "/home/a/train.py"}
    case["py_sample"] = [
        {"time": 5, "repeat": 40, "every": 100, "frames": [{**script, "line": 3}]},
        {"time": 55, "repeat": 40, "every": 100, "frames": [{**script, "line": 4}]},
    ]
    assert shares(case) == {"line 3": 0.6, "line 4": 0.4}


@pytest.mark.slow
def test_ranges_below_the_loops_range_are_phases() -> None:
    case = launched(40, 100, *STEP)
    marks = {"repeat": 40, "every": 100}
    case["nvtx_range"] = [
        {"name": "step", "label": "step", "start": 0, "duration": 99, **marks},
        {"name": "forward", "label": "forward", "parent": "step", "start": 1, "duration": 49, **marks},
        {"name": "layer", "parent": "forward", "start": 2, "duration": 20, **marks},
        {"name": "update", "parent": "step", "start": 50, "duration": 48, **marks},
    ]
    case["py_sample"] = [sampled(5, FORWARD, line(10)), sampled(55, OPTIMIZER, line(11))]
    assert shares(case) == {"forward": 0.38, "update": 0.62}
    assert [phase.place.nvtx for phase in found(case)] == ["step / update", "step / forward"]


def test_ranges_of_a_part_of_the_iteration_tell_no_phases() -> None:
    """A framework marks its loader and its optimizer; what lies between is most of the step."""
    marks = {"repeat": 40, "every": 100}
    case = two_lines() | {
        "nvtx_range": [
            {"name": "step", "label": "step", "start": 0, "duration": 99, **marks},
            {"name": "fetch", "parent": "step", "start": 1, "duration": 10, **marks},
            {"name": "update", "parent": "step", "start": 80, "duration": 10, **marks},
        ]
    }
    assert shares(case) == {"forward": 0.6, "step": 0.4}


def traced(calls: str) -> Case:
    """Ranges of a part of the iteration in a trace of torch.profiler; calls: whether it holds those of functions."""
    marks = {"repeat": 40, "every": 100}
    return two_lines() | {
        "input": [{"id": 0, "kind": "torch"}],
        "capability": [{"input": 0, "name": "python_calls", "state": calls}],
        "nvtx_range": [
            {"name": "ProfilerStep", "label": "step", "start": 0, "duration": 99, **marks},
            {"name": "Optimizer.zero_grad", "parent": "step", "start": 1, "duration": 3, **marks},
            {"name": "Optimizer.step", "parent": "step", "start": 58, "duration": 10, **marks},
        ],
    }


def test_stacks_of_operators_tell_no_lines_share() -> None:
    """What the trace marks is said, and nothing of the rest."""
    assert set(shares(traced("not_recorded"))) == {"Optimizer.zero_grad", "Optimizer.step"}


def test_stacks_of_all_functions_tell_it() -> None:
    assert shares(traced("recorded")) == {"forward": 0.6, "step": 0.4}


PHASES = (
    Phase(
        name="forward",
        place=Place(file="/home/a/train.py", line=10, function="forward"),
        share=0.6,
        computing_share=0.3,
    ),
    Phase(name="update", place=Place(nvtx="step / update"), share=0.4, computing_share=0.1),
)


LOOP = launch_bound().run.loops[0].model_copy(update={"phases": PHASES})


def test_the_report_names_each_phase_with_its_place_and_share() -> None:
    assert words.phases(LOOP) == "`forward` (`train.py:10`) 60 %, `update` 40 %"


def test_time_in_no_phase_is_said() -> None:
    loop = LOOP.model_copy(update={"phases": (PHASES[0], PHASES[1].model_copy(update={"share": 0.25}))})
    assert words.phases(loop) == "`forward` (`train.py:10`) 60 %, `update` 25 %, elsewhere 15 %"
    assert words.phases(LOOP.model_copy(update={"phases": ()})) == ""


def test_a_finding_is_put_into_its_phase() -> None:
    inside = launch_bound_finding(phase=Place(file="/home/a/train.py", line=10, share=0.9))
    assert words.phase(inside, {LOOP.id: LOOP}) == "`forward` (`train.py:10`), 60 % of an iteration"
    assert words.phase(launch_bound_finding(), {LOOP.id: LOOP}) == ""
