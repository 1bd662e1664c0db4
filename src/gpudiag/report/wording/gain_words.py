"""Words for what a fix is worth: short for a row, in full for a finding's section, and of all fixes together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from gpudiag.model import Finding, Gain, Loop, Remedy, vocabulary
from gpudiag.report.wording.words import BRIEF, LITTLE, SMALLEST, WHOLE, duration, leaf_label, loop_of
from gpudiag.text.escape import code, plain, prose
from gpudiag.text.format import pct

KINDS = {"expected": "expected", "upper_bound": "at most", "lower_bound": "at least"}
NOTHING_LEFT = 1e-6  # of the time before: less than a clock can tell
WORTH_SAYING = 1.1  # a speedup below this reads as "1.0 times"
PAUSES = " and the pauses after it"
SIZES = {"expected": "about", "upper_bound": "up to", "lower_bound": "at least"}


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
    of, more = _whole(finding, loops), _more(finding)
    if finding.caused_by is not None:
        return f"the same time as finding {finding.caused_by}, its cause ({_alone(finding, loops)})"
    if finding.gain.share < SMALLEST and (more or 0.0) < LITTLE:
        return f"fixing it would not shorten {of}"
    if adds_nothing(finding):
        return f"no extra gain after {before} ({_alone(finding, loops)})"
    if _only_then(finding):
        return f"only after {before}: {_word(finding.gain)} {pct(_then(finding, loops))} of {of}"
    if ranged:
        return f"{_size(finding.gain, _beside(finding, loops) or of)}{_saved(finding, loops)}"
    if finding.gain.uncertain:
        return _size(finding.gain, of)
    return f"{_word(finding.gain)} {pct(finding.gain.share)} of {of}"


def adds_nothing(finding: Finding) -> bool:
    """Return whether the fixes of the findings above it leave nothing for this one, which alone would save time."""
    more = _more(finding)
    known = finding.gain.kind != "test_needed" and finding.caused_by is None and finding.gain.share >= SMALLEST
    return known and more is not None and more < LITTLE


def _only_then(finding: Finding) -> bool:
    """Return whether it saves next to nothing alone, and something once the findings above it are fixed."""
    more = _more(finding)
    return more is not None and more >= LITTLE and finding.gain.share < LITTLE and finding.caused_by is None


def beside(findings: Sequence[Finding], loops: Mapping[int, Loop], same: Mapping[int, int]) -> str:
    """Name the findings that add nothing to those above them, which need no row: Markdown; empty where there is none.

    same: the rank of the finding at whose line a later one is, by rank of the later one.
    """
    named = [
        f"*{prose(one.title)}* ({one.rank}{f', at the line of finding {same[one.rank]}' if one.rank in same else ''}; "
        f"{_alone(one, loops)})"
        for one in findings
        if adds_nothing(one)
    ]
    return f"No extra gain after those above: {'; '.join(named)}." if named else ""


def _alone(finding: Finding, loops: Mapping[int, Loop]) -> str:
    """`alone perhaps 11 % of an iteration`, what a fix is worth without those above it."""
    return f"alone {_word(finding.gain)} {pct(finding.gain.share)} of {_whole(finding, loops)}"


def _size(gain: Gain, of: str) -> str:
    """`5.2 % to 38 % of an iteration, about 21 %`; where no range is known the figure alone."""
    said, ends = f"{_word(gain)} {pct(gain.share)}", _ends(gain)
    return f"{ends} of {of}, {said}" if ends else f"{said} of {of}"


def _ends(gain: Gain) -> str:
    """The interval of an expected gain, in words; empty where there is none, or its ends read alike."""
    if gain.kind != "expected" or gain.interval is None:
        return ""
    least, most = (pct(end) for end in gain.interval)
    return "" if least == most else f"{least} to {most}"


def _whole(finding: Finding, loops: Mapping[int, Loop]) -> str:
    """Return what the gain is a part of, in few words: of the only loop `an iteration`."""
    loop = loop_of(finding, loops)
    return "an iteration" if loop and loop.source != "unknown" and len(loops) == 1 else basis(finding, loops)


def _beside(finding: Finding, loops: Mapping[int, Loop]) -> str:
    """Return what the gain is a part of where the loop's own line shows less time than that; else nothing."""
    loop, gain = loop_of(finding, loops), finding.gain
    if loop and gain.before_ms:
        longer = gain.before_ms > (1 + SMALLEST) * loop.priced_ms(gain.kind)
        return f"{_whole(finding, loops)}{PAUSES}" if longer else ""
    return ""


def _saved(finding: Finding, loops: Mapping[int, Loop]) -> str:
    """`: 45.7 ms`, what the fix alone saves of an iteration; empty where the gain is not of a loop's time."""
    gain = finding.gain
    if not loop_of(finding, loops) or not gain.before_ms or gain.after_ms is None:
        return ""
    saved = duration(gain.before_ms - gain.after_ms)
    loop = loop_of(finding, loops)
    return f", {_word(gain)} {saved}" if loop and _of_other_time(finding, loop) else f": {saved}"


def _of_other_time(finding: Finding, loop: Loop) -> bool:
    """Return whether a bound is of a time without the profiler that the loop's own line does not give.

    It holds for the part and for the time that the fix saves, under each guess of what recording cost; the part of the
    loop's own time is another one, so that no time of an iteration stands beside it.
    """
    gain = finding.gain
    if gain.kind == "expected" or not gain.before_ms or loop.iteration_ms_unprofiled is not None:
        return False
    return gain.before_ms < (1 - SMALLEST) * loop.iteration_ms and duration(gain.before_ms) != duration(loop.usual_ms)


def _more_than_leaf(finding: Finding, loops: Mapping[int, Loop]) -> str:
    """` The fix saves more than its part of the time (…), because …`; empty where it does not."""
    loop = loop_of(finding, loops)
    leaf = loop.tree.get(finding.leaf or "") if loop else None
    if leaf is None or finding.also is None:
        return ""
    part = f"**{plain(leaf_label(finding.leaf or ''))}**: {pct(leaf.share)}"
    return f" The fix saves more than its part of the time ({part}), because {vocabulary.ALSO[finding.also]}."


def _word(gain: Gain) -> str:
    return "perhaps" if gain.uncertain else SIZES[gain.kind]


def _then(finding: Finding, loops: Mapping[int, Loop]) -> float:
    """Return the part of the time before any fix that this one removes once those above it are made."""
    gain, loop = finding.gain, loop_of(finding, loops)
    whole = loop.usual_ms if loop else gain.before_ms
    return ((gain.cumulative_before_ms or 0.0) - (gain.cumulative_after_ms or 0.0)) / (whole or 1.0)


def together(findings: Sequence[Finding], loops: Mapping[int, Loop]) -> str:
    """Say that gains of one loop overlap, and what all of its fixes leave; empty where no loop has two that count.

    The loop's time is the one that its own line gives, and the pauses that a finding may be about as well go too.
    """
    counted = [one for one in findings if loop_of(one, loops) and one.gain.cumulative_after_ms is not None]
    counted = [one for one in counted if (more := _more(one)) is None or more >= LITTLE]
    per_loop = Counter(one.gain.loop for one in counted)
    if max(per_loop.values(), default=0) < 2:
        return ""
    if len(per_loop) > 1:
        return "Gains in one loop can overlap: do not add them up."
    last = counted[-1]
    loop, gain = loop_of(last, loops), last.gain
    if loop is None or not gain.before_ms or gain.cumulative_after_ms is None:
        return ""
    before, after = duration(loop.usual_ms), duration(gain.cumulative_after_ms)
    if before == after:
        return ""
    kinds = {one.gain.kind for one in counted}
    unsure = kinds != {"expected"} or any(one.gain.uncertain for one in counted)
    bound = "upper_bound" in kinds and "lower_bound" not in kinds  # one fix may save less, and none is sure of more
    how = "at best" if bound else "perhaps" if unsure else "about"
    of = _whole(last, loops)
    subject = of if of == WHOLE or len(loops) == 1 else f"an iteration of {of}"
    fixed = _named([one.rank for one in counted], len(findings))
    longer = PAUSES if any(_beside(one, loops) for one in counted) else ""
    return f"Gains can overlap: with {fixed} fixed, {subject} takes {how} {after} instead of {before}{longer}."


def _named(ranks: Sequence[int], count: int) -> str:
    """Name the findings that count, of so many: `both`, `all 3 findings`, `the first 2`, or those by their ranks."""
    if len(ranks) == count:
        return "both" if count == 2 else f"all {count} findings"
    if ranks == list(range(1, len(ranks) + 1)):
        return f"the first {len(ranks)}"
    return f"findings {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


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
    if _only_then(finding) and (then := _from_to_then(finding, loops)):
        return f"**Gain, {kind}:** next to nothing alone. With the fixes above made, {then}."
    said = f"**Gain, {kind}:** {_from_to(finding, loops)}"
    if loop and loop.share_of_span < 0.95:
        said += f", which saves {pct(gain.share * loop.share_of_span)} of all steady time"
    if finding.rank > 1 and gain.cumulative_after_ms is not None and gain.cumulative_after_ms != gain.after_ms:
        said += f". With the fixes above as well: {duration(gain.cumulative_after_ms)}"
    return f"{said}.{_more_than_leaf(finding, loops)}"


def remedy_gain(remedy: Remedy) -> str:
    """Return `8.26 ms to 4.9 ms` for a remedy with a price of its own, else nothing."""
    gain = remedy.gain
    return f"by this one {duration(gain.before_ms)} to {duration(gain.after_ms)}" if gain else ""


def _from_to(finding: Finding, loops: Mapping[int, Loop]) -> str:
    gain, what = finding.gain, basis(finding, loops)
    if gain.before_ms is None or gain.after_ms is None:
        return f"{pct(gain.share)} of {what}"
    loop = loop_of(finding, loops)
    subject = _subject(finding, loops)
    if loop and _of_other_time(finding, loop):
        return f"{duration(gain.before_ms - gain.after_ms)} and {pct(gain.share)} of {subject}, whatever recording cost"
    shorter = loop is not None and gain.before_ms < (1 - SMALLEST) * loop.priced_ms(gain.kind)
    guessed = shorter or (loop is not None and loop.guessed is not None and gain.kind == "expected")
    if gain.after_ms < gain.before_ms * NOTHING_LEFT:
        return f"all of {subject} ({duration(gain.before_ms)})"
    before, after = duration(gain.before_ms), duration(gain.after_ms)
    if before == after:  # a change that these figures would not show
        saved = gain.before_ms - gain.after_ms
        now = f"perhaps {before} without the profiler" if guessed else f"{before} now"
        return f"{subject}, {now}, takes {duration(saved) if saved > 0 else 'nothing'} less"
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
    if guessed:
        return f"without the profiler, {subject} goes from perhaps {before} to {after}{summary}"
    return f"{subject} goes from {before} to {after}{summary}"


def _from_to_then(finding: Finding, loops: Mapping[int, Loop]) -> str:
    """Words for what it changes once the findings above it are fixed; empty where these figures would not show it."""
    gain = finding.gain
    before, after = duration(gain.cumulative_before_ms or 0.0), duration(gain.cumulative_after_ms or 0.0)
    return "" if before == after else f"{_subject(finding, loops)} goes from {before} to {after}"


def _subject(finding: Finding, loops: Mapping[int, Loop]) -> str:
    what = basis(finding, loops)
    if finding.gain.basis == "kernel":
        return "one launch"
    return f"an iteration of {what}" if loop_of(finding, loops) and what != WHOLE else what


def _two(value: float) -> str:
    """Two significant digits: estimates deserve no more."""
    return f"{value:.1f}" if value < 9.95 else f"{float(f'{value:.2g}'):,.0f}"
