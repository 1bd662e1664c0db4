"""The head of the report: inputs, run, loops with their budgets, profiled kernels, and the verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from gpudiag.errors import GpudiagError
from gpudiag.kernels import MOST, measured
from gpudiag.library import Library, near
from gpudiag.model import Finding, Gain, Input, KernelUse, Loop, Note, NotEvaluated, Rule, Run, Verdict
from gpudiag.selecting.told import selected
from gpudiag.templating import clean, code, dur, pct

Connection = duckdb.DuckDBPyConnection

CATEGORIES = (
    "compute", "exposed_communication", "exposed_copy", "idle_launch", "idle_sync", "idle_input", "idle_allocation",
    "idle_other",
)  # fmt: skip
KERNELS = 30
NAMED = 3


def inputs(con: Connection) -> tuple[Input, ...]:
    rows = con.execute("select kind, file, producer, producer_version from input order by id").fetchall()
    return tuple(Input(kind=k, file=clean(f), producer=p, producer_version=v) for k, f, p, v in rows)


def run(con: Connection, settings: Mapping[str, float], iteration_times: Mapping[str, float]) -> Run:
    devices = con.execute("select name, clock_hz from device where name is not null order by id").fetchall()
    if not devices:  # a kernel page alone names them beside each launch
        rows = con.execute("select distinct device_name from kernel_profile where device_name is not null order by 1")
        devices = [(name, None) for (name,) in rows.fetchall()]
    spans = dict(con.execute('select kind, sum("end" - start) from "window" group by kind').fetchall())
    frameworks = [
        framework for (framework,) in con.execute("select framework from framework_seen order by 1").fetchall()
    ]
    order = ("pytorch", "cupy", "jax", "numba", "triton", "cuda", "any")
    return Run(
        devices=tuple(clean(name) for name, _ in devices),
        clocks_mhz=tuple(hz / 1e6 for _, hz in devices if hz),
        span_ms=sum(spans.values()) / 1e6,
        cold_start_ms=spans.get("cold_start", 0) / 1e6,
        loops=_loops(con, settings, iteration_times),
        kernels=measured(con, settings),
        frameworks=tuple(sorted(frameworks, key=order.index)),
        programs=_programs(con),
        selection=selected(con),
    )


def _programs(con: Connection) -> tuple[str, ...]:
    """Executables without their folders, which may tell of the user's machine."""
    rows = con.execute(
        "select distinct p.name from process p semi join gpu_op g on g.process = p.id where p.name is not null"
    ).fetchall()
    return tuple(sorted({clean(name.replace("\\", "/").rsplit("/", 1)[-1]) for (name,) in rows} - {""}))


def _loops(con: Connection, settings: Mapping[str, float], iteration_times: Mapping[str, float]) -> tuple[Loop, ...]:
    """Loops that matter, longest first. Raises GpudiagError when an iteration time names no loop."""
    budgets: dict[int, dict[str, float]] = defaultdict(lambda: dict.fromkeys(CATEGORIES, 0.0))
    counts, kernels = _counts(con), _kernels(con)
    for loop, category, share in con.execute("select loop, category, share from loop_budget").fetchall():
        budgets[loop][category] = float(share)
    rows = con.execute(
        """
        select id, name, nvtx_path, period_source, steady_iterations, processes, iteration_ns, share_of_span
        from loop where share_of_span >= ? and id in (select loop from loop_facts) order by share_of_span desc, id
        """,
        [settings["min_loop_share"]],
    ).fetchall()
    names = [clean(row[1]) for row in rows]
    unknown = [name for name in iteration_times if name and name not in names]
    if unknown:
        raise GpudiagError(f"--iteration-time names {unknown[0]!r}, but no loop is called so{near(unknown[0], names)}.")
    result = []
    for index, (number, _, path, source, turns, processes, length, share) in enumerate(rows):
        given = iteration_times.get(names[index], iteration_times.get("") if index == 0 else None)
        if given and source == "unknown":
            raise GpudiagError(
                "--iteration-time has nothing to be the time of: no repeated step was found here. Put an NVTX"
                " range around an iteration and record again."
            )
        result.append(
            Loop(
                id=number, name=names[index], nvtx_path=clean(path) if path else None, source=source, iterations=turns,
                processes=processes, iteration_ms=length / 1e6, iteration_ms_unprofiled=given / 1e6 if given else None,
                share_of_span=share, budget=budgets[number], kernels=kernels.get(number, ()), **counts.get(number, {}),
            )
        )  # fmt: skip
    return tuple(result)


def _counts(con: Connection) -> dict[int, dict[str, Any]]:
    """Each loop's launches and CUDA calls an iteration, and the deciles of its turns."""
    rows = con.execute(
        """
        select f.loop, f.kernels_per_turn, coalesce(c.calls, 0) / f.turns, coalesce(c.most, 0) / f.turns,
               [d / 1e6 for d in quantile_cont(t."end" - t.start, [0.1, 0.5, 0.9])]
        from loop_facts f join turn t using (loop)
        left join (
            select loop, sum(calls) as calls, max(calls) as most
            from (select loop, thread, count(*) as calls from call group by loop, thread) group by loop
        ) c using (loop) group by all
        """
    ).fetchall()
    return {
        loop: {"launches": launches, "calls": calls, "thread_calls": most, "deciles_ms": tuple(deciles)}
        for loop, launches, calls, most, deciles in rows
    }


def _kernels(con: Connection) -> dict[int, tuple[KernelUse, ...]]:
    """Each loop's kernels, longest first, those after KERNELS together."""
    rows = con.execute(
        """
        select k.loop, k.name, sum(k.launches) / any_value(f.turns), sum(k.total_ns) / any_value(f.turns) / 1e6 as ms
        from kernel_use k join loop_facts f using (loop) group by k.loop, k.name order by k.loop, ms desc, k.name
        """
    ).fetchall()
    uses: dict[int, list[KernelUse]] = defaultdict(list)
    for loop, name, launches, ms in rows:
        uses[loop].append(KernelUse(name=clean(name or ""), launches=launches, ms=ms))
    return {loop: (*found[:KERNELS], *_together(found[KERNELS:])) for loop, found in uses.items()}


def _together(uses: Sequence[KernelUse]) -> tuple[KernelUse, ...]:
    if not uses:
        return ()
    return (KernelUse(name="", launches=sum(u.launches for u in uses), ms=sum(u.ms for u in uses), others=len(uses)),)


def verdict(
    con: Connection,
    run: Run,
    findings: Sequence[Finding],
    settings: Mapping[str, float],
    minor: Sequence[Finding] = (),
) -> Verdict:
    """One sentence that a reader can act on. minor: findings too small to be listed."""
    nothing = _nothing_recorded(con)
    if nothing:
        return Verdict(state="cannot_tell", text=nothing)
    if findings:
        return Verdict(state="problems", text=_top(run, findings[0], settings["wide_interval"]))
    if run.kernels and not run.loops:
        slowest = run.kernels[0]
        all_of = "the longest " if len(run.kernels) == MOST else ""
        what = f"{all_of}{len(run.kernels)} profiled kernel{'s' if len(run.kernels) > 1 else ''}"
        if minor:
            text = f"Only small things were found in {what}: less than {pct(settings['min_share_bound'])} of their time"
            return Verdict(state="healthy", text=f"{text}. What surrounds them only a timeline tells.")
        text = f"Counters show no known fault in {what}; the longest is {code(slowest.name)}"
        return Verdict(state="healthy", text=f"{text}. What surrounds them only a timeline tells.")
    if not run.loops:
        row = con.execute("select count(*) from gpu_op").fetchone()
        few = f"Only {row[0] if row else 0} GPU operations were recorded"
        return Verdict(
            state="cannot_tell", text=f"{few}: too little to diagnose. Record some iterations of the steady loop."
        )
    main = run.loops[0]
    steady_ms = sum(loop.iteration_ms * loop.iterations for loop in run.loops)
    if main.source == "unknown" and steady_ms < settings["min_steady_share"] * run.span_ms:
        worked, recorded = dur(steady_ms * 1e6), dur(run.span_ms * 1e6)
        text = f"The GPU worked during {worked} of the {recorded} recorded, and nothing repeats"
        return Verdict(
            state="cannot_tell", text=f"{text}: too little to judge. Record some iterations of the steady loop."
        )
    if busy(main) < settings["min_busy_share"]:
        text = f"The GPU works only {pct(busy(main))} of {code(main.name)}"
        return Verdict(state="cannot_tell", text=f"{text}, and no rule that could be evaluated says why.")
    return Verdict(state="healthy", text=_healthy(con, run, main, settings["min_busy_share"]))


def unless_blind(verdict: Verdict, missing: Sequence[NotEvaluated], rules: Sequence[Rule]) -> Verdict:
    """The verdict on kernels alone, unless most rules about kernels lacked what they need."""
    about = {rule.code for rule in rules if rule.kind == "finding" and "kernel_profiles" in rule.requires}
    blind = about & {outcome.rule.code for outcome in missing}
    if not blind:
        return verdict
    lack = f"{len(blind)} of {len(about)} rules about kernels lack their counters"
    if 2 * len(blind) < len(about):
        return verdict.model_copy(update={"text": f"{verdict.text} On this page {lack}."})
    text = f"Too little was measured to judge: {lack}"
    return Verdict(
        state="cannot_tell",
        text=f"{text}. Profile with `--set full` and give the .ncu-rep, or its raw page (`--csv --page raw`).",
    )


def _healthy(con: Connection, run: Run, main: Loop, enough: float) -> str:
    """What is well, and what a timeline cannot see: whether the kernels that fill the GPU are good ones."""
    works = f"the GPU works {pct(busy(main))} of {code(main.name)}"
    text = f"The timeline is healthy: {works}, and no known fault is worth fixing."
    row = con.execute(
        "select short, sum(share) as part from kernel_use where loop = ?"
        " group by short order by part desc, short limit 1",
        [main.id],
    ).fetchone()
    if row is None or busy(main) < enough or any(kernel.share_of_loop is not None for kernel in run.kernels):
        return text
    name, part = clean(row[0]), float(row[1])
    other = " None of the kernels profiled runs in it." if run.kernels else ""
    return (
        f"{text}{other} Whether its kernels are fast it cannot tell; {code(name)} takes {pct(part)}:"
        " `gpudiag next` says how to measure it."
    )


def busy(loop: Loop) -> float:
    """The part of an iteration in which the GPU works; of its unprofiled time, where that is given."""
    share = sum(share for category, share in loop.budget.items() if not category.startswith("idle"))
    return min(1.0, share * loop.iteration_ms / (loop.iteration_ms_unprofiled or loop.iteration_ms))


def _top(run: Run, first: Finding, wide: float) -> str:
    gain = first.gain
    if gain.kind == "test_needed":
        return f"{first.title}; only an experiment can tell what it costs."
    loop = next((loop for loop in run.loops if loop.id == gain.loop), None)
    if loop and gain.after_ms == 0:
        return f"{first.title}: that is all of {code(loop.name)}."
    of = f"an iteration of {code(loop.name)}" if loop else "the kernel's time"
    if loop and loop.source == "unknown":
        of = "the recorded work"
    size = {"expected": "about", "lower_bound": "at least"}.get(gain.kind, "at most")
    return f"{first.title}. Fixing it would save {size} {pct(gain.share)} of {of}{_between(gain, wide)}."


def _between(gain: Gain, wide: float) -> str:
    """The interval, where `about` alone would promise too much certainty."""
    if gain.kind != "expected" or not gain.before_ms or gain.low_ms is None or gain.high_ms is None:
        return ""
    least, most = 1 - gain.high_ms / gain.before_ms, 1 - gain.low_ms / gain.before_ms
    return f" (between {pct(max(0.0, least))} and {pct(most)})" if most - least > wide else ""


def unreplayed(run: Run, missed: Mapping[int, float]) -> tuple[Note, ...]:
    """A note for each loop whose replay is not to be believed; missed: loop → replayed over recorded time, less one."""
    return tuple(
        Note(
            code="REPLAY",
            title="A loop could not be replayed",
            text=f"Replaying {code(loop.name)} takes {pct(abs(missed[loop.id]))}"
            f" {'less' if missed[loop.id] < 0 else 'more'} than"
            f" {'the time given' if loop.iteration_ms_unprofiled else 'it took'}, and the profiler does not explain the"
            " rest: the gains of its fixes are bounds only.",
        )
        for loop in run.loops
        if loop.id in missed
    )


def uneven(con: Connection, library: Library) -> tuple[Note, ...]:
    """A note where one timeline lacks what another has: a rule that is clear has seen only those that have it."""
    rows = con.execute(
        """
        select c.name, list(i.file order by i.id) filter (where c.state = 'not_recorded')
        from capability c join input i on i.id = c.input
        where i.kind = 'nsys' and c.name in ('cuda_api', 'gpu_ops', 'nvtx', 'python_samples', 'os_calls')
        group by c.name
        having count(*) filter (where c.state = 'not_recorded') > 0 and count(*) filter (where c.state = 'recorded') > 0
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
        )
        for files, meanings in lacking.items()
    )


def _some(files: Sequence[str]) -> str:
    """The first files by name."""
    named = ", ".join(code(clean(file)) for file in files[:NAMED])
    return f"{named} and {len(files) - NAMED} more" if len(files) > NAMED else named


def _nothing_recorded(con: Connection) -> str | None:
    """Why nothing can be said, when neither GPU work nor kernel profiles nor a CPU-only loop were recorded."""
    row = con.execute("select (select count(*) from gpu_op), (select count(*) from kernel_profile)").fetchone()
    assert row is not None
    if row[0] or row[1]:
        return None
    known = con.execute("select how from capability where name = 'gpu_ops' and how is not null").fetchall()
    warned = con.execute(
        "select text from diagnostic where severity in ('warning', 'error')"
        " and (severity = 'error' or regexp_matches(text, 'CUDA|GPU')) order by severity, time, text limit 1"
    ).fetchall()
    because = warned[0][0] if warned else known[0][0] if known else "the capture holds none"
    return f"No GPU activity was recorded, because {clean(because).rstrip('.')}; nothing can be said about the GPU."
