"""Documentation of a view in the comment above it, the reference that rule authors read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import duckdb


@dataclass(frozen=True, slots=True)
class ViewDoc:
    """Comment block above a view or macro: the meaning of a row, the reason why it is stored, the meaning of each
    column.
    """

    name: str
    file: str
    line: int
    is_macro: bool
    text: str
    materialised: str
    columns: dict[str, str]


_CREATE = re.compile(r"^create\s+(view|macro)\s+(\w+)", re.I | re.M)
_COMMENT = re.compile(r"[ \t]*--[^\n]*")
_COLUMN = re.compile(r"-- {3}(\w+): (.+)")


def view_docs(files: Iterable[tuple[str, str]]) -> list[ViewDoc]:
    """The documentation of every view and macro: `-- what a row is`, then a line `--   column: meaning` each."""
    docs: list[ViewDoc] = []
    for file, sql in files:
        for match in _CREATE.finditer(sql):
            text: list[str] = []
            why = ""
            columns: dict[str, str] = {}
            for line in _comments_above(sql, match.start()):
                if column := _COLUMN.match(line):
                    columns[column[1]] = column[2]
                elif line.startswith("-- materialised:"):
                    why = line.partition(":")[2].strip()
                elif columns and line.startswith("--    "):
                    columns[list(columns)[-1]] += f" {line[2:].strip()}"
                else:
                    text.append(line[2:].strip())
            at = sql.count("\n", 0, match.start()) + 1
            sentence = " ".join(text).strip()
            docs.append(ViewDoc(match[2], file, at, match[1].lower() == "macro", sentence, why, columns))
    return docs


def _comments_above(sql: str, end: int) -> list[str]:
    """The lines of the comment block that ends at a place in `sql`."""
    lines: list[str] = []
    while end and (start := sql.rfind("\n", 0, end - 1) + 1) < end and _COMMENT.fullmatch(sql, start, end - 1):
        lines.append(sql[start:end].strip())
        end = start
    return lines[::-1]


def check_view_doc(con: duckdb.DuckDBPyConnection, doc: ViewDoc) -> str:
    """Return what is wrong with a view's documentation, or nothing. The view must exist in `con`."""
    if not doc.text:
        return f"{doc.name} has no comment; say above it what a row is"
    if doc.is_macro:
        return ""
    actual = [str(row[0]) for row in con.execute(f'describe select * from "{doc.name}"').fetchall()]
    missing = [name for name in actual if name not in doc.columns]
    if missing:
        return f"{doc.name} does not say what {', '.join(missing)} means; write `--   column: meaning (unit)` above it"
    gone = [name for name in doc.columns if name not in actual]
    return f"{doc.name} documents {', '.join(gone)}, which it does not have" if gone else ""


def column_types(con: duckdb.DuckDBPyConnection, docs: Iterable[ViewDoc]) -> dict[str, dict[str, str]]:
    """View → column → type, as DuckDB describes the views in `con`."""
    return {
        doc.name: {str(row[0]): str(row[1]) for row in con.execute(f'describe select * from "{doc.name}"').fetchall()}
        for doc in docs
        if not doc.is_macro
    }


def page(docs: Iterable[ViewDoc], types: Mapping[str, Mapping[str, str]]) -> str:
    """The views and macros as Markdown, from the comments above them."""
    parts: list[str] = []
    for doc in sorted(docs, key=lambda doc: (doc.is_macro, doc.name)):
        parts.append(f"## `{doc.name}`{' (macro)' if doc.is_macro else ''}\n\n{doc.text}\n")
        if doc.columns:
            known = types.get(doc.name, {})
            rows = [f"| `{name}` | {known.get(name, '').lower()} | {text} |" for name, text in doc.columns.items()]
            parts.append("\n".join(["| column | type | meaning |", "|---|---|---|", *rows, ""]))
        stored = f" Stored: {doc.materialised}." if doc.materialised else ""
        parts.append(f"Defined in `{doc.file}`.{stored}\n")
    return "\n".join(parts)
