"""Names that try to break out of their format stay names, in every format of the registry.

A new format needs a line in CHECKERS, and one in RENDERERS if its `render` wants more than a report. Each checker
compares a report in which everything has the hostile name with the same report in which everything has a harmless
one: what only the first contains comes from the name.
"""

from __future__ import annotations

import functools
import html.parser
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from markdown_it import MarkdownIt

from gpudiag.model import Report
from gpudiag.report import formats
from hostile import HARMLESS, NAMES, authored_by, everywhere, report_of
from paths import DATA, sarif_schema

pytestmark = pytest.mark.slow

# --- checkers: (text with the hostile name, the same with a harmless one, the name) ---------------------------------


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from (key, *strings(item))
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def parsed(text: str) -> Any:
    """As the strictest reader takes it: no bytes but printable ASCII, no NaN, no lone surrogates."""
    assert text.isascii() and all(line.isprintable() for line in text.split("\n"))
    value = json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
    assert [found for found in strings(value) if found.encode("utf-8", "replace").decode() != found] == []
    return value


def check_json(text: str, harmless: str, name: str) -> None:
    value = parsed(text)
    assert set(value) == set(parsed(harmless))
    kernels = {place["kernel"] for place in value["findings"][0]["where"]}
    if name != HARMLESS and len(value["findings"]) == len(parsed(harmless)["findings"]) > 1:
        assert name.encode("utf-8", "replace").decode() in kernels, "the report keeps names as they are"


def check_sarif(text: str, harmless: str, name: str) -> None:
    run, base = parsed(text)["runs"][0], parsed(harmless)["runs"][0]
    jsonschema.Draft7Validator(sarif_schema()).validate(parsed(text))
    for result in run["results"]:
        message = result["message"]["text"]
        assert message.isprintable() and message
        ids = {str(place["id"]) for place in result["relatedLocations"]}
        assert set(re.findall(r"(?<!\\)\]\(([^)]*)\)?", message)) <= ids
        for place in (*result["locations"], *result["relatedLocations"]):
            uri = place["physicalLocation"]["artifactLocation"]["uri"]
            assert re.fullmatch(r"(?!/)(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})+", uri)
            assert not {"..", ""} & set(uri.split("/"))
    notes = [note["message"]["text"] for note in run["invocations"][0]["toolExecutionNotifications"]]
    assert all(note.isprintable() and not re.search(r"\]\(", note) for note in notes)
    # A name that is no file has no line, and is then reported as a notification instead.
    assert len(run["results"]) + len(notes) == len(base["results"]) + len(
        base["invocations"][0]["toolExecutionNotifications"]
    )
    for rule in run["tool"]["driver"]["rules"]:
        check_markdown(rule["help"]["markdown"], "", name, authored=True)


def check_codequality(text: str, harmless: str, name: str) -> None:
    entries = parsed(text)
    jsonschema.validate(entries, _schema("gitlab-codequality.schema.json"))
    assert len({entry["fingerprint"] for entry in entries}) == len(entries)
    assert all(found.isprintable() for found in strings(entries))
    assert not any(".." in entry["location"]["path"].split("/") for entry in entries)


def check_annotations(text: str, harmless: str, name: str) -> None:
    lines = re.split(r"\r\n|\r|\n", text.removesuffix("\n"))
    assert len(lines) == harmless.count("\n")
    for line in lines:
        assert line.isprintable() and "##[" not in line
        assert re.fullmatch(r"::(warning|notice) (file=[^,:]+,line=\d+,)?title=[^,:]+::(?:[^%]|%25|%0A)+", line), (
            "a command of ours, and every % of a name is escaped"
        )


def check_outputs(text: str, harmless: str, name: str) -> None:
    """Each line is an output of ours, with a value that needs no quoting wherever a workflow puts it."""
    lines = [line.partition("=") for line in text.removesuffix("\n").split("\n")]
    assert [key for key, _, _ in lines] == [line.partition("=")[0] for line in harmless.splitlines()]
    assert all(re.fullmatch(r"\w*", value, re.ASCII) for _, _, value in lines)


# GitHub's Markdown; bare addresses, which it links too, are looked for in the source.
GFM = MarkdownIt("gfm-like", {"linkify": False})
MENTION = re.compile(r"(?<![A-Za-z0-9])@[A-Za-z0-9]")
REFERENCE = re.compile(rf"{MENTION.pattern}|(?<![\w&])#\d")
BARE_LINK = re.compile(r"://|\bwww\.", re.IGNORECASE)
CODE_OR_LINK = re.compile(r"(?<!`)(`+)(?!`)(?s:.*?)(?<!`)\1(?!`)|<https?://[^<>\s]+>")
BLOCKS = (
    "heading_open",
    "hr",
    "fence",
    "code_block",
    "table_open",
    "tr_open",
    "td_open",
    "blockquote_open",
    "list_item_open",
)


def check_markdown(text: str, harmless: str, name: str, authored: bool = False) -> None:
    """No tag, comment, picture, mention or foreign link. Names add no blocks; authored text may, and may link."""
    assert all(line.isprintable() for line in text.split("\n"))
    here, base = _markdown(text), _markdown(harmless)
    assert here.tags <= base.tags, "a tag stems from the name"
    assert here.comments == base.comments, "a comment stems from the name"
    assert "image" not in here.types
    assert [link for link in here.links if not re.match(r"https?://|#", link)] == []
    mention = MENTION if authored else REFERENCE
    assert [said for said in here.said if mention.search(said)] == []
    for marker in ("<!--", "-->"):
        assert text.count(marker) == harmless.count(marker), "whoever looks for a marker finds ours"
    if not authored:
        assert [source for source in here.sources if BARE_LINK.search(source)] == [], "GitHub would link it"
        blocks = {kind: here.types[kind] for kind in BLOCKS}
        assert blocks == {kind: base.types[kind] for kind in BLOCKS}
        boxes = r"(?m)^\s*[-*+] \[[ xX]\]"
        assert len(re.findall(boxes, text)) == len(re.findall(boxes, harmless))


class Html(html.parser.HTMLParser):
    """The elements, attributes, comments and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.comments: list[str] = []
        self.said: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    handle_decl = unknown_decl = handle_pi = handle_comment

    def handle_data(self, data: str) -> None:
        self.said.append(data)

    @property
    def tags(self) -> set[tuple[str, str]]:
        return {(tag, key) for tag, attributes in self.elements for key in ("", *attributes)}


class Markdown:
    """What GitHub would make of a text."""

    def __init__(self, text: str) -> None:
        tokens = [child for token in GFM.parse(text) for child in (token, *(token.children or ()))]
        self.types = Counter(token.type for token in tokens)
        self.links = [str(token.attrs.get("href", "")) for token in tokens if token.type == "link_open"]
        self.said = [token.content for token in tokens if token.type == "text"]
        self.sources = [CODE_OR_LINK.sub("", token.content) for token in tokens if token.type == "inline"]
        page = Html("\n".join(token.content for token in tokens if token.type in ("html_block", "html_inline")))
        self.said += page.said
        self.tags, self.comments = page.tags, page.comments


@functools.lru_cache(maxsize=8)
def _markdown(text: str) -> Markdown:
    return Markdown(text)


ACTIVE = ("script", "img", "iframe", "object", "embed", "style", "link", "meta", "base", "form", "input", "title")


BLOCK_TAGS = ("pre", "code", "hr", "ol", "ul", "li", "blockquote", "p", "strong", "em", "a", "h3", "h4", "h5", "h6")


def check_html(text: str, harmless: str, name: str, authored: bool = False) -> None:
    """No element, attribute, comment or address stems from the name. Authored text may have lists and the like."""
    # The page itself may use zero-width spaces, to break long words.
    assert all(line.isprintable() for line in text.replace("\t", " ").replace("\u200b", "").split("\n"))
    here, base = Html(text), Html(harmless)
    written = {(tag, key) for tag in BLOCK_TAGS for key in ("", "tabindex", "class", "start", "href", "rel")}
    assert here.tags <= base.tags | (written if authored else set())
    counts, expected = (Counter(tag for tag, _ in page.elements) for page in (here, base))
    assert {tag: counts[tag] for tag in ACTIVE} == {tag: expected[tag] for tag in ACTIVE}
    assert here.comments == base.comments
    addresses = [
        value
        for _, attributes in here.elements
        for key, value in attributes.items()
        if key in ("href", "src", "action", "formaction", "xlink:href", "data", "srcset", "poster")
    ]
    assert [address for address in addresses if re.match(r"(?i)\s*(javascript|vbscript|data:text)", address)] == []
    for tag, attributes in here.elements:
        assert not any(key.startswith("on") for key in attributes), f"a handler on <{tag}>"


CHECKERS: dict[str, Callable[[str, str, str], None]] = {
    "markdown": check_markdown,
    "json": check_json,
    "sarif": check_sarif,
    "github-annotations": check_annotations,
    "github-outputs": check_outputs,
    "gitlab-codequality": check_codequality,
    "checklist": check_markdown,
    "github-comment": check_markdown,
    "html": check_html,
}
DISARMED = {
    **dict.fromkeys(("markdown", "checklist", "github-comment"), functools.partial(check_markdown, authored=True)),
    "html": functools.partial(check_html, authored=True),
}
"""Of authored Markdown only what a browser or GitHub would act on is taken out."""
RENDERERS: dict[str, Callable[[Report], str]] = {}


def rendered(form: str, report: Report) -> str:
    return RENDERERS.get(form, functools.partial(formats.render, name=form))(report)


@functools.cache
def harmless(form: str, build: Callable[[str], Report]) -> str:
    return rendered(form, build(HARMLESS))


@functools.cache
def _schema(name: str) -> Any:
    return json.loads((DATA / name).read_text("utf-8"))


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Formats that look for the checkout find an empty one."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def test_every_format_has_a_checker() -> None:
    assert {form.name for form in formats.ALL} <= set(CHECKERS), "add one to CHECKERS"


@pytest.mark.parametrize("form", formats.BY_NAME)
def test_a_name_stays_a_name(form: str, subtests: pytest.Subtests) -> None:
    for name, text in NAMES.items():
        with subtests.test(name):
            CHECKERS[form](rendered(form, report_of(text)), harmless(form, report_of), text)


@pytest.mark.parametrize("form", formats.BY_NAME)
def test_authored_text_of_a_saved_report_is_disarmed(form: str, subtests: pytest.Subtests) -> None:
    for name, text in NAMES.items():
        with subtests.test(name):
            (CHECKERS | DISARMED)[form](rendered(form, authored_by(text)), harmless(form, authored_by), text)


@pytest.mark.parametrize("form", formats.BY_NAME)
def test_no_text_of_a_saved_report_breaks_out(form: str, subtests: pytest.Subtests) -> None:
    for name, text in NAMES.items():
        if text.strip():
            with subtests.test(name):
                CHECKERS[form](rendered(form, everywhere(text)), harmless(form, everywhere), text)
