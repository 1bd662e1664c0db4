"""Large all-integer SQLite tables, decoded from their pages by compiled code: twice as fast as a driver.

Uses numba. Only plain tables are decoded: no text or real value in a wanted column, no key that
replaces the row id, no row that overflows its page. Anything else raises Unsuited, and the general reader takes over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpudiag.jit import compiled

BATCH_BYTES = 32 << 20
"""Pages decoded at once: with the batch that is read ahead this takes about 200 MB for the widest table."""

_LEAF, _INTERIOR = 0x0D, 0x05
_MAX_DEPTH = 20
_HEADER = 100  # bytes before the first page's own
_CELLS = 12  # where an interior page's list of cells begins

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]


class Unsuited(Exception):
    """The table is not plain enough for this reader, or the file not whole; says how."""


_CUT = "the file ends before a page that it names"
_ODD = "its pages are not those of a plain table"


class Pages:
    """The pages of a database file, read and not mapped: when a mapped file is cut short, its reader dies."""

    def __init__(self, path: Path) -> None:
        with path.open("rb", buffering=0) as file:
            first = file.read(_HEADER)
        if len(first) < _HEADER:
            raise Unsuited(_CUT)
        size = int.from_bytes(first[16:18], "big")
        self._page = 65_536 if size == 1 else size
        self._usable = self._page - first[20]
        if self._page < 512 or self._page & (self._page - 1):
            raise Unsuited(_ODD)
        self._pages = path.stat().st_size // self._page
        self._last = -(2**63)
        self._file = path.open("rb", buffering=0)

    def close(self) -> None:
        self._file.close()

    def batches(self, root: int, width: int, wanted: Sequence[int]) -> Iterator[tuple[Ints, list[Any]]]:
        """Row ids and the wanted columns (by position, of `width` stored ones) of the table at page `root`, in order.

        Columns with NULLs are masked arrays. Raises Unsuited, between batches too.
        """
        leaves = self._leaves(root)
        parts = np.array_split(leaves, range(step := max(1, BATCH_BYTES // self._page), len(leaves), step))
        # Compiled code runs without the interpreter lock: one batch is decoded while the last one is inserted.
        with ThreadPoolExecutor(1) as ahead:
            future = ahead.submit(self._decode, parts[0], width, wanted)
            for part in parts[1:]:
                batch = future.result()
                future = ahead.submit(self._decode, part, width, wanted)
                yield batch
            yield future.result()

    def _leaves(self, root: int) -> Ints:
        """The numbers of a table's leaf pages, in the order of their rows."""
        level: Ints = np.array([root])
        for _ in range(_MAX_DEPTH):
            if not len(level) or level.min() < 2 or level.max() > self._pages or len(level) > self._pages:
                break
            if len(np.unique(level)) < len(level):
                raise Unsuited(_ODD)  # a page that is reached twice could be reached without end
            kind = self._read(level[:1])[0]  # all pages of a level are of one kind; decoding looks at each
            if kind == _LEAF:
                return level
            if kind != _INTERIOR:
                break
            level = np.concatenate([self._children(page) for page in np.split(level, len(level))])
        raise Unsuited(_ODD)

    def _children(self, page: Ints) -> Ints:
        data = self._read(page)
        cells = int(data[3]) << 8 | int(data[4])
        if data[0] != _INTERIOR or _CELLS + 2 * cells > self._page:
            raise Unsuited(_ODD)
        listed = data[_CELLS : _CELLS + 2 * cells].astype(np.int64)
        at = np.append(listed[0::2] << 8 | listed[1::2], 8)  # the child after the last cell stands in the page's header
        if int(at.max()) + 4 > self._page:
            raise Unsuited(_ODD)
        number: Ints = data[at[:, None] + np.arange(4)].astype(np.int64) @ np.array([1 << 24, 1 << 16, 1 << 8, 1])
        return number

    def _read(self, pages: Ints) -> Bytes:
        """The bytes of some pages, one after another."""
        data = np.empty(len(pages) * self._page, dtype=np.uint8)
        view, done = memoryview(data.data), 0
        for run in np.split(pages, np.flatnonzero(np.diff(pages) != 1) + 1):
            self._file.seek((int(run[0]) - 1) * self._page)
            until = done + len(run) * self._page
            while done < until:
                got = self._file.readinto(view[done:until])
                if not got:
                    raise Unsuited(_CUT)
                done += got
        return data

    def _decode(self, leaves: Ints, width: int, wanted: Sequence[int]) -> tuple[Ints, list[Any]]:
        data = self._read(leaves)
        bases = np.arange(len(leaves)) * self._page
        rows = data[bases + 3].astype(np.int64) << 8 | data[bases + 4]
        least = 5 + width  # bytes of a row: where it is, its length, its number, and what its values are
        if (8 + least * rows > self._page).any():  # before memory is asked for so many
            raise Unsuited(_ODD)
        total = int(rows.sum())
        target = np.full(width, -1, dtype=np.int64)
        target[list(wanted)] = np.arange(len(wanted))
        rowids = np.empty(total, dtype=np.int64)
        values = np.empty((len(wanted), total), dtype=np.int64)
        nulls, some = np.zeros((len(wanted), total), dtype=np.bool_), np.zeros(len(wanted), dtype=np.bool_)
        firsts = np.cumsum(rows) - rows
        place = (data, self._page, self._usable, bases, rows, firsts)
        filled = (rowids, values, nulls, some)
        if (data[bases] != _LEAF).any() or not _decode_leaves(*place, target, max(wanted) + 1, *filled):
            raise Unsuited("a wanted column holds something else than integers, or a row overflows its page")
        # Rows out of order are pages that a damaged file leads to twice.
        if total and (rowids[0] <= self._last or (rowids[1:] <= rowids[:-1]).any()):
            raise Unsuited(_ODD)
        self._last = int(rowids[-1]) if total else self._last
        columns = [
            np.ma.masked_array(column, mask=mask) if null else column
            for column, mask, null in zip(values, nulls, some, strict=True)
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
def _integer(data: Any, at: Any, size: Any) -> Any:
    """A big-endian integer of so many bytes."""
    number = np.int64(np.int8(data[at]))
    if size == 4:  # the usual sizes without a loop
        return number << 24 | np.int64(data[at + 1]) << 16 | np.int64(data[at + 2]) << 8 | np.int64(data[at + 3])
    if size == 6:
        high = number << 16 | np.int64(data[at + 1]) << 8 | np.int64(data[at + 2])
        low = np.int64(data[at + 3]) << 16 | np.int64(data[at + 4]) << 8 | np.int64(data[at + 5])
        return high << 24 | low
    for k in range(1, size):
        number = number << 8 | np.int64(data[at + k])
    return number


@compiled
def _laid_out(data: Any, header: Any, target: Any, shape: Any, layout: Any) -> Any:
    """Notes the serial types of a row in `shape` and where its wanted values are in `layout`; bytes up to the last one.

    layout: a row each: place among the wanted ones, offset from the body, bytes (0 for a constant), the constant,
    whether it is NULL. Gives -1 where the row is not plain.
    """
    at = np.int64(0)
    wanted = 0
    for column in range(len(shape)):
        kind = np.int64(data[header + column])
        shape[column] = kind
        place = target[column]
        if kind > 127 or (place >= 0 and (kind == 7 or kind > 9)):
            shape[0] = 255  # no row is like this one
            return np.int64(-1)
        size = _size(kind)
        if place >= 0:
            layout[wanted, 0], layout[wanted, 1], layout[wanted, 2] = place, at, size
            layout[wanted, 3], layout[wanted, 4] = kind == 9, kind == 0
            wanted += 1
        at += size
    return at


@compiled
def _decode_leaves(data: Any, page: Any, usable: Any, bases: Any, rows: Any, firsts: Any, target: Any, stop: Any,
                   rowids: Any, values: Any, nulls: Any, some: Any) -> bool:  # fmt: skip
    """Decode the rows of some leaf pages; whether all were plain.

    Rows of a table mostly have the same serial types as the row before: then its layout holds for them, too.
    """
    width = len(target)
    shape = np.full(stop, 255, dtype=np.uint8)
    layout = np.zeros((len(values), 5), dtype=np.int64)
    body = np.int64(-1)
    for leaf in range(len(bases)):
        base = bases[leaf]
        limit = base + page
        if 8 + 2 * rows[leaf] > page:
            return False
        for number in range(rows[leaf]):
            pointer = base + 8 + 2 * number
            at = base + (np.int64(data[pointer]) << 8 | np.int64(data[pointer + 1]))
            payload, at = _varint(data, at, limit)
            if at < 0:
                return False
            rowid, at = _varint(data, at, limit)
            if at < 0 or payload > usable - 35 or payload < 1 + width or at + payload > limit or data[at] != 1 + width:
                return False
            row, header = firsts[leaf] + number, at + 1
            rowids[row] = rowid
            for column in range(stop):
                if data[header + column] != shape[column]:
                    body = _laid_out(data, header, target, shape, layout)
                    break
            if body < 0 or header + width + body > at + payload:
                return False
            for k in range(len(layout)):
                place, size = layout[k, 0], layout[k, 2]
                if size:
                    values[place, row] = _integer(data, header + width + layout[k, 1], size)
                else:
                    values[place, row] = layout[k, 3]
                    if layout[k, 4]:
                        nulls[place, row] = some[place] = True
    return True
