"""Large all-integer SQLite tables, decoded from their pages by compiled code: twice as fast as a driver.

Needs numba (the extra `fast`). Only plain tables are decoded: no text or real value in a wanted column, no key that
replaces the row id, no row that overflows its page. Anything else raises Unsuited, and the general reader takes over.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

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
        parts = [(bases[a:b], rows[a:b]) for a, b in zip(cuts, cuts[1:], strict=False)]
        # Compiled code runs without the interpreter lock: one batch is decoded while the last one is inserted.
        with ThreadPoolExecutor(1) as ahead:
            future = ahead.submit(self._decode, *parts[0], width, wanted)
            for part in parts[1:]:
                batch = future.result()
                future = ahead.submit(self._decode, *part, width, wanted)
                yield batch
            yield future.result()

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
        fine = np.zeros(len(bases), dtype=np.bool_)
        firsts = np.cumsum(rows) - rows
        _decode_leaves(
            self._bytes, self._page, self._usable, bases, rows, firsts, target, max(wanted) + 1, rowids, values, nulls, fine
        )
        if not fine.all():
            raise Unsuited
        columns = [
            np.ma.masked_array(column, mask=mask) if mask.any() else column
            for column, mask in zip(values, nulls, strict=True)
        ]
        return rowids, columns


@numba.njit(cache=True, nogil=True, parallel=True)  # type: ignore[untyped-decorator]
def _decode_leaves(
    data, page, usable, bases, rows, firsts, target, stop, rowids, values, nulls, fine
):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Decode the rows of some leaf pages; `fine` tells for each whether it was plain and lay within its bounds."""
    sizes = np.array([0, 1, 2, 3, 4, 6, 8], dtype=np.int64)
    width = len(target)
    for leaf in numba.prange(len(bases)):
        base = bases[leaf]
        limit = base + page
        good = data[base] == 0x0D and 8 + 2 * rows[leaf] <= page
        for row in range(rows[leaf] if good else 0):
            at = base + 8 + 2 * row
            at = base + (np.int64(data[at]) << 8 | np.int64(data[at + 1]))
            if at + 12 + width > limit:
                # Too near the end for a header: the row is short, or the page is damaged.
                if at + 3 + width > limit:
                    good = False
                    break
            payload = np.int64(0)
            rowid = np.int64(0)
            for part in range(2):
                number = np.int64(0)
                for _ in range(8):
                    if at >= limit:
                        good = False
                        break
                    byte = np.int64(data[at])
                    at += 1
                    number = number << 7 | (byte & 127)
                    if byte < 128:
                        break
                else:
                    good = False
                if part == 0:
                    payload = number
                else:
                    rowid = number
            if not good or payload > usable - 35 or at + payload > limit or payload < 1 + width:
                good = False
                break
            if data[at] != 1 + width:
                good = False
                break
            end = at + payload
            header = at + 1
            at = header + width
            out = firsts[leaf] + row
            rowids[out] = rowid
            for column in range(stop):
                kind = np.int64(data[header + column])
                place = target[column]
                if kind > 127 or (place >= 0 and (kind == 7 or kind > 9)):
                    good = False
                    break
                size = np.int64(0)
                if kind <= 6:
                    size = sizes[kind]
                elif kind == 7:
                    size = np.int64(8)
                elif kind >= 12:
                    size = (kind - 12) // 2
                if at + size > end:
                    good = False
                    break
                if place >= 0:
                    if kind == 0:
                        nulls[place, out] = True
                    elif kind >= 8:
                        values[place, out] = kind - 8
                    else:
                        number = np.int64(np.int8(data[at]))
                        for k in range(1, size):
                            number = number << 8 | np.int64(data[at + k])
                        values[place, out] = number
                at += size
            if not good:
                break
        fine[leaf] = good
