"""Rules, and what evaluating one gives."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from gpudiag.model.evidence import EvidenceItems
from gpudiag.model.vocabulary import BUDGET, LEAVES, Severity


class Frozen(BaseModel):
    # Building a model's validator is put off until it is used: most runs need few of them.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


Confidence = Literal["low", "medium", "high"]
# profiler_overhead: the note asks for the unprofiled time of an iteration; it is left out where that is given.
Role = Literal["profiler_overhead"]
Status = Literal["draft", "stable", "deprecated"]
GainKind = Literal["expected", "upper_bound", "lower_bound", "test_needed"]
Basis = Literal["run", "loop", "window", "kernel"]
PlaceKind = Literal["python", "nvtx", "kernel"]
PLACE_KINDS: dict[str, str] = {
    "python": "lines of the program, from the Python samples around the row's calls and operations",
    "nvtx": "the NVTX range in the row's column `nvtx_path`",
    "kernel": "the kernel in the row's column `kernel`, with its source lines where a profile has them",
}
"""What `locate` may hold, with its meaning for authors."""
Ids = Literal["api_calls", "gpu_ops", "ranges", "profiles", "idle_intervals"]
Code = Annotated[str, StringConstraints(pattern=r"^[A-Z]+[0-9]{2,3}$", max_length=16)]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=80)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
# Four times the longest of ours, so that no rule can fill a report, or the time of those who read it.
Prose = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4000)]
Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=400)]
Query = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=10_000)]
Word = Annotated[str, StringConstraints(max_length=400)]
# An edit of the timeline. Which ones there are is the replay's to say: the library checks them as it loads a rule.
Edit = Annotated[
    str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=80), Field(json_schema_extra={"format": "edit"})
]


def _budget_part(name: str) -> str:
    if name not in BUDGET:
        raise ValueError(f"{name!r} is no part of the time budget; there are {', '.join(BUDGET)}")
    return name


BudgetPart = Annotated[str, AfterValidator(_budget_part), Field(json_schema_extra={"enum": list(BUDGET)})]


def _leaf(name: str) -> str:
    if name not in LEAVES:
        raise ValueError(f"{name!r} is no leaf of the time tree; there are {', '.join(LEAVES)}")
    return name


LeafName = Annotated[str, AfterValidator(_leaf), Field(json_schema_extra={"enum": list(LEAVES)})]
Question = Annotated[str, StringConstraints(strip_whitespace=True, max_length=160, pattern=r"^[^\n{}]+\?$")]
Need = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*(\|[a-z][a-z0-9_]*)*$", max_length=200)]
ParamName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=80)]


Source = Literal["measured", "ncu", "docs", "judgement"]


class Param(Frozen):
    """A threshold: its value, unit, source and reason. Users override the value by `CODE.name=value`."""

    value: float = Field(allow_inf_nan=False, description="the threshold, in that unit")
    unit: Word = Field(description="ns, us, ms, bytes, share and cosine (0 to 1), times (1 or more), count, percent …")
    source: Source | None = Field(
        default=None,
        description="where the value comes from: measured, ncu (a rule of Nsight Compute), docs (of a vendor or a "
        "paper, with its address in `why` or `references`) or judgement; packaged rules always say it",
    )
    why: Prose = Field(description="why this value and not another")


class Price(Frozen):
    """Pricing of a finding: the edits to apply to the selected ids, or the experiment that would decide."""

    kind: GainKind = Field(description="what the printed number will be once the timeline can be re-simulated")
    on: Ids | None = Field(
        default=None,
        description="the id-list column of the query that the edits apply to; with gpu_ops, edits of calls change the"
        " calls that started them",
    )
    low: tuple[Edit, ...] = Field(default=(), description="the cautious fix")
    expected: tuple[Edit, ...] = Field(default=(), description="the usual fix")
    high: tuple[Edit, ...] = Field(default=(), description="the best fix; what an upper bound assumes")
    test: Prose | None = Field(
        default=None,
        description="the experiment that would tell: when kind is test_needed, or for rows whose `recoverable` is null",
    )
    remedies: dict[Slug, tuple[Edit, ...]] = Field(
        default_factory=dict,
        max_length=10,
        description="what a remedy does where that is not the usual fix: it then gets a price of its own",
    )

    @model_validator(mode="after")
    def _complete(self) -> Price:
        if self.kind == "test_needed":
            if not self.test:
                raise ValueError("price.kind test_needed wants `test`, the experiment that would tell")
        elif not (self.expected or self.high or self.low) or self.on is None:
            raise ValueError("price wants `on` and at least one of low, expected, high")
        return self

    @property
    def best(self) -> tuple[Edit, ...]:
        """The edits of the most optimistic fix named."""
        return self.high or self.expected or self.low

    def unproven(self, row: Row) -> bool:
        """Return whether nothing proves a number for this row: its `recoverable` is there and null, and a test is
        named.
        """
        return self.test is not None and row.get("recoverable", self) is None

    def ids_of(self, row: Row) -> list[int] | None:
        """The ids in a row that the edits apply to: a profiled kernel's launches, where a timeline shows them."""
        name = "gpu_ops" if self.on == "profiles" and row.get("loop") is not None else self.on
        ids = row.get(name) if name else None
        return ids if isinstance(ids, list) else None


class Rule(Frozen):
    """One smell (finding), one doubt about the measurement (hygiene), or one reason to stay quiet (suppressor)."""

    code: Code = Field(description="stable; users suppress and override by it")
    kind: Literal["finding", "hygiene", "suppressor"] = Field(
        description="finding (a smell), hygiene (a doubt about the measurement) or suppressor (a veto)"
    )
    about: Literal["capture", "job"] = Field(
        default="capture",
        description="capture (if not given), or job: asked of the reduced tables of many ranks, where a job is given",
    )
    id: Slug = Field(description="names the smell, not the cure; equals the file's stem")
    title: Title = Field(description="the smell in one plain sentence, true wherever the rule applies")
    headline: Title | None = Field(
        default=None, description="Jinja; what a finding of it is called: the title with what its rows prove"
    )
    what: Prose | None = Field(default=None, description="what the rule looks for, in one or two plain sentences")
    status: Status = Field(default="draft", description="draft (if not given), stable or deprecated")
    severity: Severity = Field(
        default="info", description="critical, high, medium, low or info (if not given): how wrong it is, at any cost"
    )
    requires: tuple[Word, ...] = Field(
        default=(), max_length=20, description="capabilities, listed in `rules/capabilities.yaml`; else not evaluated"
    )
    needs: tuple[Need, ...] = Field(
        default=(),
        max_length=20,
        description="columns of kernel_facts, `a|b` for either: a kernel that lacks one is not evaluated",
    )
    suppressed_by: tuple[Code, ...] = Field(default=(), max_length=50, description="suppressors that can veto its rows")
    yields_to: tuple[Code, ...] = Field(
        default=(),
        max_length=50,
        description="findings that name the cause more closely: of a profiled kernel or loop of which one of them "
        "speaks, this rule says nothing",
    )
    after: tuple[Code, ...] = Field(
        default=(),
        max_length=50,
        description="findings to fix first, since its own fix needs theirs: one that is found in the same loop and is "
        "worth settings.first_share of it is listed before it",
    )
    behind: tuple[Code, ...] = Field(
        default=(),
        max_length=50,
        description="findings that may be about the same time and say more of it: one that is found in the same loop "
        "and is worth as much is listed before it",
    )
    consequence: bool = Field(
        default=False,
        description="findings only: it shows where time is lost and not why. A finding of the same loop that accounts "
        "for settings.same_time_share of the time of its own rows is listed before it, as its cause",
    )
    weakens: tuple[Code, ...] = Field(
        default=(), max_length=200, description="hygiene only: findings whose confidence it lowers"
    )
    explains: LeafName | None = Field(
        default=None,
        description="hygiene only: the leaf of the time tree that its rows account for, each with `loop`, and with "
        "`explained_share` or else `share` of the loop's time: no observation then says that nothing explains it",
    )
    role: Role | None = Field(default=None, description="hygiene only: what the report does with its notes")
    family: str = Field(default="", description="filled from the folder, not written in the file", exclude=True)
    params: dict[ParamName, Param] = Field(
        default_factory=dict, max_length=50, description="thresholds, each with unit and reason"
    )
    query: Query = Field(description="one SELECT over the views; $name is a parameter")
    evidence: EvidenceItems | None = Field(
        default=None,
        description="findings only: columns of the query that the report prints, each with `label` and `unit`; those "
        "that the message states are left out",
    )
    price: Price | None = Field(default=None, description="what its fix is worth; findings only, and required of them")
    confidence: Confidence = Field(default="high", description="high, medium or low")
    confidence_reason: Prose | None = Field(default=None, description="said in the report when confidence is not high")
    locate: tuple[PlaceKind, ...] = Field(default=(), description="how places are named: python, nvtx, kernel")
    budget: tuple[BudgetPart, ...] = Field(
        default=(),
        description="the parts of the time budget that its findings explain; none where that is no single one",
    )
    message: Prose = Field(description="Jinja; sees places (rows), total (sums), params, loop, per (an iteration)")
    why: Prose = Field(description="why it costs time")
    question: Question | None = Field(
        default=None, description="for a reviewer: answered yes or no by reading the code, yes where it could be faster"
    )
    not_a_problem_when: Prose = Field(description="when to leave it alone")
    remedies: tuple[Slug, ...] = Field(
        default=(), max_length=10, description="files in remedies/; a finding names at least one"
    )
    check: Prose | None = Field(default=None, description="how the reader can verify the fix")
    references: tuple[Word, ...] = Field(default=(), max_length=20, description="where to read more")

    @model_validator(mode="after")
    def _kind_fits(self) -> Rule:
        if self.kind == "finding" and self.price is None:
            raise ValueError("a finding wants `price`")
        if self.kind != "finding" and self.price is not None:
            raise ValueError(f"a {self.kind} has no price")
        if self.kind != "finding" and self.evidence is not None:
            raise ValueError(f"a {self.kind} has no evidence")
        if self.kind != "finding" and self.yields_to:
            raise ValueError(f"a {self.kind} yields to nothing")
        if self.kind != "finding" and (self.after or self.behind):
            raise ValueError(f"a {self.kind} comes after nothing")
        if self.kind != "finding" and self.consequence:
            raise ValueError(f"a {self.kind} is no consequence of a finding")
        if self.explains and self.kind != "hygiene":
            raise ValueError(f"a {self.kind} explains by its claim")
        if self.role and self.kind != "hygiene":
            raise ValueError(f"a {self.kind} has no role")
        if self.confidence != "high" and not self.confidence_reason:
            raise ValueError("confidence below high wants `confidence_reason`")
        return self


Row = dict[str, Any]


class Gap(Frozen):
    """A profiled launch that lacks a counter which a rule needs: the rule says nothing of it."""

    profile: int
    kernel: str
    lacks: tuple[str, ...]


class Fired(Frozen):
    """The rule's query gave rows: one a place, worst first. gaps: launches that it could not judge."""

    rule: Rule
    rows: tuple[Row, ...]
    gaps: tuple[Gap, ...] = ()


class Clear(Frozen):
    """The evidence was recorded and shows nothing. gaps: launches that it could not judge."""

    rule: Rule
    gaps: tuple[Gap, ...] = ()


class NotEvaluated(Frozen):
    """The evidence was not recorded, or the rule could not run. kernels: those of which alone this holds."""

    rule: Rule
    reason: str
    hint: str = ""
    kernels: tuple[str, ...] = ()


Outcome = Fired | Clear | NotEvaluated
