"""`nvidia-smi` beside a recording, where it is installed: its log is kept, and explained with the timeline.

It writes into a pipe of ours, so that it ends with us whatever ends us. Where it is missing or fails, the recording
goes on without it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

NAME = "smi.csv"
EVERY_MS = 200
"""As often as the driver itself measures the utilisation."""
_FIELDS = (
    ("timestamp",), ("index",), ("name",), ("utilization.gpu",), ("memory.used",), ("memory.total",), ("clocks.sm",),
    ("clocks.max.sm",), ("power.draw",), ("enforced.power.limit",), ("temperature.gpu",),
    ("clocks_event_reasons.active", "clocks_throttle_reasons.active"), ("pcie.link.gen.current",),
    ("pcie.link.gen.max",), ("pcie.link.width.current",), ("pcie.link.width.max",),
)  # fmt: skip
"""What the rules about logs use, each with the names that versions of nvidia-smi give it."""
_NEEDED = 3
"""Fields before this one say what a line is of."""
_HELP_S, _END_S = 30.0, 5.0
"""Without a persistent driver nvidia-smi needs seconds to start; one that hangs must not hang us."""
_READING = re.compile(rb"\d{4}/\d\d/\d\d ")


class Sampler:
    """nvidia-smi while it runs beside a program, in a `with` statement, which ends it."""

    def __init__(self, command: list[str] | None, log: Path) -> None:
        self.command = command
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None

    def begin(self) -> None:
        """Start to sample, once."""
        if self.command is None or self._process is not None:
            return
        try:
            # A new session: a terminal's Ctrl-C is for us, and we end it.
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            self.command = None
            return
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=_copy, args=(self._process.stdout, self.log), daemon=True)
        self._reader.start()

    def end(self) -> None:
        """Stop, once."""
        if self._process is None or self._reader is None:
            return
        # Its group: it may be a script around the program.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        self._reader.join(_END_S)

    def kept(self, folder: Path, say: Callable[[str], None]) -> list[Path]:
        """Put the log there, if it has any reading."""
        if self._process is None:
            return []
        readings = 0
        if self.log.is_file():
            readings = sum(_READING.match(line) is not None for line in self.log.read_bytes().splitlines())
        if not readings:
            say("nvidia-smi gave no readings beside the recording, so that nothing is known of clocks, power and heat")
            return []
        target = folder / NAME
        shutil.move(self.log, target)
        say(f"{target}: {readings:,} readings of clocks, power, heat and memory")
        return [target]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.end()


def _copy(source: IO[bytes], log: Path) -> None:
    """Write down what comes, as it comes; a full disk ends the log and nothing else."""
    with source, suppress(OSError), log.open("wb", buffering=0) as file:
        while block := os.read(source.fileno(), 65536):
            file.write(block)


def command() -> list[str] | None:
    """Return the command that samples the GPUs that the program may use; None where none can."""
    path = shutil.which("nvidia-smi")
    if path is None:
        return None
    try:
        said = subprocess.run([path, "--help-query-gpu"], capture_output=True, check=False, timeout=_HELP_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    offered = set(re.findall(r'"([a-z0-9_.]+)"', said.stdout.decode("utf-8", "replace")))
    fields = [next((name for name in names if name in offered), None) for names in _FIELDS]
    if None in fields[:_NEEDED] or not any(fields[_NEEDED:]):
        return None
    query = ",".join(name for name in fields if name)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    chosen = [f"--id={visible}"] if re.fullmatch(r"(\d+|GPU-[\w-]+)(,(\d+|GPU-[\w-]+))*", visible) else []
    return [path, f"--query-gpu={query}", "--format=csv", *chosen, "-lms", str(EVERY_MS)]
