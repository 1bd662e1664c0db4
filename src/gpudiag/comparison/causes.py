"""Findings of both sides: new, gone, better, worse; matched by fingerprint, then by code and place."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from gpudiag.comparison.pairing import Pair
from gpudiag.model import Finding, FindingChange, Place, Report


class _Match(NamedTuple):
    base: Finding
    head: Finding
    by: Literal["fingerprint", "place"]


def changes(
    base: Report,
    head: Report,
    pairs: Sequence[Pair],
    settings: Mapping[str, float],
    unchanged: Container[str] = (),
) -> tuple[FindingChange, ...]:
    """What matters first: new and worse ones, then gone and better ones. Small findings take part, so that a cause
    that fell below the reporting gate is better and not gone; those that were and stay small are left out.

    unchanged: loops whose time differs by no more than noise.
    """
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
    found = [_both(m, base, settings, unchanged) for m in matches if {id(m.base), id(m.head)} & large]
    known = {id(f) for match in matches for f in (match.base, match.head)}
    found += [_gone(f, base, head) for f in base.findings if id(f) not in known]
    found += [_new(f, head) for f in head.findings if id(f) not in known]
    order = ("new", "worse", "gone", "better", "unchanged", "not_evaluated")
    return tuple(
        sorted(found, key=lambda c: (order.index(c.state), -max(c.head_share or 0, c.base_share or 0), c.code))
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
        ((place.file or "").rsplit("/", 1)[-1], place.function or "", place.kernel or "")
        for place in finding.where
        if place.file or place.function or place.kernel
    }


def _both(match: _Match, base: Report, settings: Mapping[str, float], unchanged: Container[str]) -> FindingChange:
    before, after = _cost(match.base), _cost(match.head)
    loop = _loop(match.base, base)
    state: Literal["better", "worse", "unchanged"] = "unchanged"
    if before is not None and after is not None:
        share = abs(match.head.gain.share - match.base.gain.share)
        factor = 1 + settings["diff_finding"]
        if loop in unchanged:  # there the share of the iteration says more than times that are noise
            before, after = match.base.gain.share, match.head.gain.share
        if share >= settings["diff_finding_share"]:
            state = "worse" if after > factor * before else "better" if before > factor * after else "unchanged"
    return FindingChange(
        state=state, code=match.head.code, title=match.head.title, loop=loop, matched_by=match.by,
        base_fingerprint=match.base.fingerprint, head_fingerprint=match.head.fingerprint,
        base_share=_share(match.base), head_share=_share(match.head),
        base_saves_ms=_cost(match.base), head_saves_ms=_cost(match.head),
        where=_worst(match.head),
    )  # fmt: skip


def _gone(finding: Finding, base: Report, head: Report) -> FindingChange:
    """A cause that nobody looked for is not known to be gone."""
    blind = next((item.reason for item in head.not_evaluated if item.code == finding.code), None)
    vetoed = next((item.reason for item in head.suppressed if item.code == finding.code), None)
    reason = blind or vetoed
    return FindingChange(
        state="not_evaluated" if reason else "gone", code=finding.code, title=finding.title, reason=reason,
        loop=_loop(finding, base), base_fingerprint=finding.fingerprint, base_share=_share(finding),
        base_saves_ms=_cost(finding), where=_worst(finding),
    )  # fmt: skip


def _new(finding: Finding, head: Report) -> FindingChange:
    return FindingChange(
        state="new", code=finding.code, title=finding.title, loop=_loop(finding, head),
        head_fingerprint=finding.fingerprint, head_share=_share(finding), head_saves_ms=_cost(finding),
        where=_worst(finding),
    )  # fmt: skip


def _loop(finding: Finding, report: Report) -> str | None:
    return next((loop.name for loop in report.run.loops if loop.id == finding.gain.loop), None)


def _worst(finding: Finding) -> Place | None:
    return finding.where[0] if finding.where else None


def _share(finding: Finding) -> float | None:
    return None if finding.gain.kind == "test_needed" else finding.gain.share


def _cost(finding: Finding) -> float | None:
    """What the fix would save, in ms of what the gain is a part of."""
    gain = finding.gain
    if gain.kind == "test_needed" or gain.before_ms is None:
        return None
    return gain.before_ms - gain.after_ms if gain.after_ms is not None else gain.before_ms * gain.share
