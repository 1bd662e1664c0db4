"""Markdown, names and data as HTML. What a capture holds stays text: in the page, in attributes and in data blocks."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import MutableMapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import PackageLoader, StrictUndefined
from jinja2.sandbox import SandboxedEnvironment
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from gpudiag.report import markdown
from gpudiag.text import escape as texts

NAME = 90


def trusted(text: str) -> Markup:
    """HTML that this package made: whatever a capture holds is escaped in it already."""
    return Markup(text)  # noqa: S704


def block(text: str) -> Markup:
    """Escaped Markdown, as `escape` and the templates make it, as HTML."""
    return trusted(_parser().render(text))


def inline(text: str) -> Markup:
    """The same for a part of a line."""
    return trusted(_parser().renderInline(text))


def name(text: str, limit: int = NAME) -> str:
    """A traced name, short and visible; not yet escaped."""
    return texts.short_name(texts.one_line(text), limit) or "(no name)"


def data(value: Any) -> Markup:
    """JSON that ends no script element, whatever it holds."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return trusted(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


@cache
def asset(*files: str) -> str:
    """A style sheet or script of ours, as it stands in the page: one after the other."""
    folder = resources.files("gpudiag.report.html") / "assets"
    text = "\n\n".join((folder / file).read_text("utf-8").strip() for file in files)
    return f"\n{text}\n"


def digest(text: str) -> str:
    """Return a text's hash as a Content-Security-Policy writes it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def environment() -> SandboxedEnvironment:
    """Templates of the page: the Markdown report's filters, their Markdown turned into HTML where it is printed."""
    env = SandboxedEnvironment(
        loader=PackageLoader("gpudiag.report", "templates/html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
        finalize=_finalize,
    )
    env.filters |= markdown.environment().filters
    env.filters |= {"block": block, "name": name, "data": data, "e": escape, "escape": escape}
    return env


def _finalize(value: Any) -> Any:
    if isinstance(value, markdown.Safe):
        return inline(value)
    return texts.visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    rules = {
        "fence": _fence,
        "table_open": _table_open,
        "table_close": _table_close,
        "th_open": _cell,
        "td_open": _cell,
        "link_open": _link_open,
    }
    for name, rule in rules.items():
        parser.add_render_rule(name, rule)
    return parser


_Tokens = Sequence[Token]
_Env = MutableMapping[str, Any]


def _fence(_: RendererHTML, tokens: _Tokens, at: int, _options: Any, _env: _Env) -> str:
    """Make code blocks that scroll sideways reachable by keyboard."""
    return f'<pre tabindex="0"><code>{escape(tokens[at].content)}</code></pre>\n'


def _table_open(_: RendererHTML, _tokens: _Tokens, _at: int, _options: Any, _env: _Env) -> str:
    return '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>\n'


def _table_close(_: RendererHTML, _tokens: _Tokens, _at: int, _options: Any, _env: _Env) -> str:
    return "</table></div>\n"


def _cell(renderer: RendererHTML, tokens: _Tokens, at: int, options: Any, env: _Env) -> str:
    """Alignment as a class: the page's policy allows no style attributes."""
    style = str(tokens[at].attrs.pop("style", ""))
    if style.endswith("right"):
        tokens[at].attrSet("class", "figure")
    return renderer.renderToken(tokens, at, options, env)


def _link_open(renderer: RendererHTML, tokens: _Tokens, at: int, options: Any, env: _Env) -> str:
    tokens[at].attrSet("rel", "noreferrer noopener")
    return renderer.renderToken(tokens, at, options, env)
