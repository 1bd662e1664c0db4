"""The verdict: one sentence on the whole report, and whether the replays behind it are believed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import duckdb

from gpudiag.diagnosis import iteration_time_check, loop_share, run_summary
from gpudiag.diagnosis.callers import host_calls
from gpudiag.diagnosis.kernels import MOST, few_warps
from gpudiag.diagnosis.loop_share import computing, recorded_computing, steady_computing
from gpudiag.diagnosis.time_tree import graph_share
from gpudiag.model import Finding, Gain, Loop, Note, NotEvaluated, Rule, Run, Verdict
from gpudiag.model.vocabulary import LEAVES
from gpudiag.replay.gains import GainCalculator
from gpudiag.replay.simulate import Doubt
from gpudiag.text.format import base_name, clause, clean, code, dur, pct, plural

Connection = duckdb.DuckDBPyConnection

WHOLE = "the recorded work"
_ONLY_MORE = "Whether such pauses return, only a recording of more iterations tells."


def verdict(
    con: Connection,
    run: Run,
    findings: Sequence[Finding],
    settings: Mapping[str, float],
    minor: Sequence[Finding] = (),
    doubts: Mapping[int, Doubt] | None = None,
) -> Verdict:
    """One sentence that a reader can act on. minor: findings too small to be listed; doubts: why a loop's replay is not
    believed, by loop.
    """
    nothing = _nothing_recorded(con, settings)
    if nothing and (state := run_summary.without_timeline(con)):  # never healthy, and never a cause
        shown = findings[0].title if findings else state
        return Verdict(state="problems" if findings else "cannot_tell", text=f"{shown}. {run_summary.ONLY_A_TIMELINE}")
    if nothing:
        return Verdict(state="cannot_tell", text=nothing)
    if findings:
        return Verdict(state="problems", text=_top(run, findings[0], settings["wide_interval"]))
    if run.kernels and not run.loops:
        slowest = run.kernels[0]
        all_of = "the longest " if len(run.kernels) == MOST else ""
        what = f"{all_of}{len(run.kernels)} profiled kernel{'s' if len(run.kernels) > 1 else ''}"
        text = f"Counters show no known fault in {what}; the longest is {code(slowest.name)}"
        if minor:
            text = f"Only small things were found in {what}: less than {pct(settings['min_share_bound'])} of their time"
        return Verdict(state="healthy", text=f"{text}. What surrounds them only a timeline tells.")
    if few := too_little(con, run, settings):
        return Verdict(state="cannot_tell", text=few)
    return _of_timeline(con, run, settings, minor, doubts or {})


def unless_doubted(verdict: Verdict, doubts: Sequence[str], lost: Sequence[str], apart: Sequence[Note]) -> Verdict:
    """The verdict, but no healthy one where rules are in doubt, or notes say that the files are hardly of one run; and
    none at all where the profiler lost the GPU's work.
    """
    if lost and verdict.state != "problems":
        return Verdict(state="cannot_tell", text=f"Too little GPU work is left in the recording. {lost[0]}")
    if verdict.state != "healthy" or not (doubts or apart):
        return verdict
    text = f"No known fault was found, but that does not mean that all is well. {doubts[0]}" if doubts else ""
    return Verdict(state="cannot_tell", text=text or f"{apart[0].title}. {run_summary.EACH_ALONE}")


def too_little(con: Connection, run: Run, settings: Mapping[str, float]) -> str | None:
    """Return why the recorded GPU work is too little to judge; None where it is enough."""
    if run.kernels and not run.loops:
        return None
    if not run.loops:
        row = con.execute("select count(*) from gpu_op").fetchone()
        count = row[0] if row else 0
        few = f"Only {plural(count, 'GPU operation')} {'was' if count == 1 else 'were'} recorded"
        return f"{few}: too little to diagnose. Record some iterations of the steady loop."
    steady_ms = sum(loop.iteration_ms * loop.iterations for loop in run.loops)
    if run.loops[0].source == "unknown" and steady_ms < settings["min_steady_share"] * run.span_ms:
        worked, recorded = dur(steady_ms * 1e6), dur(run.span_ms * 1e6)
        text = f"The GPU worked during {worked} of the {recorded} recorded, and nothing repeats"
        return f"{text}: too little to judge. Record some iterations of the steady loop."
    return None


def _of_timeline(
    con: Connection, run: Run, settings: Mapping[str, float], minor: Sequence[Finding], doubts: Mapping[int, Doubt]
) -> Verdict:
    """The verdict where no finding is worth listing: healthy only where the GPU computes nearly all the time."""
    main = run.loops[0]
    where, small = _named(main), _small(minor)
    if main.id in doubts and doubts[main.id].kind == "held":
        text = f"The GPU computes {pct(computing(main))} of {where}, but what sets its pace was not recorded"
        return Verdict(state="cannot_tell", text=f"{text}: no fix could be priced.{small}")
    # Where it computes all but a sliver of the time, there is nothing that a replay would have to price.
    rest = 1 - recorded_computing(main)
    if main.id in doubts and (main.iteration_ms_unprofiled or rest >= settings["min_share_expected"]):
        given = "the time given" if main.iteration_ms_unprofiled else "the recorded time"
        text = f"Replaying {where} does not give {given}, so no fix could be priced; as recorded, the GPU computes"
        return Verdict(state="cannot_tell", text=f"{text} {pct(recorded_computing(main))}.{small}")
    share, enough = steady_computing(run), settings["min_computing_share"]
    if share >= enough and computing(main) >= enough:
        most, works = settings["most_paused_share"], f"The GPU computes {pct(computing(main))} of {where}"
        if paused := loop_share.paused(con, main, most):
            return Verdict(
                state="cannot_tell", text=f"{works}, but between its iterations it {paused}. {_ONLY_MORE}{small}"
            )
        text = _healthy(con, run, main, settings, minor)
        if paused := loop_share.paused(con, main, most, first_use=True):
            building = "while code was built that had never run before"
            text = f"{text} But between iterations of {code(main.name)} the GPU {paused}, {building}. {_ONLY_MORE}"
        return Verdict(state="healthy", text=text)
    worst = (
        main if computing(main) < enough else min(run.loops, key=lambda one: (1 - computing(one)) * -one.share_of_span)
    )
    where = _named(worst)
    if not con.execute("select 1 from gpu_op where kind in ('kernel', 'graph') limit 1").fetchall():
        text = f"No kernel was recorded in {where}, so what the GPU computed is not known"
        return Verdict(state="cannot_tell", text=f"{text}.{small}")
    only = f"The GPU computes only {pct(computing(worst))} of {where}{_instead(worst)}"
    longer = iteration_time_check.longer(worst, where, recorded_computing(worst), enough)
    text = longer or f"{only}{_no_fix(worst, settings)}"
    return Verdict(state="cannot_tell", text=f"{text}.{small}")


def _named(loop: Loop) -> str:
    """Return the loop's name, or what stands for one where nothing repeats."""
    return WHOLE if loop.source == "unknown" else code(loop.name)


def _instead(loop: Loop) -> str:
    """Name the largest leaf of the rest, and where the host was meanwhile."""
    rest = {name: leaf.share for name, leaf in loop.tree.items() if name != "computing" and leaf.share > 0}
    if not rest:
        return ""
    name = max(rest, key=lambda one: rest[one])
    text = f"; {pct(rest[name])} it {LEAVES[name].does}"
    place = next((place for one in loop.unclaimed if one.leaf == name for place in one.where if place.file), None)
    if place is None:
        return text
    at = code(base_name(place.file or "") + (f":{place.line}" if place.line else ""))
    return f"{text}, in {code(place.function)} ({at})" if place.function else f"{text}, in {at}"


def _no_fix(loop: Loop, settings: Mapping[str, float]) -> str:
    """Say that no rule names a fix, unless a note explains most of the idle time: code that is built only at first."""
    rest = math.fsum(leaf.share for name, leaf in loop.tree.items() if name != "computing")
    building = loop.tree.get("compiling")
    if building and building.claimed >= settings["most_share"] * rest > 0:
        return ""
    return ", and no rule that could be evaluated names a fix"


def _small(minor: Sequence[Finding]) -> str:
    """A sentence that names what fired and is too small to be listed first."""
    names = sorted({finding.code for finding in minor if finding.gain.kind != "test_needed"})
    return f" What fired ({', '.join(names)}) stands under smaller things." if names else ""


NEAREST = {
    "dram": "DRAM bandwidth", "l2": "the L2 cache", "l1": "the L1 cache or shared memory",
    "memory": "the memory system", "pipe": "a compute pipe", "tensor": "the tensor cores",
    "issue": "the issue of instructions", "sm": "SM throughput",
}  # fmt: skip


def unless_blind(
    verdict: Verdict, run: Run, missing: Sequence[NotEvaluated], rules: Sequence[Rule], settings: Mapping[str, float]
) -> Verdict:
    """The verdict on kernels alone, unless too many rules lacked what they need to call a kernel healthy.

    At a peak of the hardware few rules could find anything; below it, each rule that lacks its counters may be the one.
    """
    about = {rule.code for rule in rules if rule.kind == "finding" and "kernel_profiles" in rule.requires}
    blind = about & {outcome.rule.code for outcome in missing}
    slowest = run.kernels[0]
    busy_pct, nearest = slowest.facts.get("busy_pct", 0.0), slowest.facts.get("limit")
    if not blind:
        return verdict
    lack = f"{len(blind)} of {len(about)} rules about kernels lack their counters"
    at_peak = nearest in ("dram", "pipe", "tensor") and busy_pct >= settings["roof_reached_pct"]
    if 2 * len(blind) < len(about) and at_peak:  # caches and issue may be busy with work that need not be done
        return verdict.model_copy(update={"text": f"{verdict.text} On this page {lack}."})
    text = f"Too little was measured to judge: {lack}"
    if nearest in NEAREST:
        text = (
            f"{code(slowest.name)} is limited by {NEAREST[nearest]}, {pct(busy_pct / 100)} of its peak;"
            f" why, cannot be known: {lack}"
        )
    elif nearest == "latency":
        text = f"{code(slowest.name)} keeps no unit more than {pct(busy_pct / 100)} busy; why, cannot be known: {lack}"
    return Verdict(
        state="cannot_tell",
        text=f"{text}. Profile with `--set full` and give the .ncu-rep, or its raw page (`--csv --page raw`).",
    )


def _healthy(con: Connection, run: Run, main: Loop, settings: Mapping[str, float], minor: Sequence[Finding]) -> str:
    """Say what is well, and what a timeline cannot show: the efficiency of the kernels that fill the GPU."""
    works = f"the GPU computes {pct(computing(main))} of {_named(main)}"
    least = settings["min_share_expected"]
    most = max((one.gain for one in minor if one.gain.kind == "upper_bound"), key=lambda gain: gain.share, default=None)
    worth = f"is worth {100 * least:g} % or more"
    if most and most.share >= least:  # too little to be listed first, as it may be nothing
        worth = f"could save more than {pct(most.share)}"
    text = f"The timeline is healthy: {works}, and no fix that gpudiag knows {worth}."
    used = "select short, sum(share) as part from kernel_use where loop = ? group by short"
    row = con.execute(f"{used} order by part desc, short limit 1", [main.id]).fetchone()
    if row is None or any(kernel.share_of_loop is not None for kernel in run.kernels):
        return text
    name, part = clean(row[0]), float(row[1])
    if (hidden := graph_share(con, main)) > part:
        where = f"{pct(hidden)} of it runs inside CUDA graphs, whose kernels were not recorded"
        return f"{text} {where}: whether they are fast it cannot tell, and `gpudiag next` says how to record them."
    other = " None of the kernels profiled runs in it." if run.kernels else ""
    return (
        f"{text}{other} Whether its kernels are fast it cannot tell; {code(name)} takes {pct(part)}"
        f"{few_warps(con, main.id, row[0], settings)}: `gpudiag next` says how to measure it."
    )


def _top(run: Run, first: Finding, wide: float) -> str:
    gain = first.gain
    if gain.kind == "test_needed" and gain.basis == "kernel" and first.severity == "info":
        return f"{_sentence(first.message)} The sections given do not tell why."
    if gain.kind == "test_needed":
        return f"{first.title}; only an experiment can tell what it costs."
    loop = next((loop for loop in run.loops if loop.id == gain.loop), None)
    if loop and gain.after_ms == 0:
        return f"{first.title}: that is all of {code(loop.name)}."
    of = f"an iteration of {code(loop.name)}" if loop else "the kernel's time"
    if loop and loop.source == "unknown":
        of = "the recorded work"
    if gain.uncertain and gain.interval:
        least, most = gain.interval
        saved = f"between {pct(least)} and {pct(most)} of {of}, perhaps {pct(gain.share)}"
        return f"{first.title}. Fixing it would save {saved}."
    size = {"expected": "about", "lower_bound": "at least"}.get(gain.kind, "at most")
    return f"{first.title}. Fixing it would save {size} {pct(gain.share)} of {of}{_between(gain, wide)}."


def _sentence(text: str) -> str:
    """The first sentence of a text."""
    return text.split(". ", maxsplit=1)[0].rstrip(".") + "."


def _between(gain: Gain, wide: float) -> str:
    """The interval, where `about` alone would promise too much certainty."""
    if gain.kind != "expected" or gain.interval is None:
        return ""
    least, most = gain.interval
    return f" (between {pct(least)} and {pct(most)})" if most - least > wide else ""


def _nothing_recorded(con: Connection, settings: Mapping[str, float]) -> str | None:
    """Explain why nothing can be said when neither GPU work nor kernel profiles nor a CPU-only loop were recorded."""
    row = con.execute("select (select count(*) from gpu_op), (select count(*) from kernel_profile)").fetchone()
    assert row is not None
    if row[0] or row[1]:
        return None
    known = con.execute(
        "select c.how from capability c join input i on i.id = c.input where c.name = 'gpu_ops' and c.how is not null"
        " order by i.kind in ('smi', 'cprofile'), i.id"
    ).fetchall()
    because = known[0][0] if known else "the capture holds none"
    said = f"No GPU activity was recorded, because {clause(clean(because))}; nothing can be said about the GPU."
    return said + host_calls.longest(con, settings["min_share_bound"])


def doubts(run: Run, ledger: GainCalculator, findings: Sequence[Finding]) -> dict[int, Doubt]:
    """Return why a loop's replay is not believed, by loop. Without a finding the main loop is replayed all the same."""
    if not findings and run.loops and run.loops[0].source != "unknown":
        ledger.model(run.loops[0])
    return ledger.doubts


def unreplayed(run: Run, doubts: Mapping[int, Doubt]) -> tuple[Note, ...]:
    """A note for each loop whose replay is not to be believed."""
    return tuple(
        Note(code="REPLAY", title="A loop could not be replayed", text=_doubt(loop, doubts[loop.id]), severity="medium")
        for loop in run.loops
        if loop.id in doubts
    )


def _doubt(loop: Loop, doubt: Doubt) -> str:
    if doubt.kind == "held":
        return (
            f"The GPU computes {pct(computing(loop))} of {code(loop.name)}, but replaying it without any work takes"
            f" nearly as long ({pct(1 + doubt.off)}): a wait whose cause was not recorded sets the pace of the replay,"
            " so the gains of fixes are bounds only."
        )
    return (
        f"Replaying {code(loop.name)} takes {pct(abs(doubt.off))} {'less' if doubt.off < 0 else 'more'} than"
        f" {'the time given' if loop.iteration_ms_unprofiled else 'it took'}, and the profiler does not explain the"
        " rest: the gains of its fixes are bounds only."
    )
