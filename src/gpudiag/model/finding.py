"""A finding of the report: its gain, its places, its fixes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from gpudiag.model.evidence import UNITS
from gpudiag.model.rule import Basis, Confidence, Frozen, GainKind, Status
from gpudiag.model.vocabulary import Also, Framework, Severity

MOST_PLACES = 8
"""Places of a finding that a report holds."""


class Gain(Frozen):
    """Gain of a fix. Times are one iteration (basis loop), the run, or one launch (basis kernel), in ms.

    `share` is the part of the basis that the fix removes; `low_ms` to `high_ms` is the new time's interval.
    Before and after are null when only an experiment can tell.
    """

    kind: GainKind
    basis: Basis
    loop: int | None = Field(default=None, description="the `id` of the loop in run.loops, for basis loop")
    before_ms: float | None = Field(
        default=None,
        description="time now; of a loop without the profiler where that is given, or as guessed for what is expected; "
        "a bound is of the recorded time at most",
    )
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
    operator: str | None = Field(
        default=None,
        description="that launched most of it, with input shapes where recorded; of kernels to fuse, several",
    )
    module: str | None = Field(default=None, description="the nn.Module that the operator ran in, as `Linear_3`")
    backward: bool | None = Field(default=None, description="whether it is of the backward pass, when known")
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
    hint: str = Field(default="", description="what to write for it in this framework, in a few words; empty if none")
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
    phase: Place | None = Field(
        default=None, description="of the loop's phases the one that nearly all of its cost lies in, with that part"
    )
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
    after: tuple[str, ...] = Field(
        default=(), description="codes of findings above, of the same loop, that must be fixed before this one can be"
    )
    leaf: str | None = Field(
        default=None, description="the leaf of its loop's time tree in which most of the time that it claims lies"
    )
    also: Also | None = Field(
        default=None, description="where the fix saves more than that leaf holds: what else it shortens"
    )
    caused_by: int | None = Field(
        default=None,
        description="rank of the finding above, of the same loop, that accounts for most of the time that this one "
        "shows: fixed, this one goes as well",
    )
    process: str | None = Field(
        default=None, description="of a loop that several processes run the one that nearly all of its cost lies in"
    )
    references: tuple[str, ...] = Field(default=(), description="URLs")
