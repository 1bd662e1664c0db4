"""Output for a person at a terminal: the Markdown report in colour, and progress while they wait."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, TextIO

from gpudiag.report import pager
from gpudiag.text.escape import middle, one_line, terminal

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
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
_UNIT = re.compile(r"(?<=\d) (?=(%|[nµum]?s|min|h|[kMGT]i?B|B)(?![A-Za-z]))")
_PADDING = re.compile(r" +$", re.MULTILINE)
_JOINT = "\ue000"  # stands for a space at which no line is broken: Rich breaks at U+00A0 too
CLEAR_LINE = f"\r{' ' * _PROGRESS_WIDTH}\r"  # spaces: NO_COLOR asks for no escape codes at all


def is_terminal(stream: TextIO) -> bool:
    """Return whether a person reads the stream at once, on a terminal of whatever kind."""
    return stream.isatty()


def on_terminal(stream: TextIO) -> bool:
    """Return whether the stream ends at a terminal that knows colours and can clear a line, and its reader sees it.

    ACCESSIBLE is what users of screen readers set: lines drawn again and again would be read out again and again.
    FORCE_COLOR is not asked: CI jobs set it for all they run, and what they pipe on has to stay Markdown.
    """
    seen = os.environ.get("TERM", "").lower() not in DUMB and not os.environ.get("ACCESSIBLE")
    return is_terminal(stream) and seen


def show(markdown: str, stream: TextIO | None = None, width: int | None = None) -> None:
    """Prints the report: in colour on a terminal (NO_COLOR is honoured), as plain Markdown anywhere else."""
    stream = stream or sys.stdout
    if not on_terminal(stream):
        stream.write(markdown)
        return
    made = console(stream, width)
    pager.show(rendered([page(markdown)], made), stream, made.size.height)


def rendered(blocks: Iterable[RenderableType], console: Console) -> str:
    """The blocks as the console's terminal takes them; no line ends between a number and its unit."""
    with console.capture() as captured:
        for block in blocks:
            console.print(block)
    return _PADDING.sub("", captured.get().replace(_JOINT, " "))


def console(stream: TextIO, width: int | None = None) -> Console:
    """A console on a terminal, of at most the width that reads well; without styles where it knows none."""
    from rich.console import Console
    from rich.theme import Theme

    made = Console(file=stream, width=width, theme=Theme(STYLES), highlight=False, force_terminal=on_terminal(stream))
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

    return Page(_UNIT.sub(_JOINT, terminal(markdown).replace(_JOINT, " ")), code_theme="ansi_dark")


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
