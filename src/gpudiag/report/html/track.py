"""A timeline as HTML: tracks of SVG that can be read without a script, and the data that a script zooms into."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from markupsafe import Markup

from gpudiag.report.html import kinds
from gpudiag.report.html.markup import data, name, trusted
from gpudiag.report.wording.words import plural
from gpudiag.text.format import dur
from gpudiag.timeline.model import Name, Row, Slice, Timeline

WIDTH = 2000  # units across the static drawing
LOW = 0.55  # of a row's height: where the idle time that a finding explains begins, below the finding's own marks
TICKS = 6
LISTED = 20  # operations in the table
FULL = 200  # characters of a full name, which the store's readers keep: by it the script finds a kernel of the tables
HEIGHTS = {"finding": 14, "phase": 14, "nvtx": 16, "host": 18, "gpu": 24, "stream": 18, "length": 24, "interval": 8}
LEGENDS = {"finding": "Findings", "phase": "Phases", "host": "CUDA calls", "gpu": "GPU", "stream": "Streams"}
_FIRST = Slice(0, 0, "", -1, 0)  # what the first slice of a row counts from
_DETAIL = ("host", "stream", "nvtx")


class Lane(NamedTuple):
    """A row of the page. drawing: the static SVG inside it."""

    row: Row
    id: str
    label: str
    height: int
    drawing: Markup
    first: bool  # of its group
    summary: str  # what it holds, for screen readers


class Listed(NamedTuple):
    name: str
    row: str
    kind: str
    start: str
    duration: str
    many: int


class View(NamedTuple):
    """Values for the timeline's template."""

    timeline: Timeline
    lanes: list[Lane]
    ticks: list[tuple[str, str]]
    legend: list[tuple[str, list[tuple[str, str]]]]
    longest: list[Listed]
    data: Markup


def view(timeline: Timeline) -> View:
    names = [_shown(one) for one in timeline.names]
    before = ""
    lanes = []
    for row in timeline.rows:
        lanes.append(_lane(timeline, row, first=row.group != before))
        before = row.group
    return View(
        timeline,
        lanes,
        _ticks(timeline.ns),
        _legend(timeline),
        _longest(timeline, names),
        data(_data(timeline, names)),
    )


def _legend(timeline: Timeline) -> list[tuple[str, list[tuple[str, str]]]]:
    """The kinds of each group of rows that need words: ranges and marks are recognised by their labels."""
    found = []
    for group, title in LEGENDS.items():
        used = {slice_.kind for row in timeline.rows if row.group == group for slice_ in row.slices}
        if used:
            found.append((title, [(kind, kinds.ALL[kind]) for kind in kinds.ORDER if kind in used]))
    return found


def _shown(one: Name) -> tuple[str, str]:
    return name(one.short), name(one.full, FULL)


def _lane(timeline: Timeline, row: Row, first: bool) -> Lane:
    total = sum(slice_.ns for slice_ in row.slices)
    label = name(row.label, 60)
    summary = f"{label}: {plural(sum(slice_.many for slice_ in row.slices), 'item')}, {dur(float(total))} together"
    return Lane(
        row,
        f"mark-{timeline.key}-{row.rank}" if row.rank is not None else f"row-{timeline.key}-{row.key}",
        label,
        HEIGHTS[row.group],
        drawing(row.slices, timeline.ns),
        first,
        summary,
    )


def drawing(slices: Sequence[Slice], ns: int) -> Markup:
    """One path a kind; what is less than a unit apart is one rectangle, so that the size has a bound."""
    paths: dict[str, list[tuple[int, int]]] = {}
    for slice_ in slices:
        left = max(0, min(WIDTH - 2, slice_.start * WIDTH // ns))
        right = max(left + 2, min(WIDTH, math.ceil((slice_.start + slice_.ns) * WIDTH / ns)))
        boxes = paths.setdefault(slice_.kind, [])
        if boxes and left <= boxes[-1][1] and right >= boxes[-1][0]:
            boxes[-1] = (min(left, boxes[-1][0]), max(right, boxes[-1][1]))
        else:
            boxes.append((left, right))
    parts = []
    for kind in sorted(paths, key=kinds.ORDER.index):
        top = LOW if kind == "idle_mark" else 0
        path = "".join(f"M{left} {top}h{right - left}V1h{left - right}z" for left, right in paths[kind])
        parts.append(f'<path class="k-{kind}" d="{path}"/>')
    return trusted("".join(parts))


def _ticks(ns: int) -> list[tuple[str, str]]:
    """Places in percent and their times: round numbers, at most TICKS + 1."""
    step = float(10 ** math.floor(math.log10(max(ns, 1))))
    while ns / step < TICKS / 2:
        step /= 2 if str(step)[0] != "5" else 2.5
    while ns / step > TICKS:
        step *= 2
    return [(f"{100 * at * step / ns:.3f}%", dur(at * step) if at else "0") for at in range(int(ns / step) + 1)]


def _longest(timeline: Timeline, names: Sequence[tuple[str, str]]) -> list[Listed]:
    found = [(slice_, row) for row in timeline.rows if row.group in _DETAIL for slice_ in row.slices]
    found.sort(key=lambda one: (-one[0].ns, one[0].start))
    return [
        Listed(
            names[slice_.name][1] if slice_.name >= 0 else kinds.ALL[slice_.kind],
            name(row.label, 60),
            kinds.ALL[slice_.kind],
            dur(float(slice_.start)) if slice_.start else "0",
            dur(float(slice_.ns)),
            slice_.many,
        )
        for slice_, row in found[:LISTED]
    ]


def _data(timeline: Timeline, names: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the script's data: slices as runs of start, length, kind, name and count; a start counts from the end of
    the slice before, which is shorter.
    """
    used = sorted({slice_.kind for row in timeline.rows for slice_ in row.slices}, key=kinds.ORDER.index)
    place = {kind: at for at, kind in enumerate(used)}
    return {
        "ns": timeline.ns,
        "kinds": [[kind, kinds.ALL[kind]] for kind in used],
        "names": [[short] if short == full else [short, full] for short, full in names],
        "rows": [
            [
                part
                for before, p in pairwise((_FIRST, *row.slices))
                for part in (p.start - before.start - before.ns, p.ns, place[p.kind], p.name, p.many)
            ]
            for row in timeline.rows
        ],
    }
