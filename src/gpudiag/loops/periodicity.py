"""The period of a sequence of operations: which stretch of it repeats, and where each repetition begins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, compress, islice
from operator import eq, ne
from statistics import median

# Bounds on the cost of a search, not thresholds: a period longer than a third of the stretch is treated as unknown.
_STRETCH = 30_000  # operations of a long sequence that are looked at
_RARE = 8  # kinds of operations whose distances are counted, the rarest first
_DISTANCES = 64  # of which so many are tried, the most frequent first
_WAITS = 64  # iterations whose waits say where one begins


def find_repetitions(
    sequence: Sequence[str], times: Sequence[int], settings: Mapping[str, float]
) -> Iterator[tuple[int, int, int]]:
    """The stretches that repeat, the longest time first: the period of each, and the indices where it begins and ends.

    A program sets up, repeats itself, and cleans up; only the middle has a period. times: when each operation was
    launched, any unit. Looks at the later operations of a very long sequence.
    """
    match, min_iterations = settings["period_match"], int(settings["min_iterations"])
    skipped = max(0, len(sequence) - _STRETCH)
    body = sequence[skipped:]
    found = []
    for distance in _likely(body, settings):
        start, stop = _stretch(body, distance, match)
        if stop - start >= min_iterations * distance:
            found.append((times[skipped + stop - 1] - times[skipped + start], -distance, start, stop))
    tried: set[tuple[int, int]] = set()
    for _, _, start, stop in sorted(found, reverse=True):
        if (start, stop) in tried:
            continue
        tried.add((start, stop))
        period = find_period(body[start:stop], settings)
        if period is not None:
            yield period, skipped + start, skipped + stop


def _stretch(body: Sequence[str], distance: int, match: float) -> tuple[int, int]:
    """The longest stretch of which at least `match` equals what comes `distance` later."""
    ends = len(body) - distance
    best, gained, begin, previous, chosen = 0.0, 0.0, 0, 0, (0, 0)
    for odd in chain(compress(range(ends), map(ne, body, islice(body, distance, None))), [ends]):
        gained += (odd - previous) * (1 - match)
        if gained > best:
            best, chosen = gained, (begin, odd)
        gained -= match
        previous = odd + 1
        if gained <= 0:
            gained, begin = 0.0, previous
    return chosen[0], chosen[1] + distance if chosen[1] else 0


def find_period(sequence: Sequence[str], settings: Mapping[str, float]) -> int | None:
    """The smallest distance at which at least `period_match` of the sequence equals itself, or None.

    Looks at the later part, where a program has warmed up; the period must fit `min_iterations` times.
    """
    match, min_iterations = settings["period_match"], int(settings["min_iterations"])
    body = sequence[_warm(sequence, settings) :][:_STRETCH]
    if len(body) < 2 * min_iterations:
        return None
    likely, times = _likely(body, settings), settings["period_longer_times"]
    for period in likely:
        odd = _mismatches(body, period)
        if odd > (1 - match) * (len(body) - period) or not _whole(body, period, settings):
            continue
        # Hundreds of one element-wise kernel and one other: the iteration lasts until the other returns.
        broken = odd >= 2 * min_iterations and len(_regular(body, period, settings)) <= settings["period_few"]
        if not (broken and any(times * _mismatches(body, longer) < odd for longer in likely if longer > period)):
            return period
    return None


def _likely(body: Sequence[str], settings: Mapping[str, float]) -> list[int]:
    """Distances at which operations often return, shortest first."""
    min_iterations, occurrences = int(settings["min_iterations"]), int(settings["period_occurrences"])
    last: dict[str, int] = {}
    distances: Counter[int] = Counter()
    for index, what in enumerate(body):
        if what in last:
            distances[index - last[what]] += 1
        last[what] = index
    # The rarest operations that still repeat tell the longest period; sums of short distances never exceed it.
    counts = Counter(body)
    rare = [what for what, n in counts.items() if n >= min_iterations]
    rare.sort(key=lambda what: counts[what])
    for what in rare[:_RARE]:
        seen = [index for index, other in enumerate(body) if other == what]
        runs = [index for index in seen if index == 0 or body[index - 1] != what]  # of each run of equals the first
        for places in (seen, runs):
            for step in range(1, occurrences + 1):
                distances.update(b - a for a, b in zip(places, places[step:], strict=False))
    return sorted(
        distance for distance, _ in distances.most_common(_DISTANCES) if distance * min_iterations <= len(body)
    )


def _mismatches(body: Sequence[str], period: int) -> int:
    return int(len(body) - period - sum(map(eq, body[period:], body)))


def _whole(body: Sequence[str], period: int, settings: Mapping[str, float]) -> bool:
    """False when a short period only matches because one operation dominates and rarer ones break it regularly."""
    regular = _regular(body, period, settings)
    return sum(what not in regular for what in body) <= settings["period_odd_share"] * len(body)


def _regular(body: Sequence[str], period: int, settings: Mapping[str, float]) -> set[str]:
    """The operations that occur in enough iterations of that length."""
    least = settings["period_regular_share"] * len(body)
    return {what for what, n in Counter(body).items() if n * period >= least}


def iteration_starts(
    sequence: Sequence[str], waits: Sequence[int], period: int, settings: Mapping[str, float]
) -> list[int]:
    """Index of each iteration's first operation; an iteration begins where the host paused longest before launching.

    waits: host time before each operation's launch, any unit.
    """
    match, middle = settings["period_match"], _steady_offset(sequence, period, settings)
    by_phase = [
        median(waits[i] for i in range(middle + phase, min(len(waits), middle + _WAITS * period), period) or [middle])
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


def _warm(sequence: Sequence[str], settings: Mapping[str, float]) -> int:
    """The index from which the program counts as warmed up."""
    return int(settings["period_warm_up_share"] * len(sequence))


def _steady_offset(sequence: Sequence[str], period: int, settings: Mapping[str, float]) -> int:
    """An index, not near the start, from which two whole periods agree."""
    first = _warm(sequence, settings)
    for index in range(first, len(sequence) - 2 * period):
        if sequence[index : index + period] == sequence[index + period : index + 2 * period]:
            return index
    return max(0, min(first, len(sequence) - 2 * period))
