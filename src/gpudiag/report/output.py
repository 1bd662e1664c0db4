"""Where a text goes: a file, whole or not at all; or stdout, in colour for a person."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from gpudiag.errors import GpudiagError


def to_file(text: str, path: Path) -> None:
    """Replaces the file in one step, so that no reader ever sees half a report. Raises GpudiagError."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="\n") as file:
                file.write(text)
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(temporary, 0o666 & ~umask)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise GpudiagError(f"{path} cannot be written ({error.strerror}): give another place with -o.") from None


def to_stdout(text: str, *, in_colour: bool = False) -> None:
    """A reader who leaves early (`| head`) is no error. Raises GpudiagError when the disk behind stdout is full."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal without UTF-8 gets `?`, not a traceback
    try:
        if in_colour:
            from gpudiag.report import terminal

            terminal.show(text, sys.stdout)
        else:
            sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # The interpreter flushes stdout once more on its way out: let it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise GpudiagError(f"Standard output cannot be written ({error.strerror}).") from None
