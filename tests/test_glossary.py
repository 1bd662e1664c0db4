"""The glossary explains every table, every view, and the noun of every column."""

from __future__ import annotations

import re
from pathlib import Path

from gpudiag.library.view_docs import view_docs
from gpudiag.schema import TABLES

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "glossary.md"
VIEWS = [
    doc
    for doc in view_docs((str(path), path.read_text("utf-8")) for path in sorted((ROOT / "rules/views").rglob("*.sql")))
    if not doc.is_macro
]
RELATIONS = {table.name: list(table.column_names) for table in TABLES} | {doc.name: list(doc.columns) for doc in VIEWS}

UNITS = {"ns", "pct", "hz", "s", "x", "y", "z", "per"}
# Words that mean here what they mean anywhere; numbers and yes-or-no columns that their own sentence explains.
TRIVIAL = set(
    re.findall(
        r"\w+",
        """
    active added after all alone analysed at avg backward before begun between blocker blocking busy called
    caller cc code compared count counter data date doing duration each early end entry exactly explained field
    file first free frees function how id input inside issued itself key kind last launched length major match
    means minor n name no ns number often on own part pid process processes profiled resolving seen sends short
    since size start starts stated text thing thread threads tid time total trains type use value version waited
    work
    """,
    )
)


def entries() -> dict[str, str]:
    """Return meaning by word; a row may explain several, separated by commas."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    return {word.strip("` "): meaning for words, meaning in rows for word in words.split(",")}


def singular(word: str) -> str:
    """Return the word as the glossary lists it: calls → call, launches → launch."""
    for ending in ("ches", "sses"):
        if word.endswith(ending):
            return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 2 else word


def noun(name: str) -> str:
    """Return the last word that is no unit: `idle_ns` → idle, `grid_x` → grid."""
    words = name.split("_")
    while len(words) > 1 and words[-1] in UNITS:
        words.pop()
    return words[-1]


def test_each_relation_has_an_entry() -> None:
    assert sorted(RELATIONS.keys() - entries().keys()) == []


def test_nouns_of_their_columns_are_explained() -> None:
    known = entries().keys() | RELATIONS.keys() | TRIVIAL
    nouns = {f"{name}.{column}": noun(column) for name, columns in RELATIONS.items() for column in columns}
    assert sorted(place for place, word in nouns.items() if not {word, singular(word)} & known) == []


def test_each_entry_is_one_sentence() -> None:
    assert [word for word, meaning in entries().items() if word != "word" and not meaning.rstrip().endswith(".")][
        1:
    ] == []
