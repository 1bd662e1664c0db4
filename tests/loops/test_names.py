"""Names of loops found by repetition: the user's function where samples show it, else `step`. All is synthetic."""

from __future__ import annotations

from typing import Any

import timelines
from timelines import Case, launched, opened

STEP = (("gemm()", 2.0, 10.0, 30.0), ("relu()", 6.0, 45.0, 10.0))
TRAIN = {"function": "train_step", "file": "/home/a/train.py", "line": 7}
MAIN = {"function": "main", "file": "/home/a/train.py", "line": 30}
MODULE = {"function": "<module>", "file": "/home/a/train.py", "line": 40}
LIBRARY = {"function": "forward", "file": "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py", "line": 9}


def sampled(count: int, *frames: Any, start: float = 0, every: float = 100) -> Case:
    return {"time": start, "repeat": count, "every": every, "frames": list(frames)}


def named(case: Case, **settings: float) -> list[tuple[str, str | None]]:
    with opened(case, settings=settings) as con:
        found = timelines.rows(con, "select name, marker from loop order by share_of_span desc, id")
    return [(loop["name"], loop["marker"]) for loop in found]


def test_a_loop_without_samples_is_a_step() -> None:
    assert named(launched(40, 100, *STEP)) == [("step", "every gemm")]


def test_a_loop_is_called_by_its_function() -> None:
    setup = sampled(30, MAIN, MODULE, start=0)  # main sets up as well, for as long
    case = launched(40, 100, *STEP, start=3000)
    case["py_sample"] = [setup, sampled(39, LIBRARY, TRAIN, MAIN, MODULE, start=3050)]
    assert named(case) == [("train_step (train.py)", "every gemm")]
    case["py_sample"] = [setup, sampled(39, LIBRARY, MAIN, MODULE, start=3050)]
    assert named(case) == [("step", "every gemm")], "main does more than the loop"
    loading = sampled(9, {**TRAIN, "function": "load"}, MAIN, MODULE, start=3070, every=400)
    case["py_sample"] = [setup, sampled(39, LIBRARY, TRAIN, MAIN, MODULE, start=3050), loading]
    assert named(case) == [("step", "every gemm")], "a fifth of the loop is in another function"


def test_few_samples_tell_no_function() -> None:
    case = {**launched(40, 100, *STEP), "py_sample": [sampled(5, TRAIN, start=50, every=500)]}
    assert named(case) == [("step", "every gemm")]


def test_a_module_is_no_function() -> None:
    case = {**launched(40, 100, *STEP), "py_sample": [sampled(39, MODULE, start=50)]}
    assert named(case) == [("step", "every gemm")]


def two_processes() -> Case:
    """The first works for longer."""
    first, second = launched(80, 100, *STEP), launched(40, 100, ("scan()", 2.0, 10.0, 60.0))
    for kind in ("api_call", "gpu_op"):
        second[kind] = [{**row, "process": 1} for row in second[kind]]
    for row in second["api_call"]:
        row |= {"thread": 1, "label": f"{row['label']} too"}
    for row in second["gpu_op"]:
        row |= {"api_call": f"{row['api_call']} too"}
    both = {kind: first[kind] + second[kind] for kind in ("api_call", "gpu_op")}
    return {
        **both,
        "process": [{"id": 0}, {"id": 1}],
        "thread": [{"id": 0}, {"id": 1, "process": 1}],
    }


def test_names_differ_and_the_longest_comes_first() -> None:
    case = two_processes()
    assert named(case) == [("step", "every gemm"), ("step 2", "every scan")]
    case["py_sample"] = [
        {**sampled(39, TRAIN, MODULE, start=50), "thread": 0, "repeat": 79},
        {**sampled(39, TRAIN, MODULE, start=50), "thread": 1},
    ]
    assert [name for name, _ in named(case)] == ["train_step (train.py)", "train_step (train.py) 2"]
