"""The top of the command line: how errors and signals end it, what it says of itself."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, NoReturn

import click

from gpudiag.cli.sections import FAILED, Group

INTERRUPTED = 130
GRACE_S = 3
"""How long tidying may take after a signal to end."""


class Failure(click.ClickException):
    """One sentence on stderr, exit code 2."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        from gpudiag.report.escape import one_line  # a file's name or damaged content may hold anything

        click.echo(f"gpudiag: {one_line(self.format_message())}", file=file, err=True)


def _user_errors() -> tuple[type[Exception], ...]:
    from gpudiag.errors import GpudiagError

    return (GpudiagError,)


@contextmanager
def _tidy_end() -> Iterator[None]:
    """A signal to end unwinds the program, so that its work folder goes with it."""

    def end(number: int, _: object) -> NoReturn:
        # `timeout` signals twice, the second time while the folder is being removed.
        for other in taken:
            signal.signal(other, signal.SIG_IGN)
        received.append(number)
        _hush()
        _thread.start_new_thread(_give_up, (128 + number,))  # unlike others, it takes no lock that may be held here
        signal.alarm(2 * GRACE_S)  # an exception at the wrong place may leave a lock behind: end all the same
        raise SystemExit(128 + number)

    received: list[int] = []
    # What is ignored already stays ignored: `nohup`.
    usual = {signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    taken = {number: handler for number, handler in usual.items() if signal.getsignal(number) is handler}
    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        if received:  # DuckDB reports a signal during a query as an error of its own, or of the file
            raise SystemExit(128 + received[0]) from None
        for number, handler in taken.items():
            signal.signal(number, handler)


def _hush() -> None:
    """What breaks in other threads on the way out is nobody's concern: they wait for locks that are gone."""
    if "concurrent.futures" in sys.modules:  # else there are no other threads
        import logging
        import threading

        logging.disable()
        threading.excepthook = lambda _: None


def _give_up(code: int) -> NoReturn:
    """Ends the process although a query is still at work, which cannot be stopped."""
    time.sleep(GRACE_S)
    if workfolder := sys.modules.get("gpudiag.workfolder"):
        workfolder.remove_all()
    os._exit(code)


def _hold_standard_streams() -> None:
    """After `>&-` the next file opened would take the stream's number, and receive what is written there."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


class Commands(Group):
    """A group whose commands may raise GpudiagError and be interrupted."""

    def invoke(self, ctx: click.Context) -> Any:
        _hold_standard_streams()
        try:
            with _tidy_end():
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except _user_errors() as error:
            raise Failure(str(error)) from None


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from gpudiag.cli import version

        click.echo(version.text())
        ctx.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    order={
        "Read captures": ("explain", "next"),
        "Compare and share": ("diff", "check", "comment"),
        "Rules": ("rules",),
        "Set up": ("cache", "completion"),
    },
    sections={
        "Exit codes": (
            ("0", "done"),
            ("1", "what was asked to fail the command was found; each command's help says what that is"),
            FAILED,
            ("129, 130, 143", "hung up, interrupted, terminated"),
        ),
        "Environment": (
            ("NO_COLOR", "if set, no colour; a file or pipe never gets any, nor a terminal with TERM=dumb"),
            ("PATH", "nsys opens .nsys-rep files, ncu opens .ncu-rep files; the rest is read without them"),
            ("TMPDIR", "where a large capture's working copy is kept while it is read (else /tmp)"),
            ("XDG_CACHE_HOME", "where it is kept for the next time, in gpudiag/ (else ~/.cache); see `gpudiag cache`"),
            ("GPUDIAG_CACHE_SIZE", "how much may be kept there, such as 20GB (else 10GB); 0 keeps nothing"),
        ),
    },
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_version,
    help="Show the versions of gpudiag and what it stands on, and exit.",
)
def main() -> None:
    """Say what is slow in a GPU program, why, where, and what each fix is worth.

    It reads what NVIDIA's profilers recorded. Record a short run of your program, then ask:

    \b
    nsys profile -o report python train.py
    gpudiag explain report.nsys-rep

    `gpudiag COMMAND --help` shows examples of each command.
    """
