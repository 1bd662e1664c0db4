"""Launches by Triton's autotuner, which measures a kernel's configurations: no work of the program's own."""

from __future__ import annotations

import duckdb
import numpy as np
from numpy.typing import NDArray

from gpudiag.loops.iteration_bounds import Ints


def launched_while_tuning(con: duckdb.DuckDBPyConnection, thread: Ints, start: Ints) -> NDArray[np.bool_]:
    """Return which of these calls an autotuner made. thread: of each; start: when it began (ns)."""
    rows = con.execute('select thread, start, "end" from tuning_stretches() order by thread, start').fetchnumpy()
    made = np.zeros(len(start), dtype=bool)
    for number in np.unique(rows["thread"]):
        own, calls = rows["thread"] == number, thread == number
        begins, ends = rows["start"][own], rows["end"][own]
        last = np.searchsorted(begins, start[calls], "right") - 1
        made[calls] = (last >= 0) & (start[calls] < ends[last])
    return made
