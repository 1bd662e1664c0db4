"""Labels and units of evidence for former rules and reports, which declare none: guessed from a column's name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gpudiag.model import EvidenceItem
from gpudiag.model.evidence import Unit

_LABELS = {
    "matrix per iteration": "matrix products per iteration",
    "pointwise per iteration": "element-wise kernels per iteration",
}
_PER_ITERATION = re.compile(r"\bper iteration\b")
_SUFFIXES: dict[str, Unit] = {
    "ns": "ns", "us": "us", "ms": "ms", "s": "s", "bytes": "bytes", "pct": "percent", "percent": "percent",
}  # fmt: skip


def guess(column: str, value: Any) -> EvidenceItem | None:
    """The label and unit that the name stands for; None where a report prints nothing of it."""
    label, unit = _label_and_unit(column, value)
    label = _PER_ITERATION.sub("an iteration", _LABELS.get(label, label))
    return EvidenceItem.model_construct(label=label, unit=unit) if unit else None


def _label_and_unit(column: str, value: Any) -> tuple[str, Unit | None]:
    words = column.replace("_", " ")
    label, _, suffix = column.rpartition("_")
    if value is None or isinstance(value, Mapping) or column == "share":
        return words, None
    if isinstance(value, bool):
        return words, "yes_no"
    if isinstance(value, str | list | tuple):
        return words, "name"
    if not isinstance(value, int | float):
        return words, None
    if column.endswith("bytes_per_s"):
        return column.removesuffix("bytes_per_s").rstrip("_").replace("_", " ") or "rate", "B/s"
    if suffix == "share" and label:
        return words, "share"
    if suffix in _SUFFIXES and label:
        return label.replace("_", " "), _SUFFIXES[suffix]
    if column.startswith("ns_"):
        return f"time {column.removeprefix('ns_').replace('_', ' ')}", "ns"
    if "bytes" in label.split("_"):  # bytes_each, bytes_per_iteration
        return words, "bytes"
    if column == "bytes":
        return "size", "bytes"
    return words, "per_iteration" if column.endswith("per_iteration") else "count"


def in_message(printed: str, message: str) -> bool:
    """Return whether a former rule's message holds the figure, as it is printed."""
    return bool(re.search(rf"(?<![\w.,]){re.escape(printed)}(?![\w.,]*\d)", message))
