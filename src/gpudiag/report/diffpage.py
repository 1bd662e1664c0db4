"""The answer of `gpudiag diff`: Markdown for people, JSON for bots, a few lines for a log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from gpudiag.model import BudgetChange, Diff, FindingChange, KernelChange, LoopChange, ProfileChange, Ratio, Side
from gpudiag.report import diffwords, escape, jsonformat, words
from gpudiag.report.diffwords import signed
from gpudiag.report.markdown import Safe, environment
from gpudiag.templating import num, pct

LOOPS = 3
KERNELS = 10
PROFILES = 10
LISTED = 8
HEADINGS = {
    "new": "New",
    "worse": "Worth more now",
    "gone": "Gone",
    "better": "Worth less now",
    "not_evaluated": "Not looked for this time",
}


def markdown(diff: Diff) -> str:
    """The page, ending in a newline."""
    shown = sorted(diff.loops, key=lambda loop: -loop.share_of_span)[:LOOPS]
    groups = [(state, [f for f in diff.findings if f.state == state]) for state in HEADINGS]
    same = [finding for finding in diff.findings if finding.state == "unchanged"]
    view: dict[str, Any] = {
        "diff": diff,
        "base_name": diffwords.files(diff.base),
        "head_name": diffwords.files(diff.head),
        "facts": _facts(diff),
        "loops": [_loop(loop) for loop in shown],
        "profiles": [_profile(change) for change in diff.profiles[:PROFILES]],
        "more_profiles": len(diff.profiles[PROFILES:]),
        "findings": [{"heading": HEADINGS[state], "lines": _listed(found)} for state, found in groups if found],
        "quiet": _quiet(same),
    }
    text = environment().get_template("diff.md.j2").render(view)
    return _closed_up(text)


def as_json(diff: Diff) -> str:
    """Indented ASCII JSON, ending in a newline."""
    return json.dumps(jsonformat.tidy(diff.model_dump()), indent=2, allow_nan=False) + "\n"


def text(diff: Diff) -> str:
    """A few lines for a terminal or a log, without Markdown, ending in a newline."""
    _, _, said = diff.text.partition(": ")  # its first words say the state as well
    lines = [
        f"{diff.state.replace('_', ' ')}: {said or diff.text}",
        *diff.reasons[1:],
        *(f"note: {n}" for n in diff.notes),
    ]
    for state, heading in HEADINGS.items():
        found = [finding for finding in diff.findings if finding.state == state]
        lines += [f"{heading.lower()}: {f.code} {f.title}{_worth(f)}" for f in found[:LISTED]]
    return "".join(f"{escape.one_line(line.replace('`', chr(39)))}\n" for line in lines)


def _closed_up(text: str) -> str:
    """Sections that are left out leave no gaps."""
    lines: list[str] = []
    for line in text.strip().split("\n"):
        if line.strip() or (lines and lines[-1]):
            lines.append(line.rstrip())
    return "\n".join(lines) + "\n"


def _facts(diff: Diff) -> list[str]:
    """What was compared with what."""
    devices = sorted({*diff.base.devices, *diff.head.devices})
    facts = [", ".join(devices)] if devices else []
    if diff.base.reports + diff.head.reports > 2:
        facts.append(f"{_recordings(diff.base)} before, {_recordings(diff.head)} now")
    elif diff.state != "incomparable":
        facts.append("one recording a side")
    return facts


def _recordings(side: Side) -> str:
    return words.plural(side.reports, "recording")


def _loop(change: LoopChange) -> dict[str, Any]:
    name = escape.code(change.name)
    if change.head_name != change.name:
        name += f" (now {escape.code(change.head_name)})"
    turns = f"{change.base.iterations:,} iterations before, {change.head.iterations:,} now"
    span = f", {pct(change.share_of_span)} of all steady time" if change.share_of_span < 0.995 else ""
    rows = diffwords.times(change) + [_category(row) for row in change.budget]
    return {
        "name": Safe(name),
        "about": f": {turns}{span}.",
        "unit": "GPU time of an iteration",
        "rows": [{key: Safe(value) for key, value in row.items()} for row in rows],
        "says": diffwords.doubt(change),
        "kernels": [_kernel(kernel) for kernel in change.kernels[:KERNELS]],
        "explains": any(kernel.by_count_ms and kernel.by_duration_ms for kernel in change.kernels[:KERNELS]),
        "more": len(change.kernels[KERNELS:]),
        "same": change.same_kernels,
    }


def _category(row: BudgetChange) -> dict[str, str]:
    what = words.BUDGET.get(row.category) or escape.plain(row.category.replace("_", " "))
    return {
        "what": what,
        "before": words.duration(row.base_ms) if row.base_ms else "0",
        "now": words.duration(row.head_ms) if row.head_ms else "0",
        "change": signed(row.head_ms - row.base_ms),
    }


def _kernel(change: KernelChange) -> dict[str, Safe]:
    name = escape.code(change.name)
    if change.renamed:
        name += f", now {escape.code(change.renamed)}"
    count = duration = ""
    if change.state != "changed":
        count = f"{num(change.base_launches)} → {num(change.head_launches)} times"
    elif change.by_count_ms is not None and change.by_duration_ms is not None:
        if change.by_count_ms:
            count = f"{num(change.base_launches)} → {num(change.head_launches)} times: {signed(change.by_count_ms)}"
        each = change.base_ms / change.base_launches, change.head_ms / change.head_launches
        duration = f"{words.duration(each[0])} → {words.duration(each[1])}: {signed(change.by_duration_ms)}"
    mark = {"new": "**new** ", "gone": "**gone** "}.get(change.state, "")
    row = {
        "name": mark + name,
        "before": words.duration(change.base_ms) if change.base_ms else "–",
        "now": words.duration(change.head_ms) if change.head_ms else "–",
        "change": signed(change.head_ms - change.base_ms),
        "count": count,
        "duration": duration,
    }
    return {key: Safe(value) for key, value in row.items()}


def _profile(change: ProfileChange) -> dict[str, Safe]:
    name = escape.code(change.name)
    if change.head_name and change.head_name != change.name:
        name += f", now {escape.code(change.head_name)}"
    name += diffwords.size(change)
    mark = {"new": "**new** ", "gone": "**gone** "}.get(change.state, "")
    row = {
        "name": mark + name,
        "before": words.duration(change.base_ms) if change.base_ms else "–",
        "now": words.duration(change.head_ms) if change.head_ms else "–",
        "change": _interval(change.ratio),
        "limit": diffwords.between(change, "limit"),
        "occupancy": diffwords.between(change, "achieved_occupancy_pct"),
    }
    return {key: Safe(value) for key, value in row.items()}


def _interval(ratio: Ratio | None) -> str:
    return diffwords.interval(ratio) if ratio else ""


def _listed(findings: Sequence[FindingChange]) -> list[Safe]:
    lines = [Safe(_line(finding)) for finding in findings[:LISTED]]
    more = len(findings[LISTED:])
    return lines + ([Safe(f"{more} more")] if more else [])


def _line(finding: FindingChange) -> str:
    place = diffwords.place(finding.where)
    at = f", {place}" if place else ""
    why = f" ({escape.prose(finding.reason)})" if finding.reason else ""
    return f"{finding.code} {escape.prose(finding.title)}{_worth(finding)}{at}{why}"


def _worth(finding: FindingChange) -> str:
    """What its fix was and is worth."""
    before, now = (
        f"{words.duration(ms)} ({pct(share)})" if ms is not None and share is not None else None
        for ms, share in ((finding.base_saves_ms, finding.base_share), (finding.head_saves_ms, finding.head_share))
    )
    if before and now:
        return f": its fix was worth {before}, now {now}"
    if now:
        return f": its fix is worth {now} of an iteration" if finding.loop else f": its fix is worth {now}"
    return f": its fix was worth {before}" if before else ""


def _quiet(same: Iterable[FindingChange]) -> Safe | str:
    """Unchanged findings in a line: they are no news."""
    found = list(same)
    if not found:
        return ""
    named = ", ".join(f"{escape.prose(f.title)} ({f.code})" for f in found[:3])
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return Safe(f"Unchanged: {named}{more}.")
