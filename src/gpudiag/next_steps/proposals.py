"""The next steps in words: the kernels to profile, what each profile would decide, and the command that takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import duckdb
from pydantic import Field

from gpudiag.diagnosis.loop_share import computing
from gpudiag.diagnosis.time_tree import graph_share
from gpudiag.model import Finding, Frozen, Loop, Row, Run, Selected, Verdict
from gpudiag.model.vocabulary import BUDGET
from gpudiag.next_steps import ncu_command
from gpudiag.next_steps.candidates import KernelCandidate, LoopView, launches
from gpudiag.text.format import byte_size, clean, code, num, pct, plural

Connection = duckdb.DuckDBPyConnection

State = Literal["profile", "fix_first", "known", "profiled", "no_kernel", "cannot_tell"]
SIZES = {"expected": "about", "lower_bound": "at least", "upper_bound": "up to"}
NAMED = 2  # kernels that a sentence names; the others are counted


class Proposal(Frozen):
    """A kernel to profile. Shares are of an iteration of its loop, 0 to 1."""

    name: str
    loop: str
    share: float = Field(description="its part of the loop")
    saved_share: float = Field(description="the part of the loop that goes if it takes half its time")
    saved_share_then: float | None = Field(
        default=None, description="the same once the kernels that the timeline explains are fixed"
    )
    replayed: bool = Field(description="false: the loop could not be replayed, and the saving is at most that")
    launches: float = Field(description="an iteration")
    median_ms: float
    grid: int | None
    block: int | None
    sizes: int = Field(description="launch sizes; grid, block and time are of the one that takes most time")
    library: bool = Field(description="it comes with a library: its inside is not the reader's to change")
    open: str = Field(description="what the timeline leaves open")
    decides: str = Field(description="what the answer would decide")
    command: str
    wanted: int = Field(description="how many of the launches that the command profiles are of this very kernel")
    count: int = Field(description="how many it profiles")


class NextSteps(Frozen):
    """The next steps; keys are added, never changed."""

    schema_version: Literal[1] = 1
    inputs: tuple[str, ...] = Field(default=(), description="names of the files read")
    state: State
    text: str
    code: str | None = Field(default=None, description="the finding that comes first, if one does")
    kernels: tuple[Proposal, ...] = ()
    notes: tuple[str, ...] = ()
    selection: Selected | None = Field(
        default=None, description="what was selected; absent where that is all", exclude_if=lambda value: value is None
    )
    then: str | None = Field(default=None, description="the command once the profiles are there")


def next_steps(
    con: Connection,
    settings: Mapping[str, float],
    loops: Sequence[LoopView],
    run: Run,
    findings: Sequence[Finding],
    verdict: Verdict,
    inputs: Sequence[str],
    selecting: Sequence[str] = (),
) -> NextSteps:
    """The proposals, or one sentence why there are none. selecting: the options that select a part of the inputs."""
    if not run.loops:
        return NextSteps(state="cannot_tell", text=_no_loop(run, verdict))
    ranked = sorted((c for view in loops for c in view.open), key=lambda c: (-c.worth, c.row["name"], c.loop.id))
    chosen = ranked[: int(settings["next_kernels"])]
    first = _first(loops, findings)
    lead = _lead(*first, settings) if first else ""
    if not chosen:
        return _nothing(con, settings, loops, first)
    files = ncu_command.files(c.name for c in chosen)
    graphs = {c.loop.id: (c.loop, graph_share(con, c.loop)) for c in chosen}
    hidden = [_hidden(*one) for one in graphs.values() if one[1] >= settings["min_share_bound"]]
    most = max(settings["min_share_bound"], float(chosen[0].row["share"]))
    if graphs[chosen[0].loop.id][1] >= most:  # of the first loop; more of it can be proposed only then
        lead, hidden = f"{lead} {hidden[0]}".strip(), hidden[1:]
    return NextSteps(
        state="profile",
        text=f"{lead} {_choice(chosen, beside=bool(first))}".strip(),
        code=first[1].code if first else None,
        kernels=tuple(_proposal(con, settings, c, file) for c, file in zip(chosen, files, strict=True)),
        notes=(*hidden, *_notes(chosen)),
        then=ncu_command.follow_up(inputs, files, selecting),
    )


def _no_loop(run: Run, verdict: Verdict) -> str:
    if run.kernels:
        return (
            "Which kernels matter only a timeline can tell: record one with `nsys profile -o report YOUR-COMMAND`"
            " and give it beside these profiles."
        )
    return verdict.text


def _first(loops: Sequence[LoopView], findings: Sequence[Finding]) -> tuple[LoopView, Finding] | None:
    """The finding of highest rank that comes before profiling, and its loop."""
    for finding in findings:
        for view in loops:
            if finding.gain.loop == view.loop.id and (finding is view.first or finding in view.known):
                return view, finding
    return None


def _lead(view: LoopView, finding: Finding, settings: Mapping[str, float]) -> str:
    """Say what comes first, and why its kernels need no profile yet."""
    worth = f"{SIZES.get(finding.gain.kind, 'about')} {pct(finding.gain.share)} of {_loop_name(view.loop)}"
    named = f"{finding.code} ({finding.title})"
    if finding is view.first:
        heavy, rival = view.heaviest, "no kernel matters before that"
        if heavy and heavy.saved >= settings["next_named_share"]:
            rival = f"{code(heavy.name)} would have to be twice as fast to save {pct(heavy.saved)}"
        return f"Fix {named} before any kernel: that would save {worth}; {rival}."
    kernels = view.explained.get(finding.code)
    whom = _names(kernels) if kernels else "its kernels"
    others = [f"{rule} before {_names(names)}" for rule, names in view.explained.items() if rule != finding.code]
    more = f" (and {', '.join(others)})" if others else ""
    return f"The timeline alone prices {named}, {worth}: fix that before you profile {whom}{more}."


def _nothing(
    con: Connection, settings: Mapping[str, float], loops: Sequence[LoopView], first: tuple[LoopView, Finding] | None
) -> NextSteps:
    """Explain why no kernel is proposed."""
    if first and first[1] is first[0].first:
        return NextSteps(state="fix_first", text=_lead(*first, settings), code=first[1].code)
    done = [c.name for view in loops for c in view.profiled]
    if done:
        return _profiled(done, loops, _lead(*first, settings) if first else "", first[1].code if first else None)
    if first:
        return NextSteps(state="known", text=_lead(*first, settings), code=first[1].code)
    main = loops[0]
    if (graphs := graph_share(con, main.loop)) >= settings["min_share_bound"]:
        return NextSteps(state="cannot_tell", text=f"{_hidden(main.loop, graphs)} Then ask again.")
    if main.held:
        text = (
            f"The GPU computes {pct(computing(main.loop))} of {_loop_name(main.loop)}, but what sets its pace"
            " was not recorded: whether a faster kernel would save time is not known."
        )
        return NextSteps(state="cannot_tell", text=text)
    return NextSteps(state="no_kernel", text=_no_kernel(main))


def _profiled(kernels: Sequence[str], loops: Sequence[LoopView], lead: str, first: str | None) -> NextSteps:
    """Nothing is left to measure: the other report says what was found. lead: what comes first, by that rule."""
    if lead:
        text = f"{lead} Every other kernel worth a profile has one ({_names(kernels)})."
        return NextSteps(state="profiled", text=text, code=first)
    found = next((finding for view in loops for finding in view.measured), None)
    says = f"what to fix there, {found.code} ({found.title}) first" if found else "what was found there"
    text = f"Every kernel worth a profile has one ({_names(kernels)}): `gpudiag explain` says {says}."
    return NextSteps(state="profiled", text=text, code=found.code if found else None)


def _no_kernel(view: LoopView) -> str:
    """The loop does not wait for any one kernel."""
    loop, heaviest = view.loop, view.heaviest
    saved = f"even {code(heaviest.name)} twice as fast saves {pct(heaviest.saved)}" if heaviest else "all are small"
    where, share = max(
        ((name, loop.budget.get(name, 0.0)) for name in BUDGET if name != "compute"),
        key=lambda part: part[1],
        default=("", 0.0),
    )
    why = f", while the GPU {BUDGET[where].does} {pct(share)} of the time" if share > 1 - share else ""
    return f"No kernel of {_loop_name(loop)} is worth profiling: {saved}{why}."


def _choice(chosen: Sequence[KernelCandidate], beside: bool) -> str:
    loops = {c.loop.id for c in chosen}
    share = sum(c.row["share"] * (1.0 if len(loops) == 1 else c.loop.share_of_span) for c in chosen)
    of = _loop_name(chosen[0].loop) if len(loops) == 1 else "the steady time"
    what = code(chosen[0].name) if len(chosen) == 1 else plural(len(chosen), "kernel")
    fast = "it is fast" if len(chosen) == 1 else "they are fast"
    return (
        f"Worth a profile{' beside that' if beside else ''}: {what}, {pct(share)} of {of};"
        f" a timeline cannot tell whether {fast}."
    )


def _loop_name(loop: Loop) -> str:
    return "the recorded work" if loop.source == "unknown" else code(loop.name)


def _names(kernels: Sequence[str]) -> str:
    names = list(dict.fromkeys(kernels))
    more = f" and {plural(len(names) - NAMED, 'more kernel')}" if len(names) > NAMED else ""
    return ", ".join(map(code, names[:NAMED])) + more


def _proposal(con: Connection, settings: Mapping[str, float], candidate: KernelCandidate, file: str) -> Proposal:
    row = candidate.row
    skip, wanted, count, local = launches(con, settings, row)
    return Proposal(
        name=clean(candidate.name),
        loop=candidate.loop.name,
        share=row["share"],
        saved_share=candidate.saved,
        saved_share_then=candidate.saved_then if candidate.saved_then != candidate.saved else None,
        replayed=candidate.replayed,
        launches=row["launches_per_iteration"],
        median_ms=row["median_ns"] / 1e6,
        grid=row["grid"],
        block=row["block"],
        sizes=row["sizes"],
        library=row["library"],
        open=_open(row, local, settings),
        decides=_decides(row),
        command=ncu_command.command(candidate.name, file, skip, count, tagged=f"{candidate.name}[" in row["name"]),
        wanted=wanted,
        count=count,
    )


def _open(row: Row, local: int, settings: Mapping[str, float]) -> str:
    """Say what the timeline leaves open about this kernel."""
    question = "Is it limited by memory, by arithmetic, or do its warps stall?"
    if row["library"]:
        return "Is it limited by memory or by arithmetic, or does its shape leave a part of the GPU empty?"
    blocks, sms = row["grid"], row["sm_count"]
    if local:
        return f"{question} A thread has {byte_size(local)} of local memory: are these registers that did not fit?"
    if blocks and sms and blocks < sms:
        return f"{question} Its {plural(blocks, 'block')} cannot fill {num(sms)} multiprocessors: is that all?"
    if blocks and sms and blocks % sms and blocks < settings["next_tail_blocks"] * sms:
        return (
            f"{question} {num(blocks)} blocks on {num(sms)} multiprocessors: does a last, nearly empty wave cost much?"
        )
    return question


def _decides(row: Row) -> str:
    """Say what the answer would decide."""
    if row["library"]:
        return (
            "Its code is not yours to change. At a roofline limit a lower precision or fewer calls help;"
            " below it another shape (padding, batch size) or another call."
        )
    return (
        "Limited by memory, only fewer bytes help (fusing, smaller types, keeping data on chip); limited by arithmetic,"
        " only less of it. Otherwise the report names the access, the limit or the wait to change."
    )


def _hidden(loop: Loop, graphs: float) -> str:
    """A sentence on this part of a loop, whose kernels are in no list of candidates."""
    return (
        f"{pct(graphs)} of {_loop_name(loop)} runs inside CUDA graphs, whose kernels were not recorded:"
        " `nsys profile --cuda-graph-trace=node` records them."
    )


def _notes(chosen: Sequence[KernelCandidate]) -> tuple[str, ...]:
    if all(c.loop.processes == 1 for c in chosen):
        return ()
    text = "The loop runs in several processes: put ncu before the program in one of them only, since the others wait"
    return (f"{text} for a process whose kernels are being measured.",)
