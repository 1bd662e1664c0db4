"""A finding's evidence in words: `label = value` for each figure that its message does not state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gpudiag.model import EvidenceItem, EvidenceLabel, Finding
from gpudiag.report.wording.words import duration
from gpudiag.text import former_evidence, iteration_words
from gpudiag.text.escape import code, plain
from gpudiag.text.format import byte_size, num, pct

_NAMED = 3  # of a list of names; the others are counted
_SIX_DIGITS = 1e-5  # to which a report keeps its figures


class Fact(NamedTuple):
    """A figure as printed."""

    label: str
    value: str

    def __str__(self) -> str:
        return f"{plain(self.label)} = {self.value}"


def news(finding: Finding) -> list[str]:
    """Return the evidence that neither the message nor the list of places has stated. Of what the message sums up over
    several places, the worst one's part would read as another figure for the same thing.
    """
    totals = finding.evidence.get("totals")
    known = {"places"} if finding.where or finding.evidence.get("places") == 1 else set()
    known |= set(totals) if isinstance(totals, Mapping) else set()
    figures = {column: value for column, value in finding.evidence.items() if column not in known}
    if not finding.evidence_labels:  # of a former rule, or saved by a former version
        former = [fact for column, value in figures.items() if (fact := former_fact(column, value))]
        return [str(fact) for fact in former if not former_evidence.in_message(fact.value, finding.message)]
    labels = {column: label for column, label in finding.evidence_labels.items() if not label.in_message}
    facts = [fact for column in figures if (fact := labelled(labels.get(column), figures[column]))]
    return [str(fact) for fact in facts]


def labelled(item: EvidenceItem | EvidenceLabel | None, value: Any) -> Fact | None:
    """The figure under its label; None where it has none, or no compact form: then it stays in the JSON."""
    printed = _printed(item.unit, value) if item and value is not None else ""
    return Fact(item.label, printed) if item and printed else None


def former_fact(column: str, value: Any) -> Fact | None:
    """The figure under the label that its column's name suggests."""
    return labelled(former_evidence.guess(column, value), value)


def _printed(unit: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return code(value) if value else ""
    if isinstance(value, list | tuple):
        names = [code(item) for item in value if isinstance(item, str)]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return ", ".join(names[:_NAMED]) + more
    return _FIGURES.get(unit, num)(value) if isinstance(value, int | float) else ""


def _per_iteration(value: float) -> str:
    """`8 in 9` of something that happens less than once an iteration."""
    return iteration_words.over(value, "", _SIX_DIGITS).replace("  ", " ").removesuffix(" iterations") or num(value)


_FIGURES: dict[str, Callable[[float], str]] = {
    "ns": lambda v: duration(v / 1e6),
    "us": lambda v: duration(v / 1e3),
    "ms": duration,
    "s": lambda v: duration(v * 1e3),
    "bytes": byte_size,
    "B/s": lambda v: f"{num(v / 1e9)} GB/s",
    "percent": lambda v: pct(v / 100),
    "share": pct,
    "per_iteration": _per_iteration,
}
