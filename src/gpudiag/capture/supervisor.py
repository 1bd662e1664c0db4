"""Run a program with a time limit, and end all that it started: also what left its process group for a session of its
own, as the agent of Nsight Systems does.

Every process that a run starts inherits a mark in its environment, by which it is found in /proc.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from gpudiag.capture import guard
from gpudiag.errors import GpudiagError

OWN_MARK = secrets.token_hex(16)
"""What the marks of all runs of this process begin with."""
POLL_S = 0.05
"""Seconds between two looks at a program: far below what is measured of it."""
SETTLE_S = 5.0
"""Seconds that a program has to end after a signal to do so."""
_LAST_WORDS = 8192
_LONGEST_LINE = 200
"""Bytes of a log that are searched for a last line, and characters of it that are shown."""


@dataclass(frozen=True)
class ProgramRun:
    """The end of one run: its exit code, how long it took, and why it was ended before it ended by itself."""

    code: int
    seconds: float
    ended: str = ""
    """`time`, or what the watch said; empty where the program ended by itself."""
    last_words: str = ""
    """The last line that it printed."""


def run(
    command: Sequence[str],
    env: Mapping[str, str],
    log: Path,
    limit_s: float,
    *,
    watch: Callable[[float], str] = lambda _: "",
    end_by: int = signal.SIGTERM,
    settle_s: float = SETTLE_S,
    before: str = "",
) -> ProgramRun:
    """Run a command to its end, the limit, or until `watch(seconds)` says why it is enough; output goes to `log`.

    before: the program's last words are looked for before this text. Whatever happens, no process of it is left.
    Raises GpudiagError where it cannot be started.
    """
    mark = f"{OWN_MARK}-{secrets.token_hex(8)}"
    began = time.monotonic()
    process = None
    with log.open("wb") as output:
        try:
            process = _started(command, {**env, guard.MARK: mark}, output)
            ended = ""
            while process.poll() is None and not ended:
                passed = time.monotonic() - began
                ended = "time" if passed > limit_s else watch(passed)
                time.sleep(POLL_S)
            seconds = time.monotonic() - began
            if process.poll() is None:
                process.send_signal(end_by)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(settle_s)
        finally:  # a signal may come while it is being started
            _end_all(process, mark)
    code = -signal.SIGKILL if process.returncode is None else process.returncode
    return ProgramRun(code, seconds, ended, _last_line(log, before))


def _started(command: Sequence[str], env: Mapping[str, str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(command),
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except PermissionError:
        raise GpudiagError(
            f"{command[0]} may not be executed; make it executable, or give the interpreter before it, such as"
            f" `python {command[0]}`."
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise GpudiagError(f"{command[0]} cannot be started ({reason}); check the command after `--`.") from None


def _end_all(process: subprocess.Popen[bytes] | None, mark: str) -> None:
    """Kill the process group and everything that carries the mark."""
    if process:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(SETTLE_S)
    guard.end(mark, SETTLE_S)


def _last_line(log: Path, before: str) -> str:
    with log.open("rb") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - _LAST_WORDS, 0))
        text = file.read().decode("utf-8", "replace")
    if before:
        text = text.partition(before)[0]
    lines = [line.rpartition("\r")[2].strip() for line in text.replace("\r\n", "\n").split("\n")]
    return next((line[:_LONGEST_LINE] for line in reversed(lines) if line), "")
