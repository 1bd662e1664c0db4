"""Targets of a text: a file, written completely or not at all; a pipe or device as it stands; or stdout, in colour for
a person.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TextIO

from gpudiag.errors import GpudiagError

_STREAM = re.compile(r"/dev/(stdout|stderr|fd/\d+)|/proc/(self|\d+)/fd/\d+")
"""Names of what is open already: behind them may stand a file, but nobody who names them means to replace it."""


def check(path: Path, inputs: Iterable[Path] = ()) -> None:
    """Refuses, before any work is done, a folder or one of the inputs as the place to write to. Raises GpudiagError."""
    try:
        if str(path) == "-":
            raise GpudiagError("-o names a file, and - is none: leave -o away to print the report.")
        if path.is_dir():
            raise GpudiagError(f"{path} is a folder: name a file in it, such as {path / 'report.md'}.")
        if any(_is_part_of(path, file) for file in inputs):
            raise GpudiagError(f"{path} is an input: give another place with -o, or it would be overwritten.")
    except OSError as error:
        raise _unwritable(path, error) from None


def _is_part_of(path: Path, file: Path) -> bool:
    if not path.exists() or not os.access(file, os.F_OK):
        return False
    inside = file.is_dir() and path.suffix == ".parquet" and path.resolve().parent.samefile(file)
    return inside or path.samefile(file)


def to_file(text: str, path: Path) -> None:
    """Replaces the file in one step, so that no reader ever sees half a report; a link stays and its target is
    replaced, a pipe or device is written to. Raises GpudiagError.
    """
    check(path)
    try:
        mode = _mode(path)
        if _STREAM.fullmatch(str(path)) or (mode is not None and not stat.S_ISREG(mode)):
            with path.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
                stream.write(text)
        else:
            _replace(text, Path(os.path.realpath(path)), mode)
    except OSError as error:
        raise _unwritable(path, error) from None


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _replace(text: str, path: Path, mode: int | None) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(text)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask if mode is None else stat.S_IMODE(mode))
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _unwritable(path: Path, error: OSError) -> GpudiagError:
    return GpudiagError(f"{path} cannot be written ({error.strerror}): give another place.")


def to_stdout(write: Callable[[TextIO], object]) -> None:
    """A reader who leaves early (`| head`) is no error. Raises GpudiagError when stdout is closed or its disk full."""
    if not sys.stdout:
        raise GpudiagError("Standard output is closed: open it, or redirect it to a file.")
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal without UTF-8 gets `?`, not a traceback
    try:
        write(sys.stdout)
        sys.stdout.flush()
    except OSError as error:
        # The interpreter flushes stdout once more on its way out: let it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise GpudiagError(f"Standard output cannot be written ({error.strerror}).") from None
