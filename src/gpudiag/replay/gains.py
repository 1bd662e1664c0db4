"""The gain of each finding, alone and after those above it: by replay where that can be, else as a bound.

One ledger serves the order, the printed gains and what is left after each fix: no microsecond is promised twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import duckdb

from gpudiag.model import Basis, Gain, GainKind, Guess, Loop, RemedyGain, Row, Rule
from gpudiag.replay import bounds, estimate
from gpudiag.replay.edited_graph import EditedGraph
from gpudiag.replay.loop_model import LoopModel, model
from gpudiag.replay.priced_finding import PricedFinding, summed
from gpudiag.replay.simulate import Doubt

Connection = duckdb.DuckDBPyConnection


@dataclass(slots=True)
class AppliedFixes:
    """State of one loop after the fixes applied so far."""

    claim: bounds.Claim = field(default_factory=dict)
    edited_graphs: list[EditedGraph] | None = None
    replayed: float = 1.0  # by the replay
    bounded: float = 1.0  # by fixes that only a bound is known of
    least: float = 0.0  # what the busiest engine needs for the work that is left

    @property
    def left(self) -> float:
        """Return what is left of the loop."""
        return max(self.replayed * self.bounded, self.least)

    def copy(self) -> AppliedFixes:
        """Return the same state, to apply another fix to."""
        return replace(self, claim=dict(self.claim))


class GainCalculator:
    """Prices findings and remembers what those taken so far removed."""

    def __init__(self, con: Connection, settings: Mapping[str, float], loops: Sequence[Loop]) -> None:
        self.con, self.settings = con, settings
        self.loops = {loop.id: loop for loop in loops}
        self.models: dict[int, tuple[LoopModel | None, Doubt | None]] = {}
        self.items: dict[tuple[str, int | None], PricedFinding] = {}  # by code and loop

    def item(self, rule: Rule, rows: list[Row], loop: Loop, total_ns: float) -> PricedFinding:
        """A finding of a loop, priced alone."""
        proven = [row for row in rows if not (rule.price and rule.price.unproven(row))]
        claim = bounds.claim(self.con, rule, proven, loop.id, total_ns)
        if bounds.WHOLE in claim and (beside := summed(rows, "added_between_ns") / 1e6):
            # A share is of the iteration and the time beside it; what it saves of that is not the loop's own.
            whole = claim[bounds.WHOLE] / total_ns * (loop.iteration_ms + beside) - beside
            claim[bounds.WHOLE] = max(0.0, whole / loop.iteration_ms) * total_ns
        item = PricedFinding(rule, rows, loop, total_ns, claim, loop.share_of_span)
        self.items[rule.code, loop.id] = item
        if item.untested:
            return item
        model, _ = self.model(loop)
        item.loop = self._guessed(loop)
        if rule.about == "job":
            return item
        item.model = model
        item.chosen = item.model.select(rule, proven) if item.model else None
        if item.model and item.chosen:
            item.price = estimate.price(item.model, rule, item.chosen)
            if item.bounded and item.model.stretch:  # other stretches may lose more by it
                item.price = _at_least(item.price, item.proven, item.part(claim))
            if rule.price and rule.price.kind == "lower_bound":
                gate = self.settings["min_share_expected"]
                item.hardly_proven = 1 - item.proven < gate <= 1 - item.price.expected
            if rule.price and item.hardly_proven:
                usual = rule.price.model_copy(update={"kind": "expected"})
                item.price = estimate.price(item.model, rule.model_copy(update={"price": usual}), item.chosen)
        return item

    def of_remedies(self, item: PricedFinding) -> dict[str, RemedyGain]:
        """Return what each remedy is worth that does less or other than the usual fix, by its id."""
        price, loop = item.rule.price, item.loop
        if price is None or loop is None or not (item.model and item.chosen and item.expected):
            return {}
        before, found = loop.usual_ms, {}
        for remedy, edits in price.remedies.items():
            own = price.model_copy(update={"low": (), "expected": edits, "high": (), "remedies": {}})
            worth = estimate.price(item.model, item.rule.model_copy(update={"price": own}), item.chosen)
            after, low, high = (before * part for part in (worth.expected, worth.low, worth.high))
            found[remedy] = RemedyGain(
                before_ms=before, after_ms=after, low_ms=low, high_ms=high, share=1 - worth.expected
            )
        return found

    def model(self, loop: Loop) -> tuple[LoopModel | None, Doubt | None]:
        """Return the loop's replay, built once, or why it is not believed."""
        if loop.id not in self.models:
            given = loop.iteration_ms_unprofiled
            self.models[loop.id] = model(self.con, loop.id, self.settings, given * 1e6 if given else None)
        return self.models[loop.id]

    def with_guesses(self, loops: Sequence[Loop]) -> tuple[Loop, ...]:
        """The loops with what an iteration of those that were replayed may take without the profiler."""
        return tuple(self._guessed(loop) for loop in loops)

    def _guessed(self, loop: Loop) -> Loop:
        return loop.model_copy(update={"guessed": self._guess(loop)})

    def _guess(self, loop: Loop) -> Guess | None:
        """Return how long an iteration of a loop that was replayed may take unprofiled; None where hardly less, or
        where that time was given.
        """
        model, _ = self.models.get(loop.id, (None, None))
        if model is None or loop.iteration_ms_unprofiled is not None:
            return None
        recorded = sum(one.length for one in model.graphs)
        replayed = (model.base(number) / recorded for number in range(len(model.start)))
        usual, *others = (min(1.0, part) * loop.iteration_ms for part in replayed)
        little = self.settings["min_share_overhead"]
        saved, spread = loop.iteration_ms - usual, max(usual, *others) - min(usual, *others)
        # What all guesses of the profiler's cost leave out alike is host work that the replay cannot place.
        if saved < little * loop.iteration_ms or spread <= little * saved:
            return None
        return Guess(usual_ms=usual, least_ms=min(usual, *others), most_ms=max(usual, *others))

    @property
    def doubts(self) -> dict[int, Doubt]:
        """Loops whose replay is not to be believed, and why."""
        return {loop: doubt for loop, (_, doubt) in self.models.items() if doubt}

    def marginal(self, item: PricedFinding, taken: AppliedFixes) -> float:
        """The part of the loop that the fix removes after those taken."""
        if item.model and item.chosen and item.price:
            edited_graphs = item.model.fixed(item.rule, item.chosen, taken.edited_graphs)
            after = item.model.remaining(edited_graphs, moved=item.moves)
            if item.bounded and item.price.expected > 0:
                after *= item.price.low / item.price.expected
            return max(0.0, taken.replayed - after) * taken.bounded
        merged = dict(taken.claim)
        bounds.merge(merged, item.claim)
        return item.part(merged) - item.part(taken.claim)

    def worth(self, item: PricedFinding, taken: AppliedFixes) -> float:
        """Return what the fix saves after those taken, of the loop and beside it, over an iteration."""
        return self.marginal(item, taken) + item.beside

    def take(self, item: PricedFinding, taken: AppliedFixes) -> None:
        """Fix it."""
        marginal, left = self.marginal(item, taken), taken.left
        bounds.merge(taken.claim, item.claim)
        if item.model and item.chosen and item.price:
            taken.edited_graphs = item.model.fixed(item.rule, item.chosen, taken.edited_graphs)
            taken.replayed = min(taken.replayed, item.model.remaining(taken.edited_graphs, moved=item.moves))
            taken.least = min(item.model.least(taken.edited_graphs), taken.replayed)  # below it where kernels move
            if item.bounded and item.price.expected > 0 and item.loop:
                # A bound holds under any guess of the profiler's cost, the loop's time is that of the usual one.
                proven = item.proven * item.own_ms / item.loop.usual_ms
                taken.bounded *= min(item.proven, proven) / item.price.expected
                taken.least = min(taken.least, proven)
        elif left > 0:
            taken.bounded *= max(0.0, 1 - marginal / left)
            model = item.model
            if model and not taken.edited_graphs and item.rule.family != "communication":
                taken.least = min(model.least([part.edited for part in model.start[0]]), taken.replayed)


def _at_least(price: estimate.Estimate, proven: float, claimed: float) -> estimate.Estimate:
    """An upper bound that holds for what a finding claims, too. claimed: the part of the recorded loop."""
    share, saved = max(1 - proven, claimed), max(price.bounds * (1 - proven), claimed)
    low = min(price.low, 1 - claimed)
    return replace(price, low=low, proven=1 - share, bounds=saved / share if share > 0 else price.bounds)


def gain(item: PricedFinding, left: float, before_it: float = 1.0) -> Gain:
    """The printed gain. left: what is left of the loop with this fix and those above it; before_it: without this."""
    price = item.rule.price
    assert price is not None
    basis: Basis = "loop" if item.loop else "kernel" if any("profiles" in row for row in item.rows) else "run"
    if item.untested or (item.loop and item.price is None and price.kind == "lower_bound"):
        return Gain(kind="test_needed", basis=basis, loop=item.key, test=price.test)
    if item.loop is None:
        return _kernel_gain(item)
    before, own = item.before_ms, item.own_ms
    usual = item.loop.usual_ms
    kind: GainKind = price.kind
    if item.price is not None and item.expected:
        kind = "expected"
        after, low, high = (own * part for part in (item.price.expected, item.price.low, item.price.high))
    elif item.of_job:
        after = before * (1 - item.part(item.claim))
        low, high = (before * max(0.0, 1 - summed(item.rows, name)) for name in ("share_high", "share_low"))
        low, high = min(low, after), max(high, after)
    else:
        bound = own * (item.proven if item.price is not None else 1 - item.part(item.claim))
        kind = "lower_bound" if price.kind == "lower_bound" else "upper_bound"
        after, low, high = (bound, 0.0, bound) if kind == "lower_bound" else (bound, bound, before)
    return Gain(
        kind=kind, basis=basis, loop=item.key, before_ms=before, after_ms=after, low_ms=low, high_ms=high,
        speedup=before / after if after > 0 else None, share=1 - after / before,
        cumulative_before_ms=before - own + usual * before_it, cumulative_after_ms=usual * left,
    )  # fmt: skip


def _kernel_gain(item: PricedFinding) -> Gain:
    """One launch of the worst kernel, now and then; no claim on the program, which is not known."""
    worst, price = item.rows[0], item.rule.price
    share, before = float(worst.get("recoverable") or 0.0), float(worst.get("duration_ns") or 0.0) / 1e6
    after = before * (1 - share)
    kind: GainKind = price.kind if price and price.kind in ("expected", "lower_bound") else "upper_bound"
    low, high = after, before
    if kind == "expected":
        low = before * (1 - float(worst.get("recoverable_high") or share))
        high = before * (1 - float(worst.get("recoverable_low") or 0.0))
    return Gain(
        kind=kind, basis="kernel", before_ms=before, after_ms=after, low_ms=min(low, after), high_ms=max(high, after),
        speedup=before / after if after > 0 else None, share=share,
    )  # fmt: skip
