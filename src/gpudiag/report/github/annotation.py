"""A finding as the tools of a code review take it: a level, a line, a few plain sentences without markup.

One alert a finding, however many lines it has: one cause is reviewed, dismissed and counted once. Only findings:
the smaller things are below the reporting gate, so as alerts they would come and go from run to run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from gpudiag.model import Finding, Report, Severity
from gpudiag.report.code_review import source_paths
from gpudiag.report.code_review.source_paths import Spot
from gpudiag.report.github.comment_limits import private
from gpudiag.report.wording import gain_words
from gpudiag.text.escape import NAME_LIMIT, bare, code, middle, visible

Level = Literal["warning", "note"]
# No `error`: hosts let one fail the check, and whether a slow program may pass is what --fail-on decides.
LEVELS: dict[Severity, Level] = {"high": "warning", "medium": "warning", "low": "note", "info": "note"}
BEFORE = "the fixes ranked before it"  # a review shows each alert by itself
TITLE_LIMIT = 200
TEXT_LIMIT = 1000
OTHERS = 5  # other lines named in a text


class Alert(NamedTuple):
    """`spots` is empty where the recording names no line; else the first is where the alert belongs."""

    finding: Finding
    level: Level
    title: str
    headline: str
    message: str
    spots: tuple[Spot, ...]


def alerts(report: Report, root: Path | None = None) -> list[Alert]:
    """Every finding, in rank order; files as the checkout around `root` (the current folder) has them."""
    report = private(report, files=False)
    files = (place.file for finding in report.findings for place in finding.where if place.file and place.line)
    sources = source_paths.in_checkout(files, root)
    loops = {loop.id: loop for loop in report.run.loops}
    return [
        Alert(
            finding=finding,
            level=LEVELS[finding.severity],
            title=bare(finding.title, TITLE_LIMIT),
            headline=bare(gain_words.headline(finding, loops, before=BEFORE), TITLE_LIMIT),
            message=bare(finding.message, TEXT_LIMIT),
            spots=tuple(source_paths.spots(finding, sources)),
        )
        for finding in report.findings
    ]


def also_at(spots: tuple[Spot, ...]) -> str:
    """`Also at line 44, model.py:7.` for all lines but the first; empty if there are none."""
    others = [line_of(spot, spots[0]) for spot in spots[1:]]
    more = f" and {len(others) - OTHERS} more" if len(others) > OTHERS else ""
    return f"Also at {', '.join(others[:OTHERS])}{more}." if others else ""


def line_of(spot: Spot, first: Spot) -> str:
    """`line 44` where that is in the file of the first, else `model.py:44`."""
    if spot.path == first.path:
        return f"line {spot.line}"
    return f"{middle(visible(spot.path), NAME_LIMIT)}:{spot.line}"


def subject(finding: Finding) -> str:
    """The kernel or range that stands for a line where none was recorded; empty if there is none either."""
    for place in finding.where:
        for kind, name in (("kernel", place.kernel), ("range", place.nvtx), ("file", place.file)):
            if name:
                return f"{kind} {code(name)}"
    return ""
