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
    is slow for that reason, and a rule says so.
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
    new = np.intersect1d(_holding(run.bounds, loads), _holding(run.bounds, _first_launches(con, run.process)))
    first_uses = ordinal[np.isin(ordinal, new) & (length >= settings["first_use_times"] * np.median(length))]
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


def _first_launches(con: Connection, process: int) -> Ints:
    """Return when each kernel of a process was launched for the first time (ns)."""
    rows = con.execute(
        "select min(coalesce(a.start, o.start)) as first from gpu_op o left join api_call a on a.id = o.api_call"
        " where o.process = ? and o.kind = 'kernel' group by o.name",
        [process],
    ).fetchnumpy()
    return np.asarray(rows["first"], dtype=np.int64)
