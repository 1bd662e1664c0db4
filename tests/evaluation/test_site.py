"""The documentation site: links that leave `docs/`, and the check of the built pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evaluation.site import hooks, links, rule_record
from paths import ROOT

KNOWN = {"guide.md", "accuracy.md", "changelog.md", "corpus.md", "reference/rules.md", "decisions/README.md"}


@pytest.mark.parametrize(
    ("here", "written", "shown"),
    [
        ("guide.md", "[rules](reference/rules.md#a)", "[rules](reference/rules.md#a)"),
        ("accuracy.md", "[corpus](../fixtures/README.md)", "[corpus](corpus.md)"),
        ("changelog.md", "[`gpudiag`](docs/guide.md#top)", "[`gpudiag`](guide.md#top)"),
        ("accuracy.md", "[the split](../fixtures/split.yaml)", "the split (`fixtures/split.yaml`)"),
        ("accuracy.md", "[gone](../fixtures/gone.yaml)", "[gone](../fixtures/gone.yaml)"),
        ("guide.md", "`[x](../LICENSE)`", "`[x](../LICENSE)`"),
        ("guide.md", "```md\n[x](../LICENSE)\n```", "```md\n[x](../LICENSE)\n```"),
        ("guide.md", "[x](https://example.org/)", "[x](https://example.org/)"),
    ],
)
def test_links_out_of_docs_are_rewritten(here: str, written: str, shown: str) -> None:
    assert hooks.rewritten(written, here, "", KNOWN) == shown


def test_a_known_repository_is_linked_to() -> None:
    shown = hooks.rewritten("[the split](../fixtures/split.yaml)", "accuracy.md", "https://example.org/o/r/", KNOWN)
    assert shown == "[the split](https://example.org/o/r/blob/main/fixtures/split.yaml)"


def test_dead_links_and_foreign_files_are_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="a/">1</a><a href="a/#here">2</a><a href="#own">3</a><h1 id="own"></h1><a href="https://x.org/">4</a>'
    )
    (tmp_path / "a" / "index.html").write_text('<h2 id="here"></h2><a href="..">home</a>')
    pages = links.read(tmp_path)
    assert list(links.dead(tmp_path, pages)) == []
    assert links.external(tmp_path, pages) == {"https://x.org/": ["index.html"]}
    (tmp_path / "a" / "index.html").write_text(
        '<a href="../gone/">1</a><a href="../#gone">2</a><script src="https://x.org/x.js"></script>'
    )
    found = list(links.dead(tmp_path, links.read(tmp_path)))
    assert {fault.split(" in")[0] for fault in found} == {
        "index.html links to a/#here, and there is no such heading",
        "a/index.html links to ../gone/, which does not exist",
        "a/index.html links to ../#gone, and there is no such heading",
        "a/index.html loads https://x.org/x.js from elsewhere",
    }


def test_the_index_of_decisions_lists_each_of_them() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text("utf-8")
    assert [page.name for page in sorted(folder.glob("0*.md")) if f"({page.name})" not in index] == []


def test_the_tutorial_shows_lines_of_the_program() -> None:
    program = (ROOT / "fixtures/workloads/training_curve.py").read_text("utf-8")
    page = (ROOT / "docs/tutorial.md").read_text("utf-8")
    changed = [line for block in re.findall(r"```diff\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    assert len(changed) > 10
    assert [line for line in changed if line[1:].strip() not in program] == []


def test_times_of_the_comparison_are_those_of_the_benchmark() -> None:
    benchmark = (ROOT / "docs/performance.md").read_text("utf-8")
    times = re.findall(r"\| ([\d.]+) s \|$", (ROOT / "docs/comparison.md").read_text("utf-8"), re.MULTILINE)
    assert len(times) == 4
    assert [time for time in times if f" {time} |" not in benchmark] == []


def test_a_rule_page_lists_the_programs_that_have_the_cause() -> None:
    section = rule_record.section("D01", "finding")
    assert re.search(
        r"^\| `loader_without_workers` slow \| `images, labels = next\(batches\)` \| 85", section, re.MULTILINE
    )
    assert "nothing is known" in rule_record.section("D07", "finding")
    assert rule_record.section("X01", "suppressor") == ""
