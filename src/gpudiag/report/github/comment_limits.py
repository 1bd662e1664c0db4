"""GitHub's demands on a comment's Markdown: a hidden mark to find it again, a length, and that all is closed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from gpudiag.errors import GpudiagError
from gpudiag.report.wording.words import plural

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# GitHub refuses longer comments: 422, "Body is too long (maximum is 65536 characters)". Its documentation does not say
# so; https://github.com/dead-claudia/github-limits has measured it. What is left is for whatever posts the comment.
LIMIT = 60_000
# A path's part that names its owner: `/home/alice`, `/lustre/users/alice`, `/root`, `C:\\Users\\alice`, `~alice`.
_HOME = re.compile(
    r"(?:(?<![\w.~:/\\])|file://)(?:"
    r"/(?:var/)?root(?![\w.-])"
    r"|~[A-Za-z_][\w.-]*(?=[\\/])"
    r"|(?:[A-Za-z]:|\\\\)?(?:[\\/]+[^\\/\s`'\"<>|:]+)*?[\\/]+(?:home\d*|homes|users)(?:[\\/]+\.)*[\\/]+[^\\/\s`'\"<>|:]+"
    r"|/u/[^/\s`'\"<>|:]+"
    r")",
    re.IGNORECASE,
)
_SHOWN = {"file"}
"""Keys of paths that are looked for in the checkout, and then named from there."""
APART = "\n\n"  # GitHub reads Markdown inside HTML only between blank lines
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,63}")
_MARK = re.compile(r"<!--(?=\s*gpudiag\b)", re.IGNORECASE)
_MENTION = re.compile(r"@(?=\w)")


Shown = TypeVar("Shown", bound=BaseModel)


def private(model: Shown, *, files: bool = True) -> Shown:
    """Return the report or comparison as it may be posted: home folders, which name people, are `~` in all its texts.

    files: also in the files of places; formats that look those up in the checkout leave them out themselves.
    """
    kept = set() if files else _SHOWN
    content = _without_homes(model.model_dump(mode="python"), kept)
    return type(model).model_validate(content)


def without_homes(text: str) -> str:
    """A text in which `/home/alice/train.py` is `~/train.py`."""
    return _HOME.sub("~", text)


def _without_homes(value: Any, kept: Collection[str]) -> Any:
    if isinstance(value, str):
        return without_homes(value)
    if isinstance(value, dict):
        return {key: item if key in kept else _without_homes(item, kept) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_without_homes(item, kept) for item in value)
    return value


def marker(key: str = "") -> str:
    """The hidden first line by which the comment is found again. Raises GpudiagError."""
    if key and not _KEY.fullmatch(key):
        raise GpudiagError(
            f"{key[:80]!r} cannot mark a comment; use up to 64 letters, digits, dots, slashes and dashes."
        )
    return f"<!-- gpudiag:{key} -->" if key else "<!-- gpudiag -->"


def body(text: str, key: str = "") -> str:
    """Markdown of ours under its marker; where GitHub would refuse it, without its last blocks. Raises GpudiagError."""
    first = f"{marker(key)}{APART}"
    text = _MARK.sub("<! --", text).strip()
    if len(first) + len(text) >= LIMIT:
        text = _cut(text, LIMIT - len(first) - 1)
    return f"{first}{text}\n"


def folded(summary: str, text: str) -> str:
    """Markdown behind a line to click on. summary: our own words, without a name from a capture."""
    return f"<details>\n<summary>{summary}</summary>{APART}{text}{APART}</details>" if text else ""


def sound(fold: str) -> bool:
    """Return whether the text closes all that it opens, and holds no HTML, no image and no mention."""
    tokens = _parser().parse(f"{fold}{APART}END")
    inline = [child for token in tokens for child in token.children or ()]
    last = [(token.type, token.level, token.content) for token in tokens[-3:-1]]
    return (
        last == [("paragraph_open", 0, ""), ("inline", 1, "END")]
        and sum(token.type == "html_block" for token in tokens) == 2 * bool(fold)
        and not any(token.type in ("html_inline", "image") for token in inline)
        and not any(token.type == "text" and _MENTION.search(token.content) for token in inline)
    )


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def _cut(text: str, room: int) -> str:
    """The text up to the last block, list item or table row that fits, outside of anything folded; with a sentence."""
    lines = text.split("\n")
    sizes = [0]
    for line in lines:
        sizes.append(sizes[-1] + len(line) + 1)
    room -= len(_left_out(len(lines))) + len(APART)
    end = max((end for end in _ends(_parser().parse(text)) if sizes[end] <= room), default=0)
    return "\n".join([*lines[:end], "", _left_out(len(lines) - end)]).strip()


def _left_out(count: int) -> str:
    return f"{plural(count, 'more line')} did not fit into a comment: the command that made it prints them."


def _ends(tokens: Iterable[Token]) -> Iterator[int]:
    """Lines behind which the text may be cut."""
    folds = 0
    for token in tokens:
        if token.type == "html_block":
            folds += token.content.count("<details") - token.content.count("</details")
        whole = token.level == 0 or (token.type, token.level) in (("list_item_open", 1), ("tr_open", 2))
        if token.map and token.nesting >= 0 and whole and folds <= 0:
            yield token.map[1]
