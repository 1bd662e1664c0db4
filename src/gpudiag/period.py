"""The period of a sequence of operations: which stretch of it repeats, and where each repetition begins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import eq
from statistics import median

# How much of a long sequence is looked at to find its period, and how many distances are tried: cost bounds, not
# thresholds (a period longer than a third of this stretch is treated as unknown).
_STRETCH = 30_000
_DISTANCES = 64


def find_period(sequence: Sequence[str], match: float, min_turns: int) -> int | None:
    """The smallest distance at which at least `match` of the sequence equals itself, or None.

    Looks at the later part, where a program has warmed up; the period must fit `min_turns` times.
    """
    body = sequence[len(sequence) // 4 :][:_STRETCH]
    if len(body) < 2 * min_turns:
        return None
    last: dict[str, int] = {}
    distances: Counter[int] = Counter()
    for index, what in enumerate(body):
        if what in last:
            distances[index - last[what]] += 1
        last[what] = index
    # The rarest operations that still repeat tell the longest period; sums of short distances never exceed it.
    counts = Counter(body)
    rare = [what for what, n in counts.items() if n >= min_turns]
    rare.sort(key=lambda what: counts[what])
    for what in rare[:8]:
        seen = [index for index, other in enumerate(body) if other == what]
        for step in (1, 2, 4):
            distances.update(b - a for a, b in zip(seen, seen[step:], strict=False))
    likely = sorted(distance for distance, _ in distances.most_common(_DISTANCES))
    for period in likely:
        compared = len(body) - period
        if period * min_turns > len(body) or compared <= 0:
            continue
        if sum(map(eq, body[period:], body)) >= match * compared and _whole(body, period):
            return period
    return None


def _whole(body: Sequence[str], period: int) -> bool:
    """False when a short period only matches because one operation dominates and rarer ones break it regularly."""
    inside = set(body[:period]) if period > 1 else {body[0]}
    counts = Counter(body)
    strangers = sum(n for what, n in counts.items() if what not in inside)
    return strangers <= 0.02 * len(body)


def turn_starts(sequence: Sequence[str], waits: Sequence[int], period: int, match: float) -> list[int]:
    """Index of each turn's first operation; a turn begins where the host paused longest before launching.

    waits: host time before each operation's launch, any unit.
    """
    middle = _steady_offset(sequence, period)
    by_phase = [
        median(waits[i] for i in range(middle + phase, min(len(waits), middle + 64 * period), period) or [middle])
        for phase in range(period)
    ]
    phase = max(range(period), key=lambda p: by_phase[p]) if period > 1 else 0
    template = list(sequence[middle + phase : middle + phase + period])
    starts: list[int] = []
    position = 0
    while position + period <= len(sequence):
        same = sum(map(eq, template, sequence[position : position + period]))
        if same >= match * period and sequence[position] == template[0]:
            starts.append(position)
            position += period
        else:
            position += 1
    return starts


def _steady_offset(sequence: Sequence[str], period: int) -> int:
    """An index, not near the start, from which two whole periods agree."""
    first = len(sequence) // 4
    for index in range(first, len(sequence) - 2 * period):
        if sequence[index : index + period] == sequence[index + period : index + 2 * period]:
            return index
    return max(0, min(first, len(sequence) - 2 * period))
