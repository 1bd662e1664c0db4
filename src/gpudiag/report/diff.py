"""The answer of `gpudiag diff`: Markdown for people, JSON for bots, a few lines for a log."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from gpudiag.model import Diff, FindingChange, KernelChange, LoopChange, ProfileChange, Ratio, Side
from gpudiag.report import json_format
from gpudiag.report.markdown import Safe, environment
from gpudiag.report.wording import diff_words, words
from gpudiag.report.wording.diff_words import signed
from gpudiag.text import escape, kernel_names
from gpudiag.text.format import code, num, pct

LOOPS = 3
KERNELS = 10
PROFILES = 10
LISTED = 8
RANKS = 12
HEADINGS = {
    "new": "New",
    "worse": "Worth more now",
    "now_visible": "Now visible, though the time it is about was there before",
    "gone": "Gone",
    "better": "Worth less now",
    "no_longer_visible": "No longer visible, though the time it is about is still there",
    "not_evaluated": "Not looked for this time",
}
RANK_STATES = {"new": "slow now", "gone": "no longer slow", "still": "slow, as before", "moved": ""}
PARTS = ("head", "job", "findings", "kernels")


def markdown(diff: Diff) -> str:
    """The page, ending in a newline."""
    return "\n\n".join(filter(None, parts(diff).values())) + "\n"


def parts(
    diff: Diff, title: str = "# gpudiag diff:", level: str = "##", elsewhere: Container[str] = ()
) -> dict[str, str]:
    """Return the page in PARTS, any of them empty. elsewhere: fingerprints of head's findings that stand there."""
    shown = sorted(diff.loops, key=lambda loop: -loop.share_of_span)[:LOOPS]
    left = [f for f in diff.findings if f.state != "new" or f.head_fingerprint not in elsewhere]
    groups = [(state, [f for f in left if f.state == state]) for state in HEADINGS]
    same = [finding for finding in diff.findings if finding.state == "unchanged"]
    profiled = kernel_names.distinguished(n for c in diff.profiles[:PROFILES] for n in (c.name, c.head_name) if n)
    view: dict[str, Any] = {
        "diff": diff,
        "title": Safe(title),
        "level": Safe(level),
        "base_name": diff_words.files(diff.base),
        "head_name": diff_words.files(diff.head),
        "facts": _facts(diff),
        "loops": [_loop(loop) for loop in shown],
        "profiles": [_profile(change, profiled) for change in diff.profiles[:PROFILES]],
        "more_profiles": len(diff.profiles[PROFILES:]),
        "findings": [{"heading": HEADINGS[state], "lines": _listed(found, diff)} for state, found in groups if found],
        "quiet": _quiet(same, diff),
        "job": diff.job,
        "rank_states": RANK_STATES,
        "ranks_listed": RANKS,
        "any": bool(diff.findings),
    }
    return {name: _closed_up(environment().get_template(f"diff_{name}.md.j2").render(view)) for name in PARTS}


def as_json(diff: Diff) -> str:
    """Indented ASCII JSON, ending in a newline."""
    return json.dumps(json_format.tidy(diff.model_dump()), indent=2, allow_nan=False) + "\n"


def text(diff: Diff) -> str:
    """A few lines for a terminal or a log, without Markdown, ending in a newline."""
    _, _, said = diff.text.partition(": ")  # its first words say the state as well
    lines = [
        f"{diff.state.replace('_', ' ')}: {said or diff.text}",
        *diff.reasons[1:],
        *(f"note: {n}" for n in diff.notes),
    ]
    shown = sorted(diff.loops, key=lambda loop: -loop.share_of_span)[:LOOPS]
    lines += [f"{code(loop.name)}: {said}" for loop in shown if (said := diff_words.moved(loop))]
    if diff.job:
        lines += [f"{one.label}: {RANK_STATES[one.state]}" for one in diff.job.ranks[:LISTED] if RANK_STATES[one.state]]
    for state, heading in HEADINGS.items():
        found = [finding for finding in diff.findings if finding.state == state]
        lines += [
            f"{heading.lower()}: {f.code} {f.title}{_worth(f, diff)}{diff_words.about(f)}" for f in found[:LISTED]
        ]
    return "".join(f"{escape.one_line(line.replace('`', chr(39)))}\n" for line in lines)


def _closed_up(text: str) -> str:
    """Sections that are left out leave no gaps."""
    lines: list[str] = []
    for line in text.strip().split("\n"):
        if line.strip() or (lines and lines[-1]):
            lines.append(line.rstrip())
    return "\n".join(lines).strip()


def _facts(diff: Diff) -> list[str]:
    """Return the lines that name what was compared."""
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
    iterations = f"{change.base.iterations:,} iterations before, {change.head.iterations:,} now"
    span = f", {pct(change.share_of_span)} of all steady time" if change.share_of_span < 0.995 else ""
    names = kernel_names.distinguished(n for k in change.kernels[:KERNELS] for n in (k.name, k.renamed) if n)
    rows = diff_words.times(change) + diff_words.time_parts(change)
    return {
        "name": Safe(name),
        "about": f": {iterations}{span}.",
        "unit": "GPU time of an iteration",
        "rows": [{key: Safe(value) for key, value in row.items()} for row in rows],
        "moved": diff_words.moved(change),
        "says": diff_words.doubt(change),
        "kernels": [_kernel(kernel, names) for kernel in change.kernels[:KERNELS]],
        "explains": any(kernel.by_count_ms and kernel.by_duration_ms for kernel in change.kernels[:KERNELS]),
        "more": len(change.kernels[KERNELS:]),
        "same": change.same_kernels,
    }


def _kernel(change: KernelChange, names: Mapping[str, str]) -> dict[str, Safe]:
    name = _named(change.name, change.renamed, names)
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


def _named(before: str, now: str | None, names: Mapping[str, str]) -> str:
    """names: what the table calls them."""
    said = [escape.code(names.get(name, name), kernel_names.LONGEST) for name in dict.fromkeys((before, now or before))]
    return ", now ".join(said)


def _profile(change: ProfileChange, names: Mapping[str, str]) -> dict[str, Safe]:
    name = _named(change.name, change.head_name, names) + diff_words.size(change)
    mark = {"new": "**new** ", "gone": "**gone** "}.get(change.state, "")
    row = {
        "name": mark + name,
        "before": words.duration(change.base_ms) if change.base_ms else "–",
        "now": words.duration(change.head_ms) if change.head_ms else "–",
        "change": _interval(change.ratio),
        "limit": diff_words.between(change, "limit"),
        "occupancy": diff_words.between(change, "achieved_occupancy_pct"),
    }
    return {key: Safe(value) for key, value in row.items()}


def _interval(ratio: Ratio | None) -> str:
    return diff_words.interval(ratio) if ratio else ""


def _listed(findings: Sequence[FindingChange], diff: Diff) -> list[Safe]:
    lines = [Safe(_line(finding, diff)) for finding in findings[:LISTED]]
    more = len(findings[LISTED:])
    return lines + ([Safe(f"{more} more")] if more else [])


def _line(finding: FindingChange, diff: Diff) -> str:
    place = diff_words.place(finding.where)
    at = f", {place}" if place else ""
    why = f" ({escape.prose(finding.reason)})" if finding.reason else ""
    return f"{finding.code} {escape.prose(finding.title)}{_worth(finding, diff)}{at}{diff_words.about(finding)}{why}"


def _worth(finding: FindingChange, diff: Diff) -> str:
    """Return the gain of its fix, before and now."""
    named = (loop.head_name if finding.state == "new" else loop.name for loop in diff.loops)
    loop = next((loop for loop, name in zip(diff.loops, named, strict=True) if finding.loop == name), None)
    before = diff_words.worth(
        finding.base_saves_ms, finding.base_share, finding.base_of_ms, loop.base if loop else None
    )
    now = diff_words.worth(finding.head_saves_ms, finding.head_share, finding.head_of_ms, loop.head if loop else None)
    said = ""
    if before and now:
        said = f": its fix was worth {before}, now {now}"
    elif now:
        said = f": its fix is worth {now} of an iteration" if finding.loop else f": its fix is worth {now}"
    elif before:
        said = f": its fix was worth {before}"
    return said


def _quiet(same: Iterable[FindingChange], diff: Diff) -> Safe | str:
    """Unchanged findings in a line: they are no news."""
    found = list(same)
    if not found:
        return ""
    named = ", ".join(f"{escape.prose(f.title)} ({f.code})" for f in found[:3])
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    if diff.state == "noise":
        return Safe(f"On both sides: {named}{more}. What their fixes are worth differs by no more than noise.")
    return Safe(f"Unchanged: {named}{more}.")
