"""Iterations that use code for the first time: the first validation, checkpoint or log line of a run that is warm.

The CUDA driver loads a kernel's code when it is first launched, so a run goes on warming up wherever it does something
new. Counted with the others, one such iteration makes a loop look as if it loaded code, or waited, all the time.
"""

from __future__ import annotations

import duckdb
import numpy as np
from numpy.typing import NDArray

from gpudiag.loops.iteration_bounds import Bounds, Ints, Iterations, Settings
from gpudiag.loops.submissions import loading

Connection = duckdb.DuckDBPyConnection


def leave_out(con: Connection, loop: int, run: Iterations, settings: Settings) -> None:
    """Take the iterations of one process that load code for kernels not launched before out of the steady state.

    Only those that are longer than usual for it, and only where they are few: a program that loads code again and again
    is slow for that reason, and a rule says so. A kernel that a library builds for another shape may have a name that
    was launched before; the only iteration in which such building takes long is left out as well.
    """
    if not len(loads := loading(con, run.process)):
        return
    steady = con.execute(
        'select ordinal, "end" - start from iteration'
        " where loop = ? and process = ? and in_steady_state and analysed order by ordinal",
        [loop, run.process],
    ).fetchnumpy()
    ordinal, length = (np.asarray(values, dtype=np.int64) for values in steady.values())
    if not len(ordinal):
        return
    holding = _holding(run.bounds, loads)
    new = np.intersect1d(holding, _holding(run.bounds, _first_launches(con, run.process)))
    slow = length >= settings["first_use_times"] * np.median(length)
    first_uses = ordinal[np.isin(ordinal, new) & slow]
    once = np.flatnonzero(np.isin(ordinal, holding) & slow)
    if not len(first_uses) and len(once) == 1:
        longer = float(length[once[0]] - np.median(length))
        if _loading_time(con, run, ordinal[once[0]]) >= settings["first_use_part"] * longer:
            first_uses = ordinal[once]
    if len(first_uses) <= settings["first_use_share"] * len(ordinal):
        con.execute(
            "update iteration set in_steady_state = false"
            " where loop = ? and process = ? and ordinal in (select unnest(?::integer[]))",
            [loop, run.process, first_uses.tolist()],
        )


def _holding(bounds: Bounds, moments: Ints) -> NDArray[np.int64]:
    """Return the numbers of the iterations in which the host was at these moments (ns)."""
    number = np.searchsorted(bounds[:, 0], moments, "right") - 1
    inside = (number >= 0) & (moments < bounds[np.maximum(number, 0), 1])
    return np.unique(number[inside])


def _loading_time(con: Connection, run: Iterations, ordinal: np.int64) -> float:
    """Return how long calls that load or build code take in an iteration, with the host's time before each (ns)."""
    start, end = run.bounds[ordinal].tolist()
    row = con.execute(
        """
        with called as (
            select n.text, a."end" - coalesce(lag(a."end") over (partition by a.thread order by a.start), a.start) as ns
            from api_call a join name n on n.id = a.name
            where a.process = ? and a.start >= ? and a.start < ?
        )
        select coalesce(sum(ns), 0) from called where api_kind(text) = 'load'
        """,
        [run.process, start, end],
    ).fetchone()
    return float(row[0]) if row else 0.0


def _first_launches(con: Connection, process: int) -> Ints:
    """Return when each kernel of a process was launched for the first time (ns)."""
    rows = con.execute(
        "select min(coalesce(a.start, o.start)) as first from gpu_op o left join api_call a on a.id = o.api_call"
        " where o.process = ? and o.kind = 'kernel' group by o.name",
        [process],
    ).fetchnumpy()
    return np.asarray(rows["first"], dtype=np.int64)
