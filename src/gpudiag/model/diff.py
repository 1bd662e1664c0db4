"""Two reports compared: the JSON contract of `gpudiag diff`, keys in this order."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gpudiag.model.finding import Place
from gpudiag.model.report import Tool
from gpudiag.model.rule import Frozen
from gpudiag.model.vocabulary import Severity

DiffState = Literal["regression", "improvement", "noise", "cannot_tell"]


class Ratio(Frozen):
    """The new time over the old one: below 1 is faster. The true ratio lies between low and high."""

    value: float
    low: float
    high: float


class Side(Frozen):
    """The input for one side. Several reports are repeats of one another."""

    files: tuple[str, ...]
    reports: int
    kind: Literal["timeline", "kernels", "nothing"]
    devices: tuple[str, ...] = ()
    clocks_mhz: tuple[float, ...] = Field(
        default=(),
        description="highest SM clock of each device, where recorded; of kernel profiles, the clock while measured",
    )


class Times(Frozen):
    """An iteration of one side. `ms` is what is compared: the unprofiled time where known, else the recorded one.

    least_ms to most_ms: where the time without the profiler lies, as one recording shows it.
    """

    ms: float
    least_ms: float
    most_ms: float
    recorded_ms: tuple[float, ...] = Field(description="of each report")
    unprofiled_ms: tuple[float, ...] = ()
    host_bound: bool = Field(
        default=False, description="the host sets the pace: the profiler may have added much to the recorded time"
    )
    busy_ms: float = Field(description="in which the GPU computes, copies or communicates")
    iterations: int
    launches: float
    calls: float


class BudgetChange(Frozen):
    """A category of the budget: time of an iteration, as recorded."""

    category: str
    base_ms: float
    head_ms: float


class LeafChange(Frozen):
    """A leaf of the time tree: time of an iteration, as recorded."""

    leaf: str
    base_ms: float
    head_ms: float
    changed: bool = Field(
        default=False, description="by more than two recordings may differ; for equal work, where the loop's ratio is"
    )


class KernelChange(Frozen):
    """A kernel of a loop. The change is by_count_ms (launched more or less often, each as long as before) plus
    by_duration_ms (as often as now, each longer or shorter).
    """

    name: str
    renamed: str | None = Field(default=None, description="its name in head, where only template arguments differ")
    state: Literal["new", "gone", "changed"]
    base_launches: float = 0.0
    head_launches: float = 0.0
    base_ms: float = 0.0
    head_ms: float = 0.0
    by_count_ms: float | None = None
    by_duration_ms: float | None = None


class FindingChange(Frozen):
    """A cause in base, head or both; `saves` is what its fix is worth, in ms of its loop's iteration or its kernel.

    now_visible and no_longer_visible: reported on one side only, but the time that it is about is there on both.
    """

    state: Literal["new", "gone", "better", "worse", "unchanged", "not_evaluated", "now_visible", "no_longer_visible"]
    code: str
    title: str
    loop: str | None = None
    matched_by: Literal["fingerprint", "place"] | None = None
    base_fingerprint: str | None = None
    head_fingerprint: str | None = None
    base_share: float | None = Field(default=None, description="part of the iteration that the fix would remove")
    head_share: float | None = None
    base_saves_ms: float | None = None
    head_saves_ms: float | None = None
    base_of_ms: float | None = Field(default=None, description="the time that base_share is a part of")
    head_of_ms: float | None = None
    base_about_ms: float | None = Field(
        default=None, description="the part of the budget that the cause is about, of an iteration as recorded"
    )
    head_about_ms: float | None = None
    severity: Severity | None = Field(default=None, description="how wrong it is: head's, or base's where it is gone")
    where: Place | None = Field(default=None, description="worst place: head's, or base's where it is gone")
    reason: str | None = Field(default=None, description="why head could not be asked")


class LoopChange(Frozen):
    """A loop found in both; names differ where it was recognised by its kernels."""

    name: str
    head_name: str
    matched_by: Literal["nvtx", "name", "kernels"]
    state: DiffState
    text: str
    ratio: Ratio
    share_of_span: float = Field(description="of base's steady time")
    work: float | None = Field(
        default=None, description="head's work of an iteration over base's, by kernels of both; null: not known"
    )
    ratio_of: Literal["iteration", "equal work"] = Field(
        default="iteration", description="what the ratio compares: an iteration of each, or as much work as base's"
    )
    same_work: bool | None = Field(
        description="as many calls and launches of the same kernels, and the GPU as long at work; null: not recorded"
    )
    causes: tuple[str, ...] = Field(
        default=(), description="codes of causes that came or went with the time: the state rests on them too"
    )
    host_bound: bool = Field(description="so is at least one side, as recorded")
    base: Times
    head: Times
    budget: tuple[BudgetChange, ...] = ()
    tree: tuple[LeafChange, ...] = Field(
        default=(), description="the finer division of the same time, largest change first; empty: a report lacks it"
    )
    kernels: tuple[KernelChange, ...] = Field(default=(), description="largest change first")
    same_kernels: int = Field(default=0, description="kernels that changed too little to be listed")


class ProfileChange(Frozen):
    """A kernel that Nsight Compute measured: one launch, in ms."""

    name: str
    head_name: str | None = None
    matched_by: Literal["name", "template", "only one"] | None = None
    state: Literal["regression", "improvement", "noise", "new", "gone"]
    base_ms: float | None = None
    head_ms: float | None = None
    ratio: Ratio | None = None
    base_facts: dict[str, float | str | None] = Field(default_factory=dict)
    head_facts: dict[str, float | str | None] = Field(default_factory=dict)


class RankChange(Frozen):
    """A rank of a job that others wait for on either side, or whose work beside theirs changed."""

    label: str
    state: Literal["new", "gone", "still", "moved"] = Field(
        description="slow in head only, in base only, in both, or in neither"
    )
    base_more: float | None = Field(default=None, description="more work than the others', of an iteration, 0 to 1")
    head_more: float | None = None


class JobChange(Frozen):
    """Two jobs of many ranks, as recorded: the rest of the comparison is of the rank that each shows in full."""

    base_ranks: int
    head_ranks: int
    base_iteration_ms: float
    head_iteration_ms: float
    base_waiting: float = Field(description="part of an iteration that a rank only waits for others, on average")
    head_waiting: float
    base_at_median_ms: float = Field(description="an iteration if every rank did what the median rank does")
    head_at_median_ms: float
    base_reference: str = Field(description="the rank that is shown in full")
    head_reference: str
    ranks: tuple[RankChange, ...] = Field(default=(), description="largest change first")


class Diff(Frozen):
    """The JSON contract, version 1: keys are added, never changed. `reasons` say why nothing could be compared."""

    schema_version: Literal[1] = 1
    tool: Tool
    state: Literal["regression", "improvement", "noise", "cannot_tell", "incomparable"]
    text: str
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    base: Side
    head: Side
    ratio: Ratio | None = Field(default=None, description="of all loops in both, weighted by their iterations")
    loops: tuple[LoopChange, ...] = ()
    base_only: tuple[str, ...] = Field(default=(), description="loops that head does not show")
    head_only: tuple[str, ...] = ()
    profiles: tuple[ProfileChange, ...] = ()
    job: JobChange | None = Field(default=None, description="where both sides are jobs of many ranks")
    findings: tuple[FindingChange, ...] = ()
