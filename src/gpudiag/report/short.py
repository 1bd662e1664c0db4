"""The short report of a terminal: the first screen, with as many findings as its height has room for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from gpudiag.model import Report
from gpudiag.report import markdown, pager, terminal
from gpudiag.report.wording import coverage_words, first_words
from gpudiag.report.wording.words import plural
from gpudiag.text import escape

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PROMPT = 2  # lines that a shell takes when the report has been printed
FOLDER = len("Paths are relative to .")
ASCII = str.maketrans({"█": "#", "▓": "=", "░": ".", "▒": ":", "·": "|", "µ": "u", "…": "~", "–": "-", "×": "x"})
MORE = "All details: the same command with `--full`, or `-o report.html` for a browser."


def show(report: Report, stream: TextIO, width: int | None = None, height: int | None = None) -> None:
    """Print it; colour only where the stream takes it, and no meaning by colour alone.

    A terminal that shows no colours, or is read out, gets no bar either: the same numbers stand beside it.
    """
    console = terminal.console(stream, width)
    lines = height or console.size.height
    seen = {**markdown.view(report), "drawn": terminal.on_terminal(stream)}
    text = _fitted(seen, lines - PROMPT, console)
    if seen["drawn"]:
        pager.show(text, stream, lines)
    else:
        stream.write(text)


def _fitted(seen: Mapping[str, Any], lines: int, console: Console) -> str:
    """The report with as many findings as there are lines for, and what was seen of as many of them as still fits: of
    the first always.
    """
    count = max(1, len(seen["gaining"]))
    text = _text(seen, count, 1, console)
    while count > 1 and text.count("\n") > lines:
        count -= 1
        text = _text(seen, count, 1, console)
    for explained in range(count, 1, -1):
        longer = _text(seen, count, explained, console)
        if longer.count("\n") <= lines:
            return longer
    return text


def _text(seen: Mapping[str, Any], count: int, explained: int, console: Console) -> str:
    """The report with that many findings, and what was seen of the first ones; an empty line between its blocks."""
    blocks = [block for block in _blocks(seen, count, explained, console) if block]
    parts: list[RenderableType] = []
    for block in blocks:
        parts += [*([""] if parts else []), *block]
    return terminal.rendered(parts, console)


def _blocks(seen: Mapping[str, Any], count: int, explained: int, console: Console) -> Iterator[list[RenderableType]]:
    report: Report = seen["report"]

    def text(source: str) -> RenderableType:
        return terminal.page(_for(console, source))

    devices = "".join(f" · {escape.plain(device)}" for device in seen["devices"])
    yield [text(f"gpudiag: {seen['heading']}{devices}")]
    yield [text(f"**{escape.prose(seen['lead'])}**")] if seen["lead"] else []
    loops = [text(escape.prose(report.run.selection.text))] if report.run.selection else []
    lines, bars = seen["loop_lines"], seen["drawn"]
    for line in lines:
        loops.append(text(f"**{line.text}**"))
        if bars and line.bar and len(lines) == 1:
            loops += [text(f"{line.bar} {seen['bar_legend']}"), _parts(line.rest, text)]
        elif line.rest or (line.bar and bars):
            loops.append(text(f"{line.bar} {line.rest}" if bars else line.rest))
    if seen["bar_legend"] and bars and len(lines) > 1:
        loops.append(text(seen["bar_legend"]))
    held = coverage_words.repeated(report.run) if coverage_words.holds_nearly_all(report.run) else seen["coverage"]
    if held:
        loops.append(text(escape.prose(held)))
    yield loops
    yield _findings(seen, count, explained, text, console.width - FOLDER)
    yield [text(f"**{one.title}**: {one.where}") for one in seen["observed"]]
    yield [text(f"**Keep in mind:** {escape.prose(seen['caveat'].text)}")] if seen["caveat"] else []
    smaller = f"{plural(len(report.minor), 'smaller thing')} with `--full`. " if report.minor else ""
    yield [text(f"{smaller}{MORE}")]


def _parts(rest: str, text: Callable[[str], RenderableType]) -> RenderableType:
    """A line for each part of the only loop's time: its share, and what it is."""
    from rich.table import Table

    table = Table.grid(padding=(0, 1, 0, 0))
    for part in rest.split(first_words.JOINT) if rest else ():
        share, _, label = part.partition(" % ")
        table.add_row(f"{share} %", text(label))
    return table


def _findings(
    seen: Mapping[str, Any], count: int, explained: int, text: Callable[[str], RenderableType], room: int
) -> list[RenderableType]:
    """The rows of that many findings, the first ones with what was seen. room: characters for their files' folder."""
    from rich.console import Group
    from rich.table import Table

    rows: Sequence[Any] = seen["gaining"]
    if not rows:
        return []
    parts = [text("**What to fix, in this order**")]
    if seen["together"]:
        parts.append(text(seen["together"]))
    for at, row in enumerate(rows[:count]):
        facts = Table.grid(padding=(0, 2, 0, 0))
        for label, fact in (("saves", row.saves), ("seen", row.seen), ("where", row.where), ("fix", row.fix)):
            if label != "seen" or at < explained:
                facts.add_row(label, text(fact))
        finding = Table.grid(padding=(0, 1, 0, 0))
        finding.add_row(f"{row.finding.rank}.", Group(text(f"**{row.title}**"), facts))
        parts.append(finding)
    if len(rows) > count:
        parts.append(text(_hidden(rows[count:])))
    if seen["beside"]:
        parts.append(text(seen["beside"]))
    if seen["folder"]:
        parts.append(text(f"Paths are relative to {escape.code(escape.middle(seen['folder'], room))}."))
    return parts


def _hidden(rows: Sequence[Any]) -> str:
    """Count the findings that there was no room for; the only one is named."""
    said = f"{plural(len(rows), 'more finding')} with `--full`"
    return f"{said}." if len(rows) > 1 else f"{said}: {rows[0].title}."


def _for(console: Console, source: str) -> str:
    """The text in characters that the stream can write."""
    try:
        "█░µ".encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        return source.translate(ASCII)
    return source
