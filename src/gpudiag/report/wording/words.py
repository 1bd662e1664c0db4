"""Figures and plain words: shares, times, the budget's rows, what a gain is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gpudiag.model import Finding, Gain, Loop, Phase, Place, Remedy, vocabulary
from gpudiag.model.finding import MOST_PLACES
from gpudiag.text.escape import code, plain, prose
from gpudiag.text.format import base_name, dur, pct

FRAMEWORKS: dict[str, str] = {key: words.name if key != "any" else "" for key, words in vocabulary.FRAMEWORKS.items()}
BUDGET = {key: f"**{words.label}**: {words.meaning}" for key, words in vocabulary.BUDGET.items()}
LEAVES = {key: f"**{words.label}**: {words.meaning}" for key, words in vocabulary.LEAVES.items()}
UNUSED = ("idle", "this loop sends it no work")
SMALLEST = 0.0005  # of an iteration: less would be printed as 0.0 %


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


def phases(loop: Loop) -> str:
    """`update (train.py:80) 55 %, rollout (train.py:79) 45 %`: the parts of an iteration; empty where none is known."""
    return ", ".join(f"{_phase(phase)} {pct(phase.share)}" for phase in loop.phases[:PHASES])


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
    at, function = code(_spot(one.place.file, one.place.line)), one.place.function
    return at if function is None or function.startswith("<") else f"{code(function)} ({at})"


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


WHOLE = "the recorded work"  # of a loop that stands for all, when nothing was found that repeats
PHASES = 6  # of a loop, named in its line
BRIEF = 40  # characters of a kernel name inside a sentence
KINDS = {"expected": "expected", "upper_bound": "at most", "lower_bound": "at least"}
NOTHING_LEFT = 1e-6  # of the time before: less than a clock can tell
WORTH_SAYING = 1.1  # a speedup below this reads as "1.0 times"
LITTLE = 0.01  # of an iteration: nothing that anybody would notice
LOST = {"exposed_copy": "copying", "exposed_communication": "exchange"}
SIZES = {"expected": "about", "upper_bound": "up to", "lower_bound": "at least"}


def loop_of(finding: Finding, loops: Mapping[int, Loop]) -> Loop | None:
    """The loop that the gain is a part of, if it is of one."""
    gain = finding.gain
    return loops.get(gain.loop) if gain.basis == "loop" and gain.loop is not None else None


def basis(finding: Finding, loops: Mapping[int, Loop]) -> str:
    """Return what the gain is a part of."""
    loop = loop_of(finding, loops)
    if loop:
        return WHOLE if loop.source == "unknown" else code(loop.name)
    if finding.gain.basis == "kernel":
        kernel = next((place.kernel for place in finding.where if place.kernel), None)
        return f"one launch of {code(kernel, BRIEF)}" if kernel else "one launch"
    return {"run": "the run", "window": "the steady time"}.get(finding.gain.basis, "one iteration")


def headline(
    finding: Finding, loops: Mapping[int, Loop], before: str = "the fixes above", *, ranged: bool = False
) -> str:
    """`up to 79 % of decode_token`. before: what to call the findings of a better rank; ranged: with the interval."""
    if finding.gain.kind == "test_needed":
        return "only an experiment can tell" if ranged else "gain to be tested"
    of, more = basis(finding, loops), _more(finding)
    alone = f"alone {_word(finding.gain)} {pct(finding.gain.share)} of {of}"
    if finding.caused_by is not None:
        return f"the same time as finding {finding.caused_by}, its cause ({alone})"
    if finding.gain.share < SMALLEST and (more or 0.0) < LITTLE:
        return f"fixing it would not shorten {of}"
    if more is not None and more < LITTLE:
        return f"no extra gain after {before} ({alone})"
    if more is not None and finding.gain.share < LITTLE:
        return f"nothing alone, {pct(more)} of what {before} leave"
    return f"{size(finding.gain, ranged=ranged)} of {of}{_beside(finding, loops) if ranged else ''}"


def _beside(finding: Finding, loops: Mapping[int, Loop]) -> str:
    """`, more than the idle time itself (19 %): …`: why it saves more than the loop's line shows of it."""
    loop, gain = loop_of(finding, loops), finding.gain
    if loop is None:
        return ""
    if gain.before_ms and gain.before_ms > (1 + SMALLEST) * (loop.iteration_ms_unprofiled or loop.iteration_ms):
        return " with the pauses between its iterations"
    leaf = loop.tree.get(finding.leaf or "")
    if leaf is None or finding.also is None:
        return ""
    kind = LOST.get(finding.leaf or "", "idle time")
    return f", more than the {kind} itself ({pct(leaf.share)}): {vocabulary.ALSO[finding.also]}"


def size(gain: Gain, *, ranged: bool = False) -> str:
    """`about 57 %`, ranged `about 57 % (50 % to 61 %)`; where it may be nothing: `0 % to 41 %, perhaps 22 %`."""
    said = f"{_word(gain)} {pct(gain.share)}"
    if gain.kind != "expected" or gain.interval is None or not (ranged or gain.uncertain):
        return said
    least, most = (pct(end) for end in gain.interval)
    if least == most:
        return said
    return f"{least} to {most}, {said}" if gain.uncertain else f"{said} ({least} to {most})"


def _word(gain: Gain) -> str:
    return "perhaps" if gain.uncertain else SIZES[gain.kind]


def _more(finding: Finding) -> float | None:
    """The part that the fix removes of what those above it leave; None for the first finding."""
    gain = finding.gain
    if finding.rank == 1 or gain.cumulative_after_ms is None or not gain.cumulative_before_ms:
        return None
    return 1 - gain.cumulative_after_ms / gain.cumulative_before_ms


def gain(finding: Finding, loops: Mapping[int, Loop]) -> str:
    """Return the gain in words: kind, before and after, interval, part of the whole, with the fixes above."""
    gain = finding.gain
    if gain.kind == "test_needed":
        return f"**Gain:** only an experiment can tell. {prose(gain.test or '')}".strip()
    loop = loop_of(finding, loops)
    kind = "uncertain" if gain.uncertain and gain.interval else KINDS[gain.kind]
    said = f"**Gain, {kind}:** {_from_to(finding, loops)}"
    if loop and loop.share_of_span < 0.95:
        said += f", which saves {pct(gain.share * loop.share_of_span)} of all steady time"
    if finding.rank > 1 and gain.cumulative_after_ms is not None and gain.cumulative_after_ms != gain.after_ms:
        said += f". With the fixes above as well: {duration(gain.cumulative_after_ms)}"
    return f"{said}."


def remedy_gain(remedy: Remedy) -> str:
    """Return `8.26 ms to 4.9 ms` for a remedy with a price of its own, else nothing."""
    gain = remedy.gain
    return f"by this one {duration(gain.before_ms)} to {duration(gain.after_ms)}" if gain else ""


def _from_to(finding: Finding, loops: Mapping[int, Loop]) -> str:
    gain, what = finding.gain, basis(finding, loops)
    if gain.before_ms is None or gain.after_ms is None:
        return f"{pct(gain.share)} of {what}"
    subject = "one launch" if gain.basis == "kernel" else what
    if loop_of(finding, loops) and what != WHOLE:
        subject = f"an iteration of {what}"
    if gain.after_ms < gain.before_ms * NOTHING_LEFT:
        return f"all of {subject} ({duration(gain.before_ms)})"
    before, after = duration(gain.before_ms), duration(gain.after_ms)
    if before == after:  # a change that these figures would not show
        saved = gain.before_ms - gain.after_ms
        return f"{subject}, {before} now, takes {duration(saved) if saved > 0 else 'nothing'} less"
    detail = []
    if gain.kind == "expected" and gain.low_ms is not None and gain.high_ms is not None and gain.low_ms < gain.high_ms:
        low, high = duration(gain.low_ms), duration(gain.high_ms)
        if gain.uncertain:
            after = f"between {low} and {high}, perhaps {after}"
        else:
            detail.append(f"{low} to {high}")
    if gain.speedup and gain.speedup >= WORTH_SAYING:
        detail.append(f"{_two(gain.speedup)} times as fast")
    summary = f" ({'; '.join(detail)})" if detail else ""
    return f"{subject} goes from {before} to {after}{summary}"


def _two(value: float) -> str:
    """Two significant digits: estimates deserve no more."""
    return f"{value:.1f}" if value < 9.95 else f"{float(f'{value:.2g}'):,.0f}"
