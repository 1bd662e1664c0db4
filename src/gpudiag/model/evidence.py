"""The figures that a rule gives as evidence, each with its label and unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

Unit = Literal["ns", "us", "ms", "s", "bytes", "B/s", "percent", "share", "count", "per_iteration", "name", "yes_no"]
UNITS: Mapping[Unit, str] = {
    "ns": "a time in nanoseconds, printed in the unit that reads best",
    "us": "likewise in microseconds",
    "ms": "likewise in milliseconds",
    "s": "likewise in seconds",
    "bytes": "an amount of data",
    "B/s": "a rate in bytes a second, printed in GB/s",
    "percent": "a part of a hundred",
    "share": "a part of one, printed in percent",
    "count": "a number without a unit",
    "per_iteration": "a count for each iteration: less than one is printed as `8 in 9`",
    "name": "a text, or a list of texts",
    "yes_no": "a boolean",
}
assert tuple(UNITS) == get_args(Unit)
Label = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80, pattern=r"^[^\n{}]+$")]
Column = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=80)]


class EvidenceItem(BaseModel):
    """A column of a rule's query as the report prints it: `label = value`."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    label: Label = Field(description="the figure's name in the report")
    unit: Unit = Field(description=", ".join(UNITS))


def _as_mapping(value: Any) -> Any:
    """A plain list of columns as a mapping that leaves their labels and units to their names."""
    return dict.fromkeys(value) if isinstance(value, list) and all(isinstance(one, str) for one in value) else value


def _or_list(schema: dict[str, Any]) -> None:
    """Let the schema of a mapping accept the short form as well."""
    columns = {"type": "array", "items": {"type": "string"}}
    mapping = {
        key: schema.pop(key)
        for key in ("additionalProperties", "patternProperties", "propertyNames", "type")
        if key in schema
    }
    schema["anyOf"] = [mapping, columns]


EvidenceItems = Annotated[
    dict[Column, EvidenceItem | None],
    BeforeValidator(_as_mapping),
    Field(max_length=50, json_schema_extra=_or_list),
]
