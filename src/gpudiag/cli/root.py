"""The top of the command line: how errors and signals end it, what it says of itself."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import IO, Any, NoReturn, TextIO

import click

from gpudiag.cli.completion import CAPTURES
from gpudiag.cli.sections import FAILED, Command, Group

INTERRUPTED = 130
GRACE_S = 0.3
"""How long tidying may take after a signal to end."""


class Failure(click.ClickException):
    """One sentence on stderr, exit code 2."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        from gpudiag.text.escape import one_line  # a file's name or damaged content may hold anything

        click.echo(f"gpudiag: {one_line(self.format_message())}", file=file, err=True)


def _user_errors() -> tuple[type[Exception], ...]:
    from gpudiag.errors import GpudiagError

    return (GpudiagError,)


@contextmanager
def _tidy_end() -> Iterator[None]:
    """Unwind the program on a signal to end, so that its work folder goes with it; where that takes long, end at once.

    Python hears a signal between two of its own steps, and one step may be a query of minutes. So a thread listens,
    too: what the system writes for it at once ends the process after a moment of grace.
    """

    def end(number: int, frame: FrameType | None) -> NoReturn:
        # `timeout` signals twice, the second time while the folder is being removed.
        for other in taken:
            signal.signal(other, signal.SIG_IGN)
        received.append(number)
        _hush()
        if _importing(frame):
            _end(128 + number)
        raise SystemExit(128 + number)

    received: list[int] = []
    # What is ignored already stays ignored: `nohup`.
    usual = (signal.SIG_DFL, signal.default_int_handler)
    wanted = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    taken = {number: handler for number in wanted if (handler := signal.getsignal(number)) in usual}
    for number in taken:
        signal.signal(number, end)
    try:
        with _listening(frozenset(taken), received):
            yield
    finally:
        if received:  # DuckDB reports a signal during a query as an error of its own, or of the file
            raise SystemExit(128 + received[0]) from None
        for number, handler in taken.items():
            signal.signal(number, handler)


@contextmanager
def _listening(numbers: frozenset[int], received: Sequence[int]) -> Iterator[None]:
    """A thread that ends the process when one of the signals is not obeyed in time."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    # Unlike other ways to start a thread, this one takes no lock and leaves nothing to be joined.
    _thread.start_new_thread(_listen, (reading, numbers))
    try:
        yield
    finally:
        if not received:
            signal.set_wakeup_fd(before)
            os.close(writing)  # the thread reads that as the end


def _listen(reading: int, numbers: frozenset[int]) -> None:
    while said := os.read(reading, 1):
        if said[0] in numbers:
            _give_up(128 + said[0])
    os.close(reading)


def _hush() -> None:
    """Ignore errors on the way out: queries end halfway, threads wait for locks that are gone."""
    sys.unraisablehook = lambda _: None
    if "concurrent.futures" in sys.modules:  # else there are no other threads
        import logging
        import threading

        logging.disable()
        threading.excepthook = lambda _: None


def _importing(frame: FrameType | None) -> bool:
    """Return whether a module is being loaded: an exception inside a compiled module's loading aborts the process."""
    while frame:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _give_up(code: int) -> NoReturn:
    """End the process although a query is still at work, which cannot be stopped."""
    time.sleep(GRACE_S)
    _end(code)


def _end(code: int) -> NoReturn:
    """End the process here, without the work folder."""
    if workfolder := sys.modules.get("gpudiag.tempdir"):
        workfolder.remove_all()
    os._exit(code)


def _usage(error: click.UsageError) -> str:
    """Return what is wrong with the command line in one sentence, with the command whose help says what is right."""
    said = error.format_message().strip().rstrip(".")
    command = error.ctx.command_path if error.ctx else "gpudiag"
    return f"{said[:1].lower()}{said[1:]}; see `{command} --help`."


def _hold_standard_streams() -> None:
    """After `>&-` the next file opened would take the stream's number, and receive what is written there."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _warn(message: Warning | str, *_place: object, file: TextIO | None = None, **_more: object) -> None:
    """One line on stderr, without the place in our code that Python would show."""
    from gpudiag.text.escape import one_line

    click.echo(f"gpudiag: {one_line(str(message))}", file=file, err=True)


class Commands(Group):
    """A group whose commands may raise GpudiagError and be interrupted."""

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        try:
            return super().make_context(*args, **more)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            raise Failure(_usage(error)) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Take a capture where a command should stand for one to explain."""
        if self.get_command(ctx, args[0]) is None and _is_capture(args[0]):
            return super().resolve_command(ctx, ["explain", *args])
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        _hold_standard_streams()
        try:
            with warnings.catch_warnings(), _tidy_end():
                warnings.showwarning = _warn
                return super().invoke(ctx)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            raise Failure(_usage(error)) from None
        except (click.ClickException, click.exceptions.Exit):
            raise
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except _user_errors() as error:
            raise Failure(str(error)) from None
        except MemoryError:
            from gpudiag.memory import exhausted

            raise Failure(exhausted()) from None


def _is_capture(word: str) -> bool:
    return os.path.exists(word) or word.lower().endswith(CAPTURES)


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from gpudiag.cli import version

        click.echo(version.text())
        ctx.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    order={
        "Record": ("capture", "record"),
        "Read captures": ("explain", "next"),
        "Compare and share": ("diff", "check", "comment", "redact"),
        "Rules": ("rules",),
        "Set up": ("cache", "completion", "help"),
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
            ("ACCESSIBLE", "if set, as for a screen reader: no colour, no bar, no line that is drawn again"),
            ("PAGER", "shows what is taller than the terminal (else less, where there is one); cat prints all of it"),
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

    It reads what NVIDIA's profilers recorded. Record a short run of your program and have it explained, or explain
    what you recorded yourself (`gpudiag FILE` is short for `gpudiag explain FILE`):

    \b
    gpudiag capture -- python train.py
    gpudiag explain report.nsys-rep

    `gpudiag COMMAND --help` shows examples of each command.
    """


@main.command(name="help", cls=Command, sections={"Exit codes": (("0", "done"), FAILED)})
@click.argument("names", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def help_of(ctx: click.Context, names: tuple[str, ...]) -> None:
    """Show the help of gpudiag, or of a command."""
    parent = ctx.find_root()
    command: click.Command = parent.command
    for name in names:
        known = command.get_command(parent, name) if isinstance(command, click.Group) else None
        if known is None:
            raise click.UsageError(f"No such command {name!r}.", parent)
        command, parent = known, click.Context(known, info_name=name, parent=parent)
    click.echo(command.get_help(parent))
