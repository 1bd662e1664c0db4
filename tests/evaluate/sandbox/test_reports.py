"""What an untrusted author's rules may do to the report: speak, and no more."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from captures import report_of
from evaluation.packed import plain
from gpudiag import pipeline
from gpudiag.cli import main
from gpudiag.evaluate import evidence, row_check
from gpudiag.evaluate.sandbox_worker import Limits
from gpudiag.model import Report
from gpudiag.options import Options
from gpudiag.report import formats
from gpudiag.text import escape
from paths import CAPTURES
from untrusted import ENDLESS, data, rule, write

CAPTURE = CAPTURES / "launch_bound_fp32/slow.columns"
SPEECH = (
    "::set-output name=a::b\n\n# H <img src=x onerror=alert(1)> [x](javascript:alert(1)) "
    "![i](http://e) @all \x1b[31m\u202e"
)
HOSTILE: dict[str, Any] = {
    "title": "t \x1b[31m <!-- @all | `", "message": SPEECH + " {{ places|length }}.",
    "why": "::error::why\n<!--\n```\nopen",
    "check": "  ::warning::x\n<script>alert(1)</script>\n##[error]x", "not_a_problem_when": "::stop-commands::x",
    "confidence": "low", "confidence_reason": "::debug::<b>x</b>\n::add-mask::x",
    "references": ["javascript:alert(1)", "https://a b", "https://x\x1b[31m", "::error::"],
}  # fmt: skip
FINDING = {"kind": "finding", "severity": "high", "locate": ["kernel", "nvtx"], "remedies": ["own"],
           "price": {"kind": "test_needed", "test": "::error::<b>\nx"}}  # fmt: skip
REMEDY = "# \x1b[31m::error::T\n\n::set-env name=a::b\n\n## Any framework\n\n```\n::add-path::/tmp\n"
WRONG = {
    "U10": (ENDLESS.replace("a + 1", "a + 0.5"), "was stopped after"),
    "U11": ("select * from read_text('/etc/passwd')", "table function read_text"),
    "U12": ("select 0 as loop, {'a': 1} as kernel", "as kernel; it must be a text"),
    "U13": ("select 0 as loop, [(1e9)::int] as gpu_ops", "there is no such id"),
    "U14": ("select (1e3)::int as loop", "id of a loop"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("rules")
    write(root, "note.yaml", data(id="note", code="U01", query="select 0 as loop", **HOSTILE))
    query = (
        "select 0 as loop, [1]::int[] as gpu_ops, '</script>`|<!-- \x1b[31m' as kernel, "
        "'::error::' as nvtx_path, 1 as \"# <b>\""
    )
    write(root, "finding.yaml", data(id="finding", code="U02", query=query, **HOSTILE, **FINDING))
    write(root, "remedies/own.md", REMEDY)
    for code, (wrong, _) in WRONG.items():
        write(root, f"{code.lower()}.yaml", data(id=code.lower(), code=code, query=wrong))
    return root


@pytest.fixture(scope="module")
def report(folder: Path) -> Report:
    patch = pytest.MonkeyPatch()
    patch.setattr("gpudiag.evaluate.sandbox.Limits", lambda: Limits(seconds=1.0))
    try:
        return pipeline.explain([plain(CAPTURE)], Options([folder]))
    finally:
        patch.undo()


@pytest.mark.capture
def test_packaged_findings_are_as_without_untrusted_rules(report: Report) -> None:
    alone = report_of(CAPTURE)
    assert [f.code for f in report.findings if f.code[0] != "U"] == [f.code for f in alone.findings]
    assert report.clear == alone.clear
    assert report.suppressed == alone.suppressed


@pytest.mark.capture
@pytest.mark.parametrize("code", WRONG)
def test_a_rule_that_could_not_run_is_listed_with_the_reason(report: Report, code: str) -> None:
    reasons = {item.code: item.reason for item in report.not_evaluated}
    assert WRONG[code][1] in reasons[code]
    assert reasons[code] in formats.render(report, "markdown").replace("\\", "") or code in formats.render(
        report, "markdown"
    )


COMMAND = re.compile(r"^\s*::[a-z-]+[ :]|##\[", re.M)


@pytest.mark.capture
@pytest.mark.parametrize("form", [form.name for form in formats.ALL if form.name != "github-annotations"])
def test_no_format_carries_a_command_or_control_code(report: Report, form: str) -> None:
    text = formats.render(report, form)
    assert ("U02" in text) == (form not in ("github-outputs", "gitlab-codequality"))  # they name findings with a line
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert not COMMAND.search(text)
    if form not in ("json", "sarif"):  # in which texts are data, and quoted
        assert not re.search(r"<(img|script>alert)", re.sub(r"`[^`\n]*`", "", text))


def test_what_is_printed_of_rules_is_plain(folder: Path) -> None:
    for command in (["rules", "list"], ["rules", "show", "U02"]):
        done = CliRunner().invoke(main, [*command, "--rules", str(folder)])
        assert done.exit_code == 0, done.output
        assert "U02" in done.output
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", done.output)
        assert not COMMAND.search(done.output)


def test_problems_are_a_line_each(tmp_path: Path) -> None:
    """A file's name, a link or a key may hold lines of their own."""
    write(tmp_path, "::error::\x1b[31m\n::set-output name=a::b.yaml", data())
    write(tmp_path, "bad.yaml", '"a\\n::error::x\\e[31m": 1\n')
    done = CliRunner().invoke(main, ["rules", "check", str(tmp_path)])
    assert done.exit_code == 1
    assert not COMMAND.search(done.output)
    assert "\x1b" not in done.output
    assert len(done.output.splitlines()) >= 2


@pytest.mark.parametrize(
    "text",
    ["::error::x", "  ::set-output name=a::b", "\t::add-mask::x", "::STOP-commands::x", "a ##[error]x", "::debug x::y"],
)
def test_a_workflow_command_is_none_any_more(text: str) -> None:
    for written in (
        escape.console(text),
        escape.authored(text),
        escape.authored(f"```\n{text}\n```"),
    ):
        assert not COMMAND.search(written)
    assert escape.inert("::std::move(x)") == "::std::move(x)"  # C++ in a remedy stays as it is


@pytest.mark.parametrize("text", ["# a" + "#" * 200_000 + "x", "# " + "# " * 100_000 + "x", "# " + " " * 200_000 + "x"])
def test_headings_are_read_in_the_time_their_length_takes(text: str) -> None:
    assert len(escape.authored(text)) > 1  # the first of them had taken minutes; the guard fails such a search


ROWS: list[tuple[dict[str, Any], str]] = [
    ({"loop": 1}, "gives 1 as loop"),
    ({"loop": True}, "gives True as loop"),
    ({"gpu_ops": [5]}, "gives 5 in gpu_ops; there is no such id"),
    ({"gpu_ops": [-1]}, "list of ids"),
    ({"gpu_ops": [2**40]}, "list of ids"),
    ({"gpu_ops": [True]}, "list of ids"),
    ({"ranges": "0"}, "list of ids"),
    ({"share": -0.1}, "from 0 to 1"),
    ({"share": float("nan")}, "from 0 to 1"),
    ({"share": 1e308}, "from 0 to 1"),
    ({"recoverable": "x"}, "from 0 to 1"),
    ({"duration_ns": -1}, "must be a time"),
    ({"duration_ns": float("inf")}, "must be a time"),
    ({"kernel": 1}, "must be a text"),
    ({"kernel": ["x"]}, "must be a text"),
]


@pytest.mark.parametrize(("row", "words"), ROWS)
def test_rows_that_later_stages_could_not_use_are_refused(row: dict[str, Any], words: str) -> None:
    ends = {"gpu_ops": 5, "api_calls": 5}
    assert words in row_check.unfit(rule("select 1 as a"), [{}, row], {0}, ends)
    assert row_check.unfit(rule("select 1 as a"), [{"loop": 0, "gpu_ops": [0, 4]}], {0}, ends) == ""


def test_a_thing_is_looked_up_once() -> None:
    [row] = row_check.without_repeats([{"gpu_ops": [3, 1, 1, 3] * 1000, "n": [1, 1]}])
    assert row == {"gpu_ops": [3, 1], "n": [1, 1]}


def test_a_price_on_half_a_million_unknown_calls_is_dropped(folder: Path) -> None:
    """They are refused before they reach a query: there the list alone had taken more memory than there is."""
    known = evidence.Known({}, {}, {0: {"id": 0}}, {"api_calls": 10})  # type: ignore[arg-type]
    rows = [{"loop": 0, "api_calls": list(range(500_000))}]
    assert "there is no such id" in row_check.unfit(rule("select 1 as a"), rows, known.loops.keys(), known.ends)
