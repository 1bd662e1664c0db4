"""The meaning of a change as sentences; names are in backticks for the page to escape."""

from __future__ import annotations

from collections.abc import Sequence

from gpudiag.model import DiffState, FindingChange, LoopChange, ProfileChange, Ratio, Times
from gpudiag.text.format import code, dur, num, pct

TIMES = 2.0  # a change by this factor reads better as "3 times as fast" than in percent
TINY = 0.1  # `14 times less` reads better than `93 % less`
LITTLE = 0.0005  # would be printed as 0.0 %


def amount(ratio: Ratio) -> str:
    """`takes 12 to 30 % less time`, `is 1.5 to 2.1 times as fast`, `takes between 8 % less and 3 % more`."""
    if ratio.high < 1:
        if ratio.value <= 1 / TIMES:
            return f"is {_factor(1 / ratio.high)} to {_factor(1 / ratio.low)} times as fast"
        return f"takes {_range(1 - ratio.high, 1 - ratio.low)} less time"
    if ratio.low > 1:
        if ratio.value >= TIMES:
            return f"takes {_factor(ratio.low)} to {_factor(ratio.high)} times as long"
        return f"takes {_range(ratio.low - 1, ratio.high - 1)} more time"
    return f"takes between {pct(1 - ratio.low)} less and {_more(ratio.high)}"


def _range(low: float, high: float) -> str:
    return f"{pct(low).removesuffix(' %')} to {pct(high)}"


def _more(high: float) -> str:
    return f"{_factor(high)} times as much" if high >= TIMES else f"{pct(high - 1)} more"


def _factor(value: float) -> str:
    return f"{value:.2f}" if value < 1.995 else f"{value:.1f}" if value < 9.95 else f"{float(f'{value:.2g}'):,.0f}"


def loop(change: LoopChange, *, repeated: bool, other_portions: bool = False) -> str:
    """The verdict on one loop. repeated: both sides found an iteration, and not only all of their work; other_portions:
    whether an iteration is as much work on both sides is not known, and the recordings as a whole speak against it.
    """
    subject = f"an iteration of {code(change.name)}" if repeated else "the recorded work"
    portion = _portion(change, repeated=repeated)
    ratio, times = change.ratio, _times((change.base, change.head))
    took, equal = f"{subject} took {times}", ""
    if change.ratio_of == "equal work":
        subject, equal = f"equal work of {code(change.name)}", f"; {portion}"
    if change.state in ("improvement", "regression"):
        word = "Faster" if change.state == "improvement" else "Slower"
        return f"{word}: {subject} {amount(ratio)} ({f'an iteration took {times}' if equal else times}{equal})."
    if change.state == "noise":
        return _noise(change, f"{took}{equal}")
    if portion and change.ratio_of == "iteration":
        return (
            f"Cannot tell: {portion}, and {took}. If that work was meant, equal work"
            f" {_plainly(ratio.value / (change.work or 1.0))}; if not, an iteration {_plainly(ratio.value)}."
        )
    if other_portions:
        return (
            f"Cannot tell: {took}, but {change.base.iterations:,} of them were recorded before and"
            f" {change.head.iterations:,} now, with other kernels: whether an iteration does as much work is not known."
        )
    return _open(
        change, f"Cannot tell: {took}{equal}. Without the profiler {'that work' if equal else 'it'} {amount(ratio)}"
    )


def _noise(change: LoopChange, took: str) -> str:
    """No change, and how large one would have to be."""
    ratio = change.ratio
    if ratio.high < 1 or ratio.low > 1:
        return f"A change too small to matter: {took}. Now it {amount(ratio)}."
    for_work = " for equal work" if change.ratio_of == "equal work" else ""
    text = f"No change beyond noise: {took}, which is {_by(ratio.value)}{for_work}."
    text += f" Had nothing changed, it could come out as anything from {_band(ratio)}."
    if change.host_bound:
        same = "Both start the same GPU work, and the host" if change.same_work else "The host"
        return f"{text} {same} sets the pace: only a change by more than {_visible(ratio)} would show."
    return text


def _open(change: LoopChange, text: str) -> str:
    """Explain why the change cannot be known, and what would decide it."""
    if not change.host_bound:
        return f"{text}: more recordings of each side would narrow that."
    work = {
        True: " and the profiler slows the host by an unknown amount",
        False: ", the profiler slows the host by an unknown amount, and both sides do different work",
        None: ", the profiler slows the host by an unknown amount, and whether both do the same work is not recorded",
    }[change.same_work]
    return (
        f"{text}: the host sets the pace{work}. Times measured"
        " without the profiler would tell (`--iteration-time` when a report is saved)."
    )


def with_cause(change: LoopChange, causes: Sequence[FindingChange]) -> str:
    """The verdict on a loop whose time moved together with the causes reported for it."""
    faster = change.state == "improvement"
    named = f"{causes[0].title} ({causes[0].code})"
    more = f", and {len(causes) - 1} more" if len(causes) > 1 else ""
    times = _times((change.base, change.head))
    without = "" if change.base.unprofiled_ms else f" Without the profiler it {amount(change.ratio)}."
    word, subject = "Faster" if faster else "Slower", f"an iteration of {code(change.name)}"
    return (
        f"{word}: {subject} took {times}, {_by(change.ratio.value)},"
        f" and a cause that explains it {'is gone' if faster else 'is new'}: {named}{more}.{without}"
    )


def _portion(change: LoopChange, *, repeated: bool) -> str:
    """`an iteration now does 8 times the work of one before`, where it does another amount."""
    if change.work in (None, 1.0):
        return ""
    assert change.work is not None
    what = "an iteration" if repeated else "what counts as an iteration"
    if change.work > 1:
        return f"{what} now does {num(change.work)} times the work of one before"
    return f"{what} before did {num(1 / change.work)} times the work of one now"


def _plainly(ratio: float) -> str:
    return f"takes {_by(ratio)}" if ratio >= TINY else f"is {_factor(1 / ratio)} times as fast"


def _by(ratio: float) -> str:
    """`15 % less`, `3.0 % more`, `3.1 times as much`."""
    if ratio >= TIMES:
        return f"{_factor(ratio)} times as much"
    if ratio < TINY:
        return f"{_factor(1 / ratio)} times less"
    if abs(ratio - 1) < LITTLE:
        return "as much"
    return f"{pct(abs(ratio - 1))} {'less' if ratio < 1 else 'more'}"


def _band(ratio: Ratio) -> str:
    """Return the range in which two recordings of one program may differ, as these two show it."""
    return f"{_by(ratio.value / ratio.high)} to {_by(ratio.value / ratio.low)}"


def _times(sides: tuple[Times, Times]) -> str:
    """`17.3 ms before and 10.6 ms now, as recorded`."""
    base, head = (dur(side.ms * 1e6) for side in sides)
    words = ["without the profiler" if side.unprofiled_ms else "as recorded" for side in sides]
    if words[0] == words[1]:
        return f"{base} before and {head} now, {words[0]}"
    return f"{base} before ({words[0]}) and {head} now ({words[1]})"


def _visible(ratio: Ratio) -> str:
    """The change that would be seen either way."""
    widest = max(ratio.high / ratio.value, ratio.value / ratio.low)
    return f"{_factor(widest)} times" if widest >= 1.5 else pct(widest - 1)


def loops(state: DiffState, changes: Sequence[LoopChange], ratio: Ratio) -> str:
    """The verdict on all of them: that of the loop it rests on, and which others moved."""
    first = next((change for change in changes if change.state == state), changes[0])
    text = first.text
    if len(changes) == 1:
        return text
    others = [change for change in changes if change is not first and change.state in ("regression", "improvement")]
    said = [f"{code(c.name)} is {'slower' if c.state == 'regression' else 'faster'}" for c in others]
    if said:
        text += f" Also, {', '.join(said[:3])}{f' and {len(said) - 3} more loops changed' if len(said) > 3 else ''}."
    return f"{text} All {len(changes)} loops together: now it {amount(ratio)}."


def profiles(state: DiffState, changes: Sequence[ProfileChange]) -> str:
    """The verdict on measured kernels."""
    summary = [change for change in changes if change.ratio]
    first = next((change for change in summary if change.state == state), summary[0])
    times = f"{dur((first.base_ms or 0) * 1e6)} before and {dur((first.head_ms or 0) * 1e6)} now"
    size = amount(first.ratio) if first.ratio else ""
    name = code(first.name)
    if first.matched_by == "only one":
        name = f"{code(first.head_name)} in place of {name}"
    elif first.head_name != first.name:
        name = f"{name}, now {code(first.head_name)},"
    if state in ("improvement", "regression"):
        word = "Faster" if state == "improvement" else "Slower"
        text = f"{word}: one launch of {name} {size} ({times})"
    elif state == "cannot_tell":
        text = f"Cannot tell: other kernels were measured on each side. Of those on both, {name} took {times}"
    else:
        text = f"No change beyond noise: one launch of {name} took {times}; now it {size}"
    more = [change for change in summary if change is not first and change.state != "noise"]
    if more:
        slower = sum(change.state == "regression" for change in more)
        text += f". Of the other kernels {slower} got slower and {len(more) - slower} faster"
    return f"{text}."
