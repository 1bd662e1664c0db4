"""Shares of the GPU's work that a report's loops hold, and of their time that it computes; a verdict that fits both.

And what a mean does not say of iterations: pauses between them, and a few that are far longer than the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import duckdb

from gpudiag.model import FarIterations, Loop, Outside, Run, Verdict
from gpudiag.text.format import dur, pct

Connection = duckdb.DuckDBPyConnection


def of_loops(con: Connection, loops: Sequence[Loop]) -> dict[str, Any]:
    """The report's `mode`, `coverage` and `outside`, by name; nothing without a loop."""
    if not loops:
        return {}
    mode = "run" if all(loop.source == "unknown" for loop in loops) else "iterations"
    busy: dict[str, int] = dict(
        con.execute("select place, sum(busy_ns)::bigint from loop_coverage group by place").fetchall()
    )
    total = sum(busy.values())
    if not total:
        return {"mode": mode}
    outside = {f"{place}_ms": busy.get(place, 0) / 1e6 for place in ("before", "between", "after")}
    return {"mode": mode, "coverage": busy.get("inside", 0) / total, "outside": Outside(**outside)}


def unlike_mean(con: Connection, settings: Mapping[str, float]) -> dict[int, dict[str, Any]]:
    """Loop → `median_ms` and `far` by name, of loops whose mean iteration is not as long as the median one."""
    rows = con.execute(
        """
        with length as (select loop, ("end" - start) / 1e6 as ms from analysed_iteration),
        middle as (select loop, avg(ms) as mean, median(ms) as median, count(*) as iterations from length group by loop)
        select m.loop, m.median, m.iterations, count(l.ms), min(l.ms), max(l.ms)
        from middle m left join length l on l.loop = m.loop and (l.ms > m.median) = (m.mean > m.median)
            and abs(l.ms - m.median) > $far * m.median
        where abs(m.mean - m.median) > $uneven * m.median group by all
        """,
        {"uneven": settings["uneven_mean"], "far": settings["far_iteration"]},
    ).fetchall()
    return {
        loop: {
            "median_ms": median,
            "far": FarIterations(count=count, of=iterations, least_ms=least, most_ms=most) if count else None,
        }
        for loop, median, iterations, count, least, most in rows
    }


class Pauses(NamedTuple):
    """Pauses of a loop between its iterations, of more than two of them each; means over its processes."""

    occurrences: int
    idle_ns: float  # in which no GPU computes
    share: float  # idle part of the time from the first iteration to the last, 0 to 1


def pauses(con: Connection, *, first_use: bool = False) -> dict[int, Pauses]:
    """The pauses between iterations by loop, loops without any left out.

    first_use: those in which code was compiled that had never run before; else all others.
    """
    rows = con.execute(
        f"""
        select p.loop, p.occurrences, p.idle_ns, paused_part(p.idle_ns, f.total_ns, f.devices, p.outside_ns)
        from loop_extent f
        join (
            select loop, count(distinct (process, occurrence)) // count(distinct process) as occurrences,
                sum(idle_ns) / count(distinct process) as idle_ns,
                sum("end" - start) / count(distinct process) as outside_ns
            from loop_pause
            {"semi" if first_use else "anti"} join (from pause_first_use where compiles) using (loop, process, start)
            where between group by loop
        ) p using (loop)
        """
    ).fetchall()
    return {loop: Pauses(*values) for loop, *values in rows}


def paused(con: Connection, loop: Loop, most: float, *, first_use: bool = False) -> str:
    """A predicate for the GPU, on pauses between iterations that take more than this part of the time; empty where they
    do not.

    first_use: those in which code was compiled that had never run before.
    """
    found = pauses(con, first_use=first_use).get(loop.id)
    if found is None or found.share <= most:
        return ""
    count = "once" if found.occurrences == 1 else f"{found.occurrences} times"
    return (
        f"computed nothing {count}, for {dur(found.idle_ns)} in all: {pct(found.share)} of"
        " the time from the first iteration to the last"
    )


def qualified(verdict: Verdict, run: Run, settings: Mapping[str, float]) -> Verdict:
    """The verdict, which says so where the loops hold too little of the GPU's work to stand for the program."""
    if run.coverage is None or run.coverage >= settings["min_coverage"]:
        return verdict
    if any(loop.source == "nvtx" for loop in run.loops):  # the program's author marked what an iteration is
        return verdict
    what = "The part of the run that is analysed holds" if run.mode == "run" else "The loops of this report hold"
    text = f"{verdict.text} {what} only {pct(run.coverage)} of the GPU's work: of the rest nothing is said."
    return Verdict(state="cannot_tell" if verdict.state == "healthy" else verdict.state, text=text)


def recorded_computing(loop: Loop) -> float:
    """The part of the recorded iteration in which the GPU computes."""
    return loop.budget.get("compute", 0.0)


def computing(loop: Loop) -> float:
    """The part of an iteration in which the GPU computes; of its unprofiled time, where that is given.

    A copy that nothing hides and an exchange between GPUs keep the GPU from computing: they are no work done.
    """
    before = loop.iteration_ms_unprofiled or loop.iteration_ms
    return min(1.0, loop.budget.get("compute", 0.0) * loop.iteration_ms / before) if before else 0.0


def steady_computing(run: Run) -> float:
    """The part of all loops' time in which the GPU computes."""
    whole = sum(loop.share_of_span for loop in run.loops)
    return sum(computing(loop) * loop.share_of_span for loop in run.loops) / whole if whole else 0.0
