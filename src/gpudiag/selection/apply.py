"""A part of what was read: everything else is taken out of the canonical tables before anybody looks at them.

Views, rules, replay and pictures then see a smaller capture. What only the whole could tell them is kept beside it, in
the tables `whole_run`, `part` and `left_out_launch`.
"""

from __future__ import annotations

from dataclasses import replace

import duckdb

from gpudiag.errors import GpudiagError
from gpudiag.loops.clip import WHOLE, SelectedRanges
from gpudiag.selection import nvtx, processes, reduce, time_limits, whole_run
from gpudiag.selection.spec import Selection

Connection = duckdb.DuckDBPyConnection


def apply(con: Connection, selection: Selection) -> SelectedRanges:
    """Reduce the filled tables to the selection, and say where it lies. Needs settings and macros to be loaded.

    Operations of the GPU that overlap the time are kept whole, with the calls that launched them and all else that
    overlaps the time on the host. Raises GpudiagError with one sentence when the selection names nothing that exists.
    """
    if not selection:
        return WHOLE
    row = con.execute("select count(*) from gpu_op").fetchone()
    if not row or not row[0]:
        raise GpudiagError(
            "There is nothing to select from: no GPU operation was recorded on a timeline (an .nsys-rep or its export)."
            " Kernel profiles are always read whole_run."
        )
    whole_run.note(con, selection)
    processes.choose(con, selection)
    chosen = nvtx.chosen(con, selection.nvtx)
    found = time_limits.find(con, selection, chosen)
    part = SelectedRanges(found).around(con, chosen)
    if selection.ranged and not selection.nvtx:
        part = replace(part, steps=part.around(con, nvtx.steps(con, found)).chosen)
    if selection.nvtx and not part.chosen:
        raise GpudiagError(
            f"No range called {nvtx.summary(selection.nvtx)} lies wholly in the part that the other options select."
        )
    reduce.reduce(con)
    whole_run.finish(con, part)
    return part
