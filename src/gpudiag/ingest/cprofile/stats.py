"""Functions of a profile, by the shape that cProfile gives its file: function → calls, times, callers."""

from __future__ import annotations

from typing import NamedTuple

from gpudiag.ingest.cprofile.marshalled import Cursor, NoProfile

MOST_BYTES = 128 << 20
"""Bytes of a profile: one of a large program has a few megabytes."""

MOST_FUNCTIONS, MOST_CALLERS = 200_000, 3_000_000
"""Functions, and pairs of a function and a caller, that are kept."""

Key = tuple[str, int, str]
"""File, first line, name; built-in functions have the file `~`."""


class Function(NamedTuple):
    """Calls and times of a function. callers: by whom it was called, and its own time then, where that is known."""

    calls: int
    self_s: float
    cumulative_s: float
    callers: dict[Key, float]


def begins(head: bytes) -> bool:
    """Return whether a file begins as a marshalled dict whose first key is a tuple of three: file, line, function."""
    if head[:1] in (b"{", b"\xfb") and head[1:] == b"0":  # of no function at all
        return True
    return len(head) > 2 and head[0] & 0x7F == 0x7B and head[1] & 0x7F in (0x28, 0x29) and head[2] == 3


def functions(data: bytes) -> dict[Key, Function]:
    """Return the functions of a profile. Raises NoProfile, in words, for bytes that are none."""
    cursor, found, pairs = Cursor(data), {}, 0
    cursor.begin_dict()
    while not cursor.ends_dict():
        key = _key(cursor)
        found[key] = function = _function(cursor)
        pairs += len(function.callers)
        if len(found) > MOST_FUNCTIONS or pairs > MOST_CALLERS:
            raise NoProfile(f"it holds more than {MOST_FUNCTIONS:,} functions or {MOST_CALLERS:,} callers")
    if cursor.at != len(data):
        raise NoProfile("something else follows the functions")
    return found


def _key(cursor: Cursor) -> Key:
    size, place, referred = cursor.begin_tuple()
    if isinstance(referred, tuple):
        if len(referred) == 3 and isinstance(referred[0], str) and isinstance(referred[2], str):
            return referred  # an earlier key: nothing else has a text at its ends
        raise NoProfile("a function in it has no name")
    if referred is not None or size != 3:
        raise NoProfile("a function in it has no name")
    key = cursor.text(), cursor.count(), cursor.text()
    cursor.keep(place, key)
    return key


def _function(cursor: Cursor) -> Function:
    size, _, referred = cursor.begin_tuple()
    if referred is not None or size != 5:
        raise NoProfile("the figures of a function in it are not those of a profile")
    cursor.count()  # calls that are no recursion
    calls, self_s, cumulative_s = cursor.count(), cursor.seconds(), cursor.seconds()
    callers: dict[Key, float] = {}
    cursor.begin_dict()
    while not cursor.ends_dict():
        key = _key(cursor)
        callers[key] = _own_time(cursor)
    return Function(calls, self_s, cumulative_s, callers)


def _own_time(cursor: Cursor) -> float:
    """Return the function's own time when that caller called it; 0 in a file of `profile`, which counts calls only."""
    if not cursor.is_tuple():
        value = cursor.number()
        return float(value[2]) if isinstance(value, tuple) and len(value) == 4 else 0.0
    size, place, _ = cursor.begin_tuple()
    if size != 4:
        raise NoProfile("the figures of a caller in it are not those of a profile")
    figures = cursor.count(), cursor.count(), cursor.seconds(), cursor.seconds()
    cursor.keep(place, figures)
    return figures[2]
