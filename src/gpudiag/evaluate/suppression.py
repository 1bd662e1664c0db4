"""The rest of a finding once suppressors have vetoed rows and ids of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from gpudiag.evaluate.row_check import ID_LISTS
from gpudiag.evaluate.rule_sentences import message
from gpudiag.model import Clear, Fired, Row, Rule, Suppressed
from gpudiag.text.format import clean


def suppress(
    finding: Fired, suppressors: Iterable[Fired], loops: Mapping[int, Row]
) -> tuple[Fired | Clear, list[Suppressed]]:
    """The finding without the rows and ids that suppressors veto, and a line for each veto that had an effect."""
    rows: list[Row] = list(finding.rows)
    entries: list[Suppressed] = []
    for suppressor in suppressors:
        for veto in suppressor.rows:
            kept = [left for row in rows if (left := _without(row, veto, finding.rule)) is not None]
            if kept != rows:
                own = veto.get("reason")
                reason = clean(str(own)) if own else message(suppressor.rule, [veto], loops)
                entry = Suppressed(code=finding.rule.code, by=suppressor.rule.code, reason=reason)
                entries += [] if entry in entries else [entry]
            rows = kept
    if not rows:
        return Clear(rule=finding.rule, gaps=finding.gaps), entries
    entries = [entry.model_copy(update={"partly": True}) for entry in entries]
    return Fired(rule=finding.rule, rows=tuple(rows), gaps=finding.gaps), entries


def _without(row: Row, veto: Row, rule: Rule) -> Row | None:
    """`row` after `veto`: unchanged, with fewer ids, or None when nothing to price is left."""
    if veto.get("loop") is not None and veto["loop"] != row.get("loop"):
        return row
    lists = {name: set(veto[name]) for name in ID_LISTS if veto.get(name) is not None}
    return less(row, lists, rule) if lists else None


def less(row: Row, lists: Mapping[str, AbstractSet[int]], rule: Rule) -> Row | None:
    """`row` without these ids, or None when nothing to price is left."""
    left = dict(row)
    for name, ids in lists.items():
        if row.get(name) is not None:
            left[name] = [item for item in row[name] if item not in ids]
    on = rule.price.on if rule.price else None
    if on and not row.get(on) and row.get("profiles"):  # of a rule on both, a row about a profiled kernel
        on = "profiles"
    return None if on and row.get(on) and not left[on] else left
