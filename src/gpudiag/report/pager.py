"""A pager for what is taller than the terminal: the user's own, or `less` where there is one."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from typing import TextIO

_LESS = "FRX"
"""What git sets as well: end at once where all fits, show colours, leave the text on the screen."""
_NONE = ("", "cat")


def show(text: str, stream: TextIO, lines: int) -> None:
    """Write to a terminal of that many lines; through the pager where the text is taller."""
    command = _command() if text.count("\n") >= lines else []
    if not command or not _paged(text, command, stream):
        stream.write(text)


def _command() -> list[str]:
    """Return the pager's words; empty where there is none, or none is wanted."""
    try:
        named = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:  # a quote is not closed
        named = ["less"]
    found = shutil.which(named[0]) if named and named[0] not in _NONE else None
    return [found, *named[1:]] if found else []


def _paged(text: str, command: list[str], stream: TextIO) -> bool:
    """Return whether the pager could be started. It ends when its reader leaves it, not before."""
    settings = {"LESS": _LESS, "LV": "-c", **os.environ}
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=stream.fileno(), env=settings)
    except OSError:
        return False
    assert process.stdin is not None
    try:
        with process.stdin as pipe:
            pipe.write(text.encode(stream.encoding or "utf-8", "replace"))
    except (BrokenPipeError, KeyboardInterrupt):
        pass  # the reader has seen enough
    while True:
        try:
            process.wait()
            return True
        except KeyboardInterrupt:  # meant for the pager, which ends or not as it likes
            continue
