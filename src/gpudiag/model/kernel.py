"""A profiled kernel of the report: what limits it, its stalls, the causes found."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from gpudiag.model.finding import Gain
from gpudiag.model.rule import Frozen
from gpudiag.model.vocabulary import Severity


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
