"""Collectives that several ranks share, and the distance of the ranks' clocks.

NCCL needs all ranks of a communicator to start its collectives in one order, so a collective is known by communicator
and position. It ends on all of its ranks at the same moment: the ends say how far apart two clocks are, and drift where
two captures are not of one run.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpudiag.errors import GpudiagError
from gpudiag.jobs.rank_summary import Ints, RankSummary

_SPANS = 8
"""Spreads of ends by which the times of one communicator's collectives, first to last, may differ on two ranks: with
clocks that drift apart evenly, half of the ends then lie further apart than the spread that is allowed.
"""

Key = tuple[str, int]
"""The communicator's name ("" where the capture has none), and which of its streams."""


@dataclass(frozen=True, slots=True)
class MatchLimits:
    """The least that two ranks must have in common: collectives, part of all, how far the ends of
    one collective may lie apart, at most and where communicators have to be distinguished, and their clocks (ns).
    """

    shared: float
    part: float
    spread_ns: float
    end_ns: float
    apart_ns: float


@dataclass(frozen=True, slots=True)
class Channel:
    """One rank's collectives of one communicator, in order: `at` says which of the rank's collectives they are."""

    member: int
    at: Ints
    sequence: Ints
    end: Ints


@dataclass(frozen=True, slots=True)
class Matched:
    """The ranks in order, the communicators that several of them share, and what to add to each one's times to get the
    first one's clock (ns).
    """

    ranks: tuple[RankSummary, ...]
    groups: tuple[tuple[Channel, ...], ...]
    offsets: Ints


def ordered(summaries: Sequence[RankSummary]) -> tuple[RankSummary, ...]:
    """The ranks by number, then file and process, in whatever order they were read.

    Raises GpudiagError with one sentence where two are the same, or two are of one rank.
    """
    ranks = sorted(summaries, key=lambda one: (one.rank is None, one.rank or 0, one.file, one.pid))
    copies: dict[str, RankSummary] = {}
    numbers: dict[int, RankSummary] = {}
    for one in ranks:
        first = copies.setdefault(one.content, one)
        if first is not one:
            raise GpudiagError(f"{one.file} holds the same as {first.file}: give one of them, or it counts twice.")
        if one.rank is not None:
            first = numbers.setdefault(one.rank, one)
            if first is not one:
                raise GpudiagError(
                    f"{one.file} and {first.file} are both of rank {one.rank}: give one capture of each rank, of one "
                    "run."
                )
    return tuple(ranks)


def matched(ranks: Sequence[RankSummary], limits: MatchLimits) -> Matched:
    """The communicators of a job and its clocks. Raises GpudiagError with one sentence for a rank of another job."""
    by_key: dict[Key, list[Channel]] = defaultdict(list)
    for member, one in enumerate(ranks):
        for key, channel in _channels(member, one):
            by_key[key].append(channel)
    groups: list[tuple[Channel, ...]] = []
    for key in sorted(by_key):
        groups += _communicators(by_key[key], limits, named=bool(key[0]))
    groups = [group for group in groups if len(group) > 1]
    groups.sort(key=lambda group: (-len(group), -len(group[0].at), group[0].member, int(group[0].at[0])))
    offsets = _offsets(ranks, groups)
    _refuse_foreign(ranks, groups, offsets, limits)
    return Matched(tuple(ranks), tuple(groups), np.array([offset or 0 for offset in offsets], dtype=np.int64))


def missing(ranks: Sequence[RankSummary]) -> list[int]:
    """The numbers of ranks that the largest communicator has and nobody gave; none where they are not known."""
    size = max((int(one.collectives["ranks"].max(initial=-1)) for one in ranks), default=-1)
    known = {one.rank for one in ranks}
    if size <= len(ranks) or None in known:
        return []
    return [number for number in range(size) if number not in known]


def _channels(member: int, one: RankSummary) -> list[tuple[Key, Channel]]:
    own, seen = one.collectives, defaultdict[str, int](int)
    found = []
    for channel in np.unique(own["channel"]).tolist():
        name = one.groups.get(channel, "")
        at = np.flatnonzero(own["channel"] == channel)
        at = at[np.argsort(own["sequence"][at], kind="stable")]
        key = (name, seen[name]) if name else ("", channel)
        seen[name] += 1
        found.append((key, Channel(member, at, own["sequence"][at], own["end"][at])))
    return found


def _communicators(channels: Sequence[Channel], limits: MatchLimits, *, named: bool) -> list[tuple[Channel, ...]]:
    """Channels that end together; of communicators that no capture names, several may have the same number."""
    if named:
        return [tuple(channels)]
    close = _grouped(channels, limits, limits.end_ns)
    if all(len(group) > 1 for group in close):
        return close
    return _grouped(channels, limits, limits.spread_ns)


def _grouped(channels: Sequence[Channel], limits: MatchLimits, spread_ns: float) -> list[tuple[Channel, ...]]:
    """Channels by the distances between their ends, in time linear in the channels where all captures are whole.

    As many collectives over another time are of another communicator: clocks that drift apart by more than that while
    the job runs do not end together either.
    """
    groups: list[list[Channel]] = []
    by_count: dict[int, list[list[Channel]]] = defaultdict(list)
    by_span: dict[tuple[int, int], list[list[Channel]]] = defaultdict(list)
    for channel in channels:
        count, span = len(channel.at), round(float(channel.end[-1] - channel.end[0]) / (_SPANS * spread_ns))
        alike = [group for near in (span, span - 1, span + 1) for group in by_span.get((count, near), ())]
        clipped = (group for n, of_n in by_count.items() if n != count for group in of_n)
        near_by = itertools.chain(alike, clipped)
        group = next((group for group in near_by if _together(group[0], channel, limits, spread_ns)), None)
        if group is None:
            group = []
            groups.append(group)
            by_count[count].append(group)
            by_span[count, span].append(group)
        group.append(channel)
    return [tuple(group) for group in groups]


def _together(a: Channel, b: Channel, limits: MatchLimits, spread_ns: float | None = None) -> bool:
    """Return whether two ranks' collectives end at moments that lie the same time apart."""
    apart = _apart(a, b)
    few = len(apart) < min(limits.shared, len(a.at)) or len(apart) < limits.part * max(len(a.at), len(b.at))
    return not few and float(np.median(np.abs(apart - np.median(apart)))) <= (spread_ns or limits.spread_ns)


def _apart(a: Channel, b: Channel) -> Ints:
    """The time by which each shared collective ended earlier by the second one's clock (ns)."""
    _, first, second = np.intersect1d(a.sequence, b.sequence, assume_unique=True, return_indices=True)
    return np.asarray(a.end[first] - b.end[second], dtype=np.int64)


def _offsets(ranks: Sequence[RankSummary], groups: Sequence[Sequence[Channel]]) -> list[int | None]:
    """The time to add to each rank's for the first one's clock: along communicators, the largest first.

    Of ranks that share none with those known so far, what their captures state of their clocks; None where they state
    nothing.
    """
    offsets: list[int | None] = [None] * len(ranks)
    offsets[0] = 0
    waiting = list(groups)
    while waiting:
        ready = next((g for g in waiting if any(offsets[c.member] is not None for c in g)), None)
        if ready is None:
            first = waiting[0][0].member
            began, base = ranks[first].began, ranks[0].began
            if began is None or base is None:
                break
            offsets[first] = began - base
            continue
        waiting.remove(ready)
        base_channel = next(c for c in ready if offsets[c.member] is not None)
        for channel in ready:
            if offsets[channel.member] is None and len(apart := _apart(base_channel, channel)):
                known = offsets[base_channel.member] or 0
                offsets[channel.member] = known + int(np.median(apart))
    return offsets


def _refuse_foreign(
    ranks: Sequence[RankSummary],
    groups: Sequence[Sequence[Channel]],
    offsets: Sequence[int | None],
    limits: MatchLimits,
) -> None:
    """Raise GpudiagError for a rank whose collectives are none of the others', or whose clock says another time."""
    at_home: set[int] = set()
    for group in groups:
        base = group[0]
        for channel in group:
            if channel is base or _together(base, channel, limits):
                at_home.add(channel.member)
    # The first of a communicator is at home only where another one is.
    alone = {group[0].member for group in groups if not any(_together(group[0], c, limits) for c in group[1:])}
    for member, one in enumerate(ranks):
        offset, stated, began = offsets[member], ranks[0].began, one.began
        elsewhere = (
            offset is not None
            and stated is not None
            and began is not None
            and abs(offset - (began - stated)) > limits.apart_ns
        )
        if elsewhere or member not in at_home - alone:
            raise GpudiagError(
                f"{one.file}: its collectives are not those of the other ranks, so it is of another job or run; leave "
                "it out, or explain it alone."
            )
