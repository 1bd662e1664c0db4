"""The report as one page: the words of the Markdown report, with timelines, bars and plots beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from markupsafe import Markup

from gpudiag.model import Finding, Loop, Report
from gpudiag.report import markdown
from gpudiag.report.html import fix_preview, kinds, ranks, roofline, tables, track
from gpudiag.report.html.markup import asset, block, digest, environment, inline, trusted
from gpudiag.report.wording import gain_words, unclaimed_words, words
from gpudiag.text import escape
from gpudiag.timeline.model import Picture, Timeline

NO_TIMELINE = (
    "There is none: a saved report holds no timeline. `gpudiag explain CAPTURE -o report.html` reads the capture itself"
    " and draws one."
)
NO_WORK = "There is none: a timeline comes from Nsight Systems, and nothing was recorded that could be drawn."
ITERATION_BEGINS = (
    "The replay starts where an iteration begins, so kernel positions may differ from the timeline above."
)
SCRIPTS = ("page", "selection", "tables", "strip", "drawing", "timeline", "figures")  # one script, in this order
REST = (
    ("minor", "Smaller things"),
    ("clear", "Not found"),
    ("not_evaluated", "Not evaluated"),
    ("suppressed", "Kept quiet"),
    ("notes", "Keep in mind"),
)


class BudgetPart(NamedTuple):
    key: str
    time: str
    share: str
    words: markdown.Safe
    x: str
    width: str
    named: bool


class Link(NamedTuple):
    id: str
    title: str
    total: int = 0


def render(report: Report, picture: Picture | None = None) -> str:
    """The page, ending in a newline. picture: what is drawn of the capture; a saved report has none."""
    seen = markdown.view(report)
    shown = [*picture.loops, *([picture.overview] if picture.overview else [])] if picture else []
    fix = fix_preview.timeline(picture.preview) if picture and picture.preview else None
    rest = [(name, title, block(markdown.section(name, seen))) for name, title in REST]
    style, script = asset("page.css"), asset(*(f"{part}.js" for part in SCRIPTS))
    findings = [_finding(summary, seen, shown) for summary in seen["findings"]]
    view = {
        **seen,
        "style": trusted(style),
        "style_digest": trusted(digest(style)),
        "script": trusted(script),
        "script_digest": trusted(digest(script)),
        "glances": _glances(seen),
        "observed_lines": [inline(f"**{one.title}**: {one.where}") for one in seen["observed"]],
        "budgets": [_budget(loop, seen) for loop in seen["loops"]],
        "other_loops_text": block(markdown.section("other_loops", seen)),
        "timelines": [track.view(one) for one in shown],
        "width": track.WIDTH,
        "captions": {one.key: _caption(one, report) for one in shown},
        "no_timeline": inline(
            NO_TIMELINE if picture is None else "No GPU work was recorded, so there is nothing to draw."
        ),
        "preview": track.view(fix) if fix else None,
        "fix_preview_text": _fix_preview_text(report, fix) if fix else "",
        **tables.views(report, seen),
        "kernels_text": block(markdown.section("kernels", seen)),
        "roofline": roofline.roofline([*seen["kernels"], *seen["small_kernels"], *seen["other_kernels"]]),
        "stalls": [kernel for kernel in seen["explained_kernels"] if kernel.stalls],
        "together_html": inline(seen["together"]),
        "before_findings": block(markdown.section("before_findings", seen)),
        "findings": findings,
        "job_text": block(markdown.section("job", seen)),
        "job": ranks.view(report.job) if report.job else None,
        "gain_kinds": kinds.GAIN,
        "gain_legend": [kind for kind in kinds.GAIN if any(_has(summary["bar"], kind) for summary in findings)],
        "rest": [(name, text) for name, _, text in rest if text],
    }
    view["contents"] = _contents(view, {name: title for name, title, text in rest if text})
    return environment().get_template("page.html.j2").render(view).strip() + "\n"


def _contents(view: Mapping[str, Any], rest: Mapping[str, str]) -> list[Link]:
    links = [
        Link("findings", "Findings", len(view["findings"])) if view["findings"] else None,
        Link("ranks", "Ranks", view["report"].job.ranks) if view["job_text"] else None,
        Link("timeline", "Timeline"),
        Link("after", "After the first fix") if view["preview"] else None,
        Link("time", "Time") if view["budgets"] else None,
        Link("by-line", "By line") if view["by_line"] else None,
        Link("by-kernel", "By kernel") if view["by_kernel"] else None,
        Link("kernels", "Kernels measured" if view["by_kernel"] else "Kernels") if view["kernels_text"] else None,
    ]
    return [*(link for link in links if link), *(Link(name, title) for name, title in rest.items())]


def _glances(seen: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A line for each loop, with a stacked bar and its legend, largest part of the rest first."""
    loops = seen["loops"] or [None] * len(seen["loop_lines"])
    return [
        {"text": inline(line.text), "parts": _stacked(loop) if loop else ()}
        for line, loop in zip(seen["loop_lines"], loops, strict=True)
    ]


def _stacked(loop: Loop) -> list[BudgetPart]:
    rows = sorted(words.budget_rows(loop), key=lambda row: (row.key != "compute", -row.part))
    total = sum(row.part for row in rows) or 1.0
    parts, x = [], 0.0
    for row in rows:
        width, named = 100 * row.part / total, row.part >= words.LITTLE
        label = markdown.Safe(row.label)
        parts.append(BudgetPart(row.key, row.time, row.share, label, f"{x:.3f}", f"{width:.3f}", named))
        x += width
    return parts


def _budget(loop: Loop, seen: Mapping[str, Any]) -> dict[str, Any]:
    """The times of a loop's parts, in the order of the budget's definition."""
    return {
        "text": inline(markdown.section("loop", {**seen, "one": loop})),
        "rows": [row._replace(words=markdown.Safe(row.words)) for row in words.budget_rows(loop)],
        "unprofiled": loop.iteration_ms_unprofiled is not None,
        "phases": inline(f"By phase of the iteration: {words.phases(loop)}.") if loop.phases else "",
        "unclaimed": [inline(line) for line in unclaimed_words.lines(loop, seen["report"].findings)],
    }


def _caption(one: Timeline, report: Report) -> dict[str, Markup]:
    if one.loop is None:
        return {
            "title": Markup("The whole run"),
            "summary": inline(f"{words.duration(one.ns / 1e6)} were recorded."),
        }
    loop = next(loop for loop in report.run.loops if loop.id == one.loop)
    length = words.duration(one.ns / 1e6)
    if loop.source == "unknown":
        return {"title": inline("The steady work"), "summary": inline(f"{length}; nothing in it repeats.")}
    if one.iteration is None:
        return {"title": inline(f"An iteration of {escape.code(loop.name)}"), "summary": inline(f"{length}.")}
    return {
        "title": inline(f"An iteration of {escape.code(loop.name)}"),
        "summary": inline(f"Iteration {one.iteration + 1:,}, {length}: of those analysed the nearest to the median."),
    }


def _fix_preview_text(report: Report, fix: Timeline) -> Markup:
    first = next(f for f in report.findings if f.gain.kind != "test_needed")
    loops = {loop.id: loop for loop in report.run.loops}
    gain = gain_words.gain(first, loops)
    drawn = (
        "Both as the replay has them, to one scale."
        if len(fix.rows) > 3
        else "To one scale; only the lengths are known."
    )
    if len(fix.rows) > 3:
        drawn += f" {ITERATION_BEGINS}"
    return inline(f"[Finding {first.rank}](#finding-{first.rank}), {escape.prose(first.title)}. {gain} {drawn}")


def _finding(summary: Mapping[str, Any], seen: Mapping[str, Any], shown: list[Timeline]) -> dict[str, Any]:
    finding: Finding = summary["finding"]
    text = markdown.section("finding", {**seen, "summary": summary})
    title, about, body = text.split("\n\n", 2)
    assert title.startswith("### ")
    marks = [
        Link(f"mark-{one.key}-{finding.rank}", "in the iteration" if one.loop is not None else "in the whole run")
        for one in shown
        if finding.rank in one.marked
    ]
    return {
        **summary,
        "about": inline(about),
        "text": block(body),
        "marks": marks,
        "bar": _gain_bar(finding),
        "row": next(row for row in seen["all_rows"] if row.finding is finding),
    }


def _has(bar: Mapping[str, Any] | None, kind: str) -> bool:
    return bar is not None and (kind != "interval" or bar["span"])


def _gain_bar(finding: Finding) -> dict[str, Any] | None:
    gain = finding.gain
    if not gain.before_ms or gain.after_ms is None:
        return None
    low, high = (gain.after_ms if end is None else end for end in (gain.low_ms, gain.high_ms))

    def part(ms: float) -> str:
        return f"{max(0.0, min(100.0, 100 * ms / gain.before_ms)):.2f}" if gain.before_ms else "0"

    return {
        "after": part(gain.after_ms),
        "saved": part(max(0.0, gain.before_ms - gain.after_ms)),
        "low": part(low),
        "high": part(high),
        "span": gain.kind == "expected" and high > low,
        "summary": f"the fix would save {words.duration(max(0.0, gain.before_ms - gain.after_ms))}"
        f" of {words.duration(gain.before_ms)}",
    }
