"""Check that a .ncu-rep is complete: NVIDIA's package reads the first half of a truncated report without a word.

A report is a header and a chain of blocks that state their length; NVIDIA publishes the layout as `.proto` files in
Nsight Compute's folder extras/FileFormat. Only lengths are read here.
"""

from __future__ import annotations

import os
from pathlib import Path

_VERSION = 7  # of the layout, by the file's header; so since 2022 at least
_HEADER = 1  # its field that holds the version
_PAYLOAD = 5  # a block's field that holds the length of what follows its header
_INTEGERS, _TEXTS = {1, 2, _PAYLOAD, 7, 8, 9}, {3, 4, 6}  # all fields that a block's header has
_BLOCKS = 100_000  # read at most; a report has a few a launch
_MOST = 256 * 1024**2  # bytes of one header, which holds the strings of its block


def is_cut(path: Path) -> bool:
    """Return whether the file ends within a block; False too where the layout is not the one known here."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(4)
        size = int.from_bytes(file.read(4), "little")
        at = 8 + size
        if at >= end:
            return True
        if _integers(file.read(min(size, 64))) != {_HEADER: _VERSION}:
            return False
        for _ in range(_BLOCKS):
            if at >= end:
                break
            file.seek(at)
            size = int.from_bytes(file.read(4), "little")
            at += 4 + size
            if at > end:
                return True
            fields = _integers(file.read(size)) if size < _MOST else None
            if not fields:  # zeros are no block either
                return False
            at += fields.get(_PAYLOAD, 0)
        return at > end


def _integers(message: bytes) -> dict[int, int] | None:
    """The integers of a protobuf message by field number; None when it has fields that no block has."""
    found: dict[int, int] = {}
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        value, at = _varint(message, at)
        field, kind = key >> 3, key & 7
        if kind == 0 and field in _INTEGERS:
            found[field] = value
        elif kind == 2 and field in _TEXTS:
            at += value
        else:
            return None
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number and where the next one begins: seven bits a byte, the lowest first."""
    value = 0
    for shift, byte in enumerate(message[at : at + 10]):
        value |= (byte & 127) << 7 * shift
        if byte < 128:
            return value, at + shift + 1
    return value, at + 10
