"""The agreement of two orders, by rank correlation."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import correlation, median

from evaluation.scoring import Score


def middle(values: Sequence[float]) -> float:
    return median(values) if values else 0.0


def spearman(chosen: Sequence[Score]) -> float:
    """Rank correlation of the predicted and the measured parts saved."""
    pairs = [
        (1 - (s.predicted_ms or 0) / (s.before_ms or 1), 1 - (s.measured_ms or 0) / (s.before_ms or 1)) for s in chosen
    ]
    first, second = (ranks([pair[side] for pair in pairs]) for side in (0, 1))
    return correlation(first, second) if len(set(first)) > 1 and len(set(second)) > 1 else 0.0


def ranks(values: Sequence[float]) -> list[float]:
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2 for value in values
    ]
