"""The streams of a packed file: columns as bytes, small ones together and larger ones by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluation.packed import columns as coder
from evaluation.packed.columns import Coding, Columns, Ints

SMALL = 4096  # bytes of what shares a stream


@dataclass
class Writer:
    """Takes columns one after another."""

    small: bytearray = field(default_factory=bytearray)
    large: bytearray = field(default_factory=bytearray)

    def put(self, column: Ints, known: Columns, joined: Columns, carries: Sequence[str] = ()) -> list[Any]:
        """Write a column; returns the size of its stream (0: the common one) and its coding."""
        coding, raw = coder.coded(column, known, joined, carries)
        return [self.put_bytes(raw, coding.literal), *coding.dump()]

    def put_bytes(self, raw: bytes, literal: int) -> int:
        """Write bytes; returns the size of their stream (0: the common one)."""
        if len(raw) < SMALL:
            self.small += raw
            return 0
        packed = coder.squeeze(raw, literal)
        self.large += packed
        return len(packed)


@dataclass
class Reader:
    """Gives the columns back, in the same order."""

    small: bytes
    large: bytes

    def take(self, entry: Sequence[Any], rows: int, known: Columns, joined: Columns) -> Ints:
        """Read a column, of which `put` returned the entry."""
        coding = Coding.load(entry[1:])
        raw = self.take_bytes(entry[0], rows * coding.width, coding.literal)
        return coder.values(coder.unplaned(raw, rows, coding.width), coding, known, joined)

    def take_bytes(self, packed: int, size: int, literal: int) -> bytes:
        """Read `size` bytes, of which `put_bytes` returned the size of the stream."""
        if not packed:
            raw, self.small = self.small[:size], self.small[size:]
            return raw
        stream, self.large = self.large[:packed], self.large[packed:]
        return coder.unsqueeze(stream, size, literal)
