"""What a GitHub step prints: one command a line, read here as GitHub's runner reads it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import samples
from gpudiag.model import Place, Report
from gpudiag.report.github import annotations


class Command(NamedTuple):
    name: str
    properties: dict[str, str]
    message: str


def commands(text: str) -> list[Command]:
    """Every line must be one; the first `::` after the start ends the properties."""
    assert text.endswith("\n") and "\r" not in text
    found = []
    for line in text[:-1].split("\n"):
        assert line.startswith("::") and "##[" not in line
        head, mark, message = line[2:].partition("::")
        assert mark
        name, _, given = head.partition(" ")
        pairs = (item.split("=", 1) for item in given.split(","))
        found.append(Command(name, {key: unescaped(value) for key, value in pairs}, unescaped(message)))
    return found


def unescaped(text: str) -> str:
    for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, character)
    return text


def with_findings(*changes: dict[str, object]) -> Report:
    findings = tuple(
        samples.launch_bound_finding(rank=i, fingerprint=f"f{i}", **change) for i, change in enumerate(changes, 1)
    )
    return samples.launch_bound().model_copy(update={"findings": findings})


def test_a_finding_is_a_warning_at_its_line(tmp_path: Path) -> None:
    first, second = commands(annotations.render(samples.launch_bound(), tmp_path))
    assert first.name == second.name == "warning"
    assert first.properties == {
        "file": "decode.py",
        "line": "31",
        "title": "The GPU waits for small kernels to be launched (H01)",
    }
    assert first.message.splitlines() == [
        "Gain: up to 79 % of an iteration.",
        "412 kernels an iteration run for 2.9 µs each, but the CPU needs 13.4 µs to launch one.",
        "Fix: Replay the step as one CUDA graph.",
        "Also at line 44.",
    ]
    assert second.properties["line"] == "52"


def test_a_finding_without_a_line_is_a_notice_of_the_run(tmp_path: Path) -> None:
    first, _ = commands(annotations.render(samples.kernel_only(), tmp_path))
    assert (first.name, list(first.properties)) == ("notice", ["title"])
    assert first.message.endswith(
        "No line was recorded: look for kernel `gather(float const*, int const*, float*, int)`."
    )


def test_a_report_without_findings_says_its_verdict(tmp_path: Path) -> None:
    (only,) = commands(annotations.render(samples.healthy(), tmp_path))
    assert (only.name, only.message) == ("notice", samples.healthy().verdict.text)


def test_what_github_would_drop_is_counted(tmp_path: Path) -> None:
    warnings = [{"where": (Place(file="a.py", line=i),)} for i in range(1, 14)]
    notices = [{"code": "L01", "where": ()}] * 12
    found = commands(annotations.render(with_findings(*warnings, *notices), tmp_path))
    names = [command.name for command in found]
    assert (names.count("warning"), names.count("notice")) == (10, 10)
    assert found[-1].message.startswith("6 more findings are in the report: H01, L01.")


def test_severity_decides_between_warning_and_notice(tmp_path: Path) -> None:
    report = with_findings({"severity": "medium"}, {"severity": "low"}, {"severity": "info"})
    names = [command.name for command in commands(annotations.render(report, tmp_path))]
    assert names == ["warning", "notice", "notice"]


def test_no_value_leaves_its_place(tmp_path: Path) -> None:
    evil = "100%,line=1::x\r\n::error::pwned%0A::error::x ##[error]y"
    report = with_findings({"title": evil, "message": evil, "where": (Place(file=f"/p/{evil}", line=3),)})
    (only,) = commands(annotations.render(report, tmp_path))
    assert only.name == "warning"
    assert list(only.properties) == ["file", "line", "title"]
    assert only.properties["line"] == "3"
    assert "100%,line=1::x ::error::pwned%0A::error::x ## [error]y" in only.message
