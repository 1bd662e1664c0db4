"""Rules, and what evaluating one gives."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator


class Frozen(BaseModel):
    # Building a model's validator is put off until it is used: most runs need few of them.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Edit(StrEnum):
    """What a fix does to the timeline. Rules name edits in `price`; the pricing engine applies them."""

    DROP_SYNC = "drop_sync"
    DROP_COPY = "drop_copy"
    DROP_RANGE = "drop_range"
    DROP_CALL = "drop_call"
    RUN_ASYNC = "run_async"
    GRAPH_REGION = "graph_region"
    FUSE_KERNELS = "fuse_kernels"
    BATCH_COPIES = "batch_copies"
    OVERLAP_COPY = "overlap_copy"
    OVERLAP_COLLECTIVE = "overlap_collective"
    PIN = "pin"
    POOL_ALLOCATION = "pool_allocation"
    TO_WORKERS = "to_workers"
    SHRINK_KERNEL = "shrink_kernel"
    LOWER_PRECISION = "lower_precision"
    BALANCE_RANKS = "balance_ranks"


EDIT_MEANING: dict[Edit, str] = {
    Edit.DROP_SYNC: "nothing is waited for in the selected calls; selected waits cost nothing",
    Edit.DROP_COPY: "the selected copies and waits go; a copy right before a selected wait goes with it",
    Edit.DROP_RANGE: "the host work around the selected calls goes with them; a block that only reads back, whole",
    Edit.DROP_CALL: "the selected calls go with the GPU work that they started",
    Edit.RUN_ASYNC: "the selected calls wait for nothing and cost the host a launch",
    Edit.GRAPH_REGION: "all launches between two waits, a selected one among them, become one CUDA graph",
    Edit.FUSE_KERNELS: "selected kernels that follow one another in a stream become one; their own time stays",
    Edit.BATCH_COPIES: "the selected copies of a turn and direction become one; the time their bytes need stays",
    Edit.OVERLAP_COPY: "the selected copies run beside kernels, one at a time in each direction, and a little slower",
    Edit.OVERLAP_COLLECTIVE: "the selected collectives run beside kernels; priced as an upper bound",
    Edit.PIN: "the selected pageable copies take the time of their bytes, and their calls cost a launch",
    Edit.POOL_ALLOCATION: "the selected allocations and frees wait for nothing and cost a microsecond",
    Edit.TO_WORKERS: "the host work before the selected calls is shared among worker processes that run meanwhile",
    Edit.SHRINK_KERNEL: "the selected operations lose the part that the column `recoverable` gives",
    Edit.LOWER_PRECISION: "as shrink_kernel, by lower precision",
    Edit.BALANCE_RANKS: "all ranks start the selected collectives together; priced as an upper bound",
}

Severity = Literal["info", "low", "medium", "high"]
Confidence = Literal["low", "medium", "high"]
Status = Literal["draft", "stable", "deprecated"]
GainKind = Literal["expected", "upper_bound", "lower_bound", "test_needed"]
Basis = Literal["run", "loop", "window", "kernel"]
Ids = Literal["api_calls", "gpu_ops", "ranges", "profiles", "pieces"]
Framework = Literal["pytorch", "cupy", "numba", "jax", "triton", "cuda", "any"]
Code = Annotated[str, StringConstraints(pattern=r"^[A-Z]+[0-9]{2,3}$", max_length=16)]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=80)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
# Four times the longest of ours, so that no rule can fill a report, or the time of those who read it.
Prose = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4000)]
Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=400)]
Query = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=10_000)]
Word = Annotated[str, StringConstraints(max_length=400)]
Question = Annotated[str, StringConstraints(strip_whitespace=True, max_length=160, pattern=r"^[^\n{}]+\?$")]
ParamName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=80)]

SEVERITIES: tuple[Severity, ...] = ("info", "low", "medium", "high")


class Param(Frozen):
    """A threshold: its value, unit and reason. Users override the value by `CODE.name=value`."""

    value: float = Field(allow_inf_nan=False, description="the threshold, in that unit")
    unit: Word = Field(description="ns, us, ms, bytes, share (0 to 1), count, percent …")
    why: Prose = Field(description="why this value and not another")


class Price(Frozen):
    """How a finding is priced: the edits to apply to the selected ids, or the experiment that would tell."""

    kind: GainKind = Field(description="what the printed number will be once the timeline can be re-simulated")
    on: Ids | None = Field(default=None, description="the id-list column of the query that the edits apply to")
    low: tuple[Edit, ...] = Field(default=(), description="the cautious fix")
    expected: tuple[Edit, ...] = Field(default=(), description="the usual fix")
    high: tuple[Edit, ...] = Field(default=(), description="the best fix; what an upper bound assumes")
    test: Prose | None = Field(default=None, description="the experiment that would tell, when kind is test_needed")

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

    def ids_of(self, row: Row) -> list[int] | None:
        """The ids in a row that the edits apply to: a profiled kernel's launches, where a timeline shows them."""
        name = "gpu_ops" if self.on == "profiles" and row.get("loop") is not None else self.on
        ids = row.get(name) if name else None
        return ids if isinstance(ids, list) else None


class Rule(Frozen):
    """One smell (finding), one doubt about the measurement (hygiene), or one reason to stay quiet (suppressor)."""

    code: Code = Field(description="stable; users suppress and override by it")
    kind: Literal["finding", "hygiene", "suppressor"] = Field(
        description="a smell, a doubt about the measurement, or a veto"
    )
    id: Slug = Field(description="names the smell, not the cure; equals the file's stem")
    title: Title = Field(description="the smell in one plain sentence")
    status: Status = Field(default="draft", description="draft, stable or deprecated")
    severity: Severity = Field(default="info", description="how wrong it is, whatever it costs here")
    requires: tuple[Word, ...] = Field(default=(), max_length=20, description="capabilities; else not evaluated")
    suppressed_by: tuple[Code, ...] = Field(default=(), max_length=50, description="suppressors that can veto its rows")
    weakens: tuple[Code, ...] = Field(
        default=(), max_length=200, description="hygiene only: findings whose confidence it lowers"
    )
    family: str = Field(default="", description="filled from the folder, not written in the file", exclude=True)
    params: dict[ParamName, Param] = Field(
        default_factory=dict, max_length=50, description="thresholds, each with unit and reason"
    )
    query: Query = Field(description="one SELECT of at most 25 lines over the views; $name is a parameter")
    price: Price | None = Field(default=None, description="what its fix is worth; findings only")
    confidence: Confidence = Field(default="high", description="high, medium or low")
    confidence_reason: Prose | None = Field(default=None, description="said in the report when confidence is not high")
    locate: tuple[Literal["python", "nvtx", "op", "kernel"], ...] = Field(
        default=(), description="how places are named"
    )
    message: Prose = Field(description="Jinja; sees places (rows), total (sums), params, loop")
    why: Prose = Field(description="why it costs time")
    question: Question | None = Field(
        default=None, description="for a reviewer: answered yes or no by reading the code, yes where it could be faster"
    )
    not_a_problem_when: Prose = Field(description="when to leave it alone")
    remedies: tuple[Slug, ...] = Field(default=(), max_length=10, description="files in remedies/")
    check: Prose | None = Field(default=None, description="how the reader can verify the fix")
    references: tuple[Word, ...] = Field(default=(), max_length=20, description="where to read more")

    @model_validator(mode="after")
    def _kind_fits(self) -> Rule:
        if self.kind == "finding" and self.price is None:
            raise ValueError("a finding wants `price`")
        if self.kind != "finding" and self.price is not None:
            raise ValueError(f"a {self.kind} has no price")
        if self.confidence != "high" and not self.confidence_reason:
            raise ValueError("confidence below high wants `confidence_reason`")
        return self


Row = dict[str, Any]


class Fired(Frozen):
    """The rule's query gave rows: one a place, worst first."""

    rule: Rule
    rows: tuple[Row, ...]


class Clear(Frozen):
    """The evidence was recorded and shows nothing."""

    rule: Rule


class NotEvaluated(Frozen):
    """The evidence was not recorded, or the rule could not run."""

    rule: Rule
    reason: str
    hint: str = ""


Outcome = Fired | Clear | NotEvaluated
