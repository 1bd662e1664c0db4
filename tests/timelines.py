"""Small synthetic captures: rows as beside a rule (microseconds, labels, repetitions), and stores made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from gpudiag.authoring.case_store import views_for
from gpudiag.authoring.cases import fill
from gpudiag.library.catalogue import Library
from gpudiag.library.load import load
from gpudiag.loops import detect
from gpudiag.selection import apply
from gpudiag.selection.spec import ALL, Selection
from gpudiag.store import database

Case = dict[str, Any]


@cache
def library() -> Library:
    """The packaged rules, views and settings."""
    return load()


@contextmanager
def opened(
    case: Mapping[str, Any],
    *views: str,
    settings: Mapping[str, float] | None = None,
    selection: Selection = ALL,
    alone: bool = False,
) -> Iterator[database.Connection]:
    """A store of these rows with loops found (unless the case gives iterations) and with the packaged views named.

    selection: the part of them that is left.
    alone: a store of its own, for what has transactions or cursors.
    """
    changed = tuple((settings or {}).items())
    con = _made(changed) if alone or _shared(changed) in _BUSY else _shared(changed)  # a test may compare two stores
    _BUSY.append(con)
    if not alone:
        con.execute("begin")
    try:
        fill(con, case, _library(changed))
        if con.execute("select not exists (from loop) and not exists (from iteration)").fetchall() == [(True,)]:
            detect.detect(con, apply.apply(con, selection))
        database.load_views(con, _views(views), side_by_side=False, with_macros=False)
        yield con
    finally:
        _BUSY.remove(con)
        if con is _shared(changed):
            con.execute("rollback")
        else:
            con.close()


_BUSY: list[database.Connection] = []


@cache
def _shared(settings: tuple[tuple[str, float], ...]) -> database.Connection:
    """The store that tests share, with the macros and without rows: what a test adds, it does in a transaction that is
    rolled back. To make a store takes longer than most tests.
    """
    return _made(settings)


def _made(settings: tuple[tuple[str, float], ...]) -> database.Connection:
    known = _library(settings)
    con = database.create(small=True)
    database.load_settings(con, known.setting_values)
    database.load_macros(con, known.views)
    return con


def _library(settings: tuple[tuple[str, float], ...]) -> Library:
    return library().with_overrides({f"settings.{name}": value for name, value in settings})


@cache
def _views(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return views_for(f"select 1 from {', '.join(names)}" if names else "select 1", library().views)


def iterations(count: int, length: float = 100, **more: Any) -> Case:
    """One row for `count` iterations of a loop, end to end."""
    return {"start": 0, "duration": length, "repeat": count, "every": length, **more}


def launched(count: int, every: float, *steps: tuple[str, float, float, float], start: float = 0) -> Case:
    """`count` iterations in each of which kernels are launched.

    steps: (kernel, its launch's start in the iteration, its own start in the iteration, its duration).
    """
    calls, ops = [], []
    for number, (kernel, call, begins, duration) in enumerate(steps):
        again = {"repeat": count, "every": every}
        label = f"{kernel} {number}"
        calls.append({"label": label, "name": "cudaLaunchKernel", "start": start + call, "duration": 3, **again})
        ops.append({"api_call": label, "name": kernel, "start": start + begins, "duration": duration, **again})
    return {"api_call": calls, "gpu_op": ops}


def rows(con: database.Connection, query: str, *values: Any) -> list[dict[str, Any]]:
    """The result of a query, a dictionary a row."""
    cursor = con.execute(query, list(values))
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
