"""Values of Python's marshal format, of the few types that a profile holds: no object is built that is not asked for.

`marshal.loads` trusts its input: sizes that a file states are allocated, and code objects are made. Here the file is
walked by the shape that a profile has, and each size is checked against the bytes that are left.
"""

from __future__ import annotations

import math
import struct

LONGEST_TEXT = 4_096
"""Bytes of a file's or a function's name: a path has no more."""

_LARGEST = 1 << 62
_FLAG = 0x80  # the value may be referred to later
_REF = ord("r")


class NoProfile(Exception):
    """The bytes are no profile; in words."""


class Cursor:
    """A place in a marshalled file, and the values that were marked to be referred to."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self._refs: list[object] = []
        self._interned: list[str] = []

    def _take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.data):
            raise NoProfile("it is cut off")
        self.at += count
        return self.data[self.at - count : self.at]

    def _integer(self) -> int:
        return int(struct.unpack("<i", self._take(4))[0])

    def _code(self) -> tuple[int, int | None]:
        """Return the type of the next value, and its place among the references: a container's comes first."""
        byte = self._take(1)[0]
        place = None
        if byte & _FLAG:
            place = len(self._refs)
            self._refs.append(None)
        return byte & ~_FLAG, place

    def _kept(self, place: int | None, value: object) -> None:
        if place is not None:
            self._refs[place] = value

    def _referred(self) -> object:
        number = self._integer()
        if not 0 <= number < len(self._refs):
            raise NoProfile("it refers to what is not in it")
        return self._refs[number]

    def begin_dict(self) -> None:
        code, place = self._code()
        if code != ord("{"):
            raise NoProfile("it holds something else than functions")
        self._kept(place, None)  # nothing refers to a whole dictionary

    def ends_dict(self) -> bool:
        """Return whether the dictionary ends here, and pass over its end."""
        if self.at < len(self.data) and self.data[self.at] == ord("0"):
            self.at += 1
            return True
        return False

    def begin_tuple(self) -> tuple[int, int | None, object]:
        """Return how many values follow, and where to keep the tuple; or the tuple referred to."""
        code, place = self._code()
        if code == _REF:
            return 0, None, self._referred()
        if code == ord(")"):
            return self._take(1)[0], place, None
        if code == ord("("):
            return self._integer(), place, None
        raise NoProfile("it holds something else than functions")

    def is_tuple(self) -> bool:
        """Return whether a tuple that is written out follows."""
        return self.at < len(self.data) and chr(self.data[self.at] & ~_FLAG) in "()"

    def number(self) -> object:
        """Return the value referred to, if one is, else a count."""
        if self.at < len(self.data) and self.data[self.at] & ~_FLAG == _REF:
            self.at += 1
            return self._referred()
        return self.count()

    def keep(self, place: int | None, value: object) -> None:
        """Keep a finished tuple for those that refer to it."""
        self._kept(place, value)

    def text(self) -> str:
        code, place = self._code()
        if code == _REF:
            return _is_text(self._referred())
        if code == ord("R"):  # Python 2
            number = self._integer()
            if not 0 <= number < len(self._interned):
                raise NoProfile("it refers to what is not in it")
            return self._interned[number]
        if chr(code) in "zZ":
            size = self._take(1)[0]
        elif chr(code) in "aAust":
            size = self._integer()
        else:
            raise NoProfile("a name in it is no text")
        if size > LONGEST_TEXT:
            raise NoProfile(f"a name in it has more than {LONGEST_TEXT:,} bytes")
        value = self._take(size).decode("utf-8", "replace")
        self._kept(place, value)
        if code == ord("t"):
            self._interned.append(value)
        return value

    def count(self) -> int:
        """Return a whole number that is not negative."""
        code, place = self._code()
        if code == _REF:
            return _is_count(self._referred())
        if code == ord("i"):
            value = self._integer()
        elif code == ord("I"):
            value = int(struct.unpack("<q", self._take(8))[0])
        elif code == ord("l"):
            digits = self._integer()
            if not 0 <= digits <= 5:
                raise NoProfile("a count in it cannot be")
            value = sum(struct.unpack("<H", self._take(2))[0] << (15 * place_of) for place_of in range(digits))
        else:
            raise NoProfile("a count in it is no number")
        self._kept(place, value)
        return _is_count(value)

    def seconds(self) -> float:
        """Return a time that is not negative; those of a clock that went backwards are none."""
        code, place = self._code()
        if code == _REF:
            return _is_time(self._referred())
        if code == ord("g"):
            value = float(struct.unpack("<d", self._take(8))[0])
        elif code == ord("f"):
            value = _parsed(self._take(self._take(1)[0]))
        elif code == ord("i"):
            value = float(self._integer())
        else:
            raise NoProfile("a time in it is no number")
        self._kept(place, value)
        return _is_time(value)


def _parsed(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        raise NoProfile("a time in it is no number") from None


def _is_text(value: object) -> str:
    if not isinstance(value, str):
        raise NoProfile("a name in it is no text")
    return value


def _is_count(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value < _LARGEST:
        raise NoProfile("a count in it cannot be")
    return value


def _is_time(value: object) -> float:
    if not isinstance(value, float) or not math.isfinite(value) or value > 1e9:
        raise NoProfile("a time in it cannot be")
    return max(0.0, value)
