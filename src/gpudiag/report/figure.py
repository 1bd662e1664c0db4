"""The report as a figure of matplotlib, for notebooks: the time of the loops, a timeline, the roofline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

from gpudiag.errors import GpudiagError
from gpudiag.model import Report
from gpudiag.report.html import kinds, roofline
from gpudiag.report.html.markup import name
from gpudiag.report.wording import kernel_words, words
from gpudiag.timeline.model import Picture, Timeline

LOOPS = 5
LABEL = 48  # characters beside a row
WIDTH, ROW, ENTRY, ROOFLINE, FRAME = 12.0, 0.3, 0.19, 4.0, 0.9  # inches: figure, row, line of a legend, roofline, rest


class Bar(NamedTuple):
    """A part of a row; kind as on the page."""

    start: float
    length: float
    kind: str


class Panel(NamedTuple):
    """Rows of bars over one axis."""

    title: str
    axis: str
    rows: list[tuple[str, list[Bar]]]

    @property
    def kinds(self) -> list[str]:
        """Those that have a bar, in the order of the legend."""
        used = {bar.kind for _, bars in self.rows for bar in bars}
        return [kind for kind in kinds.ORDER if kind in used]

    @property
    def height(self) -> float:
        return max(ROW * len(self.rows), ENTRY * len(self.kinds)) + FRAME


def draw(report: Report, picture: Picture | None) -> Any:
    """A matplotlib figure. Raises GpudiagError where matplotlib is missing, or nothing can be drawn."""
    panels = [panel for panel in (tree(report), timeline(picture, report)) if panel]
    kernels = sorted(report.run.kernels, key=lambda kernel: -kernel.duration_ms * kernel.launches)
    roofs, points = roofline.placed(kernels)
    if not panels and not points:
        raise GpudiagError("There is nothing to plot: the report has no loop, and no kernel with counted operations.")
    try:
        pyplot = import_module("matplotlib.pyplot")
    except ImportError:
        raise GpudiagError("A figure needs matplotlib: install it, or gpudiag with the extra `notebook`.") from None
    heights = [panel.height for panel in panels] + ([ROOFLINE] if points else [])
    figure = pyplot.figure(figsize=(WIDTH, sum(heights)), layout="constrained")
    axes = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    for axis, panel in zip(axes, panels, strict=False):
        _draw_rows(axis, panel)
    if points:
        _draw_roofline(axes[-1], roofs, points)
    pyplot.close(figure)  # a notebook shows what is returned, not a second time what is open
    return figure


def tree(report: Report) -> Panel | None:
    """The time of each loop by what the GPU does, longest loop first."""
    rows = []
    for loop in sorted(report.run.loops, key=lambda loop: -loop.share_of_span)[:LOOPS]:
        start, bars = 0.0, []
        for row in words.budget_rows(loop):
            bars.append(Bar(start, 100 * row.part, row.key))
            start += 100 * row.part
        if bars:
            label = "all work" if loop.source == "unknown" else name(loop.name, LABEL)
            rows.append((f"{label}, {words.duration(loop.iteration_ms)}", bars))
    return Panel("Where the time goes", "% of an iteration", rows) if rows else None


def timeline(picture: Picture | None, report: Report) -> Panel | None:
    """The rows of the first iteration that is drawn, else of the whole run."""
    shown: Timeline | None = (*picture.loops, picture.overview)[0] if picture else None
    if shown is None:
        return None
    loops = {loop.id: loop for loop in report.run.loops}
    known = loops.get(shown.loop) if shown.loop is not None else None
    title = f"An iteration of {name(known.name, LABEL)}" if known else "The whole run"
    rows = [
        (name(row.label, LABEL), [Bar(one.start / 1e6, one.ns / 1e6, one.kind) for one in row.slices])
        for row in shown.rows
    ]
    return Panel(title, "ms", rows)


def _draw_rows(axis: Any, panel: Panel) -> None:
    colours = kinds.colours()
    for kind in panel.kinds:
        label = kinds.ALL[kind]
        for at, (_, bars) in enumerate(panel.rows):
            own = [(bar.start, bar.length) for bar in bars if bar.kind == kind]
            if own:
                axis.broken_barh(own, (at - 0.4, 0.8), facecolors=colours[kind], linewidth=0, label=label)
                label = "_"  # once in the legend
    axis.set_yticks(range(len(panel.rows)), [_plain(label) for label, _ in panel.rows])
    axis.invert_yaxis()
    axis.set_xlabel(panel.axis)
    axis.set_title(_plain(panel.title), loc="left")
    axis.margins(x=0)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize="small")


def _draw_roofline(axis: Any, roofs: Sequence[tuple[str, float]], points: Sequence[roofline.Point]) -> None:
    low, high = min(point.x for point in points) / 3, max(point.x for point in points) * 3
    for at, (precision, ridge) in enumerate(roofs):
        left, right = min(low, ridge / 3), max(high, ridge * 3)
        label = kernel_words.PRECISIONS.get(precision, _plain(precision))
        axis.plot([left, ridge, right], [left / ridge, 1, 1], f"C{at}", label=label)
        own = [point for point in points if point.roof == at]
        axis.scatter([point.x for point in own], [point.y for point in own], c=f"C{at}", s=60)
    for number, point in enumerate(points[: roofline.NUMBERED], 1):
        axis.annotate(str(number), (point.x, point.y), (5, 5), textcoords="offset points", fontsize="small")
        axis.plot([], [], " ", label=f"{number} {_plain(name(point.kernel.name, LABEL))}")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_ylim(10 ** math.floor(math.log10(min(point.y for point in points) / 2)), 2)
    ticker = import_module("matplotlib.ticker")
    axis.yaxis.set_major_formatter(ticker.PercentFormatter(1, symbol=" %"))
    axis.yaxis.set_minor_formatter(ticker.NullFormatter())
    axis.set_xlabel("operations a byte of DRAM")
    axis.set_ylabel("part of the peak rate")
    axis.set_title("Roofline", loc="left")
    axis.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize="small")


def _plain(text: str) -> str:
    """The text without what matplotlib would read as a formula."""
    return text.replace("$", r"\$")
