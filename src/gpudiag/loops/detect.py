"""Cold start, steady state and teardown; loops and their iterations. Runs after reading and before any view is asked.

A loop is found from NVTX ranges that repeat (`step_0`, `step_1` … are one loop; alternating siblings such as `data` and
`train` are one loop too), else from the period of the GPU operations (several, one after another), else the whole
steady state counts as one iteration and says so. An iteration lasts from its start to the next iteration's start: what
happens between two ranges (waiting for the next batch, logging) belongs to the loop. The first iterations are warm-up
and never count, nor do later ones that use code for the first time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import duckdb

from gpudiag.loops import analysed, coverage, joining, names, tuning
from gpudiag.loops.clip import WHOLE, SelectedRanges
from gpudiag.loops.from_modules import loops_from_modules
from gpudiag.loops.from_nvtx import loops_from_nvtx
from gpudiag.loops.iteration_bounds import (
    DONE,
    NEVER,
    Found,
    Iterations,
    Settings,
    belonging,
    kernel_work,
    temporary,
)
from gpudiag.loops.period.find import loops_from_period, whole_run

Connection = duckdb.DuckDBPyConnection


def detect(con: Connection, part: SelectedRanges = WHOLE) -> None:
    """Fill `loop`, `iteration`, `window` and `loop_coverage` from the events in the store; replaces what was there.

    part: what was selected, where that is not all. Needs the settings and the macros of the rules library to be loaded.
    """
    con.execute('delete from loop; delete from iteration; delete from "window"')
    settings: Settings = dict(con.execute("select name, value from setting").fetchall())
    owners = belonging(con)
    part = replace(part, cut_iterations=settings["cut_iterations"])
    if part.repeats(settings["min_iterations"]):
        loops = part.found(owners)
    else:
        with tuning.known(con):
            loops = part.whole_iterations(con, _with_work(con, loops_from_nvtx(con, settings, owners), settings))
            for (process,) in con.execute("select distinct process from gpu_op order by 1").fetchall():
                _look_further(con, loops, process, settings, owners, part)
    _write(con, [loop for loop in loops if loop.runs], settings)
    names.give(con, settings)
    coverage.write(con, settings)


def _with_work(con: Connection, loops: list[Found], settings: Settings) -> list[Found]:
    """The loops, without steps of a profiler that occur once and hold too little work to be judged."""
    for loop in loops:
        loop.runs = [
            run
            for run in loop.runs
            if len(run.bounds) > 1 or kernel_work(con, run.process, run.bounds)[1] >= settings["min_ops"]
        ]
    return [loop for loop in loops if loop.runs]


def _look_further(
    con: Connection,
    loops: list[Found],
    process: int,
    settings: Settings,
    owners: Mapping[int, tuple[str, int]],
    part: SelectedRanges,
) -> None:
    """Another loop of a process, unless those that were annotated stand for it."""
    inside = _annotated_work(con, loops, process)
    if _explained(con, inside, process, settings):
        return
    few = None if inside[1] else part.few_steps(process)
    if few:
        iterations = len(few.runs[0].bounds)
        cut = {
            **settings,
            "min_coverage": settings["min_coverage"] * iterations / (iterations + 2),
        }  # as may be one at each end
        if _explained(con, _annotated_work(con, [few], process), process, cut):
            joining.add(con, loops, few, owners, settings)
            return
    annotated = inside[1] >= settings["min_ops"]
    found = None if annotated else loops_from_modules(con, process, settings)
    if found is None:
        found = loops_from_period(con, process, settings, late=not annotated, several=not annotated)
    found = part.whole_iterations(con, found)
    if annotated and all(_ended_before(one, loops, process) for one in found):
        return  # nothing else repeats: what the annotated iterations do not hold is start-up or comes after them
    for loop in loops:
        loop.runs = [run for run in loop.runs if run.process != process]
    single = None if found else part.of_process(process) or part.clipped(con, whole_run(con, process, settings))
    for one in found or ([single] if single else []):
        joining.add(con, loops, one, owners, settings)


def _ended_before(found: Found, loops: list[Found], process: int) -> bool:
    """Return whether no iteration of a loop began after the annotated ones did: warm-up and tuning repeat as well.

    The GPU may still work on the last of them when the host is in an annotated one.
    """
    annotated = [run.bounds[0, 0] for loop in loops for run in loop.runs if run.process == process]
    return bool(annotated) and max(run.bounds[-1, 0] for run in found.runs) <= min(annotated)


def _annotated_work(con: Connection, loops: list[Found], process: int) -> tuple[float, int]:
    """Kernel time (ns) and count inside the annotated iterations of a process."""
    inside = [kernel_work(con, process, run.bounds) for loop in loops for run in loop.runs if run.process == process]
    return sum(ns for ns, _ in inside), sum(n for _, n in inside)


def _explained(con: Connection, inside: tuple[float, int], process: int, settings: Settings) -> bool:
    """Return whether the annotated loops hold enough of the process's kernels to stand for what it does."""
    time, count = kernel_work(con, process)
    least = settings["min_coverage"]
    return inside[1] > 0 and (inside[0] >= least * time or inside[1] >= least * count)


def _write(con: Connection, loops: list[Found], settings: Settings) -> None:
    by_torch = con.execute(
        "select p.id from process p join input i on i.id = p.input where i.kind = 'torch'"
    ).fetchall()
    for number, loop in enumerate(loops):
        part = analysed.part(con, loop, settings)
        warm = [
            0 if run.begun else _warm_up(len(run.bounds), settings, warmed=(run.process,) in by_torch)
            for run in loop.runs
        ]
        counts = [math.ceil(part * (len(run.bounds) - skip)) for run, skip in zip(loop.runs, warm, strict=True)]
        first = analysed.typical_stretch(loop, max(warm, default=0), max(counts, default=0), settings)
        for run, skip, count in zip(loop.runs, warm, counts, strict=True):
            _write_iterations(con, number, run, skip, max(skip, first), count)
            analysed.leave_out(con, number, run, settings)
    con.execute(
        """
        insert into loop by name
        with found as (
            select unnest(range(?)) as id, unnest(?::varchar[]) as name, unnest(?::varchar[]) as path,
                   unnest(?::varchar[]) as source, unnest(?::integer[]) as repeats
        ), steady as (
            select loop, count(distinct process) as processes, count(*) filter (in_steady_state) as iterations,
                   coalesce(sum("end" - start) filter (in_steady_state), 0) as length,
                   coalesce(avg("end" - start) filter (in_steady_state and analysed), 0) as each
            from iteration group by loop
        )
        select f.id, f.name, if(f.source = 'period', f.name, null) as marker, f.path as nvtx_path,
               f.source as period_source, s.processes, s.iterations as steady_iterations, s.length as steady_ns,
               s.each as iteration_ns, f.repeats,
               coalesce(s.length / nullif(sum(s.length) over (), 0), 0) as share_of_span
        from found f join steady s on s.loop = f.id
        """,
        [len(loops), *([getattr(loop, field) for loop in loops] for field in ("name", "path", "source", "repeats"))],
    )
    runs = [run for loop in loops for run in loop.runs]
    _write_windows(con, [run.process for run in runs if run.begun], [run.process for run in runs if run.goes_on])


def _write_iterations(con: Connection, loop: int, run: Iterations, warm: int, first: int, count: int) -> None:
    """Add one process's iterations of a loop, moved to where the GPU had finished what was queued before them.

    A host that runs far ahead passes its iterations in microseconds; the work of each is done much later. Only
    iterations that will be analysed, `count` from `first` on, are moved, and of these none that was cut out of a longer
    one.
    """
    enough = min(first + count, len(run.bounds))
    with temporary(con, "found_iteration", start=run.bounds[:, 0], until=run.bounds[:, 1]):
        con.execute(
            f"""
            insert into iteration
            with done as ({DONE}), moved as (
                select distinct t.start, greatest(t.start, coalesce(d.done, t.start)) as begins
                from (from found_iteration where $moves and ordinal between $first and $enough) t
                asof left join done d on d.start < t.start
            ), bounded as (
                select t.ordinal, coalesce(b.begins, t.start) as begins, coalesce(e.begins, t.until) as ends
                from found_iteration t left join moved b on b.start = t.start left join moved e on e.start = t.until
            )
            select (select count(*) from iteration) + ordinal, $loop, $process, $thread, ordinal, begins,
                   greatest(begins, ends), ordinal >= $warm,
                   ordinal < $warm or ordinal between $first and $enough - 1
            from bounded
            """,
            {
                "loop": loop,
                "process": run.process,
                "thread": run.thread,
                "warm": warm,
                "first": first,
                "moves": run.moves,
                "enough": enough,
                # What was launched as many iterations before is long done.
                "since": int(run.bounds[first - count, 0]) if first > count else NEVER,
                "last": int(run.bounds[min(enough, len(run.bounds) - 1), 1]),
            },
        )


def _warm_up(iterations: int, settings: Settings, *, warmed: bool) -> int:
    """Return the number of warm-up iterations: three or a tenth, at most half of few and a hundred of many.

    warmed: whether the profiler began after steps that it did not record.
    """
    if warmed:
        return min(int(settings["warm_up_profiled"]), iterations - 1)
    part = min(math.ceil(settings["warm_up_share"] * iterations), int(settings["warm_up_most"]))
    wanted = max(int(settings["warm_up_iterations"]), part)
    return 0 if iterations == 1 else min(wanted, iterations // 2)


def _write_windows(con: Connection, begun: list[int], going_on: list[int]) -> None:
    """Per process: before the first steady iteration, up to the last one's end, and after it, in the selected part.

    begun, going_on: processes that were in the steady state where the part begins, and where it ends.
    """
    con.execute(
        """
        insert into "window"
        with seen as (
            select process, min(start) as first, max("end") as last from (
                select process, start, "end" from api_call union all
                select process, start, "end" from gpu_op union all
                select process, start, "end" from nvtx_range
            ) group by process
        ), steady as (
            select process, min(start) as first, max("end") as last
            from iteration where in_steady_state group by process
        ), clipped as (
            select process, greatest(s.first, coalesce(p.start, s.first)) as first,
                   least(s.last, coalesce(p."end", s.last)) as last
            from seen s left join part p using (process)
        ), bounded as (
            select process, s.first, s.last,
                   if(list_contains($begun, process), s.first, greatest(s.first, coalesce(t.first, s.last))) as begins,
                   if(list_contains($going_on, process), s.last, least(s.last, coalesce(t.last, s.last))) as ends
            from clipped s left join steady t using (process)
        )
        select process, 'cold_start', first, greatest(first, begins) from bounded union all
        select process, 'steady_state', begins, ends from bounded where ends > begins union all
        select process, 'teardown', ends, greatest(last, ends) from bounded
        """,
        {"begun": begun, "going_on": going_on},
    )
