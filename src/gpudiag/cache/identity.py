"""The identity of a kept store: the files, by size, times and a sample of their content, our sources, the options."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path

from gpudiag import __version__, remote
from gpudiag.cache.place import Unkept
from gpudiag.library.packaged import packaged_dir
from gpudiag.options import Options

_BLOCK = 65_536
_BLOCKS = 16
"""Blocks read of each file, its first and last among them: a millisecond, whatever its size."""

_FILES = 4_096  # an export folder has a file for each of about a hundred tables

_FINE_NS, _COARSE_NS = 50_000_000, 2_000_000_000
"""Two writes closer together than this may leave the same time: a few ticks of the kernel, 2 s on FAT."""

_SETTLED_NS = 5_000_000_000
"""Sources younger than this may have changed since this process loaded them."""

_WITHOUT_EFFECT = {
    "rule_dirs", "overrides", "iteration_times", "progress", "cached", "memory_limit", "workers", "scheduler",
}  # fmt: skip
"""Options that change what is made of a store, not the store. Of the thresholds, only `settings.…` reach it."""

_LIBRARIES = ("duckdb", "numpy", "numba", "polars", "pydantic", "jinja2", "yaml")
"""Packages whose other version may make something else of the same capture."""


def key(paths: Sequence[Path], options: Options, *, began: int | None = None) -> str:
    """A digest of everything that the store of these captures depends on. Raises Unkept.

    began: when reading them starts or started, in ns since 1970; now if not given. No library that reads captures is
    loaded: looking for an answer must not cost what making one does.
    """
    began = began or time.time_ns()
    digest = hashlib.blake2b(digest_size=16)
    try:
        for part in _parts(paths, options, began):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    except OSError as error:
        raise Unkept(str(error)) from None
    return digest.hexdigest()


def _parts(paths: Sequence[Path], options: Options, began: int) -> Iterator[bytes]:
    yield repr((__version__, sys.version_info[:3], sys.byteorder)).encode()
    yield from _libraries()
    yield from _sources(began)
    yield from _tools()
    settings = sorted((name, value) for name, value in options.overrides.items() if name.startswith("settings."))
    asked = [(field.name, getattr(options, field.name)) for field in fields(options)]
    yield repr((settings, [one for one in asked if one[0] not in _WITHOUT_EFFECT])).encode()
    for path in paths:
        yield os.fsencode(path.name)  # the report names the file
        if there := remote.address(path):
            stated = remote.identity(path)
            if stated is None:
                raise Unkept(f"{there} says nothing of when it was written")
            yield stated.encode()
        elif path.is_dir():
            files = sorted(file for file in path.iterdir() if file.suffix == ".parquet")
            if len(files) > _FILES:
                raise Unkept(f"{path.name} holds too many files")
            yield len(files).to_bytes(8, "big")
            for file in files:
                yield os.fsencode(file.name)
                yield from _file(file, began)
        else:
            yield from _file(path, began)


def _file(path: Path, began: int) -> Iterator[bytes]:
    # A pipe with nobody at its other end must not hold us up.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise Unkept(f"{path.name} is not a file")
        for when in (found.st_mtime_ns, found.st_ctime_ns):
            # Written again at once, it could look the same: such a file is not known by its times yet.
            if began - when < (_FINE_NS if found.st_ctime_ns % 1_000_000 else _COARSE_NS):
                raise Unkept(f"{path.name} has only just been written")
        yield repr((found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)).encode()
        last = max(0, found.st_size - _BLOCK)
        for at in sorted({last * block // (_BLOCKS - 1) for block in range(_BLOCKS)}):
            yield os.pread(handle, _BLOCK, at)
    finally:
        os.close(handle)


def _libraries() -> Iterator[bytes]:
    """The packages that we stand on, found without loading them."""
    for name in _LIBRARIES:
        spec = importlib.util.find_spec(name)
        found = os.stat(spec.origin) if spec and spec.origin else None
        yield repr(found and (spec and spec.origin, found.st_size, found.st_mtime_ns)).encode()


def _sources(began: int) -> Iterator[bytes]:
    """Our own code and the packaged rules: whoever edits them must never meet what an earlier state made."""
    for root, suffix in ((Path(__file__).resolve().parents[1], ".py"), (packaged_dir(), (".sql", ".yaml", ".md"))):
        for folder, folders, names in os.walk(root):
            folders.sort()
            for name in sorted(names):
                if name.endswith(suffix):
                    found = os.stat(os.path.join(folder, name))
                    if began - found.st_mtime_ns < _SETTLED_NS:
                        raise Unkept("gpudiag itself has only just been changed")
                    yield repr((folder, name, found.st_size, found.st_mtime_ns)).encode()


def _tools() -> Iterator[bytes]:
    """The programs that reports are exported with."""
    spec = importlib.util.find_spec("ncu_report")
    for tool in (shutil.which("nsys"), shutil.which("ncu"), spec and spec.origin):
        found = os.stat(tool) if tool and os.path.exists(tool) else None
        yield repr(found and (os.path.realpath(tool or ""), found.st_size, found.st_mtime_ns)).encode()
