"""The gain of a finding: the loop replayed with its edits, for each guess of what the profiler cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpudiag.model import Edit, Rule
from gpudiag.replay.edited_graph import EditTargets
from gpudiag.replay.edits import registry
from gpudiag.replay.loop_model import LoopModel


@dataclass(frozen=True, slots=True)
class Estimate:
    """New length of the loop over the recorded one: the expected, the shortest and the longest plausible.

    proven: what a rule that promises a bound may print: the shortest possible length for *at most*, the longest of
    all guesses for *at least*.
    recorded: the expected length again, as if recording cost nothing.
    settled: the expected length again, from the end of the first iteration on, where the profiler slowed the host
    several times: a loop of few iterations otherwise begins with the time that its first launch took.
    bounds: what a bound is a part of, over the recorded length.
    """

    expected: float
    low: float
    high: float
    proven: float | None = None
    recorded: float = 1.0
    settled: float | None = None
    bounds: float = 1.0


def price(model: LoopModel, rule: Rule, chosen: Sequence[EditTargets]) -> Estimate:
    """The loop with the finding fixed, over its length now."""
    found = _estimate(model, rule, chosen)
    return replace(found, settled=model.settled(rule, chosen)) if model.slowed else found


def _estimate(model: LoopModel, rule: Rule, chosen: Sequence[EditTargets]) -> Estimate:
    assert rule.price is not None
    cautious, usual, best = rule.price.low, rule.price.expected or rule.price.best, rule.price.best
    margin = model.settings["replay_margin" if len(model.start) == 1 else "replay_blind_margin"]
    # What a rule says of a kernel ends at the hardware's limit, which no doubt passes.
    measured = rule.price.on == "profiles" or (
        rule.price.kind == "upper_bound" and all(edit.rewrites_kernel for edit in registry.of(best))
    )
    factor = model.settings["replay_kernel_spread"]
    found: list[tuple[float, float]] = []  # the first is the usual fix under the usual guess
    for number in range(len(model.start)):
        for variant in dict.fromkeys((usual, cautious or usual, best)):
            spread = _spread(factor, variant, chosen) if rule.price.kind == "expected" else [chosen]
            found += [model.ratio(number, variant, each) for each in spread]
            if any(edit.across_ranks for edit in registry.of(variant)):
                found.append(model.ratio(number, variant, chosen, shared=True))
    expected, recorded = found[0][0], found[len(found) // len(model.start) % len(found)][0]
    margin *= 0.0 if measured else min(1.0, (1 - expected) / model.settings["replay_whole_doubt"])
    # No fix makes the loop shorter than the work that it leaves to the busiest engine.
    if rule.price.kind != "expected":  # a bound's doubt is in proportion to what it promises
        doubt = 1.0 if measured else 1 + model.settings["replay_bound_margin"]
        lows = [max(0.0, 1 - (1 - part) * doubt, least) for part, least in found]
        low = min(lows)
        if rule.price.kind == "lower_bound":
            parts = [part for part, _ in found]
            return Estimate(expected, low, 1.0, max(parts), recorded, bounds=_bounds(model, parts, min))
        shortest = [model.shortest(number, best, chosen) for number in range(len(model.start))]
        each = len(found) // len(shortest)
        ends = [min(one, max(shortest[at // each], found[at][1])) for at, one in enumerate(lows)]
        return Estimate(expected, low, 1.0, min(ends), recorded, bounds=_bounds(model, ends, max))
    least_apart = 1 - model.settings["replay_same"]  # kernels of two runs differ by as much
    low = min(max(part * (1 - margin), least * least_apart) for part, least in found)
    if not any(edit.in_graph for edit in registry.of(best)):
        low = max(low, _busiest(model, found) * least_apart)
    high = min(max(part for part, _ in found) * (1 + margin), 1.0)
    return Estimate(expected, min(low, expected), high, None, recorded)


def _bounds(model: LoopModel, lengths: Sequence[float], end: Callable[[Iterable[float]], float]) -> float:
    """Return what a bound is of, over the recorded length, so that it bounds the part that a fix removes and the time.

    The part is largest under a guess by which the loop is short, the time perhaps under another one.
    lengths: after the fix, over the loop's under that guess, for each variant under each guess; end: max for the most
    that is removed, min for the least.
    """
    each, recorded = len(lengths) // len(model.start), sum(one.length for one in model.graphs)
    share = end(1 - length for length in lengths)
    saved = end((1 - length) * model.base(number // each) for number, length in enumerate(lengths))
    return min(1.0, saved / share / recorded) if share > 0 and recorded > 0 else 1.0


def _busiest(model: LoopModel, found: Sequence[tuple[float, float]]) -> float:
    """Return the least work of the busiest engine over the loop's length under the usual guess, as gains are printed.

    found: length and work for each guess, over the loop's length under that guess.
    """
    each, usual = len(found) // len(model.start), model.base(0)
    works = (least * model.base(number // each) for number, (_, least) in enumerate(found))
    return min(works) / usual if usual > 0 else 0.0


def _spread(factor: float, variant: Sequence[Edit], chosen: Sequence[EditTargets]) -> list[Sequence[EditTargets]]:
    """The selections; where kernels get faster also with the least and the most that the rule expects of it.

    Where the rule says only what is likely, a timeline can only guess how far that is off.
    """
    if not registry.rewrites(variant):
        return [chosen]
    if any(len(c.least) and ((c.least < c.recoverable) | (c.most > c.recoverable)).any() for c in chosen):
        return [chosen, *([replace(c, recoverable=getattr(c, end)) for c in chosen] for end in ("least", "most"))]
    return [
        [replace(c, recoverable=1 - np.minimum(1.0, (1 - c.recoverable) * times)) for c in chosen]
        for times in (1.0, 1 / factor, factor)
    ]
