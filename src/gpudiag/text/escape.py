"""Names and texts of the traced program, made harmless for the format they land in.

Nothing that a profile holds is trusted: a kernel may be called `<!-- -->`, an NVTX range may carry a terminal
code, a template instantiation may be 10,000 characters long. `code` and `plain` give Markdown, `terminal` gives
bytes that a terminal only prints. `prose` is for our own sentences with such names inside; `authored` for the
Markdown that rules and remedies are written in.
"""

from __future__ import annotations

import re
from functools import lru_cache

NAME_LIMIT = 90
COMMAND_LIMIT = 400
"""Commands are there to be pasted: none of ours is longer."""
WORD_LIMIT = 120
# Enough of a name to tell two apart; more would only cost time in the steps below.
HARD_LIMIT = 20_000

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_SPAN = re.compile(r"(?<![`\\])(`+)(?!`)(?s:.*?)(?<!`)\1(?!`)")
_COMMAND = re.compile(
    r"(?m)^([ \t]*)(::(?:add-|debug|echo|endgroup|error|group|notice|remove-|save-|set-|stop-|warning))"
    r"|##(?=\[)",
    re.IGNORECASE,
)
_HEADING = re.compile(r" {0,3}#{1,6}\s+(.*)")


def visible(text: str) -> str:
    """Control, bidi, zero-width and unassigned characters as Python escapes (ESC is shown as x1b)."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def terminal(text: str) -> str:
    """Text that cannot move the cursor, change colours or reorder itself; newlines stay, tabs become spaces."""
    return "\n".join(visible(line.replace("\t", "    ")) for line in text.replace("\r\n", "\n").split("\n"))


def console(text: str) -> str:
    """As `terminal`, and without a line that a CI runner would take for a command to itself."""
    return inert(terminal(text))


def inert(text: str) -> str:
    """Text of which no line is a workflow command of GitHub's: `::set-output …`, or the older `##[error]`."""
    return _COMMAND.sub(lambda m: f"{m[1]}\\{m[2]}" if m[2] else "#\\#", text)


def one_line(text: str) -> str:
    """Whitespace folded, unprintable characters made visible."""
    return visible(" ".join(middle(text, HARD_LIMIT).split()))


def middle(text: str, limit: int) -> str:
    """At most `limit` characters, cut in the middle: both ends of a name tell more than its inside."""
    if len(text) <= limit:
        return text
    head = (limit - 1) * 3 // 5
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


ABI_TAG = r"\[abi:[^\]]*(?:\]|$)"
"""How Numba tells apart what it compiled for other types; at the end of a name that was cut."""
_ABI_TAG = re.compile(ABI_TAG)


@lru_cache(maxsize=1024)
def short_name(name: str, limit: int = NAME_LIMIT) -> str:
    """A readable short form of a long C++ name: no signature, then no nested template arguments or namespaces."""
    if len(name) <= limit:
        return name
    bare = name.removeprefix("void ").replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    bare = _ABI_TAG.sub("", bare)
    for form in (
        _without_signature(bare),
        _without_signature(_fold(bare, 1)),
        _without_signature(_without_namespaces(_fold(bare, 1))),
        _without_signature(_without_namespaces(_fold(bare, 0))),
    ):
        if form and len(form) <= limit:
            return form
    return middle(bare, limit)


def _fold(name: str, keep: int) -> str:
    """Template arguments nested deeper than `keep` become `…`."""
    out: list[str] = []
    depth = 0
    for c in name:
        if c == "<":
            depth += 1
            if depth <= keep:
                out.append(c)
            elif depth == keep + 1:
                out.append("<…>")
        elif c == ">" and depth:
            if depth <= keep:
                out.append(c)
            depth -= 1
        elif depth <= keep:
            out.append(c)
    return "".join(out)


def _without_signature(name: str) -> str:
    """Up to the parenthesis that opens the parameters (outside template arguments)."""
    depth = 0
    for i, c in enumerate(name):
        if c == "<":
            depth += 1
        elif c == ">" and depth:
            depth -= 1
        elif c == "(" and depth == 0 and i:
            return name[:i]
    return name


def _without_namespaces(name: str) -> str:
    return re.sub(r"\b(?:\w+::)+(?=\w)", "", name)


def code(text: str, limit: int = NAME_LIMIT) -> str:
    """A Markdown code span. In a table cell, pass the result through `cell`."""
    line = short_name(one_line(text), limit)
    if not line:
        return "(no name)"
    line = line.replace("<!--", "<! --").replace("-->", "-- >")
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def cell(markdown: str) -> str:
    """Rendered Markdown, fit for a table cell. A bar behind a backslash cannot be escaped there: it is replaced."""
    return re.sub(r"(\\?)\|", lambda m: "\\¦" if m[1] else "\\|", markdown.replace("\n", " "))


def bare(text: str, limit: int = HARD_LIMIT) -> str:
    """One line for a format without markup: long words shortened, what cannot be seen made visible."""
    line = re.sub(rf"\S{{{WORD_LIMIT + 1},}}", lambda m: short_name(m[0], WORD_LIMIT), one_line(text))
    return middle(line, limit)


def plain(text: str) -> str:
    """Text that Markdown shows as it is: no emphasis, links, HTML, mentions or block starts. One line."""
    line = bare(text)
    line = re.sub(r"\\(?=[!-/:-@\[-`{-~]|$)", r"\\\\", line)
    line = re.sub(r"[`*$]|(?<![^\W_])_|_(?![^\W_])|~(?=\S)|(?<=\S)~", r"\\\g<0>", line)
    line = re.sub(r"&(?=#?\w+;)", "&amp;", line)
    line = re.sub(r"<(?=[A-Za-z/!?])", "&lt;", line).replace("-->", "--&gt;")
    line = re.sub(r"\](?=[(\[:])", r"\\]", line)
    line = line.replace("://", ":\\//")
    line = re.sub(r"(?i)\b(www)\.", r"\1\\.", line)
    # A zero-width space is what stops GitHub from turning @name and #1 into a mention and a link.
    line = re.sub(r"@(?=\w)|#(?=\d)|\bGH-(?=\d)", r"\g<0>&#8203;", line)
    line = re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", line)
    return re.sub(r"^(?:[#>+=]|-(?=[\s-]|$))", r"\\\g<0>", line)


def prose(text: str, limit: int = NAME_LIMIT) -> str:
    """One of our sentences, with `names` in backticks: the names through `code`, the rest through `plain`."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        parts[-2:] = ["`".join(parts[-2:])]
    out: list[str] = []
    for i, part in enumerate(parts):
        if i % 2:
            out.append(code(part, limit) if part.strip() else "")
            continue
        lead = " " if i and part[:1].isspace() else ""
        trail = " " if i + 1 < len(parts) and part.strip() and part[-1:].isspace() else ""
        out.append(lead + plain(part) + trail)
    return "".join(out).strip()


def authored(text: str) -> str:
    """A rule's or remedy's Markdown without HTML, images, mentions, odd links; headings bold, open fences closed."""
    out: list[str] = []
    paragraph: list[str] = []
    fence = ""

    def close_paragraph() -> None:
        if paragraph:
            out.append(_disarm("\n".join(paragraph)))
            paragraph.clear()

    for line in console(text.strip()).split("\n"):
        mark = _FENCE.match(line)
        if fence:
            out.append(line)
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif mark:
            close_paragraph()
            fence = mark[1]
            out.append(line)
        elif line.strip():
            heading = _HEADING.match(line)
            paragraph.append(f"**{heading[1].rstrip().rstrip('#').rstrip()}**" if heading else line)
        else:
            close_paragraph()
            out.append("")
    close_paragraph()
    # Behind `**Why:** ` on one line, a fence would be none, and what is in it would be text.
    start = [""] if out and _FENCE.match(out[0]) else []
    return "\n".join([*start, *out, fence] if fence else [*start, *out])


def _disarm(paragraph: str) -> str:
    """Code spans pair runs of equally many backticks, across lines; all else is text."""
    out, end = [], 0
    for span in _SPAN.finditer(paragraph):
        out += [_disarm_text(paragraph[end : span.start()]), span[0]]
        end = span.end()
    return "".join(out) + _disarm_text(paragraph[end:])


def _disarm_text(text: str) -> str:
    # An entity would bring back what is taken out here: `&#64;name` is a mention to GitHub.
    text = re.sub(r"&(?=#?\w+;)", "&amp;", text)
    text = re.sub(r"<(?=[A-Za-z/!?])(?!https?://[^\s<>]+>)", "&lt;", text).replace("-->", "--&gt;")
    text = text.replace("![", "\\![")
    text = re.sub(r"\]\((?!https?://)", r"]\\(", text)
    return re.sub(r"@(?=\w)|\bGH-(?=\d)", r"\g<0>&#8203;", text)
