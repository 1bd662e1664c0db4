"""A trial as plain text: a table where it fits, else a block of lines for each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpudiag.authoring.trial import Trial
from gpudiag.model import Row
from gpudiag.text.escape import middle, one_line

_WIDE = 120  # characters of a line of the table
_CELL = 60  # and of one value
_IDS = 6  # of a list that is shown


def page(trial: Trial, limit: int) -> str:
    """The trial for a person: at most `limit` rows, the conditions, the outcome, and the report's sentence."""
    rule = trial.rule
    parts = [f"{rule.code} {rule.id}: {rule.title}", _rows(trial.rows, limit)]
    if trial.conditions:
        parts.append(_aligned([[one_line(what), one_line(state)] for what, state in trial.conditions]))
    parts.append(one_line(trial.outcome))
    if trial.headline or trial.message:
        parts += ["The report would say:", trial.headline, trial.message]
    return "\n\n".join(part.rstrip() for part in parts if part) + "\n"


def _rows(rows: Sequence[Row], limit: int) -> str:
    if not rows or limit == 0:
        return f"({len(rows) or 'no'} {'row' if len(rows) == 1 else 'rows'})"
    shown = [{name: _value(value) for name, value in row.items()} for row in rows[:limit]]
    names = list(rows[0])
    table = _aligned([names, *(list(row.values()) for row in shown)])
    if max(map(len, table.splitlines())) > _WIDE:
        table = "\n\n".join(
            f"row {number}\n{_aligned([[f'  {name}', value] for name, value in row.items()])}"
            for number, row in enumerate(shown, 1)
        )
    more = len(rows) - len(shown)
    return f"{table}\n({more} more)" if more else table


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _value(value: Any) -> str:
    """A value as the query gave it: no units are converted, and NULL is written out."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, list):
        more = f", … {len(value) - _IDS} more" if len(value) > _IDS else ""
        return f"[{', '.join(map(_value, value[:_IDS]))}{more}]"
    return middle(one_line(str(value)), _CELL)
