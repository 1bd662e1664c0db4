"""Which lines, annotations and kernels a finding points at. All rows are synthetic."""

from __future__ import annotations

from typing import Any

import pytest

from gpudiag.diagnosis.source_location import places
from gpudiag.evaluate import row_check
from gpudiag.model import Place
from ranking import VIEWS, rule
from timelines import Case, iterations, launched, opened

LIBRARY = {"function": "to", "file": "/v/lib/python3.11/site-packages/torch/_tensor.py", "line": 900}
ON_CALLS = {
    "price": {"kind": "upper_bound", "on": "api_calls", "high": ["drop_sync"]},
    "locate": ("python", "nvtx", "kernel"),
}
BEFORE = ON_CALLS | {"price": {"kind": "upper_bound", "on": "api_calls", "high": ["to_workers"]}}


def frame(line: int, function: str = "step") -> dict[str, Any]:
    return {"function": function, "file": "/home/u/train.py", "line": line}


def program(*samples: tuple[float, int]) -> Case:
    """Two calls, at 40 and at 80 µs, each 20 µs long; samples are (time, the user's line), inside a library's frame."""
    case = launched(1, 100, ("a()", 40, 45, 5), ("b()", 80, 85, 5))
    for row in case["api_call"]:
        row["duration"] = 20
    stacks = [{"time": time, "frames": [LIBRARY, frame(line)]} for time, line in samples]
    return {"iteration": [iterations(1, 110)], "py_sample": stacks, **case}


def found(case: Case, about: dict[str, Any], *rows: dict[str, Any]) -> tuple[Place, ...]:
    with opened(case, *VIEWS) as con:
        return places(con, rule("A01", **about), rows, 0)


def test_the_users_line_is_named_and_not_the_librarys() -> None:
    [place] = found(program((20, 11), (50, 12), (55, 12)), ON_CALLS, {"api_calls": [0]})
    assert (place.file, place.line, place.function, place.share) == ("/home/u/train.py", 12, "step", 1.0)


def test_host_work_before_the_call_is_named_when_it_goes() -> None:
    places_ = found(program((20, 11), (25, 11), (30, 11), (50, 12)), BEFORE, {"api_calls": [0]})
    assert [(place.line, place.share) for place in places_] == [(11, 0.75), (12, 0.25)]


def test_without_a_sample_inside_the_call_those_before_it_tell() -> None:
    assert [place.line for place in found(program((20, 11)), ON_CALLS, {"api_calls": [0]})] == [11]


def test_samples_on_the_way_into_short_calls_name_them() -> None:
    """The host works on line 20 for most of the time, and makes the short calls on line 12."""
    case = launched(4, 1000, ("a()", 900, 910, 5))
    times = [(1000 * n + after, 20) for n in range(4) for after in (100, 400, 700)]
    times += [(1000 * n + 895, 12) for n in range(3)]
    stacks = [{"time": time, "frames": [LIBRARY, frame(line)]} for time, line in times]
    case = {"iteration": [iterations(4, 1000)], "py_sample": stacks, **case}
    assert [place.line for place in found(case, ON_CALLS, {"api_calls": [0, 1, 2, 3]})] == [12]
    assert [place.line for place in found(case, BEFORE, {"api_calls": [0, 1, 2, 3]})] == [20, 12]


def test_of_many_lines_their_functions_are_named() -> None:
    """Fifteen lines of `forward` and six of `loss` make the call, none often enough to stand for it."""
    case = program()
    lines = [*((n, "forward") for n in range(15)), *((40 + n, "loss") for n in range(6))]
    case["py_sample"] = [
        {"time": 41 + 0.5 * n, "frames": [LIBRARY, frame(line, function)]} for n, (line, function) in enumerate(lines)
    ]
    places_ = found(case, ON_CALLS, {"api_calls": [0]})
    assert [(place.function, place.line) for place in places_] == [("forward", None), ("loss", None)]
    assert places_[0].share == pytest.approx(15 / 21)


def test_operations_are_found_by_the_calls_that_started_them() -> None:
    assert [place.line for place in found(program((85, 13)), ON_CALLS, {"gpu_ops": [1]})] == [13]


def test_a_row_without_ids_points_at_the_loop_s_busiest_lines() -> None:
    places_ = found(program((5, 11), (50, 12), (51, 12)), ON_CALLS, {"share": 0.5})
    assert [place.line for place in places_] == [12, 11]


@pytest.mark.slow
def test_the_annotation_or_kernel_stands_in_when_no_sample_tells() -> None:
    row = {"api_calls": [0], "nvtx_path": "step / log", "kernel": "a()"}
    assert found(program(), ON_CALLS, row) == (Place(nvtx="step / log", kernel="a()", share=1.0),)
    assert found(program(), ON_CALLS, {"api_calls": [0]}) == ()
    [place] = found(program((50, 12)), ON_CALLS, row)
    assert (place.line, place.nvtx) == (12, "step / log")


def test_the_worst_place_comes_first_and_a_line_is_named_once() -> None:
    case = program((50, 12), (85, 12), (86, 13))
    rows = [{"api_calls": [0], "share": 0.1}, {"api_calls": [1], "share": 0.3}]
    places_ = found(case, ON_CALLS, *rows)
    assert [(place.line, round(place.share or 0, 3)) for place in places_] == [(12, 0.625), (13, 0.375)]


def test_frames_outside_the_user_s_code_name_nothing() -> None:
    case = program((50, 12))
    case["py_sample"][0]["frames"] = [LIBRARY]
    assert found(case, ON_CALLS, {"api_calls": [0], "nvtx_path": "step"}) == (Place(nvtx="step", share=1.0),)


def test_idle_intervals_lead_to_lines_and_must_exist() -> None:
    case = launched(10, 100, ("k", 0, 5, 50))
    with opened(case, "idle_interval") as con:
        ends = row_check.id_ends(con, {"idle_interval"})
        [(count,)] = con.execute("select count(*) from idle_interval").fetchall()
    assert ends["idle_intervals"] == count > 0


AUTOGRAD = {"function": "_engine_run_backward", "file": "/v/site-packages/torch/autograd/graph.py", "line": 800}


def trained(forward: int, backward: int) -> Case:
    """A thread that calls so often from line 11, then waits on line 12 for one without Python that calls so often."""
    calls = [{"name": "cudaLaunchKernel", "start": 10 * n, "duration": 5} for n in range(forward + backward)]
    for call in calls[forward:]:
        call["thread"] = 1
    stacks = [{"time": call["start"] + 1, "frames": [LIBRARY, frame(11)]} for call in calls[:forward]]
    stacks += [{"time": 10 * forward - 2, "frames": [AUTOGRAD, LIBRARY, frame(12)]}]
    threads = [{"name": "main"}, {"name": "pt_autograd_0", "tid": 2}]
    return {"thread": threads, "iteration": [iterations(1, 1000)], "api_call": calls, "py_sample": stacks}


def test_calls_of_a_backward_pass_are_placed_where_it_began() -> None:
    places_ = found(trained(2, 8), ON_CALLS, {"api_calls": list(range(10))})
    assert [(place.line, place.share, place.backward) for place in places_] == [(12, 0.8, True), (11, 0.2, None)]


def test_own_backward_functions_hide_no_calls_of_their_thread() -> None:
    case = trained(2, 8)
    case["py_sample"].append({"time": 51, "thread": 1, "frames": [LIBRARY, frame(40)]})  # in one of the eight calls
    shares = {place.line: place.share for place in found(case, ON_CALLS, {"api_calls": list(range(10))})}
    assert shares[12] == pytest.approx(0.7)


def test_a_line_comes_before_the_backward_pass_of_it() -> None:
    places_ = found(trained(3, 7), ON_CALLS, {"api_calls": list(range(10))})
    assert [(place.line, place.share) for place in places_] == [(11, 0.3), (12, 0.7)]


def test_calls_of_a_thread_without_python_are_no_share_of_a_line() -> None:
    case = trained(3, 7)
    case["py_sample"] = case["py_sample"][:-1]
    [place] = found(case, ON_CALLS, {"api_calls": list(range(10))})
    assert (place.line, place.share) == (11, 0.3)


def starved(long: int, *lines: int, asks: bool = False) -> tuple[Place, ...]:
    """Places of a loop of launches whose GPU waits before each, with the samples met there, and many of line `long`
    while the GPU still works on what was launched before.
    """
    case = launched(1, 2000, ("a()", 100, 110, 800), ("b()", 1000, 1100, 100), ("c()", 1150, 1300, 100))
    loader = {
        "function": "__next__",
        "file": "/v/lib/python3.11/site-packages/torch/utils/data/dataloader.py",
        "line": 7,
    }
    stacks = [{"time": 200 + 50 * n, "frames": [*([loader] if asks else []), frame(long)]} for n in range(12)]
    stacks += [{"time": 920 + n, "frames": [LIBRARY, frame(line)]} for n, line in enumerate(lines)]
    with opened({"iteration": [iterations(1, 2000)], "py_sample": stacks, **case}, *VIEWS) as con:
        ended = con.execute("select idle_interval from idle_interval").fetchall()
        return places(con, rule("A01", **BEFORE), [{"idle_intervals": [one for (one,) in ended]}], 0)


@pytest.mark.parametrize("asks", [False, True])
def test_what_the_host_did_while_the_gpu_worked_is_no_place(asks: bool) -> None:
    places_ = starved(90, 12, 12, 12, 13, asks=asks)
    assert [(place.line, place.share) for place in places_] == [(12, 0.75), (13, 0.25)]


def test_of_too_few_samples_in_idle_time_all_count() -> None:
    assert next(place.line for place in starved(90, 12)) == 90
