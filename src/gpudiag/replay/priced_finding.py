"""A finding with its price: what its fix removes of a loop, by replay where that can be, else as a bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpudiag.model import Loop, Row, Rule
from gpudiag.replay import bounds
from gpudiag.replay.edited_graph import EditTargets
from gpudiag.replay.edits import registry
from gpudiag.replay.estimate import Estimate
from gpudiag.replay.loop_model import LoopModel


@dataclass(slots=True, eq=False)
class PricedFinding:
    """One (code, loop) with what its fix removes; `weight` is the loop's part of the steady time.

    last: the part of the loop that its fix removes after those listed above it; 0 until it is listed.
    hardly_proven: whether it is to save at least so much, and that is next to nothing under the worst guess of what the
    profiler cost: what it is expected to save says more then.
    """

    rule: Rule
    rows: list[Row]
    loop: Loop | None
    total_ns: float
    claim: bounds.Claim
    weight: float
    model: LoopModel | None = None
    chosen: list[EditTargets] | None = None
    price: Estimate | None = None
    last: float = 0.0
    hardly_proven: bool = False

    @property
    def key(self) -> int | None:
        """The loop it belongs to; None for profiled kernels."""
        return self.loop.id if self.loop else None

    @property
    def untested(self) -> bool:
        """Return whether only an experiment can decide: the rule says so, or nothing proves a number for any row."""
        price = self.rule.price
        return price is None or price.kind == "test_needed" or all(price.unproven(row) for row in self.rows)

    @property
    def of_job(self) -> bool:
        """Return whether the rows state the gain and its interval, as those about a job of many ranks do."""
        return self.rule.about == "job" and self.rule.price is not None and self.rule.price.kind == "expected"

    @property
    def expected(self) -> bool:
        """Return whether an expected gain is known, by the replay or of a job; else only a bound is."""
        replayed = self.price is not None and self.rule.price is not None and self.rule.price.kind == "expected"
        return self.of_job or replayed or self.hardly_proven

    @property
    def bounded(self) -> bool:
        """Return whether the replay gives an upper bound on the gain and no more."""
        return self.price is not None and self.rule.price is not None and self.rule.price.kind == "upper_bound"

    @property
    def moves(self) -> bool:
        """Return whether with the fix kernels may run beside others that they followed."""
        return self.rule.price is not None and registry.moves(self.rule.price.best)

    @property
    def own_share(self) -> float:
        """The part of the loop's own time, or of the kernels' time, that the fix alone removes."""
        if self.price is not None:
            return 1 - (self.price.low if self.bounded else self.price.expected)
        return self.part(self.claim)

    @property
    def share(self) -> float:
        """The part of `before_ms`, or of the kernels' time, that the fix alone removes."""
        return (self.own_share + self.beside) / (1 + self.beside)

    @property
    def own_ms(self) -> float:
        """The time of an iteration of its loop that the gain is of (ms): a bound is of what it may take without the
        profiler, so that it holds for the part and for the time that a fix removes, unless that was given.
        """
        if self.loop is None or self.expected:
            return self.loop.usual_ms if self.loop else 0.0
        measured = self.price is None or any(row.get("added_between_ns") for row in self.rows)  # with pauses beside it
        bounds = 1.0 if measured or self.price is None else self.price.bounds
        return self.loop.iteration_ms_unprofiled or self.loop.iteration_ms * bounds

    @property
    def before_ms(self) -> float:
        """An iteration as it is with the time beside it that the finding is about as well (ms)."""
        return self.own_ms * (1 + self.beside)

    @property
    def beside(self) -> float:
        """Time between two iterations that the finding is about as well, over an iteration of the loop."""
        return summed(self.rows, "added_between_ns") / 1e6 / self.own_ms if self.own_ms else 0.0

    @property
    def proven(self) -> float:
        """The length that a bound promises and proves, over the length now."""
        assert self.price is not None
        return self.price.low if self.price.proven is None else self.price.proven

    def part(self, claim: bounds.Claim) -> float:
        """The part of the loop that a claim removes; of its unprofiled time, where that is given.

        The profiler slows the host alone: idle time shrinks by what it added, busy time does not.
        """
        given = self.loop.iteration_ms_unprofiled if self.loop else None
        if self.loop is None or given is None:
            return bounds.measure(claim, self.total_ns)
        whole = claim.get(bounds.WHOLE, 0.0) / self.total_ns if self.total_ns > 0 else 0.0  # a share stays a share
        intervals = {key: ns for key, ns in claim.items() if key != bounds.WHOLE}
        removed = _removed(intervals, self.total_ns, _idle_scale(self.loop)) * self.loop.iteration_ms / given
        return min(1.0, whole + removed)


def summed(rows: Sequence[Row], name: str) -> float:
    """The sum of a column over rows; 0 where a row lacks it."""
    return math.fsum(float(row.get(name) or 0.0) for row in rows)


def _idle_scale(loop: Loop) -> float:
    """Return how much of the traced idle time is left without the profiler, which slows only the host."""
    if loop.iteration_ms_unprofiled is None:
        return 1.0
    idle = loop.iteration_ms * sum(share for kind, share in loop.budget.items() if kind.startswith("idle"))
    return max(0.0, min(1.0, 1 - (loop.iteration_ms - loop.iteration_ms_unprofiled) / idle)) if idle > 0 else 1.0


def _removed(claim: bounds.Claim, total_ns: float, idle_scale: float) -> float:
    """The part of the traced loop that a claim removes once idle time is scaled; busy time is not the profiler's."""
    if total_ns <= 0:
        return 0.0
    idle = math.fsum(ns for key, ns in claim.items() if not key.startswith("op:"))
    return min(1.0, (math.fsum(claim.values()) - idle * (1 - idle_scale)) / total_ns)
