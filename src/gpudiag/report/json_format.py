"""The JSON report: the contract for bots. Keys in the model's order, floats to six significant digits."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from gpudiag.model import Report

DIGITS = 6


def render(report: Report) -> str:
    """The report as indented ASCII JSON that any reader takes, ending in a newline."""
    return json.dumps(tidy(report.model_dump()), indent=2, allow_nan=False) + "\n"


def tidy(value: Any) -> Any:
    """JSON has no NaN, infinity or lone surrogates; a strict reader refuses the whole file for one of them."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {tidy(str(key)): tidy(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [tidy(item) for item in value]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if not value.isascii() else str(value)
    return value if isinstance(value, (bool, int)) or value is None else str(value)
