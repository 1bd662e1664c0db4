"""Run a profiler's own command-line tool on a user's file: with a time limit, and nothing of it left behind."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO


def run(
    command: Sequence[str],
    env: Mapping[str, str],
    folder: Path,
    out: IO[bytes],
    err: IO[bytes],
    timeout_s: float,
) -> int:
    """Run a command in a folder and give its exit code.

    What it started ends with it, whatever happens: `nsys` and `ncu` are often scripts around the program.
    Raises OSError when it cannot be started, subprocess.TimeoutExpired when it does not end in time.
    """
    process = subprocess.Popen(
        command, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
    )
    try:
        return process.wait(timeout_s)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def ended_by(code: int) -> int | None:
    """The signal that ended a program, by its exit code; a shell gives the signal of its program as 128 and more."""
    return -code if code < 0 else code - 128 if 128 < code < 160 else None


def tail(file: IO[bytes], size: int) -> str:
    """The last bytes that a tool wrote, as text."""
    file.seek(max(file.seek(0, os.SEEK_END) - size, 0))
    return file.read().decode("utf-8", "replace")
