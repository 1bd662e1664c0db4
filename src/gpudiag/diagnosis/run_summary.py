"""The head of the report: inputs, run, loops with their budgets, profiled kernels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from gpudiag.diagnosis import iteration_time_check, loop_names, loop_share, phases
from gpudiag.diagnosis.kernels import measured
from gpudiag.diagnosis.validate_report import LARGEST
from gpudiag.errors import GpudiagError
from gpudiag.library.catalogue import Library
from gpudiag.library.rule_file import near
from gpudiag.model import Input, KernelUse, Loop, Note, Run
from gpudiag.model.vocabulary import BUDGET, FRAMEWORKS
from gpudiag.selection.summary import selected
from gpudiag.text.format import base_name, clean, code, pct

Connection = duckdb.DuckDBPyConnection

_DEVICES = """
select d.name, d.clock_hz from device d join input i on i.id = d.input
where d.name is not null and i.kind {} 'smi' order by d.id
"""
ONLY_A_TIMELINE = (
    "What the program does with the GPU, and what keeps it waiting, only a timeline tells: record one with"
    " `nsys profile`, and explain it with this beside it."
)
EACH_ALONE = "Explain each by itself, or compare them with `gpudiag diff`."
KERNELS = 30
NAMED = 3


def inputs(con: Connection) -> tuple[Input, ...]:
    rows = con.execute("select kind, file, producer, producer_version from input order by id").fetchall()
    return tuple(Input(kind=k, file=clean(f), producer=p, producer_version=v) for k, f, p, v in rows)


def run(con: Connection, settings: Mapping[str, float], iteration_times: Mapping[str, float]) -> Run:
    devices = con.execute(_DEVICES.format("<>")).fetchall()
    if not devices:  # a kernel page alone names them beside each launch
        rows = con.execute("select distinct device_name from kernel_profile where device_name is not null order by 1")
        devices = [(name, None) for (name,) in rows.fetchall()] or con.execute(_DEVICES.format("=")).fetchall()
    spans = dict(con.execute('select kind, sum("end" - start) from "window" group by kind').fetchall())
    frameworks = [name for (name,) in con.execute("select framework from framework_seen order by 1").fetchall()]
    order = tuple(FRAMEWORKS)
    loops = _loops(con, settings, iteration_times)
    return Run(
        devices=tuple(clean(name) for name, _ in devices),
        clocks_mhz=tuple(hz / 1e6 for _, hz in devices if hz),
        measured_clocks_mhz=_measured_clocks(con),
        span_ms=sum(spans.values()) / 1e6,
        cold_start_ms=spans.get("cold_start", 0) / 1e6,
        **loop_share.of_loops(con, loops),
        loops=loops,
        kernels=measured(con, settings),
        frameworks=tuple(sorted(frameworks, key=order.index)),
        programs=_programs(con),
        selection=selected(con),
    )


def _measured_clocks(con: Connection) -> tuple[float, ...]:
    """Median clocks of the GPUs under load, by logs of nvidia-smi."""
    rows = con.execute(
        "select clock from smi_gpu where clock > 0 and loaded >= setting('smi_min_readings') order by device"
    ).fetchall()
    return tuple(float(clock) for (clock,) in rows)


def without_timeline(con: Connection) -> str | None:
    """Return what logs of nvidia-smi and profiles of cProfile show, in words; None where anything else was given."""
    kinds = {kind for (kind,) in con.execute("select kind from input").fetchall()}
    if not kinds or kinds - {"smi", "cprofile"}:
        return None
    return ". ".join(part for part in (_of_log(con), _of_profile(con)) if part)


def _of_profile(con: Connection) -> str:
    row = con.execute(
        "select function, share from python_function_time where share is not null order by share desc, function limit 1"
    ).fetchone()
    return f"By cProfile {code(row[0])} takes the most of the host's time, {pct(row[1])}" if row else ""


def _of_log(con: Connection) -> str:
    rows = con.execute("select utilization_pct from smi_gpu order by utilization_pct desc nulls last").fetchall()
    if not rows:
        return ""
    if rows[0][0] is None:
        return "The log of nvidia-smi does not say whether the GPU had work"
    which = f" of the busiest of {len(rows)} GPUs" if len(rows) > 1 else ""
    return f"In the log of nvidia-smi a kernel ran in {pct(rows[0][0] / 100)} of the time{which}"


def _programs(con: Connection) -> tuple[str, ...]:
    """Executables without their folders, which may tell of the user's machine."""
    rows = con.execute(
        "select distinct p.name from process p semi join gpu_op g on g.process = p.id where p.name is not null"
    ).fetchall()
    return tuple(sorted({clean(base_name(name)) for (name,) in rows} - {""}))


def _loops(con: Connection, settings: Mapping[str, float], iteration_times: Mapping[str, float]) -> tuple[Loop, ...]:
    """Loops that matter, longest first. Raises GpudiagError when an iteration time names no loop."""
    budgets: dict[int, dict[str, float]] = defaultdict(lambda: dict.fromkeys(BUDGET, 0.0))
    counts, kernels, parts, file_of = _counts(con), _kernels(con), phases.of_loops(con, settings), files(con)
    unlike_mean = loop_share.unlike_mean(con, settings)
    paused = {loop: found.share for loop, found in loop_share.pauses(con).items() if found.occurrences > 1}
    for loop, category, share in con.execute("select loop, category, share from loop_budget").fetchall():
        budgets[loop][category] = float(share)
    rows = con.execute(
        """
        select id, name, marker, nvtx_path, period_source, steady_iterations, processes, iteration_ns, repeats,
            share_of_span
        from loop where share_of_span >= ? and id in (select loop from loop_facts) order by share_of_span desc, id
        """,
        [settings["min_loop_share"]],
    ).fetchall()
    result = [
        Loop(
            id=number, name=clean(name), marker=clean(marker) if marker else None,
            nvtx_path=clean(path) if path else None, source=source,
            iterations=iterations, processes=processes, iteration_ms=length / 1e6, repeats=repeats,
            file=file_of.get(number), share_of_span=share, paused_share=paused.get(number), budget=budgets[number],
            kernels=kernels.get(number, ()), phases=parts.get(number, ()), **counts.get(number, {}),
            **unlike_mean.get(number, {}),
        )
        for number, name, marker, path, source, iterations, processes, length, repeats, share in rows
    ]  # fmt: skip
    given = _given(result, iteration_times)
    return tuple(iteration_time_check.timed(loop, given.get(loop.id), settings) for loop in result)


def files(con: Connection) -> dict[int, str]:
    """The file of each loop that is of one alone, where several files have loops."""
    rows = con.execute(
        """
        select t.loop, any_value(i.file), count(distinct i.id)
        from (select distinct loop, process from iteration) t join process p on p.id = t.process
        join input i on i.id = p.input group by t.loop
        """
    ).fetchall()
    found = {loop: clean(file) for loop, file, count in rows if count == 1}
    return found if len(set(found.values())) > 1 else {}


def _given(loops: Sequence[Loop], iteration_times: Mapping[str, float]) -> dict[int, float]:
    """Loop → the time that was given for it (ms). Raises GpudiagError when one is given for no loop."""
    times: dict[int, float] = {}
    for name, time in sorted(iteration_times.items()):  # that of the longest comes first: one by name counts more
        found = loop_names.called(name, loops, iteration_time_check.OPTION) if name else loops[:1]
        if name and not found:
            hint = near(name, [loop.name for loop in loops])
            raise GpudiagError(f"{iteration_time_check.OPTION} names {name!r}, but no loop is called so{hint}.")
        if time and any(loop.source == "unknown" for loop in found):
            raise GpudiagError(
                "--iteration-time has nothing to be the time of: nothing was found here that repeats. Put an NVTX"
                " range around an iteration and record again."
            )
        times |= {loop.id: time / 1e6 for loop in found if time}
    return times


def _counts(con: Connection) -> dict[int, dict[str, Any]]:
    """Each loop's launches and CUDA calls an iteration, its deciles, and how many iterations are analysed."""
    rows = con.execute(
        """
        select f.loop, if(f.iterations < l.steady_iterations, f.iterations, null), f.kernels_per_iteration,
               coalesce(c.calls, 0) / f.iterations, coalesce(c.most, 0) / f.iterations,
               [d / 1e6 for d in quantile_cont(t."end" - t.start, [0.1, 0.5, 0.9])],
               coalesce(b.bytes, 0) / f.iterations, g.n / f.iterations, g.ns / 1e6 / f.iterations
        from loop_facts f join analysed_iteration t using (loop) join loop l on l.id = f.loop
        left join (
            select loop, sum(calls) as calls, max(calls) as most
            from (select loop, thread, count(*) as calls from call group by loop, thread) group by loop
        ) c using (loop)
        left join (select loop, sum(bytes) as bytes from transfer group by loop) b using (loop)
        left join (
            select loop, count(*) as n, sum(duration_ns) as ns from loop_gpu_op where kind = 'graph' group by loop
        ) g using (loop) group by all
        """
    ).fetchall()
    return {
        loop: {
            "analysed_iterations": analysed,
            "launches": launches,
            "calls": calls,
            "thread_calls": most,
            "deciles_ms": tuple(deciles),
            "copied_bytes": _possible(copied),
            "graphs": None if graphs is None else KernelUse(name="", launches=graphs, ms=graph_ms),
        }
        for loop, analysed, launches, calls, most, deciles, copied, graphs, graph_ms in rows
    }


def _possible(count: float | None) -> float | None:
    """Return a count that a report may hold; a damaged file's may be too large to be one."""
    return count if count is not None and count <= LARGEST else None


def _kernels(con: Connection) -> dict[int, tuple[KernelUse, ...]]:
    """Each loop's kernels, longest first, those after KERNELS together."""
    rows = con.execute(
        """
        select k.loop, k.name, sum(k.launches) / any_value(f.iterations),
               sum(k.total_ns) / any_value(f.iterations) / 1e6 as ms,
               if(bool_and(k.grid > 0 and k.block > 0), sum(k.launches::double * k.grid * k.block), null)
                   / any_value(f.iterations)
        from kernel_use k join loop_facts f using (loop) group by k.loop, k.name order by k.loop, ms desc, k.name
        """
    ).fetchall()
    uses: dict[int, list[KernelUse]] = defaultdict(list)
    for loop, name, launches, ms, threads in rows:
        uses[loop].append(KernelUse(name=clean(name or ""), launches=launches, ms=ms, threads=_possible(threads)))
    return {loop: (*found[:KERNELS], *_together(found[KERNELS:])) for loop, found in uses.items()}


def _together(uses: Sequence[KernelUse]) -> tuple[KernelUse, ...]:
    launches, ms = sum(use.launches for use in uses), sum(use.ms for use in uses)
    return (KernelUse(name="", launches=launches, ms=ms, others=len(uses)),) if uses else ()


def uneven(con: Connection, library: Library) -> tuple[Note, ...]:
    """A note where one timeline lacks what another has: a rule that is clear has seen only those that have it."""
    rows = con.execute(
        """
        select c.name, list(i.file order by i.id) filter (where c.state = 'not_recorded')
        from capability c join input i on i.id = c.input
        where i.kind in ('nsys', 'torch') and c.name in ('cuda_api', 'gpu_ops', 'nvtx', 'python_samples', 'os_calls')
        group by c.name having count(distinct c.state) filter (where c.state in ('recorded', 'not_recorded')) > 1
        order by c.name
        """
    ).fetchall()
    lacking: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, files in rows:
        if about := library.capability(name):
            lacking[tuple(files)].append(about.meaning)
    return tuple(
        Note(
            code="UNEVEN",
            title="Some files lack what others have",
            text=f"{_some(files)} did not record {', '.join(meanings)}: what is said of these rests on the others.",
            severity="low",
        )
        for files, meanings in lacking.items()
    )


def apart(con: Connection) -> tuple[Note, ...]:
    """A note where timelines were recorded one after the other, as far as their clocks tell: hardly one run."""
    rows = con.execute(
        """
        with recorded as (
            select i.file, min(g.start) + any_value(i.clock_offset_ns) as began,
                max(g."end") + any_value(i.clock_offset_ns) as ended
            from gpu_op g join process p on p.id = g.process join input i on i.id = p.input
            group by i.id, i.file
        ),
        earlier as (
            select file, began,
                max(ended) over (order by began, file rows between unbounded preceding and 1 preceding) as before
            from recorded where began is not null
        )
        select file from earlier where before is null or began > before order by began
        """
    ).fetchall()
    if len(rows) < 2:
        return ()
    text = (
        f"By their clocks these were not recorded at the same time: {_some([file for (file,) in rows])}. If they are no"
        f" parts of one run, {EACH_ALONE[:1].lower()}{EACH_ALONE[1:]}"
    )
    return (Note(code="APART", title="The files were recorded at different times", text=text, severity="high"),)


def other_gpu(con: Connection) -> tuple[Note, ...]:
    """A note where a log of nvidia-smi names none of the GPUs that the other files are of."""
    named = {
        of_log: sorted({name for (name, _) in con.execute(_DEVICES.format(is_log)).fetchall() if name})
        for of_log, is_log in ((True, "="), (False, "<>"))
    }
    if not named[True] or not named[False] or set(named[True]) & set(named[False]):
        return ()
    log, recorded = (", ".join(clean(name) for name in named[of_log]) for of_log in (True, False))
    text = (
        f"The log of nvidia-smi is of {log}, the recording of {recorded}: what the log says of clocks, heat and memory"
        " is not about this recording. Give the log that was written beside it."
    )
    return (Note(code="GPU", title="The log is of another GPU", text=text, severity="medium"),)


def _some(files: Sequence[str]) -> str:
    """The first files by name."""
    named = ", ".join(code(clean(file)) for file in files[:NAMED])
    return f"{named} and {len(files) - NAMED} more" if len(files) > NAMED else named
