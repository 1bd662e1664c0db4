"""Lay out the SQL of rules and views in one way:  python -m evaluation.format_sql [--check]

One column a line in select lists, clauses and joins one under another, keywords in lower case, at most 120 characters
a line. Only white space, the case of keywords and the place of comments change: before a file is written, DuckDB has
parsed both texts to the same statement. The formatters that there are rewrite DuckDB's functions or lose its syntax.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from pathlib import Path

import duckdb

from evaluation.sql_tokens import _TOKEN, CLAUSES, JOINS, Token, Tokens, flatten, is_query, read, split, text_of

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 118  # a query stands in YAML two characters further in
STEP = 2


Line = tuple[int, Tokens]


def may_be_flat(tokens: Tokens) -> bool:
    """Return whether the tokens may stand on one line if they fit: no query with several columns is among them."""
    if is_query(tokens):
        parts = clauses(tokens)
        if parts[0][0].text == "with" or any(part[0].text == "select" and len(split(part, ",")) > 1 for part in parts):
            return False
    return all(token.children is None or may_be_flat(token.children) for token in tokens)


def fits(indent: int, tokens: Tokens) -> bool:
    text = text_of(flatten(tokens))
    return may_be_flat(tokens) and "\n" not in text and indent + len(text) <= WIDTH


def clauses(tokens: Tokens) -> list[Tokens]:
    """A query's clauses; each join and each set operation is one."""
    parts: list[Tokens] = []
    for at, token in enumerate(tokens):
        before = tokens[at - 1].text if at else ""
        starts = token.text in CLAUSES and not (token.text == "from" and before == "distinct")
        if token.text in JOINS and before not in JOINS:
            rest = at
            while rest < len(tokens) and tokens[rest].text in JOINS:
                rest += 1
            starts = tokens[rest - 1].text == "join"
        if starts or not parts:
            parts.append([])
        parts[-1].append(token)
    return parts


def query(tokens: Tokens, indent: int) -> list[Line]:
    """The lines of a query."""
    if fits(indent, tokens) and len(clauses(tokens)) <= 3:
        return [(indent, flatten(tokens))]
    lines: list[Line] = []
    for part in clauses(tokens):
        if part[0].text == "with":
            names = 2 if part[1].text == "recursive" else 1
            for table in split(part[names:], ","):
                lines += broken(table, table[-1 if table[-1].children else -2], indent, indent)
            lines[0] = (indent, [*part[:names], *lines[0][1]])
        elif part[0].text == "select":
            lines += select(part, indent)
        elif fits(indent, part):
            lines.append((indent, flatten(part)))
        elif part[0].text in ("where", "having", "qualify") or part[0].text in JOINS:
            lines += conditions(part, indent)
        else:
            lines += expression(part, indent, indent + STEP)
    return lines


def select(part: Tokens, indent: int) -> list[Line]:
    head = 2 if len(part) > 1 and part[1].text == "distinct" else 1
    columns = split(part[head:], ",")
    if len(columns) == 1:
        return expression(part, indent, indent)
    lines: list[Line] = [(indent, part[:head])]
    for column in columns:
        lines += expression(column, indent + STEP, indent + STEP)
    return lines


def conditions(tokens: Tokens, indent: int, inner: int | None = None) -> list[Line]:
    """An expression of `and` and `or`, each on a line of its own; those of `between` are none."""
    parts: list[Tokens] = [[]]
    between = False
    for token in tokens:
        if token.text in ("and", "or") and parts[-1] and not (between and token.text == "and"):
            parts.append([])
        elif token.text == "and":
            between = False
        if token.text == "between":
            between = True
        parts[-1].append(token)
    inner = indent + STEP if inner is None else inner
    if len(parts) == 1:
        return expression(tokens, indent, inner, whole=True)
    lines = expression(parts[0], indent, inner)
    for part in parts[1:]:
        lines += expression(part, inner, inner)
    return lines


def expression(tokens: Tokens, indent: int, inner: int, *, whole: bool = False) -> list[Line]:
    """The lines of an expression: broken at `and`, then in its longest parenthesis, then at its operators."""
    if fits(indent, tokens):
        return [(indent, flatten(tokens))]
    texts = [token.text for token in tokens]
    if not whole and ("or" in texts or ("and" in texts and "between" not in texts)):
        return conditions(tokens, indent, max(inner, indent + STEP))
    groups = [token for token in tokens if token.children]
    if not groups:
        return at_operators(tokens, indent)
    # A query with several columns has to be broken; else the longest one is.
    token = max(groups, key=lambda one: (not may_be_flat([one]), len(text_of(flatten([one])))))
    inside = broken(tokens, token, indent, inner)
    outside = at_operators(tokens, indent)
    return outside if may_be_flat(tokens) and 1 < len(outside) < len(inside) else inside


def broken(tokens: Tokens, token: Token, indent: int, inner: int) -> list[Line]:
    """The lines of an expression, the contents of one of its parentheses on lines of their own."""
    where = next(at for at, one in enumerate(tokens) if one is token)
    assert token.children is not None
    assert token.close is not None
    head, body = [*tokens[:where], Token(token.text, token.space, token.notes)], token.children
    if token.is_case and "when" in (texts := [one.text for one in body]):
        head, body = [*head, *body[: texts.index("when")]], body[texts.index("when") :]
    start = expression(head, indent, inner)
    end = expression([token.close, *tokens[where + 1 :]], start[-1][0], inner)
    return [*start, *contents(body, start[-1][0] + STEP, case=token.is_case), *end]


def contents(inside: Tokens, indent: int, *, case: bool) -> list[Line]:
    """Text that stands between parentheses, or between `case` and `end`."""
    if case:
        lines: list[Line] = []
        for branch in before_words(inside, {"when", "else"}):
            lines += expression(branch, indent, indent + STEP)
        return lines
    if is_query(inside):
        return query(inside, indent)
    if inside and inside[0].text in ("partition", "order"):
        parts = before_words(inside, {"partition", "order", "rows", "range"})
    else:
        parts = split(inside, ",")
    return [line for part in parts for line in expression(part, indent, indent + STEP)]


def before_words(tokens: Tokens, words: set[str]) -> list[Tokens]:
    parts: list[Tokens] = [[]]
    for token in tokens:
        if token.text in words and parts[-1]:
            parts.append([])
        parts[-1].append(token)
    return parts


def at_operators(tokens: Tokens, indent: int) -> list[Line]:
    """Broken before the weakest operators that there are; one line if there are none."""
    for operators in ({"||"}, {"+", "-"}, {"*", "/"}, {"then", "as", "order", "filter", "over"}):
        parts: list[Tokens] = [[]]
        for at, token in enumerate(tokens):
            if at and token.space and token.text in operators and tokens[at - 1].text != "select":
                parts.append([])
            parts[-1].append(token)
        if len(parts) > 1:
            lines = expression(parts[0], indent, indent + STEP)
            for part in parts[1:]:
                lines += expression(part, indent + STEP, indent + STEP)
            return lines
    return [(indent, flatten(tokens))]


def statement(tokens: Tokens) -> list[Line]:
    """The lines of a query, or of a `create view` or `create macro`."""
    if tokens[0].text != "create":
        return query(tokens, 0)
    head = next(at for at, token in enumerate(tokens) if token.text == "as") + 1
    head += tokens[head].text == "table"
    if is_query(tokens[head:]):
        return [*expression(tokens[:head], 0, STEP), *query(tokens[head:], 0)]
    if fits(0, tokens):
        return [(0, flatten(tokens))]
    return [*expression(tokens[:head], 0, STEP), *expression(tokens[head:], STEP, 2 * STEP)]


def written(lines: list[Line]) -> str:
    """Lines as text, the comments of their words above them."""
    found: list[str] = []
    for indent, tokens in lines:
        pad = " " * indent
        for note in (note for token in tokens for note in token.notes):
            more = "--    " if re.match(r"-- {3}\w+: ", note) else "-- "
            width = WIDTH + STEP if tokens[0].text == "create" else WIDTH - indent  # no YAML around a view
            wrapped = textwrap.wrap(note, width, subsequent_indent=more, break_long_words=False, break_on_hyphens=False)
            found += [f"{pad}{line}" for line in wrapped] or [""]
        found.append(textwrap.indent(text_of(tokens), pad))
    return "\n".join(found)


def formatted(sql: str) -> str:
    """The statements of `sql`, laid out. Raises ValueError if they would not be the same ones."""
    parts = [part for part in split(read(sql), ";") if part[0].text != ";"]
    made = [written(statement(part[:-1] if part[-1].text == ";" else part)) for part in parts]
    many = len(parts) > 1 or parts[-1][-1].text == ";"
    text = "".join(f"{one};\n\n" for one in made).rstrip("\n") if many else made[0]
    if words(text) != words(sql) or comments(text) != comments(sql):
        raise ValueError("the layout lost something")
    return f"{text}\n"


def words(sql: str) -> list[str]:
    return [token.text for token in flatten(read(sql))]


def comments(sql: str) -> list[str]:
    """The words of all comments, in no order: one at the end of a line moves above it."""
    found = (match[0] for match in _TOKEN.finditer(sql) if match["comment"])
    return sorted(word for note in found for word in note.replace("--", " ").split())


def same(con: duckdb.DuckDBPyConnection, before: str, after: str) -> bool:
    """Return whether DuckDB parses both to one statement."""
    trees = [con.execute("select json_serialize_sql(?)", [sql]).fetchall()[0][0] for sql in (before, after)]
    if any(json.loads(tree)["error"] for tree in trees):
        return False
    one, other = (re.sub(r'"query_location(?:_length)?":\d+', "", tree) for tree in trees)
    return one == other


def layouts() -> dict[Path, str]:
    """Every file of rules and views as it should be."""
    con = duckdb.connect()
    found: dict[Path, str] = {}
    for path in sorted((ROOT / "rules").rglob("*.sql")):
        found[path] = formatted(path.read_text("utf-8"))
    for path in sorted((ROOT / "rules").rglob("*.yaml")):
        text = path.read_text("utf-8")
        block = re.search(r"^query: \|\n((?:  .*\n|\n)+)", text, re.MULTILINE)
        if block and not path.name.endswith(".test.yaml"):
            before = textwrap.dedent(block[1])
            after = formatted(before)
            if not same(con, before, after):
                raise ValueError(f"{path}: would mean something else")
            found[path] = text[: block.start(1)] + textwrap.indent(after, "  ") + text[block.end(1) :]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file would change")
    check = parser.parse_args().check
    stale = {path: text for path, text in layouts().items() if text != path.read_text("utf-8")}
    for path, text in stale.items():
        print(path.relative_to(ROOT), file=sys.stderr)
        if not check:
            path.write_text(text, "utf-8")
    sys.exit(bool(check and stale))


if __name__ == "__main__":
    main()
