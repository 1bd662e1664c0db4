"""Output for a person at a terminal: the Markdown report in colour, and progress while they wait."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, TextIO

from gpudiag.text.escape import middle, one_line, terminal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.markdown import Markdown

WIDTH_LIMIT = 120
PATIENCE_S = 1.0
STYLES = {
    "markdown.code": "cyan",
    "markdown.h1": "bold",
    "markdown.h2": "bold underline",
    "markdown.h3": "bold yellow",
}
DUMB = ("dumb", "unknown")
_PROGRESS_WIDTH = 79
CLEAR_LINE = f"\r{' ' * _PROGRESS_WIDTH}\r"  # spaces: NO_COLOR asks for no escape codes at all


def on_terminal(stream: TextIO) -> bool:
    """Return whether the stream ends at a terminal that knows colours and can clear a line.

    FORCE_COLOR is not asked: CI jobs set it for all they run, and what they pipe on has to stay Markdown.
    """
    return stream.isatty() and os.environ.get("TERM", "").lower() not in DUMB


def show(markdown: str, stream: TextIO | None = None, width: int | None = None) -> None:
    """Prints the report: in colour on a terminal (NO_COLOR is honoured), as plain Markdown anywhere else."""
    stream = stream or sys.stdout
    if not on_terminal(stream):
        stream.write(markdown)
        return
    console(stream, width).print(page(markdown))


def console(stream: TextIO, width: int | None = None) -> Console:
    """A console on a terminal, of at most the width that reads well."""
    from rich.console import Console
    from rich.theme import Theme

    made = Console(file=stream, width=width, theme=Theme(STYLES), highlight=False, force_terminal=True)
    made.width = min(made.width, WIDTH_LIMIT)
    return made


def page(markdown: str) -> Markdown:
    """Escaped Markdown as a terminal shows it; what it names cannot send codes."""
    from rich.markdown import Heading, Markdown

    class LeftHeading(Heading):
        def __rich_console__(self, console, options):  # type: ignore[no-untyped-def]
            self.text.justify = "left"
            yield self.text

    class Page(Markdown):
        elements: ClassVar = {**Markdown.elements, "heading_open": LeftHeading}

    return Page(terminal(markdown), code_theme="ansi_dark")


@contextmanager
def progress(stream: TextIO | None = None) -> Iterator[Callable[[str], None]]:
    """Gives a function that shows the stage at work and the seconds since the beginning, once a second has passed, and
    only on a terminal.
    """
    stream = stream or sys.stderr
    if not stream or not on_terminal(stream):  # there is none after `2>&-`
        yield lambda _: None
        return
    latest = ""
    started = time.monotonic()
    lock = threading.Lock()
    done = threading.Event()

    def draw() -> None:
        passed = f" {time.monotonic() - started:.0f} s"
        stream.write(f"{CLEAR_LINE}{middle(one_line(latest), _PROGRESS_WIDTH - len(passed))}{passed}")
        stream.flush()

    def tick() -> None:
        while not done.wait(PATIENCE_S):
            with lock:
                draw()

    def update(stage: str) -> None:
        nonlocal latest
        with lock:
            latest = stage
            if time.monotonic() - started > PATIENCE_S:
                draw()

    clock = threading.Thread(target=tick, daemon=True)
    clock.start()
    try:
        yield update
    finally:
        done.set()
        clock.join()
        if time.monotonic() - started > PATIENCE_S:
            stream.write(CLEAR_LINE)
            stream.flush()
