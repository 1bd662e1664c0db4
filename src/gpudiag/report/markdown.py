"""The Markdown report, the main product: sections in reading order, each a template, empty ones left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from jinja2 import PackageLoader, StrictUndefined
from jinja2.sandbox import SandboxedEnvironment

from gpudiag.diagnosis import loop_names
from gpudiag.model import Finding, Loop, Note, Remedy, Report, Run, Unevaluated
from gpudiag.report.code_review.locations import common_folder
from gpudiag.report.wording import (
    coverage_words,
    evidence_words,
    first_words,
    gain_words,
    kernel_words,
    place_words,
    unclaimed_words,
    words,
)
from gpudiag.text import escape
from gpudiag.text.format import clause, pct

PLACES = 5
LOOPS = 3
KERNELS = 10
KERNELS_EXPLAINED = 3
NAMED_CLEAR = 12  # causes not found: more are listed by their codes
FIXES = 2
NOTES = 2
INPUTS = 4
_COMMAND = re.compile(r"(nsys|ncu|gpudiag|python|nvidia-smi) (-|profile|export|rules|stats|next)")
SECTIONS = ("head", "job", "findings", "minor", "loops", "kernels", "notes", "clear", "not_evaluated", "suppressed")

_Coded = TypeVar("_Coded", Finding, Note)


class Safe(str):
    """Markdown already escaped; any other string that a template prints goes through `escape.plain`."""


def render(report: Report, limit: int | None = None) -> str:
    """The whole report, ending in a newline. `limit`: findings reported in full, the others get a line each."""
    seen = view(report, limit)
    return "\n\n".join(part for part in (section(name, seen) for name in SECTIONS) if part) + "\n"


def section(name: str, seen: Mapping[str, Any]) -> str:
    """One template of the report, as Markdown. seen: what `view` gives."""
    return environment().get_template(f"{name}.md.j2").render(seen).strip()


def view(report: Report, limit: int | None = None) -> dict[str, Any]:
    """All that the templates need, in this format's words; other formats for people show the same."""
    loops = {loop.id: loop for loop in report.run.loops}
    ordered = sorted(report.run.loops, key=lambda loop: -loop.share_of_span)
    named = {f.gain.loop for f in report.findings}
    shown = [loop for i, loop in enumerate(ordered) if i < LOOPS or loop.id in named][: 2 * LOOPS]
    kernels = sorted(report.run.kernels, key=lambda kernel: -kernel.duration_ms * kernel.launches)
    large, small = kernel_words.divided(kernels, KERNELS)
    full = report.findings if limit is None else report.findings[:limit]
    faulty = {place.kernel for f in (*report.findings, *report.minor) for place in f.where if place.kernel}
    folder = common_folder(place for f in (*report.findings, *report.minor) for place in f.where)
    caveat = first_words.caveat(report.notes)
    frameworks = report.run.frameworks
    remedies = [for_frameworks(f.remedies, frameworks) for f in report.findings]
    all_rows = [_safe(row) for row in first_words.rows(report, remedies, loops, folder)]
    rows = [row for row in all_rows if not gain_words.adds_nothing(row.finding)]
    lines = first_words.lines(report, shown)
    return {
        "lead": first_words.lead(report),
        "loop_lines": [_safe(line) for line in lines],
        "bar_legend": first_words.legend(lines),
        "rows": rows[: first_words.ROWS],
        "gaining": rows,
        "observed": [_safe(one) for one in unclaimed_words.large(shown, report.findings)],
        "together": Safe(gain_words.together(report.findings, loops)),
        "beside": Safe(gain_words.beside(report.findings, loops, first_words.same_lines(report.findings))),
        "more_rows": len(rows[first_words.ROWS :]),
        "all_rows": all_rows,
        "caveat": caveat,
        "report": report,
        "alone": Safe(first_words.of_another_rank(report.job)) if report.job else "",
        "titles": report.titles,
        "heading": Safe(first_words.heading(report)),
        "subject": first_words.subject(report),
        "facts": _facts(report),
        "devices": first_words.devices(report.run),
        "folder": folder,
        "coverage": coverage_words.sentence(report.run),
        "loops": shown,
        "other_loops": [loop for loop in ordered if loop not in shown],
        "kernels": large,
        "small_kernels": [kernel for kernel in small if kernel.causes],
        "other_kernels": [kernel for kernel in small if not kernel.causes],
        "by_kernel": len(kernels) > 1,
        "listed_ranks": {f.rank for f in report.findings},
        "explained_kernels": [kernel for kernel in kernels if kernel_words.explained(kernel)][:KERNELS_EXPLAINED],
        "faulty": faulty,
        "in_timeline": any(kernel.share_of_loop is not None for kernel in kernels),
        "findings": _summary(full, loops, report.run.frameworks, folder, guessed=not report.run.loops),
        "brief": [_brief(f, loops, folder) for f in report.findings[len(full) :]],
        "minor": [{**_brief(fs[0], loops, folder), "more": len(fs[1:])} for fs in _by_code(report.minor)],
        "notes": [
            {"notes": notes[:NOTES], "more": len(notes[NOTES:])}
            for notes in _by_code(n for n in report.notes if n is not caveat)
        ],
        "named_clear": NAMED_CLEAR,
        "draft": any(f.status == "draft" for f in full),
        "not_evaluated": _grouped(report.not_evaluated),
    }


def _safe(line: first_words.LoopLine | first_words.FindingRow | unclaimed_words.Observation) -> Any:
    """The same with its Markdown marked as such."""
    marked: dict[str, Any] = {key: Safe(text) for key, text in line._asdict().items() if isinstance(text, str)}
    return line._replace(**marked)


@cache
def environment() -> SandboxedEnvironment:
    env = SandboxedEnvironment(
        loader=PackageLoader("gpudiag.report"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
        finalize=_finalize,
    )
    env.filters |= {
        "code": lambda text: Safe(escape.code(text)),
        "cell": lambda text: Safe(escape.cell(text if isinstance(text, Safe) else escape.plain(text))),
        "prose": lambda text: Safe(escape.prose(text)),
        "command": lambda text: Safe(escape.prose(text, escape.COMMAND_LIMIT)),
        "authored": lambda text: Safe(escape.authored(text)),
        "file": first_words.file_name,
        "percent": pct,
        "clause": clause,
        "ms": words.duration,
        "plural": words.plural,
        "listed": _listed,
        "ranges": words.ranges,
        "budget": lambda loop: [row._replace(words=Safe(row.words)) for row in words.budget_rows(loop)],
        "longest": lambda loop: [row._replace(name=Safe(row.name)) for row in kernel_words.longest(loop)],
        "marking": loop_names.marking,
        "phases": lambda loop: Safe(words.phases(loop)),
        "unclaimed": lambda loop, findings: [Safe(line) for line in unclaimed_words.lines(loop, findings)],
        "link": _link,
        "limit": kernel_words.limit,
        "shape": kernel_words.shape,
        "launch": lambda kernel, all_of: Safe(kernel_words.launch(kernel, all_of)),
        "top_cause": lambda kernel: Safe(kernel_words.top_cause(kernel)),
        "worth": lambda cause: Safe(kernel_words.worth(cause)),
        "explained": lambda kernel, faulty: [
            Safe(line) for line in kernel_words.explained(kernel, kernel.name in faulty)
        ],
        "part": lambda percent: "" if percent is None else pct(percent / 100),
    }
    return env


def _finalize(value: Any) -> Any:
    return escape.plain(value) if isinstance(value, str) and not isinstance(value, Safe) else value


def _listed(items: Iterable[str], limit: int = 1000, joint: str = ", ") -> Safe:
    """Items joined; those over the limit counted."""
    texts = [item if isinstance(item, Safe) else escape.plain(item) for item in items]
    more = f"{joint}and {len(texts) - limit} more" if len(texts) > limit else ""
    return Safe(joint.join(texts[:limit]) + more)


def _link(url: str) -> Safe:
    plain = url.startswith(("https://", "http://")) and url.isascii() and url.isprintable()
    return Safe(f"<{url}>" if plain and not set(url) & set(" <>`") else escape.code(url))


def _facts(report: Report) -> list[Safe]:
    """Return the lines that say what was read, on which devices it ran, and how much of it counts."""
    run = report.run
    facts = []
    for item in report.inputs[:INPUTS]:
        made = escape.plain(" ".join(filter(None, (item.producer, item.producer_version))))
        name = escape.code(first_words.file_name(item.file)) if len(report.inputs) > 1 or report.job else ""
        facts.append(f"{name} ({made})" if name and made else name or made)
    if len(report.inputs) > INPUTS:
        facts.append(words.plural(len(report.inputs) - INPUTS, "more file"))
    facts += map(escape.plain, first_words.devices(run))
    if run.span_ms and not run.selection:  # of which the line above says how long it is
        aside = f", {words.duration(run.cold_start_ms)} of it {_until(run)}" if run.cold_start_ms and run.loops else ""
        facts.append(f"{words.duration(run.span_ms)} recorded{aside}")
    if len(run.loops) > 1:
        facts.append(words.plural(len(run.loops), "loop"))
    return [Safe(fact) for fact in (*facts, f"gpudiag {escape.plain(report.tool.version)}") if fact]


def _until(run: Run) -> str:
    """Name what the time that is left out came before: of work outside the loops nothing more is known."""
    return "before the first GPU operation" if run.mode == "run" else "before the first iteration that counts"


def _summary(
    findings: Sequence[Finding],
    loops: Mapping[int, Loop],
    frameworks: Sequence[str],
    folder: str,
    guessed: bool,
) -> list[dict[str, Any]]:
    """Findings with what their template needs; a rule's or remedy's text is printed once, then referred to.

    guessed: the recording does not tell the framework.
    """
    explained: dict[str, int] = {}
    fixed: dict[tuple[str, str], int] = {}
    summary = []
    for finding in findings:
        remedies = for_frameworks(finding.remedies, frameworks)
        summary.append(
            {
                "finding": finding,
                "headline": Safe(gain_words.headline(finding, loops)),
                "gain": Safe(gain_words.gain(finding, loops)),
                "places": [
                    Safe(place_words.place(p, folder, words.loop_of(finding, loops))) for p in finding.where[:PLACES]
                ],
                "more_places": Safe(words.elsewhere(finding, PLACES)),
                "phase": Safe(words.phase(finding, loops)),
                "evidence": [Safe(fact) for fact in evidence_words.news(finding)],
                "several": _count(finding.evidence.get("places")) > 1,
                "remedies": [
                    {
                        "remedy": r,
                        "framework": _shown_for(r.framework, guessed),
                        "seen": fixed.get((r.id, r.framework)),
                        "worth": Safe(gain_words.remedy_gain(r)),
                    }
                    for r in remedies[:FIXES]
                ],
                "other_remedies": [r.title for r in remedies[FIXES:]],
                "explained": explained.get(finding.code),
            }
        )
        explained.setdefault(finding.code, finding.rank)
        for r in remedies[:FIXES]:
            fixed.setdefault((r.id, r.framework), finding.rank)
    return summary


def _shown_for(framework: str, guessed: bool) -> str:
    name = words.FRAMEWORKS[framework]
    return f"shown for {name}" if guessed and name else name


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _by_code(items: Iterable[_Coded]) -> list[list[_Coded]]:
    """Same cause, one entry: a rule that speaks of forty loops must not fill forty lines."""
    groups: dict[str, list[_Coded]] = {}
    for item in items:
        groups.setdefault(item.code, []).append(item)
    return list(groups.values())


def for_frameworks(remedies: Sequence[Remedy], frameworks: Sequence[str]) -> Sequence[Remedy]:
    fitting = [r for r in remedies if r.framework in ("any", "python") or r.framework in frameworks]
    return fitting if any(r.framework != "any" for r in fitting) or not remedies else fitting or remedies


def _brief(finding: Finding, loops: Mapping[int, Loop], folder: str) -> dict[str, Any]:
    return {
        "finding": finding,
        "headline": Safe(gain_words.headline(finding, loops)),
        "place": Safe(place_words.first(finding, folder, words.loop_of(finding, loops))) if finding.where else None,
    }


def _grouped(items: Iterable[Unevaluated]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str], list[Unevaluated]] = {}
    for item in items:
        hint = f"`{item.hint}`" if _COMMAND.match(item.hint) and "`" not in item.hint else item.hint
        groups.setdefault((item.reason, hint), []).append(item)
    return [{"reason": reason, "hint": hint, "rules": rules} for (reason, hint), rules in groups.items()]
