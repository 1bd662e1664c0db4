"""The keys of gpudiag.toml."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from gpudiag.model import Code, Frozen, Severity, Text
from gpudiag.model.vocabulary import LEAVES
from gpudiag.text import parse

Time = Annotated[
    float,
    BeforeValidator(parse.time_ms),
    WithJsonSchema({"type": "string", "pattern": parse.TIME, "examples": ["4.2 ms"]}),
]
Share = Annotated[
    float,
    BeforeValidator(parse.share),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string", "pattern": parse.PERCENT}, {"type": "number", "minimum": 0, "maximum": 1}],
            "examples": ["15 %", 0.15],
        }
    ),
]
Count = Annotated[
    float, BeforeValidator(parse.count), WithJsonSchema({"type": "number", "minimum": 0, "examples": [420]})
]
Day = Annotated[
    date,
    BeforeValidator(parse.day),
    WithJsonSchema({"type": "string", "format": "date", "examples": ["2027-03-31"]}),
]
LONGEST = "longest"
"""The budget of the loop that takes most of the steady time, whatever it is called."""


def _leaf(name: str) -> Any:
    """A limit of a leaf of the time tree, in the words of the report."""
    bound = "at least" if name == "computing" else "at most"
    return Field(default=None, description=f"{LEAVES[name].label} ({LEAVES[name].meaning}): {bound} this share")


class Budget(Frozen):
    """Limits of one loop. Shares are of an iteration, as in the report's table of where its time goes; `idle` is the
    sum of all that leave the GPU idle, the last ones are leaves of the time tree.
    """

    iteration_time: Time | None = Field(
        default=None, description="at most this long: without the profiler where that time is known, else as recorded"
    )
    launches: Count | None = Field(default=None, description="at most this many kernels and graphs an iteration starts")
    idle: Share | None = Field(default=None, description="the GPU idles at most this share, for whatever reason")
    exposed_copies: Share | None = Field(
        default=None, description="memory is copied, and nothing else runs, at most this share"
    )
    exposed_communication: Share | None = Field(
        default=None, description="GPUs exchange data, and nothing else runs, at most this share"
    )
    compute: Share | None = Field(default=None, description="kernels or graphs run at least this share")
    computing: Share | None = _leaf("computing")
    exposed_copy: Share | None = _leaf("exposed_copy")
    submitting: Share | None = _leaf("submitting")
    host_work: Share | None = _leaf("host_work")
    compiling: Share | None = _leaf("compiling")
    allocating: Share | None = _leaf("allocating")
    input: Share | None = _leaf("input")
    blocked: Share | None = _leaf("blocked")
    sync: Share | None = _leaf("sync")
    dependency: Share | None = _leaf("dependency")
    outside: Share | None = _leaf("outside")

    @model_validator(mode="after")
    def _limits_something(self) -> Budget:
        if not self.model_fields_set:
            raise ValueError(f"sets no limit: give one of {', '.join(Budget.model_fields)}")
        return self


class Suppression(Frozen):
    """A finding that is accepted at a place, for a reason, until a day."""

    code: Code = Field(description="the rule's code, such as S01")
    place: Text | None = Field(
        default=None,
        description="a file, NVTX range or kernel, with * for any text; without it the code is suppressed everywhere",
    )
    reason: Text = Field(description="why it is accepted")
    until: Day = Field(description="the last day on which it counts")


class Findings(Frozen):
    """Findings that fail the check."""

    fail_on: Severity | None = Field(default=None, description="a finding at least this severe fails")
    max_gain: Share | None = Field(
        default=None, description="a finding whose fix would save more than this share of all steady time fails"
    )
    allow: tuple[Code, ...] = Field(default=(), description="codes that never fail")
    baseline: Text | None = Field(
        default=None,
        description="the file of findings that are known and accepted, as seen from this file; only others fail",
    )
    suppress: tuple[Suppression, ...] = Field(default=(), description="findings accepted for a time")


class Config(Frozen):
    """gpudiag.toml, or the table [tool.gpudiag] of pyproject.toml: what `gpudiag check` holds a report to."""

    missing: Literal["fail", "ignore"] = Field(
        default="fail", description="what becomes of a limit that cannot be checked: it fails, or is only named"
    )
    budgets: dict[str, Budget] = Field(
        default_factory=dict,
        description="loop → its limits. A loop's name; a pattern such as `decode_*` or `*` for loops not named; "
        f"`{LONGEST}` for the loop that takes most time",
    )
    findings: Findings = Field(default_factory=Findings, description="which findings fail")

    def limits_something(self, *, with_baseline: bool) -> bool:
        """Return whether any report at all could fail."""
        gate = self.findings
        return bool(self.budgets or gate.fail_on or gate.max_gain is not None or with_baseline)


def schema() -> dict[str, object]:
    """The JSON Schema of gpudiag.toml, for editors."""
    made = Config.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": "gpudiag.toml"}
