"""A code review's checklist: what the recording makes one ask of each file, the costliest file first.

Every question is a rule's, and put so that a yes means that the code could be faster. Whoever reviews a change answers
it by reading the code; the report itself is for whoever makes the change.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from gpudiag.model import Finding, Loop, Place, Report
from gpudiag.report.code_review import locations
from gpudiag.report.github.comment_limits import private
from gpudiag.report.markdown import Safe, section, view
from gpudiag.report.wording import gain_words, words
from gpudiag.text import escape
from gpudiag.text.format import pct

WHY = 240  # characters: two or three sentences
TITLE = 200
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"(])")


def render(report: Report) -> str:
    """The checklist as Markdown, ending in a newline."""
    report = private(report)
    seen = view(report, 0)
    loops = {loop.id: loop for loop in report.run.loops}
    fixes = {row.finding.rank: row.fix for row in seen["all_rows"] if row.finding.remedies}
    files = _files(report.findings, loops, seen["folder"], fixes)
    names = {file["name"] for file in files if file["name"]}
    asked = {"files": files, "named": len(names), "questions": sum(len(file["items"]) for file in files)}
    return f"{section('checklist', {**seen, **asked, 'ruled_out': _by_letter(report)})}\n"


def question(finding: Finding) -> str:
    """Return the question to ask of the code; built from the title for a rule that brings none."""
    if finding.question:
        return escape.prose(escape.middle(finding.question, TITLE))
    return f"Is this meant, and does the program need it: {escape.prose(_title(finding).rstrip('.'))}?"


def _title(finding: Finding) -> str:
    return escape.middle(finding.title, TITLE)


def _files(
    findings: Sequence[Finding], loops: Mapping[int, Loop], folder: str, fixes: Mapping[int, str]
) -> list[dict[str, Any]]:
    """The files with their items, by what is at stake in them; what names no file comes last.

    Fix and reason of a finding stand at the first of its files.
    """
    items: dict[str, list[dict[str, Any]]] = defaultdict(list)
    stakes: dict[str, float] = defaultdict(float)
    for finding in findings:
        loop = words.loop_of(finding, loops)
        weight = finding.gain.share * (loop.share_of_span if loop else 1.0)
        places: dict[str, list[Place]] = defaultdict(list)
        for place in finding.where or (Place(),):
            places[place.file or ""].append(place)
        if len(places) > 1 and "" in places:  # asked once, at the code: with the worst file that is named
            worst = next(file for file in places if file)
            places[worst] += places.pop("")
        for file, here in places.items():
            part = _part(here, len(finding.where))
            stakes[file] += weight * part
            item = _item(finding, here, part if len(places) > 1 else 1.0, loops)
            items[file].append({**item, "fix": fixes.get(finding.rank, "")})
    ordered = sorted(items, key=lambda file: (not file, -stakes[file], items[file][0]["finding"].rank, file))
    explained: set[int] = set()
    for item in (item for file in ordered for item in items[file]):
        rank = item["finding"].rank
        item["explained"] = rank in explained
        explained.add(rank)
    return [{"name": _shown(file, folder), "items": items[file]} for file in ordered]


def _part(here: Sequence[Place], total: int) -> float:
    """The part of a finding's cost that lies in these places; where nobody measured it, each counts the same."""
    known = [place.share for place in here if place.share is not None]
    return min(1.0, sum(known)) if known else len(here) / max(total, 1)


def _item(finding: Finding, here: Sequence[Place], part: float, loops: Mapping[int, Loop]) -> dict[str, Any]:
    gain = gain_words.headline(finding, loops, before="the fixes ranked before it")
    if finding.gain.kind == "test_needed":
        worth = "only a test can tell what it is worth"
    else:
        worth = gain + (f", {pct(part)} of that here" if part < 0.995 and not gain.startswith("nothing") else "")
    return {
        "finding": finding,
        "question": Safe(question(finding)),
        "where": Safe(locations.brief(here, words.loop_of(finding, loops), _parent(here[0].file or ""))),
        "worth": Safe(worth),
        "why": Safe(escape.prose(_brief(finding.why))),
    }


def _brief(text: str) -> str:
    """The first sentence, and those after it that fit."""
    first, *others = _SENTENCE_END.split(" ".join(escape.middle(text, 4 * WHY).split()))
    said = first
    for sentence in others:
        if len(said) + 1 + len(sentence) > WHY:
            break
        said += f" {sentence}"
    return said


def _by_letter(report: Report) -> list[dict[str, Any]]:
    """The causes that were looked for and not found, those of one letter together: they are of one kind."""
    groups: dict[str, list[str]] = defaultdict(list)
    for code in sorted(report.clear):
        groups[code[:1]].append(code)
    return [
        {"codes": codes, "titles": [report.titles[code] for code in codes if code in report.titles]}
        for codes in groups.values()
    ]


def _parent(file: str) -> str:
    return file[: file.rfind("/") + 1]


def _shown(file: str, folder: str) -> str:
    return escape.middle(file.removeprefix(folder), escape.NAME_LIMIT)
