"""The project's language: the field's own words, and docstrings that are statements."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SPOKEN = ("src", "evaluation", "benchmarks", "fuzz", "rules", "docs", "tests", "README.md", "CONTRIBUTING.md")
PROGRAMS = sorted(
    path for folder in ("src", "evaluation", "benchmarks", "fuzz") for path in (ROOT / folder).rglob("*.py")
)

PRIVATE = re.compile(
    r"(?<![.\w])(turns?|told|mended|pieces?|meetings?|strangers?)(?!\w)"
    r"|(?:^|[^A-Za-z])(turns?|told|pieces?|strangers?)_|_(turns?|told|pieces?|strangers?)\b",
    re.IGNORECASE,
)
"""Words that only this project ever used: an iteration was a turn, an idle interval a piece, a summary was told."""
ALLOWED = {
    "rules/renamed.yaml": "the table of old names: their new ones stand beside them",
    "tests/test_language.py": "this list",
    "tests/test_former_names.py": "rules in the words of an earlier version",
    "tests/data/fuzz/*": "reports and captures as older versions wrote them",
}
QUESTION = re.compile(r"(What|Whether|How|Where|Which|Why|When|Who|Whose|If)\b")


def files() -> Iterator[Path]:
    """Yield the text files of the project that readers see."""
    for name in SPOKEN:
        path = ROOT / name
        yield from sorted(path.rglob("*")) if path.is_dir() else [path]


@pytest.mark.slow
def test_private_words_are_gone() -> None:
    found = []
    for path in files():
        place = path.relative_to(ROOT).as_posix()
        if not path.is_file() or "__pycache__" in place or any(fnmatch(place, pattern) for pattern in ALLOWED):
            continue
        try:
            lines = path.read_text("utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        found += [
            f"{place}:{number}: {line.strip()[:100]}" for number, line in enumerate(lines, 1) if PRIVATE.search(line)
        ]
    assert found == []


def test_few_files_are_excepted() -> None:
    assert len(ALLOWED) <= 20


@pytest.mark.slow
def test_docstrings_are_statements() -> None:
    """`Return whether …` says what a function does; `Whether …` leaves open if it asks, answers or checks."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = {}
    for path in PROGRAMS:
        nodes = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, documented)]
        texts = [ast.get_docstring(node) or "" for node in nodes]
        if questions := [text.partition("\n")[0] for text in texts if QUESTION.match(text)]:
            found[path.relative_to(ROOT).as_posix()] = questions
    assert found == {}
