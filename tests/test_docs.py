"""What the documents say is there: links, commands, options, generated pages."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import generate_docs
from gpudiag.cli import main

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)
WRITTEN = [page for page in PAGES if "reference" not in page.relative_to(ROOT).parts]


def test_generated_files_are_fresh() -> None:
    assert generate_docs.stale(generate_docs.generate()) == [], "run python scripts/generate_docs.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    missing = [target for target in targets if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists()]
    assert missing == []


def commands(page: Path) -> Iterator[list[str]]:
    """The words of every shell line in the page's code blocks."""
    for block in re.findall(r"```(?:sh|bash|console)\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words:
                yield words


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_shown_exist(page: Path) -> None:
    for words in commands(page):
        if words[0] == "gpudiag":
            assert_known(words[1:])
        elif words[0] in {"sh", "python"} and words[1].startswith("scripts/"):
            assert (ROOT / words[1]).is_file(), words


def assert_known(words: list[str]) -> None:
    """The words name a command of gpudiag and only options that it has."""
    command: click.Command = main
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name, *words = words
        assert name in command.commands, f"there is no command {name}"
        command = command.commands[name]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    used = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert used <= known


def test_every_command_is_in_the_reference() -> None:
    page = (ROOT / "docs/reference/cli.md").read_text("utf-8")
    paths = [path for path, _ in generate_docs.help_texts(main, "gpudiag")]
    assert len(paths) > 1
    assert "\\b" not in page, "click wants `\\b` unescaped: no raw docstring"
    assert [path for path in paths if f"## `{path}`" not in page] == []
