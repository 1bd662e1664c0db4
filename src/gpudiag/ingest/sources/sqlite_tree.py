"""Check the pages of a database's tables before SQLite follows them.

SQLite believes what a page says. A page that is its own descendant is read without end, and a thousand rows that share
one value take a thousand times its memory. In a sound file each page belongs to one place of one table, and all rows
together are no longer than the file: both are checked here, in one pass over the pages.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpudiag.ingest.limits import CHECKED_BYTES, DEEPEST

_HEADER = 100  # bytes before the first page's own
_LEAVES, _INTERIORS = (0x0D, 0x0A), (0x05, 0x02)  # of tables and of indexes
_LONGEST_VARINT = 7  # bytes: longer ones are of 56 bits or more
_ENDLESS = 1 << 40  # bytes: longer than any value, and a sum of these is still a number
_LEAST = 4  # bytes that a row takes beside its values: two to find it, its length, its number

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]


class _Level(NamedTuple):
    """Some pages of one level: their bytes with room behind, where each begins, its own header, and its rows."""

    data: Bytes
    begin: Ints
    head: Ints
    rows: Ints
    interior: bool


class Trees:
    """The pages of one file that were checked so far."""

    def __init__(self, path: Path) -> None:
        """Raises sqlite3.DatabaseError where the file's header cannot be."""
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        first = os.pread(self._file, _HEADER, 0)
        size = int.from_bytes(first[16:18], "big")
        self._page = 65_536 if size == 1 else size
        if len(first) < _HEADER or self._page < 512 or self._page & (self._page - 1):
            self.close()
            raise sqlite3.DatabaseError("its header states no size of pages")
        self._bytes = os.fstat(self._file).st_size
        self._seen = np.zeros(self._bytes // self._page + 1, dtype=bool)
        self._held = self._rows = 0

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def check(self, root: int) -> int:
        """Check the pages of the table or index at page `root`; gives how many rows its leaves have.

        Raises sqlite3.DatabaseError.
        """
        level: Ints = np.array([root])
        self._rows = 0
        for _ in range(DEEPEST):
            self._claim(level)
            step = max(1, CHECKED_BYTES // self._page)
            below = [self._below(level[at : at + step]) for at in range(0, len(level), step)]
            level = np.concatenate(below)
            if not len(level):
                return self._rows
            if any(not len(part) for part in below):
                raise sqlite3.DatabaseError("pages of different levels stand side by side")
        raise sqlite3.DatabaseError("its pages lead in circles")

    def _claim(self, pages: Ints) -> None:
        """Note that these pages were reached, each for the first time."""
        if pages.min() < 1 or pages.max() >= len(self._seen):
            raise sqlite3.DatabaseError("the file ends before a page that it names")
        if self._seen[pages].any() or len(np.unique(pages)) < len(pages):
            raise sqlite3.DatabaseError("a page is reached twice")
        self._seen[pages] = True

    def _below(self, pages: Ints) -> Ints:
        """The children of some pages; none of leaves, whose rows are counted."""
        level = self._level(pages)
        held, at = self._cells(level)
        self._held += held
        if self._held > self._bytes:
            raise sqlite3.DatabaseError("its rows are longer than the file, so some share their pages")
        if not level.interior:
            self._rows += len(at)
            return np.zeros(0, dtype=np.int64)
        at = np.concatenate([at, level.begin + level.head + 8])  # the last child stands in the page's header
        children: Ints = level.data[at[:, None] + np.arange(4)].astype(np.int64) @ np.array(
            [1 << 24, 1 << 16, 1 << 8, 1]
        )
        return children

    def _level(self, pages: Ints) -> _Level:
        data = np.zeros(len(pages) * self._page + self._page, dtype=np.uint8)
        view, done = memoryview(data.data), 0
        for run in np.split(pages, np.flatnonzero(np.diff(pages) != 1) + 1):
            place, until = (int(run[0]) - 1) * self._page, done + len(run) * self._page
            while done < until:
                got = os.preadv(self._file, [view[done:until]], place)
                if not got:
                    raise sqlite3.DatabaseError("the file ends before a page that it names")
                done, place = done + got, place + got
        begin = np.arange(len(pages), dtype=np.int64) * self._page
        head = np.where(pages == 1, _HEADER, 0)
        own = begin + head
        kinds = {int(kind) for kind in np.unique(data[own])}
        if len(kinds) != 1 or not kinds <= {*_LEAVES, *_INTERIORS}:
            raise sqlite3.DatabaseError("a page is none of its table")
        rows = data[own + 3].astype(np.int64) << 8 | data[own + 4]
        if (head + (12 if kinds <= {*_INTERIORS} else 8) + 2 * rows > self._page).any():
            raise sqlite3.DatabaseError("a page states more rows than fit")
        return _Level(data, begin, head, rows, kinds <= {*_INTERIORS})

    def _cells(self, level: _Level) -> tuple[int, Ints]:
        """The bytes that the rows of some pages say they have, and where each begins."""
        page = np.repeat(np.arange(len(level.begin)), level.rows)
        place = np.arange(len(page)) - np.repeat(np.cumsum(level.rows) - level.rows, level.rows)
        pointer = level.begin[page] + level.head[page] + (12 if level.interior else 8) + 2 * place
        inside = level.data[pointer].astype(np.int64) << 8 | level.data[pointer + 1]
        at = level.begin[page] + inside
        if len(at) and inside.max() + 4 > self._page:
            raise sqlite3.DatabaseError("a row begins outside its page")
        if level.interior and level.data[level.begin[0] + level.head[0]] == _INTERIORS[0]:
            return 0, at  # of a table, they hold numbers of rows alone
        return _stated(level.data, at + (4 if level.interior else 0)) + _LEAST * len(at), at


def _stated(data: Bytes, at: Ints) -> int:
    """The sum of the variable-length numbers at these places. Raises sqlite3.DatabaseError where one has no end."""
    total, number = 0, np.zeros(len(at), dtype=np.int64)
    for _ in range(_LONGEST_VARINT):
        byte = data[at].astype(np.int64)
        number = number << 7 | (byte & 127)
        more = byte > 127
        total += int(np.minimum(number[~more], _ENDLESS).sum())
        if not more.any():
            return total
        at, number = at[more] + 1, number[more]
    raise sqlite3.DatabaseError("the length of a row cannot be")
