"""`%%gpudiag`: a notebook's cell is recorded by torch.profiler, and its report is shown below it.

IPython loads this with `%load_ext gpudiag`; nothing of it is imported here.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from gpudiag.api.recording import Recording, profile
from gpudiag.api.report import Report
from gpudiag.errors import GpudiagError
from gpudiag.text import parse

LIMIT = "120s"
"""Time after which a cell is interrupted where nothing else is asked for: the profiler keeps all in memory."""


class CellTimeoutError(KeyboardInterrupt):
    """The cell took too long. It is of the kind that a program's own `except Exception` does not catch."""


class _Options(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise GpudiagError(f"%%gpudiag: {message}; {' '.join(self.format_usage().split())}")


def register(shell: Any) -> None:
    """Make `%%gpudiag` known to IPython."""

    def gpudiag(line: str, cell: str) -> Report | None:
        """Record the cell by torch.profiler and show what makes it slow.

        %%gpudiag [NAME] [--limit TIME] [--iteration-time TIME] [--no-stacks] [--memory]

        NAME: a variable for the recording, so that the cell can call NAME.step() at the end of each iteration, and
        later ones NAME.report(). --limit: the cell is interrupted then, and what was recorded is explained.
        --iteration-time: of an iteration without the profiler. --no-stacks: less overhead, and no functions named.
        --memory: what PyTorch's allocator gives out and takes back.
        """
        try:
            return recorded(shell, line, cell)
        except GpudiagError as error:
            sys.stderr.write(f"gpudiag: {error}\n")
            return None

    shell.register_magic_function(gpudiag, "cell", "gpudiag")


def recorded(shell: Any, line: str, cell: str) -> Report | None:
    """Run the cell, and return its report; None where it failed, which IPython has shown then. Raises GpudiagError."""
    given = _given(line)
    limit_s = parse.nanoseconds(given.limit) / 1e9
    recording = profile(stacks=not given.no_stacks, memory=given.memory)
    if given.name:
        shell.user_ns[given.name] = recording
    result = _run(shell, cell, recording, limit_s)
    error = result.error_before_exec or result.error_in_exec
    if isinstance(error, CellTimeoutError):
        sys.stderr.write(
            f"gpudiag: the cell was interrupted after {given.limit} (--limit): what it did until then counts.\n"
        )
    elif error is not None:
        sys.stderr.write("gpudiag: the cell failed, so that nothing is explained.\n")
        return None
    return recording.report(iteration_time=given.iteration_time)


def _given(line: str) -> argparse.Namespace:
    parser = _Options("%%gpudiag", add_help=False)
    parser.add_argument("name", nargs="?", metavar="NAME")
    parser.add_argument("--limit", metavar="TIME", default=LIMIT)
    parser.add_argument("--iteration-time", metavar="TIME")
    parser.add_argument("--no-stacks", action="store_true")
    parser.add_argument("--memory", action="store_true")
    try:
        given = parser.parse_args(shlex.split(line))
    except ValueError as error:
        raise GpudiagError(f"%%gpudiag {line.strip()}: {error}.") from None
    if given.name and not given.name.isidentifier():
        raise GpudiagError(f"%%gpudiag: {given.name} is no name of a variable.")
    return given


def _run(shell: Any, cell: str, recording: Recording, limit_s: float) -> Any:
    with recording, _limited(limit_s):
        return shell.run_cell(cell, store_history=False)


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Interrupt what runs for longer, where signals can: in the main thread."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def interrupt(_: int, __: FrameType | None) -> NoReturn:
        raise CellTimeoutError

    usual = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, usual)
