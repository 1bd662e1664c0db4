"""The links of the built site: dead ones inside it, what it loads from elsewhere, and the addresses that it names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Elements that a browser fetches without being asked.
_LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
_NOT_FETCHED = {"canonical", "next", "prev", "edit"}


class Html(HTMLParser):
    """A page: its links, the files that it loads, and the places that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        self.ids |= {known[name] for name in ("id", "name") if known.get(name)}
        if tag == "a" and known.get("href"):
            self.links.append(known["href"])
        for name in ("src", "href"):
            if (tag, name) in _LOADED and known.get(name) and known.get("rel") not in _NOT_FETCHED:
                self.loaded.append(known[name])


def read(site: Path) -> dict[Path, Html]:
    """Every page of a built site."""
    return {path: Html(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}


def dead(site: Path, pages: dict[Path, Html]) -> Iterator[str]:
    """Return a sentence for each link or file that leads nowhere, and for each that is fetched from elsewhere."""
    for path, page in pages.items():
        name = path.relative_to(site)
        for address in page.links + page.loaded:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.loaded and parts.scheme != "data":
                    yield f"{name} loads {address} from elsewhere"
                continue
            target = _target(site, path, unquote(parts.path))
            if not target.is_file():
                yield f"{name} links to {address}, which does not exist"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                yield f"{name} links to {address}, and there is no such heading"


def _target(site: Path, page: Path, path: str) -> Path:
    """The file that an address means: a folder means its index."""
    if not path:
        return page
    found = site / path.lstrip("/") if path.startswith("/") else page.parent / path
    found = found.resolve()
    return found / "index.html" if found.is_dir() else found


def external(site: Path, pages: dict[Path, Html]) -> dict[str, list[str]]:
    """Addresses outside the site, each with the pages that name it."""
    found: dict[str, set[str]] = defaultdict(set)
    for path, page in pages.items():
        for address in page.links:
            if urlsplit(address).scheme in ("http", "https"):
                found[address].add(str(path.relative_to(site)))
    return {address: sorted(names) for address, names in sorted(found.items())}
