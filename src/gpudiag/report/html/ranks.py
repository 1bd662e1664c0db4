"""A job's ranks over time: a row a rank, darker where it does more than the others, and the table of all of them."""

from __future__ import annotations

from typing import NamedTuple

from markupsafe import Markup

from gpudiag.model import Job, JobRank
from gpudiag.report.html.markup import name, trusted
from gpudiag.text.format import dur, pct

LEVELS = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Parts of an iteration from which a cell is drawn a shade darker."""

TALL, LOW = 16, 3
"""Heights of a row in pixels: with its label, and where there are too many for that."""

LABELLED = 64
"""Ranks of a job whose rows are all high enough for a label."""


class RankLane(NamedTuple):
    """A row of the picture. label: empty where the row is too low for one; drawing: its cells, on 100 × 1 units."""

    id: str
    label: str
    summary: str
    height: int
    slow: bool
    drawing: Markup


class RankRow(NamedTuple):
    """A row of the table."""

    id: str
    label: str
    host: str
    file: str
    slow: bool
    more: str
    waits: str
    computes: str
    nothing_to_do: str
    copies: str
    page: str  # of this rank alone; empty where there is none


class JobView(NamedTuple):
    """Values for the template. shades: each shade's class, and from which part of an iteration it is used."""

    lanes: list[RankLane]
    shades: list[tuple[int, str]]
    rows: list[RankRow]
    hosts: bool
    parts: int


def view(job: Job) -> JobView | None:
    """The picture of a job; None where no rank has figures over time, as in a report that another version saved."""
    parts = max((len(one.over_time) for one in job.members), default=0)
    if not parts:
        return None
    used = {_level(more) for one in job.members for more in one.over_time}
    rows = [_row(number, one) for number, one in enumerate(job.members)]
    return JobView(
        _lanes(job),
        [(level, f"{LEVELS[level - 1]:.0%}") for level in range(1, 1 + len(LEVELS)) if level in used],
        sorted(rows, key=lambda row: not row.slow),
        any(one.host for one in job.members),
        parts,
    )


def _lanes(job: Job) -> list[RankLane]:
    many = len(job.members) > LABELLED
    lanes = []
    for number, one in enumerate(job.members):
        label = name(one.label, 40)
        where = f" on {name(one.host, 60)}" if one.host else ""
        summary = f"{label}{where}: {pct(max(0.0, one.more))} more work than the others, waits {pct(one.waits)}"
        low = many and not one.slow
        lanes.append(
            RankLane(f"rank-{number}", "" if low else label, summary, LOW if low else TALL, one.slow, _cells(one))
        )
    return lanes


def _cells(one: JobRank) -> Markup:
    """One path a shade; neighbours of one shade are one rectangle."""
    width = 100 / len(one.over_time) if one.over_time else 0.0
    paths: dict[int, list[str]] = {}
    levels = [_level(more) for more in one.over_time]
    at = 0
    while at < len(levels):
        to = next((i for i in range(at, len(levels)) if levels[i] != levels[at]), len(levels))
        if levels[at]:
            paths.setdefault(levels[at], []).append(f"M{at * width:.2f} 0H{to * width:.2f}V1H{at * width:.2f}Z")
        at = to
    return trusted("".join(f'<path class="m-{level}" d="{"".join(boxes)}"/>' for level, boxes in sorted(paths.items())))


def _level(more: float) -> int:
    return sum(more >= least for least in LEVELS)


def _row(number: int, one: JobRank) -> RankRow:
    host = name(one.host, 60) if one.host else ""
    computes, nothing_to_do, copies = (dur(ms * 1e6) for ms in (one.computes_ms, one.nothing_to_do_ms, one.copies_ms))
    more = pct(max(0.0, one.more))
    return RankRow(
        f"rank-{number}", name(one.label, 60), host, name(one.file, 90), one.slow, more, pct(one.waits), computes,
        nothing_to_do, copies, one.page or "",
    )  # fmt: skip
