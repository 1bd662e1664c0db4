"""A file that says whether its process still lives: locked while it does, and free at once however it ended."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_TAKEN = (errno.EWOULDBLOCK, errno.EACCES)


@contextmanager
def held(path: Path) -> Iterator[None]:
    """The file, made and locked for as long as this lasts, then removed. Raises OSError, EEXIST if it is there."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _TAKEN:
                raise _taken(path) from None
            # A file system without locks: then nobody finds this one free, either.
        if not _is(handle, path):  # between these two steps it looked as if its process had gone
            raise _taken(path)
        try:
            yield
        finally:
            with suppress(FileNotFoundError):
                path.unlink()
    finally:
        os.close(handle)


@contextmanager
def left_behind(path: Path) -> Iterator[bool]:
    """Yield whether it is ours and the process that held it is gone; nobody else finds it so while this lasts."""
    handle = -1
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        status = os.fstat(handle)
        ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        if ours:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        free = ours and _is(handle, path)
    except OSError:
        free = False
    try:
        yield free
    finally:
        if handle >= 0:
            os.close(handle)


def _taken(path: Path) -> OSError:
    return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def _is(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False
