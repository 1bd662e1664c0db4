"""The JSON of a trace: its list of events, cut out into a file of its own, and what is stated beside the list.

A trace is one JSON object of up to gigabytes, of which all but a few kilobytes is the list `traceEvents`. DuckDB reads
that list by stream once it stands alone. What Kineto writes that is no JSON is repaired on the way.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from gpudiag.errors import GpudiagError
from gpudiag.ingest.pace import Pace

_CHUNK = 4 << 20
_LONGEST_HEAD = 64 << 20
"""Bytes before the list: a few kilobytes, and of traces that a tool wrote anew perhaps a list of packages."""
_TAILS = (1 << 16, 1 << 20, 16 << 20)
"""Bytes at the end in which the list is looked for to end: messages of the profiler may follow it."""

_PARTS, _SMALL = 4, 32 << 20
"""Files that a long list is cut into, each of this many bytes or more."""
_BETWEEN = re.compile(rb'\}\s*,\s*(\{\s*"ph"\s*:)')
"""Between two events. No text holds it: quotes in it would be escaped."""

_LIST = re.compile(rb'"traceEvents"\s*:\s*\[')
_SPACES = bytes(32 if byte < 32 else byte for byte in range(256))
"""Control characters as spaces: between values they mean no more, and inside names JSON does not allow them."""
_TIME = re.compile(rb'"ts"\s*:\s*(-?[0-9.]+)')
_FINE = re.compile(rb'"ts"\s*:\s*[0-9]{14,}\.[0-9]')
"""Microseconds since 1970 with decimals: more digits than a floating-point number holds, so that they are read as text.
"""
_ESCAPE = re.compile(rb'\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4})(\\u[dD][c-fC-F][0-9a-fA-F]{2})?|)')


def begins(head: bytes) -> bool:
    """Return whether a file that begins so is a trace of torch.profiler, or one that looks like it."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start[:1] not in (b"{", b"["):
        return False
    if start[:1] == b"[":
        return re.match(rb'\[\s*\{[^{}]*"ph"\s*:', start) is not None
    return re.search(rb'"(traceEvents|schemaVersion|deviceProperties)"\s*:', start) is not None


def cut(
    file: Path, folder: Path, shown: Path, say: Callable[[str], None] = lambda _: None
) -> tuple[dict[str, Any], list[Path]]:
    """Write the list of events to files in `folder`, and return what the object states beside it, and these files.

    Each is a list by itself: DuckDB reads a list with one thread, but several at a time. say: hears the progress.
    Raises GpudiagError where the
    list does not end, or the object holds none.
    """
    size = file.stat().st_size
    with file.open("rb") as source:
        head, first = _head(source, shown)
        tail, last = (b"}", _end(source, size, first, shown, alone=True)[1]) if not head else _end(
            source, size, first, shown
        )  # fmt: skip
        source.seek(first)
        pace = Pace(say, f"reading {shown.name}", last - first)
        chunks = _cleaned(_chunks(source, last - first, pace))
        parts = _written(chunks, folder, max((last - first) // _PARTS, _SMALL))
    return _stated(head, tail), parts


def _written(chunks: Iterator[bytes], folder: Path, size: int) -> list[Path]:
    """Write the list to files of about this many bytes each, cut between two events."""
    parts = [folder / "events-0.json"]
    sink = parts[0].open("wb")
    try:
        for chunk in chunks:
            between = _BETWEEN.search(chunk) if sink.tell() >= size else None
            if between:
                sink.write(chunk[: between.start() + 1] + b"]")
                sink.close()
                parts.append(folder / f"events-{len(parts)}.json")
                sink = parts[-1].open("wb")
                chunk = b"[" + chunk[between.end() - len(between[1]) :]
            sink.write(chunk)
    finally:
        sink.close()
    return parts


def repair(file: Path) -> None:
    """Repair escapes that JSON does not have (a Windows path, half a surrogate pair) in a list that was cut out."""
    repaired = file.with_suffix(".repaired")
    with file.open("rb") as source, repaired.open("wb") as sink:
        rest = b""
        while chunk := source.read(_CHUNK):
            chunk = rest + chunk
            # An escape has at most twelve characters; a backslash begins one only where it is not escaped itself.
            at = chunk.rfind(b'"', 0, max(len(chunk) - 12, 0)) + 1
            while at > 1 and chunk[at - 2 : at - 1] == b"\\":
                at = chunk.rfind(b'"', 0, at - 1) + 1
            sink.write(_ESCAPE.sub(_escape, chunk[:at]))
            rest = chunk[at:]
        sink.write(_ESCAPE.sub(_escape, rest))
    repaired.replace(file)


def _escape(found: re.Match[bytes]) -> bytes:
    known, unit, low = found.groups()
    if known:
        return found[0]
    if unit is None:
        return b"\\\\"
    high = b"D800" <= unit.upper() <= b"DBFF"
    alone = b"D800" <= unit.upper() <= b"DFFF"
    if alone and not (high and low):
        return b"\\ufffd" + (b"\\ufffd" if low else b"")
    return found[0]


def _head(source: IO[bytes], shown: Path) -> tuple[bytes, int]:
    """Return what precedes the list, nothing where the file is one, and where the list begins."""
    head = source.read(_CHUNK)
    start = re.match(rb"\xef\xbb\xbf|", head)
    opening = re.compile(rb"\s*\[").match(head, start.end() if start else 0)
    if opening:
        return b"", opening.end() - 1
    searched = 0
    while not (found := _LIST.search(head, searched)):
        searched = max(0, len(head) - 100)
        more = source.read(_CHUNK)
        if not more or len(head) > _LONGEST_HEAD:
            reason = "it holds no list of events" if not more else "its list of events lies too far behind"
            raise GpudiagError(f"{shown}: {reason}, so it is no trace of torch.profiler, or a part of one.")
        head += more
    return head[: found.end() - 1], found.end() - 1


def _end(source: IO[bytes], size: int, first: int, shown: Path, *, alone: bool = False) -> tuple[bytes, int]:
    """Return what follows the list, and where it ends: at the first bracket after which a whole object's end comes."""
    for window in _TAILS:
        begin = max(first + 1, size - window)
        source.seek(begin)
        text = source.read().translate(_SPACES)
        for found in re.finditer(rb"\]", text):
            rest = text[found.end() :]
            if alone:
                if not rest.strip(b" ,"):
                    return b"", begin + found.end()
            elif _stated(b'{"traceEvents":', rest, strict=True):
                return rest, begin + found.end()
        if begin == first + 1:
            break
    raise GpudiagError(
        f"{shown}: the trace is cut short: its list of events does not end; copy it again, or record anew."
    )


def _stated(head: bytes, tail: bytes, *, strict: bool = False) -> dict[str, Any]:
    """Return the object with an empty list of events; of one that cannot be read only what follows the list."""
    for begin in (head, b'{"traceEvents":'):
        try:
            found = json.loads((begin + b"[]" + tail).decode("utf-8", "replace"), strict=False)
        except (ValueError, RecursionError):
            if strict:
                return {}
            continue
        if isinstance(found, dict):
            return found
    return {}


def _chunks(source: IO[bytes], length: int, pace: Pace) -> Iterator[bytes]:
    whole = length
    while length > 0 and (chunk := source.read(min(_CHUNK, length))):
        length -= len(chunk)
        pace.reached(whole - length)
        yield chunk


def _cleaned(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Give the same text as UTF-8 without control characters; times with many digits as text."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    fine, rest = None, b""
    for chunk in chunks:
        chunk = chunk.translate(_SPACES)
        if not chunk.isascii() or decoder.getstate()[0]:
            chunk = decoder.decode(chunk).encode()
        if fine is None:
            fine = _FINE.search(chunk) is not None
        if fine:
            chunk = rest + chunk
            at = chunk.rfind(b",") + 1  # no time holds one
            chunk, rest = _TIME.sub(rb'"ts":"\1"', chunk[:at]), chunk[at:]
        yield chunk
    yield _TIME.sub(rb'"ts":"\1"', rest) + decoder.decode(b"", final=True).encode()
