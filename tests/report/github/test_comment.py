"""What a pull request gets: found again by its mark, short enough for GitHub, and nothing left open."""

import contextlib
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

import samples
from captures import report_of
from evaluation.packed import recording
from gpudiag import pipeline, prepare
from gpudiag.errors import GpudiagError
from gpudiag.library.catalogue import Library
from gpudiag.model import Diff, Finding, FindingChange, Input, Loop, Note, Place, Remedy, Report, Side
from gpudiag.options import Options
from gpudiag.report import formats
from gpudiag.report.github import comment
from gpudiag.store.database import Connection
from paths import CAPTURES

CAPTURE = CAPTURES / "launch_bound_fp32/slow.columns"
PARSER = MarkdownIt("commonmark").enable("table")
FOLD = "<details>\n<summary>"
# Synthetic remedies and explanations, each an attempt to leave something open, or to get out of where it stands.
BOMBS = (
    "```sh\nopen",
    "    ```\n<img src=x>\n@everyone\n</details>",
    "```\ncode\n    ```\n\n<b>bold</b> @everyone",
    "- a\n\n  ```\n  code\n```\nafter",
    "> ```\n> quoted\n\n```",
    "~~~~\n```\n~~~\n",
    "``` a`b\n<script>alert(1)</script>",
    "</details>\n\n</details>",
    "<!-- gpudiag -->",
    "```\n<!-- gpudiag -->\n```",
    "<!-- open",
    "<pre>\n\n<details>",
    "[x]: http://evil.example\n\n[x] ![x](http://evil.example/a.png)",
    "@everyone, @org/team: \u202egnp.exe\u202c\u200b",
    "`" * 10_000,
    "a" * 10_000,
    "*_~" * 3_000,
    "# heading\n===\n---\n| a |\n|---|\n| b |",
    ">" * 5_000,
    "- " * 5_000,
)


def structure(text: str) -> list[Token]:
    """The comment's tokens, followed by those of a last paragraph of the reader's."""
    return PARSER.parse(f"{text}\n\nLAST")


def assert_nothing_open(text: str) -> None:
    tokens = structure(text)
    assert (tokens[-3].type, tokens[-3].level, tokens[-2].content) == ("paragraph_open", 0, "LAST"), "a block is open"
    blocks = [token for token in tokens if token.type == "html_block"]
    html = [token.content.strip() for token in blocks]
    assert re.fullmatch(r"<!-- gpudiag(:\w+)? -->", html[0])
    for opening, closing in zip(html[1::2], html[2::2], strict=True):
        assert re.fullmatch(r"<details>\n<summary>[^\n]+</summary>", opening)
        assert closing == "</details>"
    lines = text.split("\n")
    starts = [block.map[0] for block in blocks[1:] if block.map]
    assert not any(lines[start - 1] for start in starts), "GitHub reads Markdown in details only between blank lines"


def assert_harmless(text: str) -> None:
    assert_nothing_open(text)
    assert len(text) <= comment.LIMIT
    assert len(re.findall(r"<!--\s*gpudiag", text)) == 1
    inline = [child for token in structure(text) for child in token.children or ()]
    assert not {"html_inline", "image"} & {token.type for token in inline}
    shown = "".join(token.content for token in inline if token.type == "text")
    assert not re.search(r"(?<![A-Za-z0-9])@\w", shown), "somebody is mentioned"
    assert not set(text) & set("\u202e\u202c\u200b\x1b\x07\r")


def with_findings(findings: Sequence[Finding]) -> Report:
    return samples.launch_bound().model_copy(update={"findings": tuple(findings), "minor": ()})


def many(count: int, remedy: int = 2_000) -> Report:
    """Synthetic: many findings with long remedies."""
    text = "```python\n" + "x = step(x)\n" * (remedy // 12) + "```"
    fix = Remedy(id="fix", title="Do less", framework="pytorch", text=text)
    return with_findings(
        [
            samples.launch_bound_finding(
                rank=n,
                code=f"U{n:03}",
                title=f"Cause number {n}",
                where=(Place(file=f"/app/part_{n}.py", line=n),),
                remedies=(fix.model_copy(update={"id": f"fix-{n}"}),),
            )
            for n in range(1, count + 1)
        ]
    )


def test_the_mark_comes_first_and_distinguishes_comments() -> None:
    report = samples.launch_bound()
    assert comment.render(report).startswith("<!-- gpudiag -->\n\n### gpudiag: `decode.sqlite`\n")
    assert comment.render(report, "train").startswith(
        "<!-- gpudiag:train -->\n\n### gpudiag `train`: `decode.sqlite`\n"
    )
    assert comment.marker("train") not in comment.render(report)
    assert comment.marker() not in comment.render(report, "train")


@pytest.mark.parametrize("key", ["a b", "-->", "<!--", "a\n", "x" * 65, "é", "-x"])
def test_a_key_that_would_break_the_mark_is_refused(key: str) -> None:
    with pytest.raises(GpudiagError, match="cannot mark a comment"):
        comment.render(samples.healthy(), key)
    with pytest.raises(GpudiagError, match="cannot mark a comment"):
        comment.body("text", key)


def test_a_finding_is_short_with_its_details_folded() -> None:
    text = comment.render(samples.launch_bound())
    assert "**`decode_token`: 5.70 ms an iteration, the GPU computes 20 % of it**" in text
    short = (
        "**1. The GPU waits for small kernels to be launched**\n"
        "- up to 79 % of an iteration: 4.50 ms · `decode.py:31` in `step`; `:44` in `sample` · H01\n"
        "- Fix: Replay the step as one CUDA graph\n\n"
    )
    assert f"{short}<details>\n<summary>" in text
    first, _, others = text.partition("</details>")
    assert "reduce-overhead" in first
    assert "**Gain, at most:** an iteration of `decode_token` goes from 5.70 ms to 1.20 ms" in first
    assert "**2. A scalar is read back from the GPU in every iteration**" in others


def test_the_picture_is_one_bar_with_its_parts() -> None:
    text = comment.render(samples.launch_bound())
    rest = (
        "72 % idle, the host is launching work · 5.1 % idle after the host waited for the GPU"
        " · 2.2 % idle, the CPU does other work · 0.3 % other"
    )
    assert f"\n`{'█' * 6}{'░' * 24}` {rest}\n" in text


def test_without_a_loop_there_is_no_picture() -> None:
    assert "░" not in comment.render(samples.kernel_only())
    assert "█" not in comment.render(samples.no_gpu_activity())


def test_a_healthy_report_is_a_verdict_and_a_fold() -> None:
    text = comment.render(samples.healthy())
    assert "**Healthy: the GPU computes 98 % of each `step`; nothing is worth fixing.**" in text
    assert "What to fix" not in text
    assert "<summary>Also: 4 causes not found</summary>" in text


def test_what_is_not_a_finding_is_folded_and_counted() -> None:
    text = comment.render(samples.launch_bound())
    summary = "1 note, 1 smaller thing, 5 causes not found, 3 causes not evaluated"
    fold = text.partition(f"<summary>Also: {summary}</summary>\n\n")[2]
    assert "**Keep in mind**\n\n- The profiler slows the CPU" in fold
    assert "**Smaller things**\n\n- Many small copies where one would do" in fold


def test_what_takes_most_from_the_figures_stands_before_them() -> None:
    doubt = samples.launch_bound().notes[0].model_copy(update={"severity": "high"})
    text = comment.render(samples.launch_bound().model_copy(update={"notes": (doubt,)}))
    assert text.index("**Keep in mind:** The profiler slows the CPU") < text.index("What to fix")


def test_the_fix_is_for_the_framework_that_was_recorded() -> None:
    ours = samples.launch_bound_finding().remedies[0]
    other = ours.model_copy(update={"id": "jit", "title": "Compile the step by jax.jit", "framework": "jax"})
    found = samples.launch_bound_finding(remedies=(other, ours))
    text = comment.render(samples.launch_bound().model_copy(update={"findings": (found,)}))
    assert "- Fix: Replay the step as one CUDA graph\n" in text


def test_findings_after_the_fifth_get_a_line() -> None:
    text = comment.render(many(7))
    assert text.count("x = step(x)\n```\n") == 5
    assert "\n6. Cause number 6: up to 79 % of an iteration: 4.50 ms, `part_6.py:6` (U006)\n7. Cause number 7: " in text
    assert "not fit" not in text


def test_many_lines_are_folded() -> None:
    text = comment.render(many(30))
    assert "<summary>25 more findings</summary>\n\n6. Cause number 6: " in text
    assert_nothing_open(text)


@pytest.mark.slow
def test_of_500_findings_the_least_important_are_dropped() -> None:
    report = many(500, 6_000)
    text = comment.render(report)
    assert_harmless(text)
    assert len(text) > comment.LIMIT * 0.9, "room is left for more of them"
    summary = [int(number) for number in re.findall(r"Cause number (\d+)\b", text)]
    assert summary == list(range(1, len(summary) + 1)), "the first ones, each once"
    assert text.count("(U") == len(summary) - comment.IN_DETAIL, "lines are whole"
    missing = re.search(r"(\d+) more findings do not fit into a comment. They are in the whole", text)
    assert missing
    assert int(missing[1]) + len(summary) == 500
    assert "report of `decode.sqlite`, which `gpudiag explain` prints." in text


def test_details_that_do_not_fit_are_dropped_from_the_end() -> None:
    report = many(5, 12_000)
    text = comment.render(report)
    assert_harmless(text)
    assert text.count("x = step(x)\n```\n") == 2
    assert text.index("x = step(x)\n```\n") < text.index("**3. Cause number 3**")
    assert "**5. Cause number 5**" in text


def test_one_long_finding_does_not_cost_others_their_details() -> None:
    base = many(3)
    remedy = Remedy(id="long", title="Much to do", framework="any", text="Too long. " * 10_000)
    long = base.findings[0].model_copy(update={"remedies": (remedy,)})
    text = comment.render(with_findings([long, *base.findings[1:]]))
    assert_harmless(text)
    assert "**1. Cause number 1**" in text
    assert "Too long" not in text
    assert text.count("x = step(x)\n```\n") == 2
    assert "as in finding 1" not in text, "refers to what is not there"


@pytest.mark.parametrize("name", samples.ALL)
def test_it_is_tidy_and_harmless(name: str) -> None:
    text = comment.render(samples.ALL[name]())
    assert_harmless(text)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS, ids=range(len(BOMBS)))
def test_no_text_of_a_saved_report_gets_out_of_its_place(bomb: str) -> None:
    evil = samples.launch_bound_finding(
        title=bomb,
        message=bomb,
        why=bomb,
        check=bomb,
        not_a_problem_when=bomb,
        confidence_reason=bomb,
        evidence={bomb: bomb},
        where=(Place(file=bomb, line=1, function=bomb, nvtx=bomb, kernel=bomb),),
        remedies=(Remedy(id="x", title=bomb, framework="any", text=bomb),),
        references=(bomb,),
    )
    good = samples.launch_bound_finding(rank=2, title="A finding that follows")
    base = samples.launch_bound()
    loop = base.run.loops[0].model_copy(update={"name": bomb, "nvtx_path": bomb})
    report = base.model_copy(
        update={
            "inputs": (Input(kind="nsys", file=bomb, producer=bomb, producer_version=bomb),),
            "verdict": base.verdict.model_copy(update={"text": bomb}),
            "run": base.run.model_copy(update={"loops": (loop,), "devices": (bomb,)}),
            "findings": (evil, good, *(evil.model_copy(update={"rank": n}) for n in range(3, 9))),
            "minor": (evil,),
            "notes": (Note(code="Q01", text=bomb),),
            "not_evaluated": (samples.Unevaluated(code="K01", title=bomb, reason=bomb, hint=bomb),),
        }
    )
    text = comment.render(report)
    assert_harmless(text)
    assert "**2. A finding that follows**" in text


@pytest.mark.slow
def test_a_huge_saved_report_is_short_enough_all_the_same() -> None:
    words = "many words " * 10_000
    base = many(40)
    loop = Loop(id=1, name=words, source="nvtx", iterations=1, iteration_ms=1, share_of_span=1, budget={words: 1.0})
    findings = [finding.model_copy(update={"title": words, "code": "U001"}) for finding in base.findings]
    text = comment.render(
        base.model_copy(
            update={
                "verdict": base.verdict.model_copy(update={"text": words}),
                "run": base.run.model_copy(update={"loops": (loop,) * 50, "devices": (words,) * 9}),
                "findings": tuple(findings),
                "notes": (Note(code="Q01", text=words),) * 9,
            }
        )
    )
    assert_harmless(text)
    assert "**1. many words" in text


@pytest.mark.capture
def test_a_real_capture_makes_a_sound_comment() -> None:
    text = comment.render(report_of(CAPTURE), "ci/nightly")
    assert text.startswith("<!-- gpudiag:ci/nightly -->\n")
    assert_nothing_open(text.replace("ci/nightly", "ci"))
    assert "· `launch_bound_fp32.py:26`, `:27` in `forward` · H01" in text
    assert text.count(FOLD) == 3


# --- what changed ---------------------------------------------------------------------------------------------------


def changed(report: Report, state: str = "new", **changes: object) -> str:
    """The comment where every finding of the report is of that state."""
    side = Side(files=("/tmp/base.json",), reports=1, kind="timeline")
    found = tuple(
        FindingChange.model_validate(
            {"state": state, "code": f.code, "title": f.title, "head_fingerprint": f.fingerprint, **changes}
        )
        for f in report.findings
    )
    diff = Diff(
        tool=report.tool, state="regression", text="Slower: by much.", base=side, head=side, findings=found
    )  # fmt: skip
    return comment.change(diff, report, "diff")


def unlike(count: int, length: int = 0) -> Report:
    report = many(count, length) if length else many(count)
    return with_findings([f.model_copy(update={"fingerprint": f"f{f.rank}"}) for f in report.findings])


@pytest.mark.parametrize("state", ["new", "worse"])
def test_a_change_tells_new_and_worse_findings_with_their_fix(state: str) -> None:
    text = changed(unlike(2), state)
    assert text.startswith("<!-- gpudiag:diff -->\n\n### gpudiag `diff`: `base.json` → `base.json`\n")
    assert_harmless(text)
    assert "#### New or worth more now" in text
    assert "\n# " not in text
    assert "\n## " not in text
    assert text.count("x = step(x)\n```\n") == 2
    assert text.index("**1. Cause number 1**") < text.index("**2. Cause number 2**")
    assert "fixes above" not in text, "those may not be here"


@pytest.mark.parametrize("state", ["now_visible", "unchanged"])
def test_a_change_tells_no_fix_of_what_was_there_before(state: str) -> None:
    text = changed(unlike(2), state)
    assert "Cause number 1" in text
    assert "x = step(x)" not in text
    assert "New" not in text


def test_a_change_of_many_findings_is_short_enough() -> None:
    text = changed(unlike(300, 6_000))
    assert_harmless(text)
    assert "**1. Cause number 1**" in text


# --- other pages under the same mark --------------------------------------------------------------------------------


def test_another_page_gets_the_mark_and_stays_as_it_is() -> None:
    page = "# Faster\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    assert comment.body(page, "diff") == f"<!-- gpudiag:diff -->\n\n{page}\n"


def test_a_mark_inside_another_page_is_no_mark() -> None:
    text = comment.body("first\n\n```\n<!-- gpudiag:diff -->\n```\n\n<!--gpudiag-->")
    assert re.findall(r"<!--\s*gpudiag", text) == ["<!-- gpudiag"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "block",
    [
        "A paragraph of some words.",
        "```sh\nsome code\n\nmore code\n```",
        f"{FOLD}More</summary>\n\n```\ncode\n```\n\n- an item\n\n</details>",
        "- one\n- two\n\n  ```\n  code\n  ```\n- three",
        "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |",
        "> quoted\n>\n> ```\n> code\n> ```",
    ],
)
def test_a_page_that_is_too_long_ends_behind_a_whole_block(block: str) -> None:
    page = "\n\n".join(f"{n}\n\n{block}" for n in range(10_000))
    text = comment.body(page)
    assert comment.LIMIT * 0.99 < len(text) <= comment.LIMIT
    assert_nothing_open(text)
    kept, _, last = text.strip().rpartition("\n\n")
    left_out = re.fullmatch(
        r"([\d,]+) more lines did not fit into a comment: the command that made it prints them.", last
    )
    assert left_out
    kept = kept.partition("\n\n")[2]
    assert page.startswith(kept)
    rest = page.strip()[len(kept) :]
    assert abs(int(left_out[1].replace(",", "")) - len(rest.split("\n"))) <= 2


def test_a_long_table_and_a_long_list_are_cut_between_their_rows() -> None:
    rows = "\n".join(f"| {n} | {n} |" for n in range(10_000))
    text = comment.body(f"| a | b |\n|---|---|\n{rows}")
    assert len(text) > comment.LIMIT * 0.99
    assert re.search(r"\| (\d+) \| \1 \|\n\n", text)
    items = comment.body("\n".join(f"- item {n}" for n in range(10_000)))
    assert len(items) > comment.LIMIT * 0.99


def test_a_single_block_that_is_too_long_leaves_the_sentence() -> None:
    text = comment.body("```\n" + "line\n" * 20_000 + "```")
    assert text == (
        "<!-- gpudiag -->\n\n20,002 more lines did not fit into a comment: the command that made it prints them.\n"
    )


HOMES = ("/home/alice", "/Users/alice", "/data/users/alice", "C:\\\\Users\\\\alice", "/root")


@pytest.mark.parametrize("form", ["github-comment", "checklist", "sarif", "github-annotations", "gitlab-codequality"])
@pytest.mark.parametrize("home", HOMES)
def test_what_is_posted_names_no_home_folder(form: str, home: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    places = (
        Place(file=f"{home}/work/train.py", line=3, function="step", share=0.5),
        Place(file="/opt/other/model.py", line=4, function="loss", share=0.5),
    )
    said = f"{home}/work/train.py ran, and `{home}/work/loss.py:7` too"
    finding = samples.launch_bound_finding(where=places, message=said, evidence={"slowest": f"{home}/x.py"})
    report = samples.launch_bound().model_copy(
        update={"findings": (finding,), "notes": (Note(code="Q01", title="A note", text=said),)}
    )
    text = formats.render(report, form)
    assert "train.py" in text
    assert "alice" not in text and "/root" not in text


@pytest.mark.parametrize("home", HOMES)
def test_what_is_posted_of_a_comparison_names_no_home_folder(home: str) -> None:
    """Neither of the causes that came, which head's report describes, nor of those that went, nor of the files."""
    said = f"{home}/work/train.py ran, and `{home}/work/loss.py:7` too"
    place = Place(file=f"{home}/work/train.py", line=3, function="step", share=0.5)
    finding = samples.launch_bound_finding(where=(place,), message=said, evidence={"slowest": f"{home}/x.py"})
    head = with_findings([finding])
    side = Side(files=(f"{home}/work/base.json",), reports=1, kind="timeline", devices=(said,))
    cause = {"code": finding.code, "title": f"In {said}", "loop": said, "where": place, "reason": said}
    found = [
        FindingChange.model_validate({**cause, "state": state, f"{part}_fingerprint": finding.fingerprint})
        for state, part in (("new", "head"), ("gone", "base"), ("not_evaluated", "base"))
    ]
    diff = Diff(
        tool=head.tool, state="regression", text=f"Slower: {said}.", base=side, head=side, findings=tuple(found),
        notes=(f"Not comparable: {said}",),
    )  # fmt: skip
    text = comment.change(diff, head)
    assert text.count("train.py") > 4
    assert "alice" not in text and "/root" not in text


@pytest.mark.capture
def test_no_posted_text_holds_the_name_of_a_thread(tmp_path: Path) -> None:
    """A thread may be named after a person or a machine."""
    file = tmp_path / "slow.sqlite"
    file.write_bytes(recording(CAPTURES / "loader_and_item" / "slow").read_bytes())
    with contextlib.closing(sqlite3.connect(file)) as export:
        export.execute("insert into StringIds (id, value) select max(id) + 1, 'alice-laptop' from StringIds")
        export.execute("update ThreadNames set nameId = (select max(id) from StringIds)")
        export.commit()

    def work(con: Connection, library: Library, _file: Path | None) -> tuple[list[Any], Report]:
        names = [name for (name,) in con.execute("select distinct name from thread").fetchall()]
        return names, pipeline.build_report(con, library, {})

    names, report = prepare.analysed([file], Options(), work)
    assert "alice-laptop" in names
    assert report.findings
    diff = Diff(
        tool=report.tool, state="regression", text="Slower.",
        base=Side(files=("base.json",), reports=1, kind="timeline"),
        head=Side(files=("head.json",), reports=1, kind="timeline"),
        findings=tuple(FindingChange(state="new", code=found.code, title=found.title, where=found.where[0],
                                     head_fingerprint=found.fingerprint) for found in report.findings if found.where),
    )  # fmt: skip
    texts = [formats.render(report, form.name) for form in formats.ALL if not form.drawn]
    assert not [text for text in (*texts, comment.change(diff, report)) if "alice" in text]
