"""The report: the JSON contract, keys in this order."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from gpudiag.model.evidence import UNITS
from gpudiag.model.rule import Basis, Confidence, Frozen, GainKind, Status
from gpudiag.model.vocabulary import Framework, Severity


class Gain(Frozen):
    """Gain of a fix. Times are one iteration (basis loop), the run, or one launch (basis kernel), in ms.

    `share` is the part of the basis that the fix removes; `low_ms` to `high_ms` is the new time's interval.
    Before and after are null when only an experiment can tell.
    """

    kind: GainKind
    basis: Basis
    loop: int | None = Field(default=None, description="the `id` of the loop in run.loops, for basis loop")
    before_ms: float | None = Field(default=None, description="time of the basis as it is")
    after_ms: float | None = Field(default=None, description="time with this fix alone, as expected or bounded")
    low_ms: float | None = Field(default=None, description="shortest likely time after the fix")
    high_ms: float | None = Field(default=None, description="longest likely time after the fix")
    speedup: float | None = Field(default=None, description="before_ms / after_ms")
    share: float = Field(default=0.0, description="part of the basis that the fix removes, 0 to 1")
    cumulative_before_ms: float | None = Field(default=None, description="with the fixes above made")
    cumulative_after_ms: float | None = Field(default=None, description="with this fix and those above made")
    test: str | None = Field(default=None, description="the experiment that tells, for kind test_needed")
    uncertain: bool = Field(
        default=False, description="the interval is wide and nearly reaches no gain: the range says more than `share`"
    )

    @property
    def interval(self) -> tuple[float, float] | None:
        """The least and the largest part of the basis that the fix may remove; None where no interval is known."""
        if not self.before_ms or self.low_ms is None or self.high_ms is None:
            return None
        return max(0.0, 1 - self.high_ms / self.before_ms), min(1.0, 1 - self.low_ms / self.before_ms)


class Place(Frozen):
    """Place in the user's program; any part may be unknown."""

    file: str | None = Field(default=None, description="as recorded: a path on the machine that was profiled")
    line: int | None = None
    function: str | None = None
    nvtx: str | None = Field(default=None, description="path of NVTX ranges, outermost first")
    kernel: str | None = None
    share: float | None = Field(default=None, description="its part of the finding's cost, 0 to 1")


class RemedyGain(Frozen):
    """Gain of one remedy that does less or other than the finding's usual fix. Times as in `Gain`."""

    before_ms: float
    after_ms: float
    low_ms: float
    high_ms: float
    share: float = Field(description="part of the basis that the remedy removes, 0 to 1")


class Remedy(Frozen):
    """One fix, in the reader's framework; Markdown."""

    id: str
    title: str
    framework: Framework
    text: str
    gain: RemedyGain | None = Field(
        default=None,
        description="its own price; null where the finding's gain is its price, or none is known",
    )


class EvidenceLabel(Frozen):
    """The label and unit of a figure of a finding's evidence."""

    label: str
    unit: str = Field(description=f"one of {', '.join(UNITS)}")
    in_message: bool = Field(default=False, description="the message states the figure already")


class Finding(Frozen):
    """A cause of lost time, in one loop or in the whole run: what, where, what fixing it is worth, how."""

    rank: int = Field(description="place in the order, from 1")
    code: str = Field(description="stable code of the rule, such as H01")
    id: str = Field(description="the rule's name, such as launch-bound")
    kind: Literal["finding"] = "finding"
    status: Status = Field(description="draft: not yet proven on enough labelled captures")
    title: str
    severity: Severity = Field(description="how wrong it is; what it is worth is in gain")
    confidence: Confidence
    confidence_reason: str | None = Field(default=None, description="why it is not high")
    fingerprint: str = Field(description="stable over runs: code, loop and places, never times")
    gain: Gain
    where: tuple[Place, ...] = Field(default=(), description="places, worst first")
    evidence: dict[str, Any] = Field(default_factory=dict, description="figures of the worst place; keys vary by rule")
    evidence_labels: dict[str, EvidenceLabel] = Field(
        default_factory=dict, description="of the figures that a report prints; empty where the rule declares none"
    )
    message: str = Field(description="what was measured, in sentences")
    why: str = Field(description="why it costs time; Markdown")
    question: str | None = Field(default=None, description="for a reviewer; yes: the code could be faster")
    not_a_problem_when: str = Field(description="when to leave it as it is; Markdown")
    check: str | None = Field(default=None, description="how to verify the fix; Markdown")
    remedies: tuple[Remedy, ...] = ()
    references: tuple[str, ...] = Field(default=(), description="URLs")


class KernelUse(Frozen):
    """A kernel in an iteration of a loop: how often it is launched, what all its launches take together."""

    name: str
    launches: float = Field(description="of an iteration")
    ms: float = Field(description="of an iteration, all launches together")
    others: int | None = Field(default=None, description="how many kernels this entry stands for, if not one")
    threads: float | None = Field(default=None, description="that all its launches in an iteration start")


class Loop(Frozen):
    """A repeated unit of work and where its time goes; `budget` is disjoint and sums to 1."""

    id: int
    name: str
    nvtx_path: str | None = None
    source: Literal["nvtx", "period", "unknown"] = Field(
        description="how it was found: by an NVTX range, by repeating kernels, or not: then it is all steady work"
    )
    iterations: int
    processes: int = Field(default=1, description="that run this loop")
    iteration_ms: float = Field(description="under the profiler")
    iteration_ms_unprofiled: float | None = Field(
        default=None, description="without the profiler: given_ms over given_iterations"
    )
    given_ms: float | None = Field(default=None, description="as --iteration-time gave it")
    given_iterations: float = Field(
        default=1.0, description="iterations that given_ms is the time of: 8 for eight of these, 0.125 for an eighth"
    )
    share_of_span: float = Field(description="part of all steady time, 0 to 1")
    budget: dict[str, float] = Field(
        default_factory=dict, description="where an iteration's time goes; parts that add up to 1"
    )
    deciles_ms: tuple[float, float, float] | None = Field(
        default=None, description="1st, median and 9th of its iterations"
    )
    launches: float = Field(default=0.0, description="kernels and graphs that an iteration starts")
    calls: float = Field(default=0.0, description="CUDA calls of an iteration; recording one costs the host time")
    thread_calls: float | None = Field(default=None, description="those of the thread that makes most of them")
    kernels: tuple[KernelUse, ...] = Field(default=(), description="longest first; the last may stand for all others")
    copied_bytes: float | None = Field(default=None, description="bytes that the copies of an iteration move")


class Input(Frozen):
    """A file that was read."""

    kind: str = Field(description="what it is: nsys, ncu and so on")
    file: str
    producer: str | None = None
    producer_version: str | None = None


class Stall(Frozen):
    """Stall reason of warps: Nsight Compute's name, its part of the time between two instructions, words for both."""

    name: str
    share: float
    means: str
    cure: str


LIMITS = ("dram", "l2", "l1", "memory", "pipe", "tensor", "issue", "sm", "latency", "empty")
FIGURES = {
    "dram_pct", "sm_pct", "theoretical_occupancy_pct", "achieved_occupancy_pct", "registers", "shared_own", "waves",
    "warp_cycles_per_issue", "sm_count", "clock_mhz", "busy_pct", "floor_ms", "intensity", "ridge", "active_share",
}  # fmt: skip
NEEDED = {"limit": ("busy_pct",), "intensity": ("limit", "precision"), "empty": ("active_share",)}


class Cause(Frozen):
    """Cause of one profiled kernel's time: a rule that fired on it, with its fix's gain on one launch of it."""

    code: str = Field(description="the rule's code, such as K01")
    title: str
    severity: Severity
    gain: Gain = Field(description="of one launch of this kernel; basis kernel")
    message: str = Field(description="what was measured on this kernel, in sentences")
    finding: int | None = Field(default=None, description="rank of the finding, listed or minor, that tells the fix")


class Kernel(Frozen):
    """A profiled kernel of an Nsight Compute input: medians over its launches; its share where a timeline shows it.

    facts: measured percentages and sizes; `limit` is the unit nearest to its peak (dram, l2, l1, pipe, tensor, issue;
    latency: none is near; empty: most multiprocessors are idle), `floor_ms` what it needs alone, `intensity` and
    `ridge` are operations a byte of DRAM.
    """

    name: str
    launches: int
    duration_ms: float
    range_ms: tuple[float, float] | None = None
    grid: int | None = None
    block: int | None = None
    facts: dict[str, Any] = Field(default_factory=dict)
    stalls: tuple[Stall, ...] = ()
    occupancy_limit: str | None = None
    share_of_loop: float | None = None
    share: float | None = Field(default=None, description="part of the time of all profiled launches, 0 to 1")
    causes: tuple[Cause, ...] = Field(default=(), description="what costs it time, worth most first")
    brief: bool = Field(default=False, description="too little of the profiled time for a section of its own")
    not_evaluated: tuple[str, ...] = Field(
        default=(), description="codes of rules that lack a counter of this kernel, though the file has it for others"
    )

    @field_validator("facts")
    @classmethod
    def _facts_belong_together(cls, facts: dict[str, Any]) -> dict[str, Any]:
        """A saved report may have been damaged: what is reported together has to be there together."""
        for key in FIGURES & facts.keys():
            if not isinstance(facts[key], int | float):
                raise ValueError(f"{key} is no figure")
        if facts.get("limit") not in (None, *LIMITS):
            raise ValueError("limit is none that is known")
        for key, needed in NEEDED.items():
            if (key in facts or facts.get("limit") == key) and not all(name in facts for name in needed):
                raise ValueError(f"{key} wants {' and '.join(needed)}")
        return facts


class Whole(Frozen):
    """The complete recording, where a part of it was selected."""

    span_ms: float = Field(description="from the first CUDA call or GPU operation to the last")
    busy_share: float = Field(description="part of that in which a GPU worked, the mean of those that did, 0 to 1")
    gpus: int = Field(description="how many worked")
    gpu_ops: int
    processes: int = Field(description="how many used a GPU")


class Selected(Frozen):
    """The part of the captures that this report is about: all that is given here holds of it."""

    text: str = Field(description="all of this in words")
    start_ms: float | None = Field(default=None, description="since the capture began, as --range gave it")
    end_ms: float | None = None
    nvtx: tuple[str, ...] = Field(default=(), description="ranges, as --nvtx gave them")
    devices: tuple[int, ...] = Field(default=(), description="CUDA device numbers, as --device gave them")
    processes: tuple[str, ...] = Field(default=(), description="ids or names, as --process gave them")
    ranks: tuple[int, ...] = Field(default=(), description="as --rank gave them")
    selected_ms: float | None = Field(default=None, description="how long the part is; of ranges, their sum")
    whole: Whole


class Run(Frozen):
    """The recorded run: devices, loops, kernels."""

    devices: tuple[str, ...] = Field(default=(), description="names, one entry a device")
    clocks_mhz: tuple[float, ...] = Field(default=(), description="highest SM clock of each device, where recorded")
    span_ms: float = Field(default=0.0, description="what was recorded, over all processes")
    cold_start_ms: float = Field(default=0.0, description="start-up before the steady state, excluded")
    loops: tuple[Loop, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    frameworks: tuple[Framework, ...] = ()
    programs: tuple[str, ...] = Field(default=(), description="executables that used the GPU")
    selection: Selected | None = Field(default=None, description="what was selected; null where that is all")


class Verdict(Frozen):
    """The report in a word and in a sentence."""

    state: Literal["problems", "healthy", "cannot_tell"]
    text: str


class Note(Frozen):
    """Reservation about the figures."""

    code: str
    title: str = ""
    text: str


class Unevaluated(Frozen):
    """A rule that this recording cannot answer."""

    code: str
    title: str = ""
    reason: str
    hint: str = Field(default="", description="how to record what it needs")
    kernels: tuple[str, ...] = Field(
        default=(), description="the profiled kernels of which this holds; empty where it holds of all"
    )


class Suppressed(Frozen):
    """A rule that would have fired, or at more places, had not another explained what it saw."""

    code: str
    by: str = Field(description="the code of that other rule")
    reason: str
    partly: bool = Field(default=False, description="only at some places: at others the rule found something")


class Tool(Frozen):
    """Program that wrote the report."""

    name: str = "gpudiag"
    version: str


class Report(Frozen):
    """The JSON contract, version 1: keys are added, never changed."""

    schema_version: Literal[1] = 1
    tool: Tool
    inputs: tuple[Input, ...]
    verdict: Verdict
    run: Run
    findings: tuple[Finding, ...] = Field(default=(), description="the most important first")
    minor: tuple[Finding, ...] = Field(default=(), description="fired, but worth less than the reporting gate")
    clear: tuple[str, ...] = Field(default=(), description="codes of the rules that found nothing")
    not_evaluated: tuple[Unevaluated, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    notes: tuple[Note, ...] = ()
    titles: dict[str, str] = Field(
        default_factory=dict, description="titles of the codes named in clear and suppressed"
    )
