"""Readers: one input file into the canonical tables. Differences between tools and their versions end here."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gpudiag import remote
from gpudiag.errors import GpudiagError

if TYPE_CHECKING:
    import duckdb

Say = Callable[[str], None]
_NO_MEMORY = re.compile("cannot allocate|out of memory|failed to allocate|bad_alloc", re.IGNORECASE)


def _silent(_: str) -> None:
    """Nobody listens."""


def ingest(path: Path, con: duckdb.DuckDBPyConnection, workdir: Path, say: Say = _silent) -> None:
    """Detect what `path` is and add it to the store behind `con`, whose canonical tables exist.

    Intermediate files go to `workdir`, nothing is written beside the input. say: hears what takes longer than it might.
    Raises GpudiagError with one sentence when the input cannot be read, or changes meanwhile, and duckdb.Error where
    the store cannot be written, MemoryError where the system has no more; the store is then incomplete.
    """
    if there := remote.address(path):
        say(f"fetching {there}")
        path = remote.fetched(path, workdir)
    before = _state(path)
    try:
        _ingest(path, con, workdir, say)
    except Exception:  # whatever a reader stumbles over, that is why
        _unchanged(path, before)
        raise
    _unchanged(path, before)


def _state(path: Path) -> object:
    """Return the file's state, which differs once somebody writes to it or replaces it; None where there is no file."""
    try:
        files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        found = [file.stat() for file in files]
    except (OSError, ValueError):
        return None
    return [(one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns) for one in found]


def _unchanged(path: Path, before: object) -> None:
    """Reject a file that changed while it was read: the rows belong to no state that it ever had."""
    if (now := _state(path)) != before:
        what = "changed" if now else "disappeared"
        raise GpudiagError(f"{path}: it {what} while it was read; wait until it is complete, then try again.") from None


def _ingest(path: Path, con: duckdb.DuckDBPyConnection, workdir: Path, say: Say) -> None:
    # The drivers and the database cost 200 ms to import: only reading pays for them.
    import sqlite3

    import adbc_driver_manager
    import duckdb

    from gpudiag.ingest import derived, registry
    from gpudiag.ingest.file_kind import COMPRESSIONS, detect, most_bytes

    file, kind = path, detect(path)
    if kind in COMPRESSIONS.values():
        from gpudiag.ingest.decompress import unpack

        file = unpack(path, kind, workdir, judge=lambda head: most_bytes(head, path.stat().st_size, path), say=say)
        kind = detect(file, shown=path)
        say(f"reading {path.name}")
    try:
        registry.read(kind, registry.InputFile(file, path, con, workdir, say))
        derived.write(con)
    # SQLite quotes what it stumbles over, and Python fails on it where that is not UTF-8.
    except (duckdb.Error, sqlite3.Error, adbc_driver_manager.Error, UnicodeDecodeError) as error:
        full = isinstance(error, duckdb.OutOfMemoryException) or "Could not write" in str(error)
        if full or isinstance(error, duckdb.InternalException):
            raise  # the store's memory or disk is full, or DuckDB at fault, which is no fault of the capture's
        if _NO_MEMORY.search(str(_first(error))):
            raise MemoryError from error
        reason = " ".join(str(_first(error)).split("\n\n")[0].split())
        if reason == "interrupted":
            reason = "reading it takes longer than a file of its size can need"
        reason = reason.replace(str(file.absolute()), registry.name_of(path))[:200]
        raise GpudiagError(f"{path}: cannot be read, it may be damaged ({reason}); export the report again.") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise GpudiagError(f"{path}: cannot be read ({reason}); check the file and its disk.") from error


def _first(error: BaseException) -> BaseException:
    """Of errors in a row the one that began it: DuckDB answers all that follows with another."""
    import duckdb

    while isinstance(error.__context__, duckdb.Error):
        error = error.__context__
    return error
