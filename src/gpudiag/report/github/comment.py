"""A comment under a pull request: the verdict, where the time goes, the first findings with their details folded.

The picture is a bar of block characters, and findings are items: GitHub shows both alike on a telephone (the words
wrap, where a table would have to be scrolled), on a desktop, and in the mail that it sends, where a Mermaid diagram
arrives as its source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gpudiag.model import Diff, Finding, Report
from gpudiag.report import diff as diffpage
from gpudiag.report.code_review import locations
from gpudiag.report.github.comment_limits import APART, LIMIT, body, folded, marker, private, sound
from gpudiag.report.markdown import Safe, environment, for_frameworks, section, view
from gpudiag.report.wording import first_words, gain_words, words
from gpudiag.text import escape

IN_DETAIL = 5  # findings with details; the others get a line each
DETAILED = 0.5  # of the room: details may take this much of it, so that lines are left for the other findings
DETAILS = "What was measured, and the fix in full"
LINES = 10  # more lines than these are folded
FIRST = "What to fix, in this order"
CHANGED = "New or worth more now"
TEXT, TITLE, FACTS = 1000, 200, 600  # characters: names in them may be long
ALSO = ("notes", "minor", "clear", "not_evaluated")

__all__ = ["LIMIT", "body", "change", "marker", "render"]


def render(report: Report, key: str = "") -> str:
    """The comment, ending in a newline. key: tells several comments of one pull request apart. Raises GpudiagError."""
    report = private(report)
    seen = view(report, 0)
    head, foot = _head(report, seen, key), _foot(report, seen["facts"])
    caveat = _macro("caveat", escape.middle(seen["caveat"].text, TEXT)) if seen["caveat"] else ""
    room = LIMIT - len(marker(key)) - len(head) - len(caveat) - len(foot) - 6 * len(APART)
    observed = _macro("observed", seen["observed"])
    findings, also = _findings(report, seen, room - len(observed)), _also(report, seen)
    fits = len(findings) + len(observed) + len(also) <= room
    return body(
        APART.join(part for part in (head, caveat, findings, observed, also if fits else "", foot) if part), key
    )


def change(diff: Diff, head: Report, key: str = "") -> str:
    """The comment on what changed: the page of the comparison, and head's findings that are new or worth more.

    Raises GpudiagError.
    """
    diff, head = private(diff), private(head)
    named = {found.head_fingerprint for found in diff.findings if found.state in ("new", "worse")}
    chosen = [finding for finding in head.findings if finding.fingerprint in named]
    # Ranked among themselves: what "the fixes above" leave would be what findings leave that are not here, nor may a
    # cause be here.
    alone = {"cumulative_before_ms": None, "cumulative_after_ms": None}
    summary = tuple(
        finding.model_copy(update={"rank": rank, "caused_by": None, "gain": finding.gain.model_copy(update=alone)})
        for rank, finding in enumerate(chosen, 1)
    )
    shown = head.model_copy(update={"findings": summary})
    title = f"### gpudiag{f' {escape.code(key)}' if key else ''}:"
    page = diffpage.parts(diff, title, "####", {finding.fingerprint for finding in summary})
    room = LIMIT - len(marker(key)) - sum(map(len, page.values())) - 5 * len(APART)
    blocks = _findings(shown, view(shown, 0), room, CHANGED) if room > 0 else ""
    if len(blocks) > room:
        blocks = ""
    return body(APART.join(filter(None, (page["head"], blocks, page["findings"], page["kernels"]))), key)


def _macro(name: str, *values: Any) -> str:
    """A part of the comment, as the template words it."""
    macro = getattr(environment().get_template("comment.md.j2").module, name)
    return str(macro(*values)).strip()


def _head(report: Report, seen: Mapping[str, Any], key: str) -> str:
    part = {
        "key": key,
        "heading": seen["heading"],
        "verdict": escape.middle(seen["lead"], TEXT),
        "selected": escape.middle(report.run.selection.text, TEXT) if report.run.selection else "",
        "line": seen["loop_lines"][0] if seen["loop_lines"] else None,
        "legend": first_words.legend(seen["loop_lines"][:1]),
        "others": sorted(report.run.loops, key=lambda loop: -loop.share_of_span)[1:],
        "coverage": seen["coverage"],
    }
    return _macro("head", part)


def _foot(report: Report, facts: Sequence[Safe]) -> str:
    """Return the foot line: the files that were read, and the devices they ran on."""
    short = facts if sum(map(len, facts)) <= FACTS else ()
    return _macro("foot", short, any(finding.status == "draft" for finding in report.findings))


def _findings(report: Report, seen: Mapping[str, Any], room: int, heading: str = FIRST) -> str:
    """The first findings with details, lines for the others while there is room, and how many were left out."""
    if not report.findings:
        return ""
    details = _details(report, int(room * DETAILED))
    items = [_item(item, report, seen["folder"]) for item in seen["brief"]]
    parts = [_macro("above", heading, seen["folder"])]
    for item in items[:IN_DETAIL]:
        parts += [_macro("finding", item), details.get(item["finding"].rank, "")]
    others = [_macro("line", item) for item in items[IN_DETAIL:]]
    ending = (_macro("missing", seen["heading"], len(others)), folded(_more(len(others)), " "))
    shown = list(_while_room(others, room - sum(len(part) + len(APART) for part in (*parts, *ending))))
    text = "\n".join(shown)
    parts.append(folded(_more(len(shown)), text) if len(shown) > LINES else text)
    if len(shown) < len(others):
        parts.append(_macro("missing", seen["heading"], len(others) - len(shown)))
    return APART.join(part for part in parts if part)


def _item(item: Mapping[str, Any], report: Report, folder: str) -> dict[str, Any]:
    """Return a finding without its details, short whatever a saved report holds."""
    finding: Finding = item["finding"]
    loops = {loop.id: loop for loop in report.run.loops}
    loop = words.loop_of(finding, loops)
    fitting = for_frameworks(finding.remedies, report.run.frameworks)
    fix = escape.middle(first_words.fix_line(fitting[0]), TITLE) if fitting else ""
    same = first_words.as_line_of(first_words.same_lines(report.findings).get(finding.rank))
    return {
        **item,
        "headline": Safe(gain_words.headline(finding, loops, ranged=True)),
        "title": Safe(escape.prose(escape.middle(finding.title, TITLE))),
        "where": Safe(f"{locations.brief(finding.where, loop, folder)}{same}") if finding.where else "",
        "fix": Safe(first_words.in_order(finding, report.findings, fix)),
    }


def _details(report: Report, room: int) -> dict[int, str]:
    """Folded details of the first findings, by rank: the same text as in the whole report.

    A finding loses them if they are too long, or if they are no sound Markdown (a saved report may hold anything);
    then the last ones, until they fit. Later details refer to earlier ones, so each change makes them anew.
    """
    summary = list(report.findings[:IN_DETAIL])
    while summary:
        others = [finding for finding in report.findings if finding not in summary]
        ordered = report.model_copy(update={"findings": (*summary, *others)})
        full = {
            item["finding"].rank: folded(DETAILS, section("finding", {"summary": item}).partition(APART)[2])
            for item in view(ordered, len(summary))["findings"]
        }
        good = [finding for finding in summary if len(full[finding.rank]) <= room and sound(full[finding.rank])]
        if len(good) < len(summary):
            summary = good
        elif sum(map(len, full.values())) > room:
            summary.pop()
        else:
            return full
    return {}


def _more(count: int) -> str:
    return words.plural(count, "more finding")


def _while_room(lines: Iterable[str], room: int) -> Iterator[str]:
    for line in lines:
        room -= len(line) + len("\n")
        if room < 0:
            return
        yield line


def _also(report: Report, seen: Mapping[str, Any]) -> str:
    """Folded: what the report says beside its findings. Nothing where that is no sound Markdown."""
    counts = (
        words.plural(len(report.notes), "note") if report.notes else "",
        words.plural(len(seen["minor"]), "smaller thing") if seen["minor"] else "",
        f"{words.plural(len(report.clear), 'cause')} not found" if report.clear else "",
        f"{words.plural(len(report.not_evaluated), 'cause')} not evaluated" if report.not_evaluated else "",
    )
    parts = []
    for name in ALSO:
        heading, _, text = section(name, seen).partition(APART)
        parts += [f"**{heading.lstrip('# ')}**", text] if text else []
    text = folded(f"Also: {', '.join(filter(None, counts))}", APART.join(parts))
    return text if sound(text) else ""
