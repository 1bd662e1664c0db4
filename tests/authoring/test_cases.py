"""What a test case beside a rule may leave out, and what is filled in for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gpudiag.authoring.case_result import same
from gpudiag.authoring.case_store import views_for
from gpudiag.authoring.case_tables import fill, short_name
from gpudiag.errors import GpudiagError
from gpudiag.library.load import load
from gpudiag.store import database

Row = tuple[Any, ...]


@pytest.fixture
def con() -> Iterator[database.Connection]:
    con = database.create(small=True)
    yield con
    con.close()


def filled(con: database.Connection, case: dict[str, Any], query: str) -> list[Row]:
    fill(con, case, load())
    return con.execute(query).fetchall()


def test_times_are_microseconds_and_a_duration_gives_the_end(con: database.Connection) -> None:
    case = {
        "api_call": [{"name": "cudaFree", "start": 1.5, "duration": 2}, {"name": "cudaFree", "start": 10, "end": 11}]
    }
    rows = filled(
        con, case, 'select a.id, n.text, a.start, a."end" from api_call a join name n on n.id = a.name order by a.id'
    )
    assert rows == [(0, "cudaFree", 1500, 3500), (1, "cudaFree", 10000, 11000)]


def test_a_repeated_row_refers_to_its_own_repetition(con: database.Connection) -> None:
    case = {
        "api_call": [
            {"label": "launch", "name": "cudaLaunchKernel", "start": 0, "duration": 5, "repeat": 3, "every": 100}
        ],
        "gpu_op": [
            {"start": 0, "duration": 1},
            {"api_call": "launch", "start": 7, "duration": 20, "repeat": 3, "every": 100},
        ],
    }
    query = (
        "select o.id, o.start, a.id, o.correlation = a.correlation from gpu_op o join api_call a on a.id = o.api_call"
    )
    rows = filled(con, case, f"{query} order by o.id")
    assert rows == [(1, 7000, 0, True), (2, 107000, 1, True), (3, 207000, 2, True)]


def test_an_unknown_label_is_named(con: database.Connection) -> None:
    with pytest.raises(GpudiagError, match=r"gpu_op.api_call: no row is labelled 'lunch'"):
        fill(con, {"gpu_op": [{"api_call": "lunch"}]}, load())


def test_what_rows_refer_to_exists(con: database.Connection) -> None:
    fill(con, {"gpu_op": [{"device": 1, "stream": 4}], "api_call": [{"thread": 2, "name": "cudaFree"}]}, load())
    assert con.execute("select id, ordinal from device order by id").fetchall() == [(0, 0), (1, 1)]
    assert con.execute("select id from stream order by id").fetchall() == [(0,), (4,)]
    assert con.execute("select id from thread order by id").fetchall() == [(0,), (2,)]
    assert con.execute("select kind from input").fetchall() == [("nsys",)]


def test_iterations_imply_their_loop(con: database.Connection) -> None:
    case = {"iteration": [
        {"start": 0, "duration": 50, "in_steady_state": False}, {"start": 50, "duration": 10, "repeat": 3, "every": 10},
        {"loop": 1, "start": 100, "duration": 90},
    ]}  # fmt: skip
    query = "select id, steady_iterations, steady_ns, iteration_ns, share_of_span from loop order by id"
    assert filled(con, case, query) == [(0, 3, 30_000, 10_000, 0.25), (1, 1, 90_000, 90_000, 0.75)]


def test_a_case_counts_as_fully_recorded_by_default(con: database.Connection) -> None:
    states = filled(con, {"capability": {"nvtx": "not_recorded"}}, "select name, state from capability")
    rows: dict[str, str] = dict(states)
    assert rows["nvtx"] == "not_recorded"
    assert rows["gpu_ops"] == "recorded"
    assert not [name for name in rows if "|" in name or "*" in name]


def test_stacks_can_be_written(con: database.Connection) -> None:
    frames = [{"function": "step", "file": "train.py", "line": 7}]
    rows = filled(con, {"py_sample": [{"time": 3, "frames": frames}]}, "select time, frames[1].line from py_sample")
    assert rows == [(3000, 7)]


def test_only_views_that_a_query_needs_are_made_in_order() -> None:
    sql = (
        "-- c\ncreate view third as select * from second asof join first using (t);\n"
        "-- a\ncreate view first as select 1 as t;\n-- b\ncreate view second as select * from first;\n"
        "-- d\ncreate view unused as select * from third;\n-- m\ncreate macro twice(x) as x + x;\n"
    )
    made = [text.split()[4] for _, text in views_for("select twice(t) from third", [("v.sql", sql)])]
    assert made == ["twice(x)", "first", "second", "third"]


@pytest.mark.parametrize(
    ("got", "wanted", "equal"),
    [(0.33333, 0.3333, True), (0.34, 0.33, False), (3, 3, True), (3, 4, False), ([1, 2], [1, 2], True),
     ([1], [1, 2], False), (None, None, True), (None, 0, False)],
)  # fmt: skip
def test_expected_values_are_compared_as_written_by_hand(got: Any, wanted: Any, equal: bool) -> None:
    assert same(got, wanted) is equal


def test_kernels_get_their_base_name() -> None:
    assert short_name("void at::native::sum<float, 4>(int)") == "sum"
    assert short_name("step_0") == "step_0"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"repeat": 1_000_000_000}, "repeat wants a whole number up to 10000"),
        ({"repeat": "many"}, "repeat wants a whole number"),
        ({"start": "soon"}, "gpu_op.start wants microseconds, not 'soon'"),
    ],
)
def test_repetitions_end_and_times_are_numbers(con: database.Connection, row: dict[str, Any], words: str) -> None:
    with pytest.raises(GpudiagError, match=words):
        fill(con, {"gpu_op": [row]}, load())
