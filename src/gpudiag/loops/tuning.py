"""Launches by Triton's autotuner, which measures a kernel's configurations: no work of the program's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


_OPERATIONS = """
    create or replace temp table tuning_op as
    select o.process, o.start, o."end" - o.start as ns
    from gpu_op o
    join (
        select a.id from api_call a asof join tuning_stretch s on s.thread = a.thread and s.start <= a.start
        where a.start < s."end"
    ) c on c.id = o.api_call
    where o.kind in ('kernel', 'graph')
"""


@contextmanager
def known(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Keeps the stretches in which an autotuner worked, and the kernels that it launched, while this is open: to find
    them reads all Python stacks.
    """
    con.execute("create or replace temp table tuning_stretch as from tuning_stretches()")
    if con.execute("select 1 from tuning_stretch limit 1").fetchall():  # or millions of calls would be sorted for none
        con.execute(_OPERATIONS)
    else:
        con.execute("create or replace temp table tuning_op (process integer, start bigint, ns bigint)")
    try:
        yield
    finally:
        con.execute("drop table tuning_stretch; drop table tuning_op")


def launched_while_tuning(con: duckdb.DuckDBPyConnection, thread: Ints, start: Ints) -> NDArray[np.bool_]:
    """Return which of these calls an autotuner made. thread: of each; start: when it began (ns)."""
    rows = con.execute('select thread, start, "end" from tuning_stretch order by thread, start').fetchnumpy()
    made = np.zeros(len(start), dtype=bool)
    for number in np.unique(rows["thread"]):
        own, calls = rows["thread"] == number, thread == number
        begins, ends = rows["start"][own], rows["end"][own]
        last = np.searchsorted(begins, start[calls], "right") - 1
        made[calls] = (last >= 0) & (start[calls] < ends[last])
    return made


def work_while_tuning(con: duckdb.DuckDBPyConnection, process: int, first: int, last: int) -> tuple[float, int]:
    """Return the time of the kernels and graphs that autotuners launched (ns), and their number: of a process, from one
    moment to another.
    """
    ((time, count),) = con.execute(
        "select sum(ns), count(*) from tuning_op where process = ? and start >= ? and start < ?", [process, first, last]
    ).fetchall()
    return float(time or 0), int(count)
