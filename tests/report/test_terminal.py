"""Colour on a terminal, plain Markdown elsewhere."""

import io
import re

import pytest

import samples
from gpudiag.report import markdown, terminal


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def shown(name: str = "launch_bound", width: int = 100) -> str:
    stream = Terminal()
    terminal.show(markdown.render(samples.ALL[name]()), stream, width)
    return stream.getvalue()


def test_a_pipe_gets_the_markdown_unchanged() -> None:
    text = markdown.render(samples.launch_bound())
    stream = io.StringIO()
    terminal.show(text, stream)
    assert stream.getvalue() == text


def test_a_terminal_gets_colour_and_no_markup() -> None:
    text = shown()
    assert "\x1b[1" in text
    assert "**" not in text
    assert "decode.py:31" in text


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[36m" not in shown()


def test_lines_fit_the_width() -> None:
    text = re.sub(r"\x1b(\[[0-9;]*m|\]8;[^\x1b]*\x1b\\)", "", shown(width=70))
    assert max(len(line) for line in text.split("\n")) <= 70


def test_names_cannot_send_codes() -> None:
    text = shown("hostile")
    assert "\x07" not in text
    assert "\x1b[31m" not in text.split("gpudiag 0.0.0")[0]
    assert "\u202e" not in text


def test_progress_is_silent_off_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "PATIENCE_S", -1.0)
    stream = io.StringIO()
    with terminal.progress(stream) as say:
        say("reading")
    assert stream.getvalue() == ""


def test_progress_is_silent_when_quick() -> None:
    stream = Terminal()
    with terminal.progress(stream) as say:
        say("reading")
    assert stream.getvalue() == ""


def test_progress_appears_when_slow_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "PATIENCE_S", -1.0)
    stream = Terminal()
    with terminal.progress(stream) as say:
        say("reading \x1b[31mx")
    assert "reading \\x1b[31mx 0 s" in stream.getvalue()
    assert stream.getvalue().endswith(terminal.CLEAR_LINE)
