"""Loops of processes that do the same side by side, as ranks without recorded exchanges. All rows are synthetic."""

from __future__ import annotations

from typing import Any

import pytest

import timelines
from timelines import Case, launched, opened

STEP = (("gemm()", 2.0, 10.0, 30.0), ("relu()", 6.0, 45.0, 10.0))


def beside(one: Case, other: Case, device: int = 1) -> Case:
    """Two processes of one recording."""
    for row in (*other["api_call"], *other["gpu_op"]):
        row |= {"process": 1}
    for row in other["api_call"]:
        row |= {"thread": 1, "label": f"second {row['label']}"}
    for row in other["gpu_op"]:
        row |= {"device": device, "stream": 1, "api_call": f"second {row['api_call']}"}
    return {
        "thread": [{"id": 0, "process": 0}, {"id": 1, "process": 1}],
        "api_call": one["api_call"] + other["api_call"],
        "gpu_op": one["gpu_op"] + other["gpu_op"],
    }


def found(case: Case) -> list[dict[str, Any]]:
    with opened(case) as con:
        return timelines.rows(con, "from loop order by id")


def test_processes_that_do_the_same_share_a_loop() -> None:
    (loop,) = found(beside(launched(40, 100, *STEP), launched(41, 100, *STEP, start=30)))
    assert (loop["marker"], loop["processes"], loop["share_of_span"]) == ("every gemm", 2, 1.0)


@pytest.mark.parametrize(
    ("other", "device"),
    [
        (launched(40, 100, *STEP, start=4000), 1),  # one after the other
        (launched(20, 200, *STEP), 1),  # half as many iterations
        (launched(40, 100, STEP[0], ("tanh()", 6.0, 45.0, 10.0)), 1),  # other kernels
        (launched(40, 100, *STEP), 0),  # on the same GPU
    ],
)
def test_processes_that_differ_have_loops_of_their_own(other: Case, device: int) -> None:
    loops = found(beside(launched(40, 100, *STEP), other, device))
    assert [loop["processes"] for loop in loops] == [1, 1]
