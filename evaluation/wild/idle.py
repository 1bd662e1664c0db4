"""Time in which GPUs do not compute and that no finding explains, over the recordings of the wild corpus."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluation.price_page import table
from evaluation.wild.corpus import SPLITS
from evaluation.wild.judging import Score
from gpudiag.model.vocabulary import LEAVES

MUCH = 0.15  # of the loop

_INTRODUCTION = f"""
Each loop's time is divided by a [tree](glossary.md) into disjoint leaves; a finding claims of a leaf what its own rows
account for, and no more than its fix would save. *Unclaimed* is what is left of all leaves but computing. Where that is
more than {MUCH:.0%}, the report should name a line of the program or a call.
""".strip()


def section(scores: Sequence[Score]) -> str:
    """The part of the page: medians, and the leaves."""
    known = [score for score in scores if score.tree and not score.label.lost]
    return "\n\n".join(["## Time that no finding explains", _INTRODUCTION, _figures(known), _leaves(known)])


def unclaimed(score: Score) -> float:
    """The part of the loop that is neither computing nor claimed."""
    return sum(leaf["share"] - leaf["claimed"] for name, leaf in score.tree.items() if name != "computing")


def _figures(scores: Sequence[Score]) -> str:
    rows: list[list[str]] = [["recordings"], ["unclaimed, median"], ["unclaimed, 90th percentile"],
                             [f"more than {MUCH:.0%} unclaimed"], ["of these, with a line or a call"]]  # fmt: skip
    for split in SPLITS:
        own = [score for score in scores if score.label.split == split]
        parts = np.array([unclaimed(score) for score in own])
        much = [score for score in own if unclaimed(score) > MUCH]
        cells = [str(len(own)), f"{np.median(parts):.1%}", f"{np.quantile(parts, 0.9):.1%}", str(len(much)),
                 f"{sum(score.observed for score in much)} of {len(much)}"]  # fmt: skip
        for row, cell in zip(rows, cells, strict=True):
            row.append(cell)
    return table(["", *SPLITS], rows)


def _leaves(scores: Sequence[Score]) -> str:
    rows = []
    for name in LEAVES:
        own = [score.tree[name] for score in scores if name in score.tree]
        if own:
            share = sum(leaf["share"] for leaf in own) / len(scores)
            left = share - sum(leaf["claimed"] for leaf in own) / len(scores)
            rows.append([name.replace("_", " "), f"{share:.1%}", "" if name == "computing" else f"{left:.1%}"])
    return table(["leaf", "of the loop, mean of all recordings", "unclaimed"], rows)
