"""Modules and passes of operators: the nn.Module each ran in, forward or in autograd's backward pass."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import duckdb

from gpudiag.ingest.rows import Rows, append
from gpudiag.ingest.torch.staging import EVENTS
from gpudiag.ingest.torch.trace import LONGEST, Spans, Trace, innermost, intern_same, spans_of

_MODULE = "nn.Module: "
_BACKWARD = r"^autograd::engine::evaluate_function: |Backward[0-9]*$"
"""What autograd's engine runs, and until 1.10 the functions themselves alone."""

_NAMED = (
    f"select distinct left(substr(name, {len(_MODULE) + 1}), {LONGEST}) as text from {EVENTS}"
    f" where ph = 'X' and cat = 'python_function' and starts_with(name, '{_MODULE}')"
)

Known = list[tuple[int, str | None, str | None]]
"""Position of an operator, its module and its pass."""


def of_operators(trace: Trace, used: Sequence[int]) -> Known:
    """Return module and pass of the operators at these positions in `torch_operator`, as far as they are known.

    An operator of the backward pass belongs to the module of the forward operator with its sequence number.
    """
    con = trace.con
    names, modules = _modules(trace)
    engine = _rows(con, f"regexp_matches(name, '{_BACKWARD}')")
    if not len(modules) and not engine:
        return []
    rows = _rows(con, "position in (select unnest($used::bigint[]))", used=list(used))
    ran = spans_of([row[1:4] for row in rows])
    of_module = innermost(modules, ran).tolist()
    of_engine = innermost(spans_of([row[1:4] for row in engine]), ran).tolist()
    forward = _Forward(con, {row[4] for row in engine if row[4] is not None}, modules)
    known: Known = []
    for (position, *_, sequence), module, run in zip(rows, of_module, of_engine, strict=True):
        if run >= 0:
            number = engine[run][4]
            module = forward.module(number, engine[run][2]) if number is not None and module < 0 else module
        way = "backward" if run >= 0 else "forward" if engine and forward.holds(sequence, module) else None
        known.append((position, names[module] if module >= 0 else None, way))
    return known


class _Forward:
    """Forward operators by the sequence numbers that the backward pass repeats."""

    def __init__(self, con: duckdb.DuckDBPyConnection, numbers: set[int], modules: Spans) -> None:
        self.numbers = numbers
        found = _rows(
            con,
            f"sequence in (select unnest($numbers::bigint[])) and not regexp_matches(name, '{_BACKWARD}')",
            numbers=sorted(numbers),
        )
        held = innermost(modules, spans_of([row[1:4] for row in found])).tolist()
        self.by_number: Mapping[int, list[tuple[int, int]]] = defaultdict(list)
        for (_, _, start, _, sequence), module in zip(found, held, strict=True):
            if module >= 0 and sequence is not None:
                self.by_number[sequence].append((start, module))
        for each in self.by_number.values():
            each.sort()

    def module(self, number: int, start: int) -> int:
        """Return the module of the last forward operator with this number before a moment, -1 where none is known."""
        each = self.by_number.get(number, [])
        at = bisect_right(each, (start, -1))
        return each[at - 1][1] if at else -1

    def holds(self, sequence: int | None, module: int) -> bool:
        """Return whether an operator outside the backward pass is of the forward pass, and not of an optimizer."""
        return module >= 0 or sequence in self.numbers


def read_modules(trace: Trace) -> None:
    """Fill `module_call` with the outermost calls: on each way down, to the first module that was called again."""
    names, found = _modules(trace)
    calls = zip(found.thread.tolist(), found.start.tolist(), found.end.tolist(), strict=True)
    intern_same(trace.con, _NAMED)
    known = f"select text, id from name where short = text and text in ({_NAMED})"
    ids = dict(trace.con.execute(known).fetchall())
    often, open_, rows = Counter(names), list[tuple[int, int, bool]](), Rows()
    for name, (thread, start, end) in zip(names, calls, strict=True):
        while open_ and (open_[-1][0] != thread or open_[-1][1] <= start):
            open_.pop()
        outermost = not open_ or open_[-1][2]
        if outermost:
            id_ = trace.first["module_call"] + len(rows)
            rows.append((id_, start, end, trace.process, thread, ids[name[:LONGEST]], len(open_)))
        open_.append((thread, end, outermost and often[name] == 1))
    append(trace.con, "module_call", ("id", "start", "end", "process", "thread", "name", "depth"), rows)


def _modules(trace: Trace) -> tuple[list[str], Spans]:
    """Return the names of the modules' calls and when they ran, by thread and start."""
    rows = trace.con.execute(
        f"""
        select substr(e.name, {len(_MODULE) + 1}), t.thread, e.start - {trace.origin}, e."end" - {trace.origin}
        from {EVENTS} e join torch_thread t using (tid)
        where ph = 'X' and cat = 'python_function' and starts_with(e.name, '{_MODULE}')
          and e.start is not null and e."end" is not null
        order by t.thread, e.start, e."end" desc, e.name
        """
    ).fetchall()
    return [name for name, *_ in rows], spans_of([row[1:] for row in rows])


def _rows(
    con: duckdb.DuckDBPyConnection, condition: str, **given: Sequence[int]
) -> list[tuple[int, int, int, int, int | None]]:
    """Position, thread, start, end and sequence number of operators."""
    return con.execute(
        f'select position, thread, start, "end", sequence from torch_operator where {condition} order by position',
        given,
    ).fetchall()
