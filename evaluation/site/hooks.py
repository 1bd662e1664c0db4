"""Hooks of MkDocs: pages that lie outside `docs/`, and links to files that are no pages.

MkDocs loads this file by its path (mkdocs.yml), so it imports nothing of the project.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
# Files of the repository that are pages of the site as well, and where.
BORROWED = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "fixtures/README.md": "corpus.md",
    "fixtures/wild/README.md": "wild-corpus.md",
}
# Pages that name every word there is: a search should end elsewhere first.
_LONG = ("reference/views", "reference/tables", "decisions/", "corpus", "wild-corpus", "changelog", "accuracy", "wild")
_NOTICE = re.compile(r"\A\s*<!--.*?-->\s*", re.DOTALL)
# A fenced block, a link, or a code span: whichever begins first.
_PARTS = re.compile(
    r"^ *(?P<fence>`{3,}).*?^ *(?P=fence)`*$"
    r"|(?<!!)\[(?P<words>[^\[\]]+)\]\((?P<target>[^()#\s]+)(?P<anchor>#[^()\s]*)?\)"
    r"|`[^`\n]*`",
    re.MULTILINE | re.DOTALL,
)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are borrowed from outside `docs/`."""
    for source, page in BORROWED.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links of a page that lead out of `docs/`, and leave room beside pages that have no headings."""
    here = page.file.src_uri
    alone = page.parent is None
    markdown = _NOTICE.sub("", markdown)  # MkDocs takes the title only from what stands first
    page.meta["hide"] = ["navigation"] * alone + ["toc"] * (not re.search("^## ", markdown, re.MULTILINE))
    if here.startswith(_LONG):
        page.meta["search"] = {"boost": 0.3}
    return rewritten(markdown, here, config.repo_url or "", {file.src_uri for file in files})


def rewritten(markdown: str, here: str, repository: str, known: set[str]) -> str:
    """Return a page's text with links to files of the repository as the site can follow them.

    `here`: the page's path in the site. `repository`: the address of the sources; without one, a file that is no page
    is named by its path. A link to a file that does not exist stays, so that the build fails.
    """
    source = {page: source for source, page in BORROWED.items()}.get(here, f"docs/{here}")

    def link(found: re.Match[str]) -> str:
        words, target, anchor = found["words"], found["target"], found["anchor"] or ""
        if not target or re.match(r"[a-z]+:", target):
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        page = BORROWED.get(path, path.removeprefix("docs/") if path.startswith("docs/") else "")
        if page in known:
            return f"[{words}]({posixpath.relpath(page, posixpath.dirname(here) or '.')}{anchor})"
        if not (ROOT / path).exists() or path.startswith(".."):
            return found[0]
        if repository:
            return f"[{words}]({repository.rstrip('/')}/blob/main/{path})"
        return words if words.strip("`") == path else f"{words} (`{path}`)"

    return _PARTS.sub(link, markdown)
