"""The result of a check: the JSON contract of `gpudiag check --format json`."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import Field

from gpudiag.model import Basis, Frozen, GainKind, Place, Severity, Tool, Verdict

Doubt = Literal["none", "failing", "same_idleness"]
Limit = Literal[
    "iteration_time", "launches", "idle", "exposed_copies", "exposed_communication", "compute",
    "computing", "exposed_copy", "submitting", "host_work", "compiling", "allocating", "input", "blocked", "sync",
    "dependency", "outside",
]  # fmt: skip


class BudgetCheck(Frozen):
    """One limit of one loop. Times are in ms, shares are parts of an iteration, launches are per iteration."""

    state: Literal["kept", "broken", "unknown"]
    budget: str = Field(description="the table of the configuration: a loop's name, a pattern, or longest")
    limit: Limit
    loop: str | None = Field(default=None, description="the loop it was measured on")
    unit: Literal["ms", "share", "launches"]
    at_least: bool = Field(default=False, description="whether the measured figure may not be smaller, or not larger")
    allowed: float
    measured: float | None = None
    basis: Literal["unprofiled", "recorded"] | None = Field(default=None, description="of a time: how it was taken")
    parts: dict[str, float] = Field(default_factory=dict, description="of idleness: its causes, largest first")
    reason: str = Field(default="", description="why it could not be checked")


class FindingCheck(Frozen):
    """One finding of the report: whether it fails, and why or why not."""

    state: Literal["failed", "known", "suppressed", "allowed", "passed"]
    reason: str
    rank: int
    code: str
    title: str
    severity: Severity
    fingerprint: str
    loop: str | None = None
    worth: float | None = Field(
        default=None,
        description="what its fix saves, as a share of all steady time; of one launch where basis is kernel",
    )
    gain: GainKind = Field(description="whether that is expected, a bound, or to be tested")
    basis: Basis
    where: tuple[Place, ...] = ()
    since: date | None = Field(default=None, description="the day on which the baseline first knew it")
    known_worth: float | None = Field(default=None, description="what it was worth when the baseline was written")


class KnownFinding(Frozen):
    """A line of the baseline: a finding that is accepted."""

    code: str
    title: str = ""
    loop: str | None = None
    fingerprint: str
    places: tuple[Place, ...] = Field(default=(), description="file (its base name), function, range, kernel; no lines")
    worth: float | None = Field(
        default=None, ge=0, le=1, allow_inf_nan=False, description="what its fix saves, as a share of all steady time"
    )
    since: date


class AbsentFinding(KnownFinding):
    """A line of the baseline that the report does not list."""

    doubt: Doubt = Field(
        default="none",
        description="why it may be there all the same: what fails may hide it, or the loop still idles in the same way",
    )
    reason: str = Field(default="", description="that idleness, in words")


class Baseline(Frozen):
    """The findings that are accepted, sorted, so that a change of the file reads well."""

    schema_version: Literal[1] = 1
    findings: tuple[KnownFinding, ...] = ()


class SuppressionCheck(Frozen):
    """A suppression that no longer counts, soon will not, or that matched nothing."""

    state: Literal["expired", "expiring", "unused"]
    code: str
    place: str | None = None
    until: date
    reason: str


class UnknownRule(Frozen):
    """A code in the configuration that no rule has."""

    key: Literal["findings.allow", "findings.suppress"]
    code: str
    meant: tuple[str, ...] = Field(default=(), description="codes that look like it")


class CheckResult(Frozen):
    """The JSON contract, version 1: keys are added, never changed."""

    schema_version: Literal[1] = 1
    tool: Tool
    passed: bool
    files: tuple[str, ...]
    config: str | None = None
    baseline: str | None = None
    verdict: Verdict
    unchecked_fails: bool = Field(description="whether what could not be checked fails")
    budgets: tuple[BudgetCheck, ...] = ()
    findings: tuple[FindingCheck, ...] = ()
    gone: tuple[AbsentFinding, ...] = Field(default=(), description="in the baseline, and not in the report")
    unseen: tuple[KnownFinding, ...] = Field(
        default=(), description="in the baseline, but this report could not look for them"
    )
    suppressions: tuple[SuppressionCheck, ...] = ()
    unknown_rules: tuple[UnknownRule, ...] = Field(default=(), description="codes of the configuration that are none")
    not_evaluated: int = Field(default=0, description="rules that this report could not evaluate: they cannot fail")
