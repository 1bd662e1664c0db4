"""What a reviewer of code gets: questions at their lines, the costliest file first."""

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from pydantic import ValidationError

import samples
from captures import report_of
from gpudiag.library import load
from gpudiag.model import Finding, Gain, Place, Report, Rule
from gpudiag.report import json_format
from gpudiag.report import saved as savedreport
from gpudiag.report.code_review import checklist
from paths import CAPTURES

CAPTURE = CAPTURES / "item_every_stage/slow.sqlite.xz"
PARSER = MarkdownIt("commonmark").enable("table")
FINDINGS = [rule for rule in load.scan()[0].rules if rule.kind == "finding"]


def asking(rank: int, share: float, *where: Place, **changes: object) -> Finding:
    """A synthetic finding that is worth `share` of the sample's loop."""
    gain = Gain(kind="expected", basis="loop", loop=1, before_ms=5.7, after_ms=5.7 * (1 - share), share=share)
    values = {"rank": rank, "gain": gain, "where": where, "question": f"Could number {rank} go?", "code": f"S{rank:02}"}
    return samples.launch_bound_finding(**{**values, **changes})


def with_findings(*findings: Finding) -> str:
    return checklist.render(samples.launch_bound().model_copy(update={"findings": findings, "minor": ()}))


def test_every_finding_asks_one_short_question() -> None:
    for rule in FINDINGS:
        assert rule.question, rule.code
        assert rule.question.endswith("?"), rule.code
        assert len(rule.question) <= 140, rule.code
        assert not re.search(r"[.?!]\s", rule.question.rstrip("?")), f"{rule.code} asks more than one sentence"
        yes_or_no = re.match(r"(Are|Could|Do|Does|Is|Would) ", rule.question)
        assert yes_or_no, f"{rule.code} cannot be answered by yes or no"


def test_no_two_rules_ask_the_same() -> None:
    assert len({rule.question for rule in FINDINGS}) == len(FINDINGS) > 70


@pytest.mark.parametrize(
    "text", ["Keep it on the GPU.", "Could {{ loop }} go?", "One?\nTwo?", "Could it go" * 20 + "?"]
)
def test_what_is_no_question_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="question"):
        Rule.model_validate({**FINDINGS[0].model_dump(), "question": text})


@pytest.mark.capture
def test_the_question_of_a_rule_survives_a_saved_report(tmp_path: Path) -> None:
    report = report_of(CAPTURE)
    rule = load.scan()[0].by_code["S01"]
    assert report.findings[0].question == rule.question
    saved = tmp_path / "report.json"
    saved.write_text(json_format.render(report), "utf-8")
    text = checklist.render(savedreport.read(saved))
    assert text == checklist.render(report)
    place = "`item_every_stage.py:39` in `step`"
    assert f"- [ ] **{rule.question}**\n  - {place} · 0.5 % to 47 % of an iteration, perhaps 34 % · " in text


def test_a_rule_without_a_question_asks_by_its_title() -> None:
    text = with_findings(asking(1, 0.5, Place(file="a.py", line=3), question=None, title="Arrays are sorted twice"))
    assert "- [ ] **Is this meant, and does the program need it: Arrays are sorted twice?**" in text


def test_a_reviewer_sees_the_time_the_doubt_and_the_fix() -> None:
    doubt = samples.launch_bound().notes[0].model_copy(update={"severity": "high"})
    text = checklist.render(samples.launch_bound().model_copy(update={"notes": (doubt,)}))
    head, _, asked = text.partition("## `decode.py`")
    assert "**`decode_token`: 5.70 ms an iteration, the GPU computes 20 % of it**" in head
    assert "**Keep in mind:** The profiler slows the CPU" in head
    assert "  - Fix: Replay the step as one CUDA graph\n  - Why: " in asked


def test_fix_and_reason_stand_at_the_first_file() -> None:
    text = with_findings(asking(1, 0.5, Place(file="a.py", line=1, share=0.9), Place(file="b.py", line=2, share=0.1)))
    first, _, second = text.partition("## `b.py`")
    assert "  - Fix: " in first and "  - Why: " in first
    assert "Could number 1 go?" in second and "  - Fix: " not in second and "  - Why: " not in second


def test_files_come_by_gain_and_places_without_a_file_last() -> None:
    text = with_findings(
        asking(1, 0.4, Place(kernel="gather", share=1.0)),
        asking(2, 0.3, Place(file="/app/a.py", line=1, share=0.9), Place(file="/app/b/c.py", line=9, share=0.1)),
        asking(3, 0.1, Place(file="/app/b/c.py", line=7, share=1.0)),
        asking(4, 0.2, Place(file="/app/b/c.py", line=8, share=1.0)),
    )
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["`b/c.py`", "`a.py`", "No file is named"]
    assert re.findall(r"finding (\d)", text) == ["2", "3", "4", "2", "1"]
    assert "Paths are relative to `/app/`." in text
    assert "`c.py:9` · about 30 % of an iteration, 10 % of that here · finding 2, S02" in text
    assert "  - kernel `gather` · about 40 % of an iteration · finding 1, S01" in text


def test_a_finding_in_and_out_of_a_file_is_asked_once() -> None:
    kernel = "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x256_16x3_nn_align4>(Params) with_more_behind_it"
    text = with_findings(asking(1, 0.4, Place(kernel=kernel, share=0.7), Place(file="/app/a.py", line=1, share=0.3)))
    assert text.count("Could number 1 go?") == 1
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["`a.py`"]
    where = next(line for line in text.split("\n") if "`a.py:1`" in line)
    assert "; kernel `" in where
    assert "of that here" not in where
    assert len(where.partition("kernel `")[2].partition("`")[0]) <= 40


def test_lines_of_a_function_stand_together() -> None:
    places = [Place(file="m.py", line=n, function="f" if n < 3 else "g", nvtx=str(n)) for n in (1, 3, 2, 2, 4, 5, 6)]
    assert "  - `m.py:1`, `:2` in `f`; `:3`, `:4` in `g` and 2 more places ·" in with_findings(asking(1, 0.5, *places))


def test_the_reason_is_whole_sentences() -> None:
    why = f"Short, as in `a. B`. Second one. {'Too long ' * 40}to be known."
    text = with_findings(asking(1, 0.5, Place(file="m.py", line=1), why=why))
    assert "  - Why: Short, as in `a. B`. Second one.\n" in text


def test_a_gain_that_only_a_test_can_tell_has_no_number() -> None:
    gain = Gain(kind="test_needed", basis="loop", loop=1, test="Try it.")
    text = with_findings(asking(1, 0.5, Place(file="m.py", line=1), gain=gain))
    assert "`m.py:1` · only a test can tell what it is worth · finding 1" in text


def test_a_pointless_finding_does_not_refer_to_what_is_above() -> None:
    gain = Gain(kind="expected", basis="loop", loop=1, share=0.1, cumulative_before_ms=2.0, cumulative_after_ms=2.0)
    text = with_findings(asking(1, 0.5), asking(2, 0.1, gain=gain))
    assert "no extra gain after the fixes ranked before it (alone about 10 % of an iteration)" in text
    assert "above" not in text


def test_a_healthy_report_only_says_what_was_looked_for() -> None:
    report = samples.healthy().model_copy(update={"titles": samples.TITLES})
    text = checklist.render(report)
    assert "- [ ]" not in text
    assert "There is nothing to ask: the recording shows no fault that is worth a change" in text
    assert "- M02: Copies from pageable memory hold up the CPU\n" in text
    assert all(code in text for code in report.clear)


def test_a_report_that_cannot_tell_does_not_sound_healthy() -> None:
    text = checklist.render(samples.no_gpu_activity())
    assert "- [ ]" not in text
    assert "this recording cannot tell" in text
    assert "Not evaluated:\n\n- 1 cause (H01), because no kernels were recorded." in text


@pytest.mark.parametrize("name", samples.ALL)
def test_it_is_tidy(name: str) -> None:
    text = checklist.render(samples.ALL[name]())
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert "\n\n\n" not in text
    assert not re.search(r" $", text, re.MULTILINE)


def hostile() -> Report:
    """Synthetic: evil names wherever a saved report may hold some."""
    base = samples.hostile()
    place = {"file": f"/x/{samples.EVIL}.py", "function": samples.EVIL, "kernel": samples.LONG_NAME}
    places = (base.findings[0].where[0], Place(**place), Place(nvtx="- [ ] tick"), Place(file="/x/\u202e\n# `.py"))
    evil = {"question": f"{samples.EVIL}\n- [ ] more" * 500, "why": samples.EVIL * 500, "where": places}
    return base.model_copy(update={"findings": (base.findings[0].model_copy(update=evil),), "minor": base.findings})


def test_hostile_names_add_no_items_headings_html_or_links() -> None:
    text = checklist.render(hostile())
    tokens = PARSER.parse(text)
    inline = [child for token in tokens for child in token.children or ()]
    assert not {"html_inline", "image", "link_open"} & {token.type for token in inline}
    assert "html_block" not in {token.type for token in tokens}
    assert text.count("- [ ] **") == 3, "the place without a file stands with the first that has one"
    assert sum(token.type == "heading_open" for token in tokens) == 1 + 3
    assert "\u202e" not in text and "\x1b" not in text
    assert not re.search(r"(?<![\w`])@everyone", "".join(t.content for t in inline if t.type == "text"))
    assert len(text) < 30_000
