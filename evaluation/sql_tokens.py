"""SQL as tokens, those in brackets nested."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_WORD = re.compile(r"\w+")


KEYWORDS = frozenset(
    _WORD.findall(
        """select from where group by having order qualify window limit union all as on and or not in is null case when
        then else end with recursive distinct join left right full outer inner cross asof semi anti using over partition
        rows between unbounded preceding following current row filter exists asc desc exclude replace create view macro
        table values lambda like ilike true false cast lateral positional nulls first last"""
    )
)


CLAUSES = frozenset(
    _WORD.findall("with select from where group having window qualify order limit union except intersect")
)


JOINS = frozenset(_WORD.findall("asof left right full outer inner cross semi anti positional natural lateral join"))


_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<comment>--[^\n]*)|(?P<text>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")"
    r"|(?P<word>[A-Za-z_]\w*|\$\w+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<other><=|>=|<>|!=|\|\||->>?|::|:=|//|==|.)",
    re.DOTALL,
)


@dataclass(eq=False)
class Token:
    """A word of the statement; `children` and `close` make it a parenthesis or a `case … end`."""

    text: str
    space: bool
    notes: list[str] = field(default_factory=list)
    """Comments that belong above its line."""
    children: list[Token] | None = None
    close: Token | None = None

    @property
    def is_case(self) -> bool:
        return self.children is not None and self.text == "case"


Tokens = list[Token]


def read(sql: str) -> Tokens:
    """The tokens of a statement, nested. A comment at the end of a line belongs to that line, else to the next one."""
    stack: list[Tokens] = [[]]
    last: Token | None = None
    space = fresh = True
    pending: list[str] = []
    for match in _TOKEN.finditer(sql):
        text = match[0]
        if match["space"]:
            space, fresh = True, fresh or "\n" in text
        elif match["comment"]:
            (last.notes if last and not fresh else pending).append(text)
        else:
            if match["word"] and text.lower() in KEYWORDS:
                text = text.lower()
            token = Token(text, space, pending)
            if text[0] == "'" and fresh and last and last.text[0] == "'" and stack[-1][-1:] == [last]:
                last.text += f"\n{text}"  # one text, written on two lines
                continue
            pending, space, fresh = [], False, False
            last = last if text == ";" else token
            if text in (")", "]", "end"):
                stack.pop()
                stack[-1][-1].close = token
            else:
                stack[-1].append(token)
                if text in ("(", "[", "case"):
                    token.children = []
                    stack.append(token.children)
    return stack[0]


def flatten(tokens: Tokens) -> Tokens:
    flat: Tokens = []
    for token in tokens:
        flat.append(token)
        if token.children is not None and token.close is not None:
            flat += [*flatten(token.children), token.close]
    return flat


def text_of(tokens: Tokens) -> str:
    """Tokens, flat already, on one line."""
    parts: list[str] = []
    before = "("
    for token in tokens:
        tight = before in ("(", "[") or token.text in (")", "]", ",")
        parts.append(token.text if tight or not token.space else f" {token.text}")
        before = token.text
    return "".join(parts)


def is_query(tokens: Tokens) -> bool:
    return bool(tokens) and tokens[0].text in ("select", "with", "from")


def split(tokens: Tokens, at: str) -> list[Tokens]:
    """The parts between separators, each with the separator that ends it."""
    parts: list[Tokens] = [[]]
    for token in tokens:
        parts[-1].append(token)
        if token.text == at:
            parts.append([])
    return [part for part in parts if part]
