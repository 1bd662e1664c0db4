"""Everything that the documents name exists: links, commands, options, modules, files, generated pages."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import gpudiag
from evaluation import generate_docs
from gpudiag.cli import main
from paths import ROOT

PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)
WRITTEN = [page for page in PAGES if "reference" not in page.relative_to(ROOT).parts]


def test_links_lead_somewhere() -> None:
    missing = []
    for page in PAGES:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
        missing += [
            f"{page.relative_to(ROOT)}: {target}"
            for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
            if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists()
        ]
    assert missing == []


PACKAGE = ROOT / "src" / "gpudiag"
PROGRAMS = [
    f"/{path.relative_to(ROOT)}"
    for folder in ("src", "evaluation", "benchmarks", "fuzz", "tests", "fixtures")
    for path in (ROOT / folder).rglob("*.py")
]
# Programs of examples are the reader's, and the house has no utils.py.
EXAMPLES = {"train.py", "bench.py", "utils.py"}


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_named_exist(page: Path) -> None:
    """A path from the root, a module by the end of its path (`replay/edits.py`), or `gpudiag.x` by its dotted name."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    quoted = set(re.findall(r"`([^`\s]+)`", text))
    rooted = {
        name
        for name in quoted
        if re.fullmatch(r"(src|evaluation|benchmarks|fuzz|rules|scripts|tests|docs|fixtures)/[\w./-]+", name)
    }
    modules = {name for name in quoted - rooted if re.fullmatch(r"[\w/]+\.py", name)} - EXAMPLES
    folders = {name for name in quoted if re.fullmatch(r"[a-z_/]+/", name)} if page.name == "architecture.md" else set()
    dotted = {name for name in quoted if re.fullmatch(r"gpudiag(\.\w+)+", name) and name != "gpudiag.toml"}
    missing = {name for name in rooted if not (ROOT / name).exists()}
    missing |= {name for name in modules if not any(path.endswith(f"/{name}") for path in PROGRAMS)}
    missing |= {
        name for name in folders if not any((root / name).is_dir() for root in (ROOT, PACKAGE, PACKAGE / "replay"))
    }
    missing |= {name for name in dotted if not _is_there(name)}
    assert missing == set()


def _is_there(dotted: str) -> bool:
    """Return whether it is a module of ours, or a name that `import gpudiag` offers."""
    _, *parts = dotted.split(".")
    module = ROOT / "src/gpudiag" / "/".join(parts)
    return module.is_dir() or module.with_suffix(".py").is_file() or hasattr(gpudiag, parts[0])


def commands(page: Path) -> Iterator[list[str]]:
    """The words of every shell line in the page's code blocks."""
    for block in re.findall(r"```(?:sh|bash|console)(?: [^\n]*)?\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words:
                yield words


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_shown_exist(page: Path) -> None:
    for words in commands(page):
        if words[0] == "gpudiag":
            assert_known(words[1:])
        elif words[0] == "sh" and words[1].startswith("scripts/"):
            assert (ROOT / words[1]).is_file(), words
        elif words[0].rpartition("/")[2] == "python" and words[1:2] == ["-m"]:
            assert importlib.util.find_spec(words[2]), words


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
