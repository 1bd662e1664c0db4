"""The same captures give the same report, in whatever order many threads fill and answer tables."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from captures import named
from fuzz.generators.shuffled import shuffle_rows
from gpudiag import pipeline
from gpudiag import prepare as opening
from gpudiag.options import Options
from gpudiag.store import database, query
from paths import DATA

pytestmark = pytest.mark.capture

GRAPHS, COPIES, PROFILED = (
    "launch_bound_fp32/fixed",  # a call starts many operations at once
    "chunked_pipeline/slow-pageable",
    "histogram/slow.sqlite.xz",
)


ONE_NAME = DATA / "fuzz" / "kernels-of-one-name.sqlite.xz"  # damaged: full names are alike


@cache
def as_it_is(name: str | Path) -> str:
    return reported(name)


def reported(name: str | Path) -> str:
    return pipeline.explain([named(str(name))], Options(cached=False)).model_dump_json()


@pytest.mark.parametrize("name", [GRAPHS, COPIES])
def test_many_threads_say_what_one_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = as_it_is(name)
    connected = database._connected

    def with_many(path: str, **more: Any) -> database.Connection:
        return connected(path, **{**more, "threads": 16})

    monkeypatch.setattr(opening, "IN_MEMORY", 0)
    monkeypatch.setattr(database, "_connected", with_many)
    assert [reported(name) for _ in range(2)] == [alone, alone]


@pytest.mark.parametrize("name", [GRAPHS, COPIES, PROFILED, ONE_NAME])
def test_rows_in_another_order_say_the_same(name: str | Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = as_it_is(name)
    monkeypatch.setattr(database, "_create", database._create)  # shuffle_rows replaces them for good
    monkeypatch.setattr(opening, "prepare", opening.prepare)
    shuffle_rows(7)
    assert reported(name) == before


def test_equally_bad_rows_come_in_one_order() -> None:
    worse, a, b = {"share": 0.5, "kernel": "z"}, {"share": 0.2, "kernel": "a"}, {"share": 0.2, "kernel": "b"}
    assert query.settled([worse, b, a]) == query.settled([worse, a, b]) == (worse, a, b)


def test_rows_without_a_gain_keep_the_order_of_the_query() -> None:
    rows = ({"name": "b"}, {"name": "a"})
    assert query.settled(rows) == rows
