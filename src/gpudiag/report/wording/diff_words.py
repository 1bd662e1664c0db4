"""Figures of a comparison in words: differences with their sign, times with their doubt, places, facts."""

from __future__ import annotations

from pathlib import PurePath

from gpudiag.model import FindingChange, LoopChange, Place, ProfileChange, Ratio, Side, Times
from gpudiag.report.wording import kernel_words, words
from gpudiag.text import escape
from gpudiag.text.format import pct

MINUS = "−"
TIMES = 2.0  # a change by this factor reads better as one than in percent
NOTHING_MS = 5e-7
NOTHING = 0.0005  # of a time: would be printed as 0.0 %
SAME = 0.01  # two times of one iteration that differ by less are one
ABOUT = ("worse", "better", "now_visible", "no_longer_visible")
LIMITS = {**kernel_words.UNITS, "latency": "none: latency", "empty": "none: an empty GPU"}


def files(side: Side) -> str:
    """`base.json`, or `base.json and 2 more`."""
    if not side.files:
        return "nothing"
    more = f" and {len(side.files) - 1} more" if len(side.files) > 1 else ""
    return f"{PurePath(side.files[0]).name or side.files[0]}{more}"


def signed(ms: float) -> str:
    """A difference of times: `+1.2 ms`, `−340 µs`, `±0`."""
    if abs(ms) < NOTHING_MS:
        return "±0"
    return f"{MINUS if ms < 0 else '+'}{words.duration(abs(ms))}"


def by(ratio: float) -> str:
    """A new time over the old one: `−12 %`, `+3.0 %`, `÷ 2.1`, `× 3.4`."""
    if 1 / TIMES < ratio < TIMES:
        return _percent(ratio)
    return f"× {_two(ratio)}" if ratio > 1 else f"÷ {_two(1 / ratio)}"


def interval(ratio: Ratio) -> str:
    """Both ends in one form: `−66 % to +26 %`, `÷ 3.3 to ÷ 1.4`."""
    ends = ratio.low, ratio.high
    if ratio.value <= 1 / TIMES and ratio.high < 1:
        return f"÷ {_two(1 / ends[0])} to ÷ {_two(1 / ends[1])}"
    if ratio.value >= TIMES and ratio.low > 1:
        return f"× {_two(ends[0])} to × {_two(ends[1])}"
    return f"{_percent(ends[0])} to {_percent(ends[1])}"


def _percent(ratio: float) -> str:
    share = abs(ratio - 1)
    return "±0 %" if share < NOTHING else f"{MINUS if ratio < 1 else '+'}{pct(share)}"


def _two(value: float) -> str:
    return f"{value:.1f}" if value < 9.95 else f"{float(f'{value:.2g}'):,.0f}"


def times(change: LoopChange) -> list[dict[str, str]]:
    """Rows above the budget: the iteration as recorded, and without the profiler; and equal work, where an iteration of
    the other side is another amount of it.
    """
    base, head = change.base, change.head
    before, now = _mean(base), _mean(head)
    first = "**an iteration**, as recorded", words.duration(before), words.duration(now), by(now / before)
    equal = change.ratio_of == "equal work" and change.work
    last = "" if equal else interval(change.ratio)
    rows = [first, ("**an iteration**, without the profiler", _without(base), _without(head), last)]
    if equal:
        work = "**as much work as an iteration before**, without the profiler"
        rows.append((work, _without(base), _without(head, equal), interval(change.ratio)))
    return [dict(zip(("what", "before", "now", "change"), row, strict=True)) for row in rows]


def _mean(side: Times) -> float:
    return sum(side.recorded_ms) / len(side.recorded_ms)


def _without(side: Times, part: float = 1.0) -> str:
    """The time of an iteration, or of one part in so many of it."""
    if side.unprofiled_ms:
        return f"{words.duration(side.ms / part)} (given)"
    return f"{words.duration(side.least_ms / part)} to {words.duration(side.most_ms / part)}"


def time_parts(change: LoopChange) -> list[dict[str, str]]:
    """Rows below the iteration: the time tree, or where a report lacks it the budget."""
    parts = [(words.LEAVES.get(leaf.leaf), leaf.leaf, leaf.base_ms, leaf.head_ms) for leaf in change.tree]
    if not parts:
        parts = [(words.BUDGET.get(row.category), row.category, row.base_ms, row.head_ms) for row in change.budget]
    return [
        {
            "what": said or escape.plain(name.replace("_", " ")),
            "before": _part(before),
            "now": _part(now),
            "change": signed(now - before),
        }
        for said, name, before, now in parts
    ]


def moved(change: LoopChange) -> str:
    """Name the parts of the time tree that changed for sure, largest change first; nothing under noise.

    `Changed beyond noise, in an iteration as recorded: idle (waiting for input), 5.10 ms → 0; computing, 3 ms → 2 ms.`
    """
    if not change.tree or change.state == "noise":
        return ""
    equal = change.work if change.ratio_of == "equal work" and change.work else 1.0
    said = [
        f"{words.within(words.leaf_label(leaf.leaf))}, {_part(leaf.base_ms)} → {_part(leaf.head_ms / equal)}"
        for leaf in change.tree
        if leaf.changed
    ]
    if not said:
        return "No part of an iteration changed beyond noise."
    of = "an iteration" if equal == 1 else "as much work as an iteration before"
    return f"Changed beyond noise, in {of} as recorded: {'; '.join(said)}."


def _part(ms: float) -> str:
    return words.duration(ms) if ms else "0"


def doubt(change: LoopChange) -> str:
    """Explain why the interval is wide, where it is and the verdict does not say so."""
    sides = [name for name, side in (("before", change.base), ("now", change.head)) if side.host_bound]
    if not sides or change.state == "cannot_tell":
        return ""
    when = sides[0] if len(sides) == 1 else "on both sides"
    return (
        f"The host sets the pace {when}, and the profiler slows the host by an unknown amount. With times measured"
        " without the profiler (`--iteration-time` when a report is saved) the interval gets narrow."
    )


def worth(saves_ms: float | None, share: float | None, of_ms: float | None, side: Times | None) -> str:
    """`4.35 ms (25 %)`; `4.35 ms (25 % of 17.3 ms, as recorded)` where the iteration is known by another time."""
    if saves_ms is None or share is None:
        return ""
    other = side and of_ms and side.unprofiled_ms and abs(of_ms - side.ms) > SAME * side.ms
    whole = f" of {words.duration(of_ms)}, as recorded" if other and of_ms else ""
    return f"{words.duration(saves_ms)} ({pct(share)}{whole})"


def about(finding: FindingChange) -> str:
    """`; the time it is about: 3.50 ms before, 3.73 ms now`, where the state does not say it."""
    before, now = finding.base_about_ms, finding.head_about_ms
    if finding.state not in ABOUT or before is None or now is None:
        return ""
    times = [words.duration(ms) if ms else "0" for ms in (before, now)]
    return f"; the time it is about: {times[0]} before, {times[1]} now"


def place(where: Place | None) -> str:
    """`train.py:42` in `step`, or the kernel, or the NVTX range."""
    if where is None:
        return ""
    if where.file:
        line = f":{where.line}" if where.line else ""
        return escape.code(f"{PurePath(where.file).name}{line}")
    if where.kernel:
        return f"kernel {escape.code(where.kernel)}"
    return f"in {escape.code(where.nvtx)}" if where.nvtx else ""


def size(change: ProfileChange) -> str:
    """`, 768 blocks of 256 threads`; both sizes where it changed."""
    said = []
    for facts in (change.base_facts, change.head_facts):
        grid, block = facts.get("grid"), facts.get("block")
        if isinstance(grid, (int, float)) and isinstance(block, (int, float)):
            said.append(f"{words.plural(int(grid), 'block')} of {words.plural(int(block), 'thread')}")
    return f", {' → '.join(dict.fromkeys(said))}" if said else ""


def between(change: ProfileChange, fact: str) -> str:
    """A fact before and now; once where it is the same."""
    said = [_fact(fact, facts.get(fact)) for facts in (change.base_facts, change.head_facts)]
    if said[0] == said[1] or not all(said):
        return said[1] or said[0]
    return f"{said[0]} → {said[1]}"


def _fact(name: str, value: float | str | None) -> str:
    if value is None:
        return ""
    if name == "limit":
        return LIMITS.get(str(value)) or escape.plain(str(value))
    return pct(value / 100) if isinstance(value, (int, float)) else escape.plain(str(value))
