"""Names that try to break out of their format stay names."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from gpudiag.text import escape

HOSTILE = [
    "`a``b```c",
    "a|b",
    "a\\|b",
    "line\nbreak\r\n# heading",
    "<script>alert(1)</script>",
    "<!-- gpudiag -->",
    "@everyone and #12",
    "\x1b[31mred\x1b[0m\x07",
    "\u202egnp.exe\u2066",
    "![x](http://evil.example/y.png) [a](javascript:b) [c]: http://d",
    "**bold** __init__ ~~gone~~ $x$",
    "1. list",
    "- list",
    "> quote",
    "&lt;&#64;",
    "trailing\\",
    "\udc80",
    "",
]
GFM = MarkdownIt("gfm-like", {"linkify": False})


def tokens(markdown: str) -> list[str]:
    """Every token's type, nested ones too."""
    found = []
    for token in GFM.parse(markdown):
        found += [token.type, *(child.type for child in token.children or ())]
    return found


def shown(markdown: str) -> str:
    """The text that a reader sees."""
    inline = [token for token in GFM.parse(markdown) if token.type == "inline"]
    return "".join(child.content for token in inline for child in token.children or ())


@pytest.mark.parametrize("name", HOSTILE)
def test_a_code_span_stays_one_span(name: str) -> None:
    assert tokens(f"x {escape.code(name)} y").count("code_inline") == (1 if name else 0)


@pytest.mark.parametrize("name", HOSTILE)
def test_plain_text_is_only_text(name: str) -> None:
    text = escape.plain(name)
    assert set(tokens(text)) <= {"paragraph_open", "inline", "text", "text_special", "paragraph_close"}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_table_keeps_its_columns(name: str) -> None:
    table = f"| a | b |\n|--|--|\n| {escape.cell(escape.code(name))} | {escape.cell(escape.plain(name))} |\n"
    assert tokens(table).count("td_open") == 2


@pytest.mark.parametrize("escaped", [escape.code, escape.plain, escape.prose, escape.authored, escape.terminal])
def test_nothing_unprintable_is_left(escaped: object) -> None:
    for name in HOSTILE:
        text = escaped(name).replace("\n", "")  # type: ignore[operator]
        assert text.isprintable(), repr(name)
        text.encode("utf-8")


@given(st.text(max_size=12))
def test_any_text_is_shown_as_it_is(text: str) -> None:
    visible = escape.one_line(text)
    assert shown(escape.plain(text)).replace("\u200b", "") == visible.replace("\u200b", "")


@given(st.text(alphabet="`|\\<>!-a @#[]()*_~\n1.&;x", max_size=60))
def test_markup_characters_never_make_html_links_or_mentions(text: str) -> None:
    for markdown in (escape.plain(text), escape.prose(text), f"x {escape.code(text)}"):
        assert not {"html_inline", "html_block", "link_open", "image", "heading_open"} & set(tokens(markdown))
        assert "<!--" not in markdown
        assert "-->" not in markdown


def test_mentions_and_issue_links_are_broken() -> None:
    assert "@everyone" not in escape.plain("@everyone")
    assert "#12" not in escape.plain("see #12")
    assert "@torch" not in escape.authored("use @torch.compile")
    assert "@torch" in escape.authored("```python\n@torch.compile\n```")


def test_our_sentences_keep_their_code_spans() -> None:
    assert escape.prose("`cudaFree` waits for `gemm<1>`.") == "`cudaFree` waits for `gemm<1>`."
    assert escape.prose("one ` alone") == "one \\` alone"


def test_authored_markdown_keeps_code_and_loses_html() -> None:
    text = escape.authored("# Head\n\nUse <b>this</b> `a<b>`, see <https://example.com>:\n\n```cpp\nvec<int> v;")
    assert "**Head**" in text
    assert "<b>this" not in text
    assert "`a<b>`" in text
    assert "<https://example.com>" in text
    assert text.endswith("```cpp\nvec<int> v;\n```")


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("gemm", "gemm"),
        (
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
                "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"
            ),
            "vectorized_elementwise_kernel<4, CUDAFunctor_add<…>, array<…> >",
        ),
        ("void (anonymous namespace)::softmax<" + "A, " * 60 + "B>(float*)", "softmax<…>"),
    ],
)
def test_long_template_names_become_readable(name: str, short: str) -> None:
    assert escape.short_name(name) == short


def test_huge_names_are_shortened() -> None:
    for name in ("x" * 10_000, "k<" * 5_000, "a::" * 4_000, "\x1b" * 10_000, "`" * 10_000):
        assert len(escape.code(name)) < 3 * escape.NAME_LIMIT
        assert len(escape.plain(name)) < 3 * escape.WORD_LIMIT


def test_the_ends_of_a_long_name_survive() -> None:
    assert re.fullmatch(r"first_x+…x+_last", escape.middle("first_" + "x" * 500 + "_last", 60))
