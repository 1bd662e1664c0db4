"""The sentences of a rule for the rows that it found, a finding for each loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpudiag.model import Row, Rule
from gpudiag.text import iteration_words
from gpudiag.text.templating import render


def by_loop(rows: Sequence[Row]) -> dict[int | None, list[Row]]:
    """Rows of each loop, in their order: a finding is one (code, loop)."""
    groups: dict[int | None, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.get("loop"), []).append(row)
    return groups


def message(rule: Rule, rows: Sequence[Row], loops: Mapping[int, Row]) -> str:
    """The rule's sentence for these rows. Raises TemplateProblem."""
    return _of_iterations(rule.message, rule, rows, _loop_of(rows, loops))


def title(rule: Rule, rows: Sequence[Row], loops: Mapping[int, Row]) -> str:
    """The rule's headline, or its title, for these rows. Raises TemplateProblem."""
    return _of_iterations(rule.headline or rule.title, rule, rows, _loop_of(rows, loops))


def _of_iterations(template: str, rule: Rule, rows: Sequence[Row], loop: Row | None) -> str:
    """The sentence in words that hold of the loop, or of the run where nothing repeats. Raises TemplateProblem."""
    text = render(template, rule, rows, loop)
    repeats = loop is None or "unknown" not in (loop.get("source"), loop.get("period_source"))
    if not repeats:
        return iteration_words.of_run(text)
    return iteration_words.counted(text, loop.get("iterations") if loop else None)


def _loop_of(rows: Sequence[Row], loops: Mapping[int, Row]) -> Row | None:
    owners = {row.get("loop") for row in rows}
    owner = owners.pop() if len(owners) == 1 else None
    return None if owner is None else loops.get(owner)
