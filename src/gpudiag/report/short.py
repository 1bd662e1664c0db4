"""The short report of a terminal: the first screen, with as many findings as its height has room for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from gpudiag.model import Report
from gpudiag.report import markdown, terminal
from gpudiag.report.wording.words import plural
from gpudiag.text import escape

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PROMPT = 2  # lines that a shell takes when the report has been printed
ASCII = str.maketrans({"█": "#", "▓": "=", "░": ".", "·": "|", "µ": "u", "…": "~", "–": "-", "×": "x"})
MORE = "All details: the same command with `--full`, or `-o report.html` for a browser."


def show(report: Report, stream: TextIO, width: int | None = None, height: int | None = None) -> None:
    """Prints it; colour only where the stream takes it, and no meaning by colour alone."""
    console = terminal.console(stream, width)
    room = (height or console.size.height) - PROMPT
    seen = markdown.view(report)
    count = len(seen["rows"])
    while count > 1 and sum(_lines(part, console) for part in _parts(seen, count, console)) > room:
        count -= 1
    for part in _parts(seen, count, console):
        console.print(part)


def _lines(part: RenderableType, console: Console) -> int:
    return len(console.render_lines(part, pad=False))


def _parts(seen: Mapping[str, Any], count: int, console: Console) -> Iterator[RenderableType]:
    """The report with that many findings, block by block."""

    def text(source: str) -> RenderableType:
        return terminal.page(_for(console, source))

    more = seen["report"].inputs[1:]
    others = f" and {plural(len(more), 'more file')}" if more else ""
    yield text(f"gpudiag: {escape.code(seen['subject'])}{others}")
    yield ""
    if seen["lead"]:
        yield text(f"**{escape.prose(seen['lead'])}**")
        yield ""
    if seen["report"].run.selection:
        yield text(escape.prose(seen["report"].run.selection.text))
    for line in seen["loop_lines"]:
        yield text(f"**{line.text}**")
        if line.bar:
            yield text(f"{line.bar} {line.rest}")
    if seen["coverage"]:
        yield text(escape.prose(seen["coverage"]))
    yield ""
    yield from _findings(seen, count, text)
    if seen["caveat"]:
        yield text(f"**Keep in mind:** {escape.prose(seen['caveat'].text)}")
        yield ""
    yield text(MORE)


def _findings(seen: Mapping[str, Any], count: int, text: Any) -> Iterator[RenderableType]:
    from rich.console import Group
    from rich.table import Table

    rows: Sequence[Any] = seen["all_rows"]
    if not rows:
        return
    yield text("**What to fix first**")
    folder = seen["folder"]
    for row in rows[:count]:
        facts = Table.grid(padding=(0, 2, 0, 0))
        for label, fact in (("saves", row.saves), ("where", row.where), ("fix", row.fix)):
            facts.add_row(label, text(fact))
        finding = Table.grid(padding=(0, 1, 0, 0))
        finding.add_row(f"{row.finding.rank}.", Group(text(f"**{row.title}**"), facts))
        yield finding
    if left := len(rows) - count:
        yield text(f"{plural(left, 'more finding')}.")
    if folder:
        yield text(f"Files are below {escape.code(folder)}.")
    yield ""


def _for(console: Console, source: str) -> str:
    """The text in characters that the stream can write."""
    try:
        "█░µ".encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        return source.translate(ASCII)
    return source
