"""Entries of the cache: found, put there in one step, thrown away when damaged or when there is too much.

A store is a DuckDB file that nobody writes to again. DuckDB checks every block that it reads, so what is damaged
says so. Memos of answers (`memo`) lie beside the stores and count like them. Nothing here raises because of a full,
read-only or missing cache: the capture is read instead.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpudiag.cache import place
from gpudiag.cache.identity import key
from gpudiag.cache.place import Unkept
from gpudiag.lockfile import held, left_behind
from gpudiag.options import Options
from gpudiag.schema import BY_NAME

if TYPE_CHECKING:
    import duckdb

SUFFIX = ".duckdb"
MEMO = ".memo"
PART = ".part"
MOST_MEMOS = 2_000
"""Answers that are kept: looking through their folder has to stay a matter of milliseconds."""

_LONGEST_LABEL = 70
_NAME = re.compile(r"([0-9a-f]{32})-([\w.+-]{1,80})(\.duckdb|\.memo)", re.ASCII)
_NOT_IN_NAMES = re.compile(r"[^\w.+-]+", re.ASCII)


class Damaged(Exception):
    """A kept store that cannot be read."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Place in the cache for the store of some captures, filled or not."""

    file: Path
    paths: tuple[Path, ...]
    options: Options

    def filled(self) -> bool:
        """Return whether the store is there, and record that it was used."""
        with suppress(OSError):  # a read-only cache still serves
            os.utime(self.file, follow_symlinks=False)
        return self.file.is_file()

    def sign(self, con: duckdb.DuckDBPyConnection) -> None:
        """Writes into a store for which captures it is."""
        con.execute("create table kept_for as select ? as file", [self.file.name])

    def signed(self, con: duckdb.DuckDBPyConnection) -> bool:
        """Return whether a store is the complete one that was kept here. Raises duckdb.Error where it is no store."""
        (names,) = con.execute("select list(table_name) from duckdb_tables()").fetchall()[0]
        return set(BY_NAME) <= set(names) and con.execute("from kept_for").fetchall() == [(self.file.name,)]

    def discard(self) -> None:
        with suppress(OSError):
            self.file.unlink()


@dataclass(frozen=True, slots=True)
class Entry:
    """One kept store or memo, for people: of which capture, how large, when last used (seconds since 1970)."""

    file: Path
    capture: str
    bytes: int
    used: float

    @property
    def answer(self) -> bool:
        """Return whether it is the memo of an answer, not a store."""
        return self.file.name.endswith(MEMO)


def slot(paths: Sequence[Path], options: Options) -> Slot:
    """Raises Unkept where nothing can be kept, GpudiagError where the limit is no size."""
    if not place.limit():
        raise Unkept(f"{place.SIZE} is 0")
    name = f"{key(paths, options)}-{label(paths, options)}{SUFFIX}"
    return Slot(place.stores() / name, tuple(paths), options)


def label(paths: Sequence[Path], options: Options) -> str:
    """The captures' names and the part that was selected, as far as a file's name can hold them."""
    first = _NOT_IN_NAMES.sub("_", paths[0].name).lstrip(".-")[:_LONGEST_LABEL] or "capture"
    names = f"{first}+{len(paths) - 1}" if len(paths) > 1 else first
    part = _NOT_IN_NAMES.sub("_", " ".join(options.selection.options))
    return f"{names}_{part}"[:_LONGEST_LABEL] if part else names


def keep(slot: Slot, store: Path, began: int) -> None:
    """Moves a closed store into its slot, if its files are still what they were, and there is room.

    began: when reading the captures started, in ns since 1970. Raises Unkept where it is not kept; the slot is
    then as it was.
    """
    if not slot.file.name.startswith(key(slot.paths, slot.options, began=began)):
        raise Unkept("it changed while it was read")
    if store.with_name(f"{store.name}.wal").exists():
        raise Unkept("its store is not complete")
    try:
        size = store.stat().st_size
        if not make_room(slot.file.parent, size):
            raise Unkept("its store is larger than the cache may be")
        store.chmod(0o400)
        _move(store, slot.file, size)
    except OSError as error:
        raise Unkept(str(error)) from None


def _move(store: Path, target: Path, size: int) -> None:
    try:
        refuse_full(target.parent, 0)
        store.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        refuse_full(target.parent, size)
        _copy(store, target)


def refuse_full(folder: Path, more: int) -> None:
    """Raise Unkept where so many bytes more leave too little of the disk to others."""
    if shutil.disk_usage(folder).free - more < place.LEAVE_FREE:
        raise Unkept("the disk is nearly full")


def _copy(store: Path, target: Path) -> None:
    """From another disk: beside the target first, so that nobody ever sees half of it."""
    part = target.with_name(f".{os.urandom(8).hex()}{PART}")
    with held(part):
        shutil.copyfile(store, part)
        part.chmod(0o400)
        part.rename(target)


def entries(folder: Path) -> list[Entry]:
    """Return the kept stores and memos, the least recently used first."""
    found = []
    for file in folder.iterdir() if folder.is_dir() else ():
        match = _NAME.fullmatch(file.name)
        with suppress(OSError):  # another process may be tidying up, too
            status = file.lstat()
            if match:
                found.append(Entry(file, match[2], status.st_size, status.st_mtime))
    return sorted(found, key=lambda entry: (entry.used, entry.file))


def make_room(folder: Path, more: int) -> bool:
    """Throws away what killed runs left, and what was not used for longest until `more` bytes fit; False if never."""
    remove_left_behind(folder)
    limit = place.limit()
    if more > limit:
        return False
    kept = entries(folder)
    total, memos = sum(entry.bytes for entry in kept), sum(entry.answer for entry in kept)
    for entry in kept:
        crowded = entry.answer and memos >= MOST_MEMOS
        if total + more <= limit and not crowded:
            continue
        with suppress(OSError):
            entry.file.unlink()
        total -= entry.bytes
        memos -= entry.answer
    return True


def remove_left_behind(folder: Path) -> None:
    """Parts of runs that were killed while they copied."""
    for part in folder.glob(f".*{PART}") if folder.is_dir() else ():
        with left_behind(part) as gone, suppress(OSError):
            if gone:
                part.unlink()


def clear(folder: Path) -> list[Entry]:
    """Throws everything away that can be, and says what. Runs that use an entry go on with it."""
    remove_left_behind(folder)
    gone = []
    for entry in entries(folder):
        with suppress(OSError):
            entry.file.unlink()
            gone.append(entry)
    return gone
