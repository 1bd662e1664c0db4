"""Figures and plain words: shares, times, the budget's rows, what a gain is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gpudiag.model import Finding, Loop, Phase, Place, vocabulary
from gpudiag.model.finding import MOST_PLACES
from gpudiag.text.escape import code, plain
from gpudiag.text.format import base_name, dur, pct

FRAMEWORKS: dict[str, str] = {key: words.name if key != "any" else "" for key, words in vocabulary.FRAMEWORKS.items()}
BUDGET = {key: f"**{words.label}**: {words.meaning}" for key, words in vocabulary.BUDGET.items()}
LEAVES = {key: f"**{words.label}**: {words.meaning}" for key, words in vocabulary.LEAVES.items()}
UNUSED = ("idle", "this loop sends it no work")
SMALLEST = 0.0005  # of an iteration: less would be printed as 0.0 %
WHOLE = "the recorded work"  # of a loop that stands for all, when nothing was found that repeats
PHASES = 6  # of a loop, named in its line
BRIEF = 40  # characters of a kernel name inside a sentence
LITTLE = 0.01  # of an iteration: nothing that anybody would notice


def duration(ms: float) -> str:
    """Milliseconds in the unit that reads best."""
    return dur(ms * 1e6)


def plural(count: int, noun: str) -> str:
    """`1 loop`, `3 loops`, `2 more processes`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}{'es' if noun.endswith('ss') else 's'}"


def ranges(codes: Iterable[str]) -> list[str]:
    """Rule codes in order, neighbours drawn together: `A01–A04`, `C02`."""
    found: list[list[str]] = []
    for rule in sorted(set(codes)):
        last = found[-1][-1] if found else ""
        near = last[:1] == rule[:1] and last[1:].isdigit() and rule[1:].isdigit()
        if near and int(rule[1:]) == int(last[1:]) + 1:
            found[-1].append(rule)
        else:
            found.append([rule])
    return [item for run in found for item in ([f"{run[0]}–{run[-1]}"] if len(run) > 2 else run)]


class BudgetRow(NamedTuple):
    time: str
    share: str
    label: str
    words: str
    key: str
    part: float


def budget_rows(loop: Loop) -> list[BudgetRow]:
    """The time tree, or of a report from before it the budget, in its order; rows too small to print are left out."""
    parts = {leaf: found.share for leaf, found in loop.tree.items()} or loop.budget
    order = vocabulary.LEAVES if loop.tree else vocabulary.BUDGET
    known = {key: parts[key] for key in order if key in parts}
    said = {key: (one.label, one.meaning) for key, one in order.items()}
    rows = [(key, share) for key, share in (known | parts).items() if share >= SMALLEST]
    unused = len(rows) == 1 and rows[0][0] in ("host_work", "idle_other")
    return [_budget_row(loop, key, share, UNUSED if unused else said.get(key)) for key, share in rows]


def _budget_row(loop: Loop, key: str, share: float, said: tuple[str, str] | None) -> BudgetRow:
    label, meaning = said or (plain(key.replace("_", " ")), "")
    return BudgetRow(
        time=duration(loop.iteration_ms * share),
        share=pct(share),
        label=label,
        words=f"**{label}**: {meaning}" if meaning else label,
        key=vocabulary.LEAVES[key].part if key in vocabulary.LEAVES else key,
        part=share,
    )


def unlike_mean(loop: Loop) -> str:
    """` on average, but half take at most 29.3 ms and 1 of 9 takes 187 ms`; empty where the mean stands for most."""
    if loop.median_ms is None:
        return ""
    bound = "at most" if loop.median_ms < loop.iteration_ms else "at least"
    text = f" on average, but half take {bound} {duration(loop.median_ms)}"
    if (far := loop.far) is None:
        return text
    least, most = duration(far.least_ms), duration(far.most_ms)
    each = least if least == most else f"{least} to {most}"
    return f"{text} and {far.count:,} of {far.of:,} {'takes' if far.count == 1 else 'take'} {each}"


def leaf_label(leaf: str) -> str:
    """The name of a leaf of the time tree as plain text, of one that this version does not know its key."""
    return vocabulary.LEAVES[leaf].label if leaf in vocabulary.LEAVES else leaf.replace("_", " ")


def within(label: str) -> str:
    """A label inside a sentence with commas of its own: `idle (waiting for input)`."""
    kind, _, detail = label.partition(", ")
    return f"{kind} ({detail})" if detail else kind


def phases(loop: Loop) -> str:
    """`update (train.py:80) 55 %, rollout (train.py:79) 40 %, elsewhere 5.0 %`: the parts of an iteration and the rest.

    Empty where none is known.
    """
    named = loop.phases[:PHASES]
    texts = [f"{_phase(phase)} {pct(phase.share)}" for phase in named]
    if named and (rest := 1 - sum(phase.share for phase in named)) >= LITTLE:
        texts.append(f"elsewhere {pct(rest)}")
    return ", ".join(texts)


def phase(finding: Finding, loops: Mapping[int, Loop]) -> str:
    """The phase of the iteration that a finding is about, with its length; empty where it is about several."""
    loop, place = loop_of(finding, loops), finding.phase
    known = loop.phases if loop and place else ()
    one = next((one for one in known if place and _at(one.place) == _at(place)), None)
    return f"{_phase(one)}, {pct(one.share)} of an iteration" if one else ""


def _at(place: Place) -> tuple[str | None, str | None, int | str | None]:
    """Return what tells a place of a phase from others."""
    return place.nvtx, place.file, place.function if place.line is None else place.line


def _phase(one: Phase) -> str:
    if not one.place.file:
        return code(one.name)
    at, function = code(_spot(one.place.file, one.place.line)), named_function(one.place)
    return f"{code(function)} ({at})" if function else at


def named_function(place: Place) -> str:
    """Return a place's function; nothing for one that its author gave no name, such as `<genexpr>` beside its line."""
    function = place.function or ""
    return "" if function.startswith("<") and place.line else function


def _spot(file: str, line: int | None) -> str:
    return base_name(file) if line is None else f"{base_name(file)}:{line}"


def elsewhere(finding: Finding, listed: int) -> str:
    """`2 more places: 8.0 % of this cost`, for what the first places leave; empty where they are all of it.

    Cost that lies in lines with too few samples to be named belongs to no place.
    """
    count = places(finding)
    more = plural(count - listed, "more place") if count > listed else ""
    rest = left_over(finding, listed)
    if rest < LITTLE:
        return more
    return f"{more or 'elsewhere'}: {pct(rest)} of this cost"


def places(finding: Finding, known: int | None = None) -> int:
    """Count the places of a finding. known: how many of those in the report differ, if not all.

    A rule's own count of places says more only where the report does not hold all of them.
    """
    count, counted = len(finding.where) if known is None else known, finding.evidence.get("places")
    return max(count, counted) if len(finding.where) >= MOST_PLACES and isinstance(counted, int) else count


def left_over(finding: Finding, listed: int) -> float:
    """The part of a finding's cost that its first places leave, 0 to 1; 0 where that is not known."""
    shares = [place.share for place in finding.where[:listed] if place.share is not None]
    return 1 - sum(shares) if shares else 0.0


def loop_of(finding: Finding, loops: Mapping[int, Loop]) -> Loop | None:
    """The loop that the gain is a part of, if it is of one."""
    gain = finding.gain
    return loops.get(gain.loop) if gain.basis == "loop" and gain.loop is not None else None
