"""The order of findings: each is the one worth most after those before it, and what a fix needs comes before it.

Of what an upper bound promises only a part is counted, unless it is about the leaf that holds most of what the GPU does
not compute, and no finding with an expected gain of some size is: where most of that is one thing, it comes first.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import duckdb

from gpudiag.diagnosis import time_tree
from gpudiag.model import SEVERITIES
from gpudiag.replay import bounds
from gpudiag.replay.gains import AppliedFixes, GainCalculator
from gpudiag.replay.priced_finding import PricedFinding, summed

Connection = duckdb.DuckDBPyConnection

_OPENING = 6  # small findings of a loop of which pairs are tried: a bound on the cost, not a threshold


def by_worth(
    ledger: GainCalculator, worth: Sequence[PricedFinding], minor: list[PricedFinding], settings: Mapping[str, float]
) -> list[tuple[PricedFinding, float, float]]:
    """Greedy: each next finding is the one worth most after those before it; with what is left without and with it.

    A fix that is worth little alone may be worth much once another one is made: it then moves up from `minor`. So
    does the first of two such fixes that pay together.
    """
    left, hidden = list(worth), [item for item in minor if item.expected]
    whole = _leading_bounds(ledger.con, worth, settings)
    parts = {id(item): _part(item, item in whole, settings) for item in (*left, *hidden)}
    taken: dict[int | None, AppliedFixes] = defaultdict(AppliedFixes)
    ordered: list[tuple[PricedFinding, float, float]] = []
    opening: list[PricedFinding] | None = None
    gate = settings["min_share_hidden"]
    while left or hidden:
        if all(item.untested for item in left):
            shown = [item for item in hidden if ordered and _of_the_rest(ledger, item, taken[item.key]) >= gate]
            if not shown and opening is None:
                shown = opening = _opening(ledger, hidden, taken, settings)
            hidden = [item for item in hidden if item not in shown]
            left += shown
        if not left:
            break
        best = max(left, key=lambda item: _key(ledger, item, taken[item.key], parts[id(item)]))
        best = _first_to_fix(best, left, settings)
        left.remove(best)
        before, with_it = taken[best.key].left, taken[best.key].copy()
        ledger.take(best, with_it)
        after = min(before, with_it.left)
        if best in minor:
            if before - after < gate * before and best not in (opening or ()):
                continue  # what the busiest engine needs is left in any case
            minor.remove(best)
        taken[best.key], best.last = with_it, before - after
        ordered.append((best, before, after))
    return ordered


def _opening(
    ledger: GainCalculator,
    hidden: Sequence[PricedFinding],
    taken: Mapping[int | None, AppliedFixes],
    settings: Mapping[str, float],
) -> list[PricedFinding]:
    """Return the finding of each loop worth most of those after which another one pays, where one does.

    A wait and the work before it may each keep the GPU from what it could do, so that neither is worth much alone. What
    is worth much alone was left out for another reason: without the profiler it is not. taken: the fixes of each loop
    that are listed.
    """
    gate = settings["min_share_hidden"]
    small: dict[int | None, list[PricedFinding]] = defaultdict(list)
    for item in sorted(hidden, key=lambda one: (-one.share * one.weight, one.rule.code)):
        if item.share * item.weight < gate <= _not_computing(item) and len(small[item.key]) < _OPENING:
            small[item.key].append(item)
    found = []
    for key, items in small.items():
        alone = [_saved(ledger, item, taken[key]) for item in items]
        for item in items:
            with_it = taken[key].copy()
            ledger.take(item, with_it)
            others = ((one, least) for one, least in zip(items, alone, strict=True) if one is not item)
            if any(_pays_after(ledger, one, with_it, least, settings) for one, least in others):
                found.append(item)
                break
    return found


def _pays_after(
    ledger: GainCalculator, item: PricedFinding, taken: AppliedFixes, alone: float, settings: Mapping[str, float]
) -> bool:
    """Return whether a fix is worth listing after those taken, and saves far more then than alone."""
    saved = _saved(ledger, item, taken)
    worth_it = saved * item.weight >= settings["min_share_hidden"] * taken.left > 0
    return worth_it and saved >= settings["joint_saving"] * alone


def _saved(ledger: GainCalculator, item: PricedFinding, taken: AppliedFixes) -> float:
    """Return how much of what the fixes taken leave a fix removes, over all loops."""
    with_it = taken.copy()
    ledger.take(item, with_it)
    return taken.left - with_it.left


def _not_computing(item: PricedFinding) -> float:
    """Return the part of a finding's loop in which the busiest engine of the GPU does not work."""
    return 1 - item.model.least([part.edited for part in item.model.start[0]]) if item.model else 0.0


def cause(item: PricedFinding, others: Sequence[PricedFinding], least: float) -> PricedFinding | None:
    """Return the finding that most accounts for the time that a consequence shows; None where none does.

    least: the part of the time of its own rows that the other must claim as well.
    """
    own = {key: ns for key, ns in item.claim.items() if key != bounds.WHOLE}
    whole = math.fsum(own.values())
    if not item.rule.consequence or whole <= 0:
        return None
    shared = [
        (math.fsum(min(ns, other.claim.get(key, 0.0)) for key, ns in own.items()) / whole, other)
        for other in others
        if other.key == item.key and not other.untested and not other.rule.consequence
    ]
    part, found = max(shared, key=lambda one: (one[0], one[1].rule.code), default=(0.0, None))
    return found if part >= least else None


def _first_to_fix(best: PricedFinding, left: Sequence[PricedFinding], settings: Mapping[str, float]) -> PricedFinding:
    """Return what must be fixed before `best` can be, the most expensive first; `best` itself where nothing must.

    Of a consequence that is its cause; else what its rule names: what the fix needs, where that is worth `first_share`
    of what it is worth, and what says more of the same time, where that is worth about as much.
    """
    if found := cause(best, left, settings["same_time_share"]):
        return _first_to_fix(found, [item for item in left if item is not best], settings)
    needed = [
        item
        for item in left
        if item.key == best.key
        and not item.untested
        and (
            (item.rule.code in best.rule.after and _seen(item) >= settings["first_share"] * best.share)
            or (item.rule.code in best.rule.behind and item.share >= settings["behind_share"] * best.share)
        )
    ]
    if best.untested or not needed:
        return best
    first = max(needed, key=lambda item: (item.share, item.rule.code))
    return _first_to_fix(first, [item for item in left if item is not best], settings)


def _seen(item: PricedFinding) -> float:
    """The part of its loop that a fix removes; where that is at least so much, what its rows account for if more."""
    least = item.rule.price is not None and item.rule.price.kind == "lower_bound"
    return max(item.share, min(1.0, summed(item.rows, "share"))) if least else item.share


def _of_the_rest(ledger: GainCalculator, item: PricedFinding, taken: AppliedFixes) -> float:
    """The part of what is left of its loop that a fix removes, over all loops."""
    return ledger.worth(item, taken) / taken.left * item.weight if taken.left > 0 else 0.0


def _sure(item: PricedFinding) -> bool:
    """Return whether at least what a finding of a loop promises is gained."""
    price = item.rule.price
    return item.expected or (price is not None and price.kind == "lower_bound")


def _part(item: PricedFinding, whole: bool, settings: Mapping[str, float]) -> float:
    """Return how much of what a finding is worth counts: by its severity, of an expected gain by how sure its diagnosis
    is, and a part of a bound that is not `whole`.
    """
    part = settings[f"weight_{item.rule.severity}"]
    if item.loop is None or whole:
        return part
    return part * settings["weight_bound" if not _sure(item) else f"weight_confidence_{item.rule.confidence}"]


def _leading_bounds(
    con: Connection, worth: Sequence[PricedFinding], settings: Mapping[str, float]
) -> list[PricedFinding]:
    """Return the bounds that are mostly about the leading leaf of their loop, where no sure finding is about it.

    A sure finding about it counts where it is worth `leading_share` of the bound.
    """
    bounded = {item.loop.id for item in worth if item.loop is not None and not _sure(item)}
    if not bounded:
        return []
    led = _leading_leaves(con, settings["leading_part"])
    leading = [
        item
        for item in worth
        if item.loop is not None and item.loop.id in bounded and _leads(con, item, item.loop.id, led)
    ]
    sure = [item for item in leading if _sure(item)]
    least = settings["leading_share"]
    return [
        item
        for item in leading
        if not _sure(item) and not any(one.key == item.key and one.share >= least * item.share for one in sure)
    ]


def _leading_leaves(con: Connection, least: float) -> dict[int, str]:
    """Return the leaf that holds at least this part of what is not computing in a loop's tree, by loop."""
    largest = (
        "select loop, arg_max(leaf, (ns, leaf)) from loop_tree where leaf <> ?"
        " group by loop having max(ns) >= ? * sum(ns)"
    )
    return dict(con.execute(largest, [time_tree.COMPUTING, least]).fetchall())


def _leads(con: Connection, item: PricedFinding, loop: int, led: Mapping[int, str]) -> bool:
    """Return whether most of what a finding claims lies in the leading leaf of its loop's time tree."""
    placed = time_tree.by_leaf(con, loop, item.claim)
    return loop in led and 2 * placed.get(led[loop], 0.0) >= math.fsum(item.claim.values()) > 0


def _key(
    ledger: GainCalculator, item: PricedFinding, taken: AppliedFixes, part: float
) -> tuple[bool, float, float, int, str]:
    measured = not item.untested
    worth = ledger.worth(item, taken) if measured else 0.0
    weight = item.weight * part
    # A finding whose whole claim is already taken still ranks by what it would be worth alone.
    return measured, worth * weight, item.share * weight, SEVERITIES.index(item.rule.severity), item.rule.code
