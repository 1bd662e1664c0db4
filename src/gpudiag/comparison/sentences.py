"""What a change means, in words; names are in backticks for the page to escape."""

from __future__ import annotations

from collections.abc import Sequence

from gpudiag.comparison.interval import Measured
from gpudiag.model import DiffState, LoopChange, ProfileChange, Ratio
from gpudiag.templating import code, dur, pct

TIMES = 2.0  # a change by this factor reads better as "3 times as fast" than in percent
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


def loop(
    name: str,
    state: DiffState,
    ratio: Ratio,
    sides: tuple[Measured, Measured],
    *,
    same_work: bool | None,
    host_bound: bool,
) -> str:
    """One loop's verdict."""
    subject = f"an iteration of {code(name)}"
    times = _times(sides)
    if state in ("improvement", "regression"):
        return f"{'Faster' if state == 'improvement' else 'Slower'}: {subject} {amount(ratio)} ({times})."
    if state == "noise":
        sure = ratio.high < 1 or ratio.low > 1
        text = f"{'A change too small to matter' if sure else 'No change beyond noise'}: {subject} took {times}."
        if host_bound and not sure:
            return (
                f"{text} Both do the same work. The host sets the pace, and recordings of one program differ by that"
                f" much: only a change by more than {_visible(ratio)} would show."
            )
        return f"{text} Now it {amount(ratio)}."
    text = f"Cannot tell: {subject} took {times}. Without the profiler it {amount(ratio)}"
    if not host_bound:
        return f"{text}: more recordings of each side would narrow that."
    work = {
        True: " and the profiler slows the host by an unknown amount",
        False: ", the profiler slows the host by an unknown amount, and both sides do different work",
        None: ", the profiler slows the host by an unknown amount, and whether both do the same work is not recorded",
    }[same_work]
    return (
        f"{text}: the host sets the pace{work}. Times measured"
        " without the profiler would tell (`--iteration-time` when a report is saved)."
    )


def _times(sides: tuple[Measured, Measured]) -> str:
    """`17.3 ms before and 10.6 ms now, as recorded`."""
    base, head = (dur(side.ms * 1e6) for side in sides)
    words = ["as recorded" if side.recorded else "without the profiler" for side in sides]
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
    told = [change for change in changes if change.ratio]
    first = next((change for change in told if change.state == state), told[0])
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
    more = [change for change in told if change is not first and change.state != "noise"]
    if more:
        slower = sum(change.state == "regression" for change in more)
        text += f". Of the other kernels {slower} got slower and {len(more) - slower} faster"
    return f"{text}."
