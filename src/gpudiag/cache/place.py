"""The cache's folder: where the system wants it, and only if it is ours."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

from gpudiag.errors import GpudiagError
from gpudiag.text import parse

LIMIT = 10_000_000_000
"""Bytes kept unless GPUDIAG_CACHE_SIZE says otherwise: the store of a 20 GB export takes a third of that size."""

LEAVE_FREE = 1_000_000_000
"""Bytes of the disk that are left alone: a cache must not be what fills it."""

SIZE = "GPUDIAG_CACHE_SIZE"
_TAG = (
    "Signature: 8a477f597d28d172789f06886806bc55\n# Backups may leave this folder out: https://bford.info/cachedir/\n"
)


class Unkept(Exception):
    """Reason why a capture is not kept or not looked for. It is never an error: the capture is read instead."""


def folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of all that is kept, which need not exist. Raises Unkept where there is no home."""
    home = os.path.expanduser("~")
    base = environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the specification wants relative paths ignored
        if not os.path.isabs(home):
            raise Unkept("there is no home directory")
        base = os.path.join(home, "Library/Caches" if sys.platform == "darwin" else ".cache")
    return Path(base) / "gpudiag"


def stores(*, make: bool = True) -> Path:
    """The folder of the kept stores, made where it is missing. Raises Unkept."""
    return private("stores", make=make)


def private(name: str, *, make: bool = True) -> Path:
    """A folder inside the cache that only its owner can write to, made where it is missing. Raises Unkept."""
    try:
        root = folder()
        inside = root / name
        if make and not os.path.lexists(root):
            _make(root)
        if make and not os.path.lexists(inside):
            inside.mkdir(mode=0o700, exist_ok=True)
        for one in (root, inside):
            if make or os.path.lexists(one):
                _refuse_foreign(one)
    except OSError as error:
        raise Unkept(f"{error.filename or folder()} cannot be used ({error.strerror})") from None
    return inside


def _make(root: Path) -> None:
    above = next(path for path in root.parents if path.exists())
    if os.geteuid() == 0 and above.stat().st_uid != 0:  # `sudo`: what it made there would shut its owner out
        raise Unkept(f"{above} belongs to another user")
    root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    root.mkdir(mode=0o700, exist_ok=True)
    (root / "CACHEDIR.TAG").write_text(_TAG, "ascii")


def _refuse_foreign(path: Path) -> None:
    """Whoever else may write there could make us read what they like."""
    for found in (path.lstat(), path.stat()):  # a link of one's own to a larger disk is fine
        if found.st_uid != os.geteuid():
            raise Unkept(f"{path} belongs to another user")
    if not stat.S_ISDIR(found.st_mode):
        raise Unkept(f"{path} is not a folder")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Unkept(f"{path} can be written by other users")


def ours(path: Path) -> bool:
    """Return whether the folder exists and is ours: nobody else can write to it or owns a file in it."""
    try:
        _refuse_foreign(path)
        with os.scandir(path) as found:
            return all(entry.stat(follow_symlinks=False).st_uid == os.geteuid() for entry in found)
    except (OSError, Unkept):
        return False


def limit(environ: Mapping[str, str] = os.environ) -> int:
    """Most bytes to keep. Raises GpudiagError for what is no size: it would be obeyed by nobody."""
    text = environ.get(SIZE, "")
    if not text:
        return LIMIT
    wanted = parse.size(text)
    if wanted is None:
        raise GpudiagError(f"{SIZE}={text[:40]!r} is no size: write it as 20GB; 0 keeps nothing.")
    return wanted
