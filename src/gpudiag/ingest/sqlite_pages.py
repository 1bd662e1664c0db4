"""Large all-integer SQLite tables, decoded from their pages by compiled code: twice as fast as a driver.

Uses numba. Only plain tables are decoded: no text or real value in a wanted column, no key that
replaces the row id, no row that overflows its page. Anything else raises Unsuited, and the general reader takes over.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpudiag.jit import compiled

ROWS = 500_000
"""Rows decoded at once: bounds memory to about 200 MB for the widest table, with the batch that is read ahead."""

_LEAF, _INTERIOR = 0x0D, 0x05
_MAX_DEPTH = 20

Ints = NDArray[np.int64]


class Unsuited(Exception):
    """The table is not plain enough for this reader."""


class Pages:
    """A database file, mapped read-only."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._bytes: NDArray[np.uint8] = np.frombuffer(self._map, dtype=np.uint8)
        size = int.from_bytes(self._map[16:18], "big")
        self._page = 65_536 if size == 1 else size
        self._usable = self._page - self._map[20]

    def batches(self, root: int, width: int, wanted: Sequence[int]) -> Iterator[tuple[Ints, list[Any]]]:
        """Row ids and the wanted columns (by position, of `width` stored ones) of the table at page `root`, in order.

        Columns with NULLs are masked arrays. Raises Unsuited, between batches too.
        """
        bases = (np.fromiter(self._leaves(root), dtype=np.int64) - 1) * self._page
        if len(bases) == 0 or int(bases.max()) + self._page > len(self._bytes):
            raise Unsuited
        rows = self._bytes[bases + 3].astype(np.int64) << 8 | self._bytes[bases + 4]
        ends = np.cumsum(rows)
        cuts = [0]
        while cuts[-1] < len(bases):
            done = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
            cuts.append(max(int(np.searchsorted(ends, done + ROWS, side="right")), cuts[-1] + 1))
        parts = [(bases[a:b], rows[a:b]) for a, b in pairwise(cuts)]
        # Compiled code runs without the interpreter lock: one batch is decoded while the last one is inserted.
        with ThreadPoolExecutor(1) as ahead:
            future = ahead.submit(self._decode, *parts[0], width, wanted)
            for part in parts[1:]:
                batch = future.result()
                future = ahead.submit(self._decode, *part, width, wanted)
                yield batch
                self._forget()
            yield future.result()

    def _forget(self) -> None:
        """Let go of pages already read: mapped ones count as the process's memory."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def _leaves(self, page: int, depth: int = 0) -> Iterator[int]:
        base = (page - 1) * self._page
        if page < 2 or base + self._page > len(self._map) or depth > _MAX_DEPTH:
            raise Unsuited
        kind = self._map[base]
        if kind == _LEAF:
            yield page
            return
        if kind != _INTERIOR:
            raise Unsuited
        cells = self._short(base + 3)
        for cell in range(cells):
            at = base + self._short(base + 12 + 2 * cell)
            yield from self._leaves(int.from_bytes(self._map[at : at + 4], "big"), depth + 1)
        yield from self._leaves(int.from_bytes(self._map[base + 8 : base + 12], "big"), depth + 1)

    def _short(self, at: int) -> int:
        return int.from_bytes(self._map[at : at + 2], "big")

    def _decode(self, bases: Ints, rows: Ints, width: int, wanted: Sequence[int]) -> tuple[Ints, list[Any]]:
        total = int(rows.sum())
        target = np.full(width, -1, dtype=np.int64)
        target[list(wanted)] = np.arange(len(wanted))
        rowids = np.empty(total, dtype=np.int64)
        values = np.zeros((len(wanted), total), dtype=np.int64)
        nulls = np.zeros((len(wanted), total), dtype=np.bool_)
        firsts = np.cumsum(rows) - rows
        place = (self._bytes, self._page, self._usable, bases, rows, firsts)
        if not _decode_leaves(*place, target, max(wanted) + 1, rowids, values, nulls):
            raise Unsuited
        columns = [
            np.ma.masked_array(column, mask=mask) if mask.any() else column
            for column, mask in zip(values, nulls, strict=True)
        ]
        return rowids, columns


# Compiled functions: numba infers their types, so that annotations would say nothing checkable.


@compiled
def _varint(data: Any, at: Any, limit: Any) -> Any:
    """A variable-length number of at most eight bytes and the offset after it; -1 as offset when there is none."""
    number = np.int64(0)
    for _ in range(8):
        if at >= limit:
            break
        byte = np.int64(data[at])
        at += 1
        number = number << 7 | (byte & 127)
        if byte < 128:
            return number, at
    return number, np.int64(-1)


@compiled
def _size(kind: Any) -> Any:
    """Bytes of a value by its serial type (SQLite file format, 2.1)."""
    if kind < 5:
        return kind
    if kind < 8:
        return np.int64(6) if kind == 5 else np.int64(8)
    return (kind - 12) // 2 if kind >= 12 else np.int64(0)


@compiled
def _integer(data: Any, at: Any, kind: Any) -> Any:
    """An integer by its serial type; 8 and 9 are the constants 0 and 1, and 0 is NULL."""
    if kind >= 8 or kind == 0:
        return np.int64(kind == 9)
    number = np.int64(np.int8(data[at]))
    for k in range(1, _size(kind)):
        number = number << 8 | np.int64(data[at + k])
    return number


@compiled
def _decode_row(data: Any, at: Any, limit: Any, usable: Any, target: Any, stop: Any, row: Any, values: Any,
                nulls: Any, rowids: Any) -> bool:  # fmt: skip
    """Decode the row whose cell begins at an offset; whether it was plain and lay within its page."""
    width = len(target)
    payload, at = _varint(data, at, limit)
    if at < 0:
        return False
    rowid, at = _varint(data, at, limit)
    if at < 0 or payload > usable - 35 or payload < 1 + width or at + payload > limit or data[at] != 1 + width:
        return False
    end, header = at + payload, at + 1
    at = header + width
    rowids[row] = rowid
    for column in range(stop):
        kind = np.int64(data[header + column])
        place = target[column]
        size = _size(kind)
        if kind > 127 or at + size > end or (place >= 0 and (kind == 7 or kind > 9)):
            return False
        if place >= 0:
            nulls[place, row] = kind == 0
            values[place, row] = _integer(data, at, kind)
        at += size
    return True


@compiled
def _decode_leaves(data: Any, page: Any, usable: Any, bases: Any, rows: Any, firsts: Any, target: Any, stop: Any,
                   rowids: Any, values: Any, nulls: Any) -> bool:  # fmt: skip
    """Decode the rows of some leaf pages; whether all were plain."""
    for leaf in range(len(bases)):
        base = bases[leaf]
        if 8 + 2 * rows[leaf] > page:
            return False
        for row in range(rows[leaf]):
            pointer = base + 8 + 2 * row
            at = base + (np.int64(data[pointer]) << 8 | np.int64(data[pointer + 1]))
            if not _decode_row(data, at, base + page, usable, target, stop, firsts[leaf] + row, values, nulls, rowids):
                return False
    return True
