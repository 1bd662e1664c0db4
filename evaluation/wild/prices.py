"""Prices on the wild corpus: what a report promises of the program without its fault, and what that program took."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from evaluation.price_page import ms, table
from evaluation.rank_correlation import middle
from evaluation.wild.corpus import BASE, SLOWER, SPLITS
from evaluation.wild.judging import Price, Score

CLOSE = 0.2  # of the measured time
BOUND = 0.1  # of the time that a bound allows: by more it is broken
RECORDED = 2.0  # times the unprofiled iteration: one that takes longer holds what a warm process does once


@dataclass(frozen=True)
class Pair:
    """A faulty program and its base, both measured without the profiler (ms), and the price of the way between them."""

    score: Score
    before_ms: float
    measured_ms: float
    given: bool  # whether the unprofiled time was given to gpudiag

    @property
    def price(self) -> Price | None:
        return self.score.timed if self.given else self.score.blind

    def _scaled(self, part: float | None) -> float | None:
        return None if part is None else part * self.before_ms

    @property
    def after_ms(self) -> float | None:
        return self._scaled(self.price.after) if self.price else None

    @property
    def low_ms(self) -> float | None:
        return self._scaled(self.price.low) if self.price else None

    @property
    def high_ms(self) -> float | None:
        return self._scaled(self.price.high) if self.price else None

    @property
    def expected(self) -> bool:
        return self.price is not None and self.price.kind == "expected" and self.price.after is not None

    @property
    def error(self) -> float | None:
        """Predicted over measured time, less one."""
        return self.after_ms / self.measured_ms - 1 if self.after_ms is not None else None

    @property
    def inside(self) -> bool:
        return self.low_ms is not None and self.high_ms is not None and self.low_ms <= self.measured_ms <= self.high_ms

    @property
    def bound(self) -> bool:
        return self.price is not None and self.price.kind in ("upper_bound", "lower_bound")

    @property
    def broken(self) -> bool:
        """Return whether the fix gained more than an upper bound of the gain allows, or less than a lower one."""
        if not self.price or self.low_ms is None or self.high_ms is None:
            return False
        if self.price.kind == "upper_bound":
            return self.measured_ms < (1 - BOUND) * self.low_ms
        return self.price.kind == "lower_bound" and self.measured_ms > (1 + BOUND) * self.high_ms


def pairs(scores: Iterable[Score], *, given: bool = True) -> list[Pair]:
    """The faults that were measured, whose recording can be compared with what was measured."""
    return [
        Pair(score, *score.label.unprofiled, given=given)
        for score in scores
        if score.label.unprofiled and score.label.faulty and not _elsewhere(score)
    ]


def _elsewhere(score: Score) -> bool:
    """Return whether the recorded iteration cannot be the one that was measured."""
    return score.label.unprofiled is not None and score.own_ms > RECORDED * score.label.unprofiled[0]


def section(scores: Sequence[Score]) -> str:
    """The part of the page that is about prices."""
    timed, blind = pairs(scores), pairs(scores, given=False)
    head = ["", *SPLITS]
    rows: list[list[object]] = [
        ["faults whose fix was measured", *_each(timed, len)],
        ["of these a finding names the fault", *_each(timed, lambda own: _part(own, _named))],
        ["priced as expected, where the fault's nature allows it",
         *_each(timed, lambda own: _part(_allowed(own), lambda p: p.expected))],
        *([f"{what}, {how}", *_each(those, figure)] for those, how in ((timed, "time given"), (blind, "without it"))
          for what, figure in _FIGURES),
    ]  # fmt: skip
    return "\n\n".join([_INTRODUCTION, table(head, rows), _dropped(scores), "### Pairs", _table(timed, blind)])


_INTRODUCTION = f"""
## Prices

Where a fault was measured without the profiler, and the base without it too, the base is the fix. What the highest
finding that names the fault promises of an iteration, with the unprofiled time of the faulty program given and without,
beside what the base took. Close: within {CLOSE:.0%} of it. A bound is broken by more than {BOUND:.0%} of the time.
""".strip()


def _each(those: Sequence[Pair], figure: Callable[[Sequence[Pair]], object]) -> list[object]:
    return [figure([pair for pair in those if pair.score.label.split == split]) for split in SPLITS]


def _part(those: Sequence[Pair], right: Callable[[Pair], bool]) -> str:
    return f"{sum(map(right, those))} of {len(those)}"


def _named(pair: Pair) -> bool:
    return pair.score.blind is not None


def _allowed(those: Sequence[Pair]) -> list[Pair]:
    return [pair for pair in those if pair.score.label.price == "expected"]


def _expected(those: Sequence[Pair]) -> list[Pair]:
    return [pair for pair in those if pair.expected]


def _error(those: Sequence[Pair]) -> str:
    errors = [abs(pair.error or 0.0) for pair in _expected(those)]
    return f"{middle(errors):.0%}" if errors else ""


_FIGURES: tuple[tuple[str, Callable[[Sequence[Pair]], object]], ...] = (
    ("median error of expected prices", _error),
    ("close", lambda those: _part(_expected(those), lambda p: abs(p.error or 0.0) <= CLOSE)),
    ("inside the interval", lambda those: _part(_expected(those), lambda p: p.inside)),
    ("bounds broken", lambda those: _part([p for p in those if p.bound], lambda p: p.broken)),
)


def _dropped(scores: Sequence[Score]) -> str:
    """Lines on what was measured or planted and is not in the table, and why."""
    slight = [s.label.name for s in scores if s.label.slight]
    elsewhere = [s.label.name for s in scores if s.label.faulty and _elsewhere(s)]
    without = [s.label.name for s in scores if s.label.faulty and s.label.fault != BASE and not s.label.unprofiled]
    refused = [s.label.name for s in scores if s.refused and not _elsewhere(s)]
    reasons = (
        (f"Slower by less than {SLOWER - 1:.0%} without the profiler, so no fault to find", slight),
        (f"Recorded iterations over {RECORDED:g} times as long as the unprofiled ones of a warm process", elsewhere),
        ("No unprofiled time of it or of its base that can be compared", without),
        ("gpudiag refuses the unprofiled time for the loop that it found", refused),
    )  # fmt: skip
    return "\n".join(f"* {why}: {', '.join(names) or 'none'}." for why, names in reasons)


def _table(timed: Sequence[Pair], blind: Sequence[Pair]) -> str:
    head = ["program", "split", "finding", "price", "its nature", "before, ms", "predicted, ms", "interval, ms",
            "measured, ms", "error", "", "without the time, ms", "interval, ms", ""]  # fmt: skip
    rows = []
    for given, guessed in zip(timed, blind, strict=True):
        label, named = given.score.label, given.price or guessed.price
        rows.append([label.name, label.split[:3], named.code if named else "none", _kind(named),
                     (label.price or "").replace("_", " "), ms(given.before_ms), ms(given.after_ms),
                     _interval(given), ms(given.measured_ms),
                     f"{given.error:+.0%}" if given.error is not None and given.expected else "", _verdict(given),
                     ms(guessed.after_ms), _interval(guessed), _verdict(guessed)])  # fmt: skip
    return table(head, rows)


def _kind(price: Price | None) -> str:
    return price.kind.replace("_", " ") if price else ""


def _interval(pair: Pair) -> str:
    return f"{ms(pair.low_ms)}–{ms(pair.high_ms)}" if pair.low_ms is not None else ""


def _verdict(pair: Pair) -> str:
    if pair.expected:
        return "inside" if pair.inside else "**outside**"
    return "**broken**" if pair.broken else ""
