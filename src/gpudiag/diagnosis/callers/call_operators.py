"""Operators of a framework that made a finding's calls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import duckdb

from gpudiag.model import Rule
from gpudiag.replay.edits import registry
from gpudiag.text.format import clean

_NAMED = 4  # operators of a row of kernels that are named


class Ran(NamedTuple):
    """Operator that made most of a row's calls; any part may be unknown."""

    operator: str | None = None
    module: str | None = None
    backward: bool | None = None


UNKNOWN = Ran()


def operators(
    con: duckdb.DuckDBPyConnection, rule: Rule, calls_of: Sequence[Sequence[int] | None], most_share: float
) -> list[Ran]:
    """The operator that made most of each row's calls, with shapes, module and pass where those are always the same.

    Of kernels that could be one the operators in their order. What precedes a call is not the work of the operator
    that makes it. calls_of: the calls of each row; most_share: the part of them that is most.
    """
    edits = registry.of(rule.price.best) if rule.price else ()
    fused = bool(rule.price and rule.price.on == "gpu_ops" and any(edit.changes_kernels for edit in edits))
    result = [UNKNOWN] * len(calls_of)
    pairs = [(number, call) for number, calls in enumerate(calls_of) for call in dict.fromkeys(calls or ())]
    if not pairs or (not fused and any(edit.before_call for edit in edits)):
        return result
    if not con.execute("from op limit 1").fetchall():
        return result
    for number, found in groupby(_found(con, pairs), key=lambda one: one[0]):
        result[number] = _most([one[1:] for one in found], most_share * len(calls_of[number] or ()), fused=fused)
    return result


def _found(con: duckdb.DuckDBPyConnection, pairs: Sequence[tuple[int, int]]) -> list[tuple[Any, ...]]:
    """Row, name, shapes, module, whether it is of the backward pass, calls and first call of each row's operators."""
    return con.execute(
        """
        with wanted as (select unnest(?::integer[]) as number, unnest(?::integer[]) as call)
        select w.number, n.text, if(count(distinct o.shapes) = 1, any_value(o.shapes), null),
               case when count(*) > count(o.module) then null
                    when count(distinct o.module) = 1 then any_value(o.module)
                    when count(distinct regexp_replace(o.module, '_[0-9]+$', '')) = 1
                    then any_value(regexp_replace(o.module, '_[0-9]+$', '')) end,
               case when count(distinct o.pass) = 1 then any_value(o.pass) = 'backward' end,
               count(*) as calls, min(a.start) as first
        from wanted w join api_call a on a.id = w.call join op o on o.id = a.op join name n on n.id = o.name
        group by w.number, n.text order by w.number, calls desc, first, n.text
        """,
        [list(column) for column in zip(*pairs, strict=True)],
    ).fetchall()


def _most(found: Sequence[tuple[Any, ...]], most: float, *, fused: bool) -> Ran:
    """The first of these operators if it made more than so many calls; where they could be one, all of them."""
    text, shapes, module, backward, calls, _ = found[0]
    if calls > most:
        return Ran(clean(f"{text} {shapes}" if shapes else text), module and clean(module), backward)
    in_order = [name for name, *_ in sorted(found, key=lambda one: (one[-1], one[0]))]
    return Ran(_row_of_operators(in_order)) if fused else UNKNOWN


def _row_of_operators(names: Sequence[str]) -> str:
    """The first operators by name, and how many others there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return clean(", ".join(names[:_NAMED]) + more)
