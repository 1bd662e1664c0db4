"""Code columns of 64-bit integers so that LZMA makes them small, and find out how each is best coded.

What a column is made of is written down in a `Coding`: what is subtracted from each value, the order in which the rests
are written, and how they become bytes. Every step has an exact inverse. Subtraction wraps at 64 bits, so that any value
may be subtracted from any other.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Columns = Mapping[str, Ints]

WORD = 8  # bytes
BEFORE = "<"  # marks a column's value in the row before
EXTREME = 9 | lzma.PRESET_EXTREME
SAMPLE = 20_000  # rows on which ways to code are tried
KINDS = 4096  # distinct values up to which a column may put the rows of others in order
OWNERS = 64  # the same, for columns within which differences are taken
WORTH = 200  # bytes from which a column is worth a search


@dataclass(frozen=True)
class Coding:
    """A way to code one column; columns are named, and those named come earlier in the table's sequence."""

    width: int = WORD  # bytes kept of each rest
    within: str | None = None  # subtract the row before of those with the same value there; "": the row before
    order: tuple[str, ...] = ()  # columns by whose values the rows are sorted; none: as they are
    literal: int = 0  # LZMA's `lc`
    carry: str = ""  # subtract that column of the row before, too
    base: str = ""  # subtracted: a column of the same row
    joined: bool = False  # whether `base` is of the call with the same key
    zigzag: bool = False  # whether signs are in the lowest bit

    def dump(self) -> list[Any]:
        """Return it as JSON, without what is left as it is by default at the end."""
        values = [int(value) if isinstance(value, bool) else value for value in astuple(self)]
        usual = astuple(Coding())
        while values and values[-1] == usual[len(values) - 1]:
            values.pop()
        return values

    @classmethod
    def load(cls, values: Sequence[Any]) -> Coding:
        """Return what `dump` wrote."""
        coding = cls(*values)
        return replace(coding, order=tuple(coding.order))


def rests(values: Ints, coding: Coding, known: Columns, joined: Columns) -> Ints:
    """Return what is written of a column, row by row: values less what the coding predicts."""
    left = values - _base(coding, known, joined) if coding.base else values
    if coding.within is not None:
        left = left - _before(left, _owner(coding, known))
        if coding.carry:
            left = left - _before(known[coding.carry], _owner(coding, known))
    if coding.order:
        left = left[_sorted(coding, known)]
    return (left << 1) ^ (left >> 63) if coding.zigzag else left


def values(left: Ints, coding: Coding, known: Columns, joined: Columns) -> Ints:
    """Return a column from its rests: the inverse of `rests`."""
    if coding.zigzag:
        left = ((left >> 1) & np.int64(2**63 - 1)) ^ -(left & 1)
    if coding.order:
        ordered, left = left, np.empty_like(left)
        left[_sorted(coding, known)] = ordered
    if coding.within is not None:
        owner = _owner(coding, known)
        if coding.carry:
            left = left + _before(known[coding.carry], owner)
        left = _running(left, owner)
    return left + _base(coding, known, joined) if coding.base else left


def planes(left: Ints, width: int) -> bytes:
    """Return the lowest bytes of all rests, then the next higher ones, `width` of them."""
    words = np.ascontiguousarray(left, dtype="<i8").view(np.uint8).reshape(-1, WORD)
    return words[:, :width].T.tobytes()


def unplaned(raw: bytes, rows: int, width: int) -> Ints:
    """Return rests from their bytes: the inverse of `planes`."""
    parts = np.frombuffer(raw, np.uint8).reshape(width, rows).T
    words = np.zeros((rows, WORD), np.uint8)
    words[:, :width] = parts
    if width < WORD:
        words[:, width:] = np.where(parts[:, -1:] >= 1 << 7, 0xFF, 0)
    return words.view("<i8").reshape(rows).astype(np.int64)


def width_of(left: Ints) -> int:
    """The fewest bytes that hold every rest with its sign."""
    if not len(left):
        return 1
    low, high = int(left.min()), int(left.max())
    bits = max((low if low >= 0 else ~low).bit_length(), (high if high >= 0 else ~high).bit_length()) + 1
    return -(-bits // WORD)


def squeeze(raw: bytes, literal: int = 0, preset: int = EXTREME) -> bytes:
    """Pack bytes as one raw LZMA2 stream."""
    return lzma.compress(raw, lzma.FORMAT_RAW, filters=_filters(len(raw), literal, preset))


def unsqueeze(packed: bytes, size: int, literal: int = 0) -> bytes:
    """Return `size` bytes that `squeeze` packed."""
    return lzma.decompress(packed, lzma.FORMAT_RAW, filters=_filters(size, literal, EXTREME))


def coded(column: Ints, known: Columns, joined: Columns, carries: Sequence[str]) -> tuple[Coding, bytes]:
    """Return how a column is coded and its bytes, not yet packed."""
    coding = best(column, known, joined, carries)
    left = rests(column, coding, known, joined)
    coding = replace(coding, width=width_of(left))
    return coding, planes(left, coding.width)


def best(column: Ints, known: Columns, joined: Columns, carries: Sequence[str]) -> Coding:
    """Return the coding that makes a column smallest, of those worth trying; a sample of the rows decides."""
    first = max(0, (len(column) - SAMPLE) // 2)
    rows = slice(first, first + SAMPLE)
    column, known, joined = (
        column[rows], {name: other[rows] for name, other in known.items()},
        {name: other[rows] for name, other in joined.items()},
    )  # fmt: skip

    def cost(coding: Coding) -> int:
        left = rests(column, coding, known, joined)
        return len(squeeze(planes(left, width_of(left)), coding.literal, preset=1))

    if cost(Coding()) < WORTH:
        return Coding()
    ahead = sorted(_predictions(known, joined, carries), key=cost)[:2]
    tried = [replace(coding, order=order) for coding in ahead for order in ((), *_orders(known))]
    chosen = min(tried, key=cost)
    return min((replace(chosen, zigzag=sign, literal=bits) for sign in (False, True) for bits in (0, 3)), key=cost)


def _predictions(known: Columns, joined: Columns, carries: Sequence[str]) -> Iterator[Coding]:
    owners = [None, "", *(name for name, other in known.items() if 1 < len(np.unique(other)) <= OWNERS)]
    for within in owners:
        yield Coding(within=within)
        for carry in carries:
            if within is not None:
                yield Coding(within=within, carry=carry)
    for name, other in known.items():
        if len(np.unique(other)) > OWNERS:
            yield Coding(base=name)
    for name in joined:
        yield Coding(base=name, joined=True)
        yield Coding(base=name, joined=True, within="")


def _orders(known: Columns) -> Iterator[tuple[str, ...]]:
    for name, other in known.items():
        if 1 < len(np.unique(other)) <= min(KINDS, len(other) // 4):
            yield (name,)
            yield (name, BEFORE + name)


def _filters(size: int, literal: int, preset: int) -> list[dict[str, int]]:
    window = max(1 << 12, 1 << max(size - 1, 1).bit_length())
    return [{"id": lzma.FILTER_LZMA2, "preset": preset, "lc": literal, "lp": 0, "pb": 0, "dict_size": window}]


def _base(coding: Coding, known: Columns, joined: Columns) -> Ints:
    return (joined if coding.joined else known)[coding.base]


def _owner(coding: Coding, known: Columns) -> Ints | None:
    return known[coding.within] if coding.within else None


def _sorted(coding: Coding, known: Columns) -> NDArray[np.intp]:
    keys = [_before(known[name[1:]], None) if name.startswith(BEFORE) else known[name] for name in coding.order]
    return np.lexsort(keys[::-1])


def _before(column: Ints, owner: Ints | None) -> Ints:
    """Return each row's value in the row before it that has the same owner; 0 for the first."""
    if owner is None:
        return np.concatenate((np.zeros(min(len(column), 1), np.int64), column[:-1]))
    order = np.argsort(owner, kind="stable")
    shifted = np.concatenate((np.zeros(min(len(column), 1), np.int64), column[order][:-1]))
    shifted[_firsts(owner[order])] = 0
    before = np.empty_like(shifted)
    before[order] = shifted
    return before


def _running(left: Ints, owner: Ints | None) -> Ints:
    """Return the running sum of the rows of each owner."""
    if owner is None:
        return np.cumsum(left)
    order = np.argsort(owner, kind="stable")
    sums = np.cumsum(left[order])
    first = _firsts(owner[order])
    starts = np.flatnonzero(first)
    offsets = np.where(starts > 0, sums[starts - 1], 0)
    result = np.empty_like(left)
    result[order] = sums - offsets[np.cumsum(first) - 1]
    return result


def _firsts(ordered: Ints) -> NDArray[np.bool_]:
    """Return which rows begin a run of equal values."""
    return np.concatenate((np.ones(min(len(ordered), 1), bool), ordered[1:] != ordered[:-1]))
