"""The complete run in one line, kept beside the part that is analysed."""

from __future__ import annotations

import duckdb
import numpy as np

from gpudiag.loops.clip import SelectedRanges, covered
from gpudiag.selection.spec import Selection

Connection = duckdb.DuckDBPyConnection


def note(con: Connection, selection: Selection) -> None:
    """Fill `whole_run` from the tables before they are reduced."""
    con.execute(
        """
        insert into whole_run
        with placed as (
            select p.id, coalesce(i.clock_offset_ns, 0) as ahead from process p join input i on i.id = p.input
        ), seen as (
            select process, min(start) as first, max("end") as last from (
                select process, start, "end" from api_call union all select process, start, "end" from gpu_op
            ) group by process
        ), reached as (
            select device, start, "end", max("end") over (
                partition by device order by start rows between unbounded preceding and 1 preceding
            ) as reached from gpu_op
        ), busy as (
            select device, sum(greatest(0, "end" - greatest(start, coalesce(reached, start)))) as ns
            from reached group by device
        )
        select $start, $end, $nvtx, $devices, $processes, $ranks, null,
               min(s.first + p.ahead), max(s.last + p.ahead), (select sum(ns) from busy), (select count(*) from busy),
               (select count(*) from gpu_op), (select count(distinct process) from gpu_op)
        from seen s join placed p on p.id = s.process
        """,
        {
            "start": selection.start,
            "end": selection.end,
            "nvtx": list(selection.nvtx),
            "devices": list(selection.devices),
            "processes": list(selection.processes),
            "ranks": list(selection.ranks),
        },
    )


def finish(con: Connection, part: SelectedRanges) -> None:
    """Say how much of the time was selected, now that it is known; of several processes the longest."""
    lengths = {process: limits.end - limits.start for process, limits in part.limits.items()}
    if part.chosen:
        iterations = {process: [one.iterations for one in part.chosen if one.process == process] for process in lengths}
        lengths = {
            process: covered(np.clip(np.concatenate(own), part.limits[process].start, part.limits[process].end))
            for process, own in iterations.items()
            if own
        }
    con.execute("update whole_run set selected_ns = ?", [max(lengths.values(), default=None)])
    for process, limits in part.limits.items():
        con.execute(
            "insert into part values (?, ?, ?, ?, ?)", [process, limits.start, limits.end, limits.before, limits.begun]
        )
