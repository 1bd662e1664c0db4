"""Compare what a test case expects with what came: the first difference, with where in the case it stands."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpudiag.library.yaml_file import Loc
from gpudiag.model import Fired, NotEvaluated, Outcome, Row
from gpudiag.text.escape import middle

_TOLERANCE = 1e-3  # relative: expectations are written by hand
_SHOWN = 8  # columns of a row that nobody expected
_LONGEST = 80  # characters of one value


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A difference between what a case expects and what came; `at` leads to the expectation within the case."""

    text: str
    at: Loc = ()


def compare(case: Mapping[str, Any], outcome: Outcome, text: str) -> Mismatch | None:
    """The first difference, or nothing. `text` is the rule's message for its rows."""
    if isinstance(outcome, NotEvaluated):
        wanted = case.get("expect_not_evaluated")
        if wanted and str(wanted) in outcome.reason:
            return None
        if wanted:
            return Mismatch(f"expected the reason {wanted!r}, found: {outcome.reason}", ("expect_not_evaluated",))
        return Mismatch(f"was not evaluated: {outcome.reason}", ("expect",))
    rows: Sequence[Row] = outcome.rows if isinstance(outcome, Fired) else ()
    if "expect_not_evaluated" in case:
        return Mismatch(f"was evaluated and gave {len(rows)} rows", ("expect_not_evaluated",))
    wanted_rows = case["expect"] or []
    found = _rows_differ(rows, wanted_rows) if len(rows) != len(wanted_rows) else _values_differ(rows, wanted_rows)
    part = str(case.get("expect_message") or "")
    if found is None and part not in text:
        return Mismatch(f"its message lacks {part!r}: {text}", ("expect_message",))
    return found


def _rows_differ(rows: Sequence[Row], wanted: Sequence[Row]) -> Mismatch:
    """Say which expected row did not come, or which row came that nobody expected."""
    left = list(range(len(rows)))
    missing: list[int] = []
    for position, row in enumerate(wanted):
        match = next((number for number in left if not _different(rows[number], row)), None)
        if match is None:
            missing.append(position)
        else:
            left.remove(match)
    text = f"gave {len(rows)} {'row' if len(rows) == 1 else 'rows'} instead of {len(wanted)}"
    at: Loc = ("expect",)
    if missing and wanted[missing[0]] and len(wanted) > len(rows):
        at = ("expect", missing[0])
        text += f"; row {missing[0] + 1} did not come: {_row(wanted[missing[0]])}"
    elif left:
        extra = rows[left[-1]]
        named = {name: extra[name] for row in wanted for name in row if name in extra}
        text += f"; row {left[-1] + 1} was not expected: {_row(named or extra)}"
    return Mismatch(text, at)


def _values_differ(rows: Sequence[Row], wanted: Sequence[Row]) -> Mismatch | None:
    for position, (row, wanted_row) in enumerate(zip(rows, wanted, strict=True)):
        if different := _different(row, wanted_row):
            name, *others = different
            at = ("expect", position, name)
            if name not in row:
                return Mismatch(f"row {position + 1} has no column {name}; it has {', '.join(row)}", at)
            more = f"; other columns that differ: {', '.join(others)}" if others else ""
            value, found = _shown(wanted_row[name]), _shown(row[name])
            return Mismatch(f"expected {name} {value}, found {found} (column {name}, row {position + 1}){more}", at)
    return None


def _different(row: Row, wanted: Row) -> list[str]:
    """The columns that are missing or hold another value than expected."""
    return [name for name, value in wanted.items() if name not in row or not same(row[name], value)]


def _row(row: Row) -> str:
    """Some columns of a row, as a test case would write them."""
    shown = ", ".join(f"{name}: {_shown(value)}" for name, value in list(row.items())[:_SHOWN])
    return f"{{{shown}{', …' if len(row) > _SHOWN else ''}}}"


def _shown(value: Any) -> str:
    """Write a value as a test case would."""
    return middle(json.dumps(value, default=str, ensure_ascii=False), _LONGEST)


def same(got: Any, wanted: Any) -> bool:
    """Compare a value with the expected one; floating-point numbers may differ by a thousandth."""
    if isinstance(got, float) and isinstance(wanted, int | float) and not isinstance(wanted, bool):
        return math.isclose(got, wanted, rel_tol=_TOLERANCE, abs_tol=1e-9)
    if isinstance(got, list) and isinstance(wanted, list):
        return len(got) == len(wanted) and all(same(a, b) for a, b in zip(got, wanted, strict=True))
    return bool(got == wanted)
