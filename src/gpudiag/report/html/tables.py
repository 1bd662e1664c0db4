"""Tables of the page that its script sorts and searches: the time of an iteration by line, and by kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from markupsafe import Markup

from gpudiag.model import KernelUse, Loop, Place, Report
from gpudiag.report.html.markup import NAME, inline, name
from gpudiag.report.html.track import FULL
from gpudiag.report.wording.kernel_words import GRAPHS
from gpudiag.report.wording.words import duration, plural
from gpudiag.text import escape
from gpudiag.text.format import num, pct


class LineRow(NamedTuple):
    """A line, function or NVTX range. Its times are empty where only a finding names it."""

    place: Markup
    loop: str
    time: str
    share: str
    computing: str
    findings: list[tuple[int, str]]  # rank, and the part of its cost that lies here


class KernelRow(NamedTuple):
    """A kernel of a loop. full: its name on the timeline; empty where the row stands for several kernels."""

    short: str
    full: str
    loop: str
    time: str
    share: str
    launches: str
    one: str


class TimeTable(NamedTuple):
    """Rows, longest first. per: what the times are of; loops: whether there are several, so that rows name theirs."""

    rows: list[Any]
    per: str
    loops: bool


_Key = tuple[int, str | None, int | str | None]  # loop, file, and line or name


def by_line(report: Report, folder: str) -> TimeTable:
    """The phases of all loops, then the places of findings that are none."""
    loops = {loop.id: loop for loop in report.run.loops}
    pointed: dict[_Key, list[tuple[int, str]]] = {}
    places: dict[_Key, Place] = {}
    for finding in report.findings:
        for place in finding.where:
            if place.file or place.nvtx:
                key = (finding.gain.loop or 0, *_at(place))
                places.setdefault(key, place)
                part = "" if place.share is None else f" ({pct(place.share)} of its cost)"
                pointed.setdefault(key, []).append((finding.rank, part))
    rows = []
    for loop in report.run.loops:
        for phase in loop.phases:
            found = pointed.pop((loop.id, *_at(phase.place)), [])
            times = (loop.iteration_ms * phase.share, phase.share, phase.computing_share)
            rows.append(_line(phase.place, loop, folder, "calls", times, found))
    rows += [_line(places[key], loops.get(key[0]), folder, "in", None, found) for key, found in pointed.items()]
    return TimeTable(rows, _per(report), len(loops) > 1)


def _at(place: Place) -> tuple[str | None, int | str | None]:
    if place.file:
        return place.file, place.function if place.line is None else place.line
    return None, place.nvtx


def _line(
    place: Place,
    loop: Loop | None,
    folder: str,
    joint: str,
    times: tuple[float, float, float] | None,
    findings: list[tuple[int, str]],
) -> LineRow:
    """joint: how the line is related to the function that stands beside it."""
    if place.file:
        spot = place.file.removeprefix(folder) + (f":{place.line}" if place.line else "")
        known = bool(place.function) and not str(place.function).startswith("<")
        text = escape.code(escape.middle(spot, escape.NAME_LIMIT))
        text += f" {joint if place.line else 'in'} {escape.code(str(place.function))}" if known else ""
    else:
        text = f"range {escape.code(place.nvtx or '')}"
    said = (duration(times[0]), pct(times[1]), pct(times[2])) if times else ("", "", "")
    return LineRow(inline(text), name(loop.name) if loop else "", *said, findings)


def by_kernel(report: Report) -> TimeTable:
    """The kernels of all loops, those of a loop longest first, after its graphs that were recorded as a whole."""
    uses = [(loop, use) for loop in report.run.loops for use in (loop.graphs, *loop.kernels) if use]
    alike = Counter(name(text) for text in {use.name for _, use in uses})
    rows = [_kernel(loop, use, alike[name(use.name)] > 1) for loop, use in uses]
    return TimeTable(rows, _per(report), len({loop.id for loop, _ in uses}) > 1)


def _kernel(loop: Loop, use: KernelUse, alike: bool) -> KernelRow:
    """alike: its short name is another one's too, so that it needs the end of the full one."""
    several = use.others is not None
    if several:
        short = plural(use.others or 0, "more kernel")
    elif use is loop.graphs:
        short = GRAPHS
    else:
        short = escape.middle(name(use.name, FULL), NAME) if alike else name(use.name)
    return KernelRow(
        short,
        "" if several or use is loop.graphs else name(use.name, FULL),
        name(loop.name),
        duration(use.ms),
        pct(use.ms / loop.iteration_ms) if loop.iteration_ms else "",
        num(use.launches),
        duration(use.ms / use.launches) if use.launches and not several else "",
    )


def _per(report: Report) -> str:
    return "the run" if report.run.mode == "run" else "an iteration"


def views(report: Report, seen: Mapping[str, Any]) -> dict[str, TimeTable | None]:
    """The tables that have rows, by their names in the templates."""
    made: Iterable[tuple[str, TimeTable]] = (
        ("by_line", by_line(report, seen["folder"])),
        ("by_kernel", by_kernel(report)),
    )
    return {key: table if table.rows else None for key, table in made}
