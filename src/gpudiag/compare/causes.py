"""Findings of both sides: new, gone, better, worse, hidden on one; matched by fingerprint, then by code and place."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from gpudiag.compare import hidden_causes
from gpudiag.compare.hidden_causes import Behind, BudgetParts
from gpudiag.compare.loop_matching import Pair
from gpudiag.model import Finding, FindingChange, Place, Report
from gpudiag.text.format import base_name

ORDER = (
    "new", "worse", "now_visible", "gone", "better", "no_longer_visible", "unchanged", "not_evaluated",
)  # fmt: skip
_Side = Literal["base", "head"]


class _Match(NamedTuple):
    base: Finding
    head: Finding
    by: Literal["fingerprint", "place"]


class _Sides(NamedTuple):
    base: Report
    head: Report
    pairs: Sequence[Pair]
    settings: Mapping[str, float]
    budget_parts: BudgetParts
    quiet: Container[str | None]


def changes(
    base: Report,
    head: Report,
    pairs: Sequence[Pair],
    settings: Mapping[str, float],
    budget_parts: BudgetParts,
    quiet: Container[str | None] = (),
) -> tuple[FindingChange, ...]:
    """Return the changed causes in order of importance: new and worse ones, then gone and better ones. Small findings
    take part, so that a cause that fell below the reporting gate is better and not gone; those that were and stay small
    are left out.

    quiet: loops whose time differs by no more than noise, None for causes of no loop: there no fix is worth more or
    less than before.
    """
    sides = _Sides(base, head, pairs, settings, budget_parts, quiet)
    before, after = (*base.findings, *base.minor), (*head.findings, *head.minor)
    twins = {pair.base.id: pair.head.id for pair in pairs}
    matches: list[_Match] = []
    for by, same in _ways(twins):
        for one in before:
            free = [other for other in after if not any(match.head is other for match in matches)]
            other = next((other for other in free if same(one, other)), None)
            if other and not any(match.base is one for match in matches):
                matches.append(_Match(one, other, by))
    large = {id(f) for f in (*base.findings, *head.findings)}
    found = [_both(m, sides) for m in matches if {id(m.base), id(m.head)} & large]
    known = {id(f) for match in matches for f in (match.base, match.head)}
    found += [_gone(f, sides) for f in base.findings if id(f) not in known]
    found += [_new(f, sides) for f in head.findings if id(f) not in known]
    return tuple(
        sorted(found, key=lambda c: (ORDER.index(c.state), -max(c.head_share or 0, c.base_share or 0), c.code))
    )


_Same = Callable[[Finding, Finding], bool]


def _ways(twins: Mapping[int, int]) -> Iterable[tuple[Literal["fingerprint", "place"], _Same]]:
    def one_loop(base: Finding, head: Finding) -> bool:
        return base.gain.loop is None or head.gain.loop is None or twins.get(base.gain.loop) == head.gain.loop

    def place(base: Finding, head: Finding) -> bool:
        shared = _sites(base) & _sites(head) or (not _sites(base) and not _sites(head))
        return base.code == head.code and one_loop(base, head) and bool(shared)

    def loop(base: Finding, head: Finding) -> bool:
        """A code is found once a loop: there it is the same cause, wherever it moved to."""
        same = base.gain.loop is not None and head.gain.loop is not None and one_loop(base, head)
        return base.code == head.code and same

    return (("fingerprint", lambda b, h: b.fingerprint == h.fingerprint), ("place", place), ("place", loop))


def _sites(finding: Finding) -> set[tuple[str, str, str]]:
    """Places without what edits move: folders and line numbers."""
    return {
        (base_name(place.file or ""), place.function or "", place.kernel or "")
        for place in finding.where
        if place.file or place.function or place.kernel
    }


def _both(match: _Match, sides: _Sides) -> FindingChange:
    before, after = _cost(match.base), _cost(match.head)
    loop = _loop(match.base, sides.base)
    state: Literal["better", "worse", "unchanged"] = "unchanged"
    if before is not None and after is not None and loop not in sides.quiet:
        share = abs(match.head.gain.share - match.base.gain.share)
        factor = 1 + sides.settings["diff_finding"]
        if share >= sides.settings["diff_finding_share"]:
            state = "worse" if after > factor * before else "better" if before > factor * after else "unchanged"
    larger: _Side = "base" if (before or 0) > (after or 0) else "head"
    return FindingChange(
        state=state, code=match.head.code, title=match.head.title, loop=loop, matched_by=match.by,
        **_summary("base", match.base), **_summary("head", match.head),
        **_about(_behind(match.base if larger == "base" else match.head, larger, sides)),
        severity=match.head.severity, where=_worst(match.head),
    )  # fmt: skip


def _gone(finding: Finding, sides: _Sides) -> FindingChange:
    """A cause that nobody looked for is not known to be gone; one whose time is still there is only hidden."""
    unknown = (item for item in sides.head.not_evaluated if item.code == finding.code and not item.undecided)
    blind = next((item.reason for item in unknown), None)
    vetoed = next((item.reason for item in sides.head.suppressed if item.code == finding.code), None)
    reason = blind or vetoed
    time = _behind(finding, "base", sides)
    hidden = time is not None and hidden_causes.remains(time, time.base_ms, time.head_ms, sides.settings)
    return FindingChange(
        state="not_evaluated" if reason else "no_longer_visible" if hidden else "gone", code=finding.code,
        title=finding.title, reason=reason, loop=_loop(finding, sides.base), **_summary("base", finding),
        **_about(time), severity=finding.severity, where=_worst(finding),
    )  # fmt: skip


def _new(finding: Finding, sides: _Sides) -> FindingChange:
    time = _behind(finding, "head", sides)
    hidden = time is not None and hidden_causes.remains(time, time.head_ms, time.base_ms, sides.settings)
    return FindingChange(
        state="now_visible" if hidden else "new", code=finding.code, title=finding.title,
        loop=_loop(finding, sides.head), **_summary("head", finding), **_about(time),
        severity=finding.severity, where=_worst(finding),
    )  # fmt: skip


def _summary(side: _Side, finding: Finding) -> dict[str, Any]:
    gain = finding.gain
    return {
        f"{side}_fingerprint": finding.fingerprint,
        f"{side}_share": None if gain.kind == "test_needed" else gain.share,
        f"{side}_saves_ms": _cost(finding),
        f"{side}_of_ms": gain.before_ms,
    }


def _about(time: Behind | None) -> dict[str, Any]:
    return {"base_about_ms": time.base_ms, "head_about_ms": time.head_ms} if time else {}


def _behind(finding: Finding, side: _Side, sides: _Sides) -> Behind | None:
    """Return the lines that compare the loop's budgets on both sides."""
    own = (getattr(pair, side).id == finding.gain.loop for pair in sides.pairs)
    pair = next((pair for pair, is_it in zip(sides.pairs, own, strict=True) if is_it), None)
    parts = sides.budget_parts.get(finding.code, ())
    return hidden_causes.behind(finding, parts, getattr(pair, side), pair.base, pair.head) if pair else None


def _loop(finding: Finding, report: Report) -> str | None:
    return next((loop.name for loop in report.run.loops if loop.id == finding.gain.loop), None)


def _worst(finding: Finding) -> Place | None:
    return finding.where[0] if finding.where else None


def _cost(finding: Finding) -> float | None:
    """Return what the fix would save, in ms of the gain's basis."""
    gain = finding.gain
    if gain.kind == "test_needed" or gain.before_ms is None:
        return None
    return gain.before_ms - gain.after_ms if gain.after_ms is not None else gain.before_ms * gain.share
