"""The page docs/wild.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evaluation.price_page import ms, table
from evaluation.scoring import WORTH
from evaluation.wild import idle, prices
from evaluation.wild.corpus import BASE, SPLITS
from evaluation.wild.judging import NEAR, Score

NOTICE = "<!-- Written by `python -m evaluation.wild`; change the programs or the rules instead. -->"

_INTRODUCTION = f"""
Recordings of programs that nobody annotated, as a user records them: trainers of third parties, token loops, samplers,
solvers and pipelines, each with faults that a flag plants ([fixtures](../fixtures/wild/README.md)). An iteration counts
as found within {NEAR:.0%} of the program's own in the same recording. The first finding is right where it names what is
slow. Programs without a planted fault are healthy where their GPU computes at least 90% of an iteration; the others
have causes of their own, and count as faulty. Of a healthy program nothing worth over {WORTH:.0%} of its time should be
reported.
""".strip()


def page(scores: Sequence[Score]) -> str:
    """The whole page."""
    lines = [
        NOTICE,
        "# Programs as people write them",
        _INTRODUCTION,
        figures(scores),
        idle.section(scores),
        prices.section(scores),
        "## Recordings",
        _recordings(scores),
    ]
    return "\n\n".join(lines) + "\n"


def figures(scores: Sequence[Score]) -> str:
    """The table of how often gpudiag is right."""
    whole = [score for score in scores if not score.label.lost]
    faulty = [score for score in scores if score.hit is not None]
    planted = [score for score in faulty if score.label.fault != BASE]
    own = [score for score in faulty if score.label.fault == BASE]
    healthy = [score for score in scores if score.quiet is not None]
    among = lambda score: bool(set(score.first) & set(score.label.codes))  # noqa: E731
    rows = [
        _row("iteration found", whole, lambda score: score.iteration_found),
        _row("first finding right", faulty, lambda score: bool(score.hit)),
        _row("of planted faults", planted, lambda score: bool(score.hit)),
        _row("of causes that a program had by itself", own, lambda score: bool(score.hit)),
        _row("right among the first three", faulty, among),
        _row("healthy and quiet", healthy, lambda score: bool(score.quiet)),
    ]
    return table(["", *SPLITS], rows)


def _row(name: str, scores: Sequence[Score], right: Callable[[Score], bool]) -> list[str]:
    cells = []
    for split in SPLITS:
        own = [score for score in scores if score.label.split == split]
        cells.append(f"{sum(map(right, own))} of {len(own)}")
    return [name, *cells]


def _recordings(scores: Sequence[Score]) -> str:
    rows = [
        [s.label.program, s.label.fault, s.label.split, ms(s.own_ms), ms(s.found_ms) or "none",
         "" if s.iteration_found or s.label.lost else "**other**",
         ", ".join(s.first) or s.state.replace("_", " "), _wanted(s), _verdict(s)]
        for s in scores
    ]  # fmt: skip
    head = ["program", "fault", "split", "own, ms", "found, ms", "", "first findings", "accepted", ""]
    return table(head, rows)


def _wanted(score: Score) -> str:
    if score.label.healthy:
        return "nothing"
    return "" if score.label.lost else ", ".join(score.label.codes)


def _verdict(score: Score) -> str:
    if score.quiet is not None:
        return "quiet" if score.quiet else f"**said {', '.join(score.alarms)}**"
    return {None: "lost" if score.label.lost else "", True: "right", False: "**missed**"}[score.hit]
