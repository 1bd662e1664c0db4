"""The report: the JSON contract, keys in this order."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from gpudiag.model.rule import Basis, Confidence, Framework, Frozen, GainKind, Severity, Status


class Gain(Frozen):
    """What a fix is worth. Times are one iteration (basis loop), the run, or one launch (basis kernel), in ms.

    `share` is the part of the basis that the fix removes; `low_ms` to `high_ms` is the new time's interval.
    Before and after are null when only an experiment can tell.
    """

    kind: GainKind
    basis: Basis
    loop: int | None = None
    before_ms: float | None = None
    after_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    speedup: float | None = None
    share: float = 0.0
    cumulative_before_ms: float | None = Field(default=None, description="with the fixes above made")
    cumulative_after_ms: float | None = Field(default=None, description="with this fix and those above made")
    test: str | None = None


class Place(Frozen):
    """Where in the user's program; any part may be unknown."""

    file: str | None = None
    line: int | None = None
    function: str | None = None
    nvtx: str | None = None
    kernel: str | None = None
    share: float | None = Field(default=None, description="its part of the finding's cost, 0 to 1")


class Remedy(Frozen):
    """One fix, in the reader's framework; Markdown."""

    id: str
    title: str
    framework: Framework
    text: str


class Finding(Frozen):
    rank: int
    code: str
    id: str
    kind: Literal["finding"] = "finding"
    status: Status
    title: str
    severity: Severity
    confidence: Confidence
    confidence_reason: str | None = None
    fingerprint: str = Field(description="stable over runs: code, loop and places, never times")
    gain: Gain
    where: tuple[Place, ...] = ()
    evidence: dict[str, Any] = Field(default_factory=dict)
    message: str
    why: str
    not_a_problem_when: str
    check: str | None = None
    remedies: tuple[Remedy, ...] = ()
    references: tuple[str, ...] = ()


class KernelUse(Frozen):
    """A kernel in an iteration of a loop: how often it is launched, what all its launches take together."""

    name: str
    launches: float
    ms: float
    others: int | None = Field(default=None, description="how many kernels this entry stands for, if not one")


class Loop(Frozen):
    """A repeated piece of work and where its time goes; `budget` is disjoint and sums to 1."""

    id: int
    name: str
    nvtx_path: str | None = None
    source: Literal["nvtx", "period", "unknown"]
    iterations: int
    processes: int = 1
    iteration_ms: float
    iteration_ms_unprofiled: float | None = None
    share_of_span: float
    budget: dict[str, float] = Field(default_factory=dict)
    deciles_ms: tuple[float, float, float] | None = Field(default=None, description="1st, median and 9th of its turns")
    launches: float = Field(default=0.0, description="kernels and graphs that an iteration starts")
    calls: float = Field(default=0.0, description="CUDA calls of an iteration; recording one costs the host time")
    kernels: tuple[KernelUse, ...] = Field(default=(), description="longest first; the last may stand for all others")


class Input(Frozen):
    kind: str
    file: str
    producer: str | None = None
    producer_version: str | None = None


class Stall(Frozen):
    """What warps wait for: Nsight Compute's name, the part of the time between two instructions, words for both."""

    name: str
    share: float
    means: str
    cure: str


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


class Run(Frozen):
    devices: tuple[str, ...] = ()
    clocks_mhz: tuple[float, ...] = Field(default=(), description="highest SM clock of each device, where recorded")
    span_ms: float = 0.0
    cold_start_ms: float = 0.0
    loops: tuple[Loop, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    frameworks: tuple[Framework, ...] = ()


class Verdict(Frozen):
    state: Literal["problems", "healthy", "cannot_tell"]
    text: str


class Note(Frozen):
    code: str
    title: str = ""
    text: str


class Unevaluated(Frozen):
    code: str
    title: str = ""
    reason: str
    hint: str = ""


class Suppressed(Frozen):
    code: str
    by: str
    reason: str


class Tool(Frozen):
    name: str = "gpudiag"
    version: str


class Report(Frozen):
    """The JSON contract, version 1: keys are added, never changed."""

    schema_version: Literal[1] = 1
    tool: Tool
    inputs: tuple[Input, ...]
    verdict: Verdict
    run: Run
    findings: tuple[Finding, ...] = ()
    minor: tuple[Finding, ...] = Field(default=(), description="fired, but worth less than the reporting gate")
    clear: tuple[str, ...] = ()
    not_evaluated: tuple[Unevaluated, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    notes: tuple[Note, ...] = ()
    titles: dict[str, str] = Field(
        default_factory=dict, description="titles of the codes named in clear and suppressed"
    )
