"""Clean up after a gpudiag that is killed: a small process that waits for its end.

The text of this module is given to a Python of its own, which reads from a pipe until that closes. Where nobody said
that all is done, gpudiag was killed: what carries its mark is ended, and its folders are removed.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from contextlib import suppress

MARK = "GPUDIAG_CAPTURE"
"""Variable that every process which a run starts inherits, by which it is found in /proc."""
DONE = b"done"
_SETTLE_S = 5.0
_QUIET_S = 0.2
"""Seconds without a process of the mark after which none is left: far more than it takes to load a program."""


def marked(mark: str) -> list[int]:
    """Return the processes of this user whose mark begins so; those that have ended and wait for their parent do not
    count, nor those that just then load another program.
    """
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            with suppress(OSError), open(f"/proc/{entry.name}/environ", "rb") as environ:
                if any(variable.startswith(wanted) for variable in environ.read().split(b"\0")):
                    found.append(int(entry.name))
    return found


def end(mark: str, settle_s: float = _SETTLE_S) -> None:
    """Kill everything that carries the mark, until nothing of it is left.

    What the system itself holds, as a driver may, dies when that lets it go; nobody waits for it for ever.
    """
    now = last_seen = time.monotonic()
    latest = now + settle_s
    # A process may start another one between being listed and being killed, and has no environment that can be read
    # while it loads another program.
    while now < min(last_seen + _QUIET_S, latest):
        if found := marked(mark):
            last_seen = now
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
        now = time.monotonic()


def wait(mark: str, folders: list[str]) -> None:
    """Wait for the end of whoever writes to the pipe, and clean up after it."""
    if sys.stdin.buffer.read() != DONE:
        end(mark)
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    wait(sys.argv[1], sys.argv[2:])
