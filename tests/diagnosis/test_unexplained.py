"""What an observation names of unexplained time: only what fills it. All rows are synthetic."""

from __future__ import annotations

from typing import Any

import pytest

from gpudiag.diagnosis import run_summary, time_tree
from gpudiag.model import Unclaimed
from ranking import VIEWS, program
from timelines import library, opened

EVERY = 100  # µs an iteration: a kernel of 40, then idle while the host is busy elsewhere


def idle(**more: Any) -> Unclaimed:
    """The idle time of a program that no finding explains, with these rows beside it."""
    case = {name: rows for name, rows in program().items() if name != "py_sample"} | more
    with opened(case, *VIEWS) as con:
        run = run_summary.run(con, library().setting_values, {})
        (loop,) = time_tree.with_trees(con, run.loops, (), library().setting_values)
    [found] = [one for one in loop.unclaimed if one.large]
    return found


def each(start: float, duration: float, **more: Any) -> dict[str, Any]:
    return {"start": start, "duration": duration, "repeat": 9, "every": EVERY, **more}


def spans(*given: tuple[str, float, float]) -> dict[str, Any]:
    """NVTX ranges of every iteration: text, start, duration. Those called `inner` lie in `outer`."""
    ranges = [each(start, duration, name=text, label=text) for text, start, duration in given]
    return {"nvtx_range": [row | ({"parent": "outer"} if row["name"] == "inner" else {}) for row in ranges]}


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ((("outer", 41, 58), ("inner", 45, 50)), "outer / inner"),
        ((("outer", 41, 58), ("inner", 45, 20)), "outer"),
        ((("outer", 41, 58), ("inner", 45, 20), ("inner", 70, 20)), "outer / inner"),
        ((("short", 99, 4),), None),
        ((("one", 41, 20), ("other", 62, 20)), None),
        ((("iter", 1, 98), ("short", 90, 9)), None),
        ((), None),
    ],
)
def test_a_range_is_named_that_holds_most_of_the_time(given: tuple[Any, ...], named: str | None) -> None:
    assert [place.nvtx for place in idle(**spans(*given)).where] == ([named] if named else [])


def test_the_part_that_a_range_holds_is_stated() -> None:
    [place] = idle(**spans(("work", 42, 40))).where
    assert place.share == pytest.approx(40 / 57, abs=0.05)


@pytest.mark.parametrize(
    ("start", "duration", "named"), [(50, 40, True), (30, 40, True), (50, 3, False), (10, 30, False)]
)
def test_a_system_call_is_named_that_fills_the_time(start: float, duration: float, named: bool) -> None:
    assert idle(os_call=[each(start, duration, name="fwrite")]).os_calls == (("fwrite",) if named else ())


def test_short_system_calls_are_added_up() -> None:
    calls = [each(start, 3, name="fwrite") for start in range(45, 95, 6)]
    assert idle(os_call=calls).os_calls == ("fwrite",)
