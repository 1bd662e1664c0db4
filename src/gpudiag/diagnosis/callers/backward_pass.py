"""Calls of a backward pass, which PyTorch makes on a thread of its own that runs no Python."""

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
    """Return the lines whose backward pass made calls on threads without Python stacks."""
    made = con.execute(
        """
        select id, thread in (select thread from py_sample) as sampled, greatest(1, "end" - start) as ns
        from api_call where id in (select unnest(?::integer[]))
        """,
        [list(calls)],
    ).fetchall()
    bare = [call for call, sampled, _ in made if not sampled]
    if not bare:
        return Backward(1.0)
    lines = con.execute(
        """
        select b.file, b.line, min(b.function), sum(c.ns) as ns
        from (
            select t.process, c."end", greatest(1, c."end" - c.start) as ns
            from api_call c join thread t on t.id = c.thread
            where c.id in (select unnest(?::integer[]))
        ) c
        asof join backward_stretch b on b.process = c.process and b.start <= c."end"
        where b."end" is null or c."end" <= b."end"
        group by b.file, b.line order by ns desc, b.file, b.line
        """,
        [bare],
    ).fetchall()
    whole = sum(ns for *_, ns in made)
    sampled_ns = sum(ns for _, sampled, ns in made if sampled)
    return Backward(sampled_ns / whole, tuple((*line[:3], line[3] / whole) for line in lines))
