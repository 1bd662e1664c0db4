"""Memos: finished answers beside the kept stores, so that the same question costs no more than reading a small file.

A memo is one file that nobody writes to again: a line with the digest of all that follows and with the lengths of its
parts, then the parts, each compressed by itself. What differs from its digest is thrown away, and the answer is made
anew. As with stores, a full, read-only or missing cache is never an error.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpudiag.cache import entries, place
from gpudiag.cache.identity import key
from gpudiag.cache.place import Unkept
from gpudiag.lockfile import held
from gpudiag.options import Options

LARGEST = 16_000_000
"""Bytes of a memo; one has ten thousand, with a picture a hundred thousand."""

_LARGEST_PART = 8 * LARGEST
_HEAD = re.compile(rb"gpudiag memo 1 ([0-9a-f]{64}) ([a-z]+=\d{1,9}(?: [a-z]+=\d{1,9})*)\n")


@dataclass(frozen=True, slots=True)
class Memo:
    """Place in the cache for the answer to one question, filled or not.

    began: when the question was asked, in ns since 1970; about: what is asked where that is not the report.
    """

    file: Path
    paths: tuple[Path, ...]
    options: Options
    began: int
    about: str = ""

    def read(self, *wanted: str) -> list[bytes] | None:
        """The parts of these names, as they were kept; None unless all are there. What is damaged is thrown away."""
        try:
            content = _content(self.file)
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            self.discard()
            return None
        head = _HEAD.match(content)
        if head is None or _digest(self.file.name, head[2], content[head.end() :]) != head[1]:
            self.discard()
            return None
        parts = _parts(head[2].decode(), content[head.end() :])
        if not set(wanted) <= parts.keys():
            return None
        try:
            found = [zlib.decompressobj().decompress(parts[name], _LARGEST_PART) for name in wanted]
        except zlib.error:
            self.discard()
            return None
        with suppress(OSError):  # a read-only cache still serves
            os.utime(self.file, follow_symlinks=False)
        return found

    def keep(self, parts: Mapping[str, bytes]) -> None:
        """Write an answer in one step, if the files are still what they were, and there is room. Raises Unkept."""
        if not self.file.name.startswith(_key(self.paths, self.options, self.began, self.about)):
            raise Unkept("it changed while it was read")
        packed = {name: zlib.compress(content) for name, content in parts.items()}
        lengths = " ".join(f"{name}={len(content)}" for name, content in packed.items()).encode()
        body = b"".join(packed.values())
        content = b"gpudiag memo 1 %b %b\n%b" % (_digest(self.file.name, lengths, body), lengths, body)
        if len(content) > LARGEST:
            raise Unkept("its report is larger than a memo may be")
        try:
            if not entries.make_room(self.file.parent, len(content)):
                raise Unkept("its report is larger than the cache may be")
            entries.refuse_full(self.file.parent, len(content))
            self._write(content)
        except OSError as error:
            raise Unkept(str(error)) from None

    def discard(self) -> None:
        with suppress(OSError):
            self.file.unlink()

    def _write(self, content: bytes) -> None:
        """Beside the memo first, so that nobody ever sees half of it. Raises OSError."""
        part = self.file.with_name(f".{os.urandom(8).hex()}{entries.PART}")
        with held(part):
            part.write_bytes(content)
            part.chmod(0o400)
            part.rename(self.file)


def memo(paths: Sequence[Path], options: Options, about: str = "") -> Memo:
    """The place for what these options ask of these captures: the report, or what `about` names.

    Raises Unkept where nothing can be kept, GpudiagError where the cache's limit is no size.
    """
    if options.rule_dirs or options.overrides:
        # Rules of the user's may run out of time, and thresholds may have former names, of which each run warns.
        raise Unkept("own rules and thresholds are judged anew each time")
    if not place.limit():
        raise Unkept(f"{place.SIZE} is 0")
    began = time.time_ns()
    name = f"{_key(paths, options, began, about)}-{entries.label(paths, options)}{entries.MEMO}"
    return Memo(place.stores() / name, tuple(paths), options, began, about)


def _key(paths: Sequence[Path], options: Options, began: int, about: str) -> str:
    """A digest of everything that the answer depends on: the store's, and what is asked of it. Raises Unkept."""
    asked = (key(paths, options, began=began), sorted(options.iteration_times.items()), about)
    return hashlib.blake2b(repr(asked).encode(), digest_size=16).hexdigest()


def _content(file: Path) -> bytes:
    """The file, if it is one of ours. Raises OSError, and ValueError where it is none."""
    handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as stream:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_size > LARGEST:
            raise ValueError
        return stream.read(LARGEST)


def _digest(name: str, lengths: bytes, body: bytes) -> bytes:
    """Of the name, too: under another it is the answer to another question."""
    return hashlib.blake2b(b"\n".join((os.fsencode(name), lengths, body)), digest_size=32).hexdigest().encode()


def _parts(lengths: str, body: bytes) -> dict[str, bytes]:
    parts, at = {}, 0
    for one in lengths.split():
        name, _, length = one.partition("=")
        parts[name] = body[at : at + int(length)]
        at += int(length)
    return parts
