"""Calls of a backward pass, which PyTorch makes on a thread of its own that runs next to no Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import duckdb


class Backward(NamedTuple):
    """The part of some calls that threads without Python made, and for which lines.

    sampled: the part of the calls' time on threads whose Python stacks were sampled. lines: (file, line, function,
    part of that time) whose backward pass made the others.
    """

    sampled: float
    lines: tuple[tuple[str, int | None, str | None, float], ...] = ()


def backward(con: duckdb.DuckDBPyConnection, calls: Sequence[int]) -> Backward:
    """Return the lines whose backward pass made calls on threads without Python stacks, or with those of the backward
    functions that the program defines itself, which run on the same thread.
    """
    made = con.execute(
        """
        with wanted as (
            select c.id, c.thread, t.process, c."end", greatest(1, c."end" - c.start) as ns
            from api_call c join thread t on t.id = c.thread where c.id in (select unnest(?::integer[]))
        ),
        placed as (
            select w.*, b.file, b.line, b.function,
                coalesce(b.thread <> w.thread and (b."end" is null or w."end" <= b."end"), false) as meanwhile
            from wanted w asof left join backward_stretch b on b.process = w.process and b.start <= w."end"
        ),
        known as (
            select *, thread in (select thread from py_sample)
                and not (meanwhile and id not in (select api_call from call_sample)) as sampled
            from placed
        )
        select sampled, meanwhile, file, line, min(function), sum(ns)::bigint as ns
        from known group by sampled, meanwhile, file, line order by ns desc, file, line
        """,
        [list(calls)],
    ).fetchall()
    whole = sum(ns for *_, ns in made)
    sampled_ns = sum(ns for sampled, *_, ns in made if sampled)
    if sampled_ns == whole:
        return Backward(1.0)
    lines = tuple(
        (file, line, function, ns / whole)
        for sampled, meanwhile, file, line, function, ns in made
        if meanwhile and not sampled
    )
    return Backward(sampled_ns / whole, lines)
