"""One set of numbers: laws that every report keeps, on the model and as printed."""

from __future__ import annotations

import re

import pytest

from captures import report_of
from comparing import finding
from evaluation import corpus
from evaluation.packed import stored
from gpudiag.diagnosis import rank, verdict
from gpudiag.model import EvidenceItem, Finding, Gain, Loop, Place, Report, Run, Tool, Verdict
from gpudiag.report import markdown
from gpudiag.report.code_review import checklist
from gpudiag.report.github import comment
from gpudiag.report.html import page
from gpudiag.report.wording import evidence_words, gain_words, words
from gpudiag.text import iteration_words
from gpudiag.text.format import clause

pytestmark = pytest.mark.capture

SAMPLE = (
    "boolean_mask_loss/slow", "elementwise_chain/slow",
    "jax_callback_every_step/slow", "loader_without_workers/slow", "nbody_host_arrays/slow", "power_iteration/slow",
    "rollout_eager/slow.no-nvtx", "training_curve/stage-5",
)  # fmt: skip
SETTINGS = corpus.library().setting_values


@pytest.fixture(params=SAMPLE)
def report(request: pytest.FixtureRequest) -> Report:
    return report_of(stored(corpus.CAPTURES / request.param))


def findings(report: Report) -> tuple[Finding, ...]:
    return (*report.findings, *report.minor)


def test_laws_of_a_report(report: Report) -> None:
    found = {one.code for one in findings(report)}
    assert not found & set(report.clear), "found, and looked for and not found"
    assert not found & {item.code for item in report.suppressed if not item.partly}, "found, and kept quiet"
    loops = {loop.id: loop for loop in report.run.loops}
    for one in findings(report):
        assert_shares_add_up(one)
        assert_a_gain_is_seen(one, loops)
        assert_text_and_evidence_agree(one)
        loop = words.loop_of(one, loops)
        if loop and loop.source == "unknown":
            assert "iteration" not in one.title + one.message


def assert_shares_add_up(finding: Finding) -> None:
    shares = [place.share for place in finding.where if place.share is not None]
    assert sum(shares) <= 1.005
    if shares and sum(shares[: markdown.PLACES]) < 0.99:
        assert re.search(r"(elsewhere|more places?): .* of this cost", words.elsewhere(finding, markdown.PLACES))


def assert_a_gain_is_seen(finding: Finding, loops: dict[int, Loop]) -> None:
    said = re.search(r"goes from (.+? \w+) to ([\d.,]+ \w+)", gain_words.gain(finding, loops))
    assert said is None or said[1] != said[2]


def assert_text_and_evidence_agree(finding: Finding) -> None:
    """What the text sums up over several places is not printed again as the worst place's part of it."""
    (summary,) = markdown.view(of(finding))["findings"]
    shown = {fact.partition(" = ")[0] for fact in summary["evidence"]}
    for key in finding.evidence.get("totals", {}):
        assert finding.evidence_labels[key].label not in shown


def of(*found: Finding, source: str = "nvtx") -> Report:
    loop = {"id": 1, "name": "step", "source": source, "iterations": 9, "iteration_ms": 15.0, "share_of_span": 1}
    return Report(
        tool=Tool(version="0"), inputs=(), verdict=Verdict(state="problems", text="Synthetic."),
        run=Run.model_validate({"loops": [loop]}), findings=found,
    )  # fmt: skip


def gain(after: float, low: float, high: float) -> Gain:
    times = {"before_ms": 15.0, "after_ms": after, "low_ms": low, "high_ms": high}
    return Gain.model_validate({"kind": "expected", "basis": "loop", "loop": 1, "share": 1 - after / 15.0, **times})


# Expectations that may come to nothing.


def test_a_gain_that_may_be_nothing_says_the_range_first() -> None:
    wide, sure = rank.marked((finding(gain=g) for g in (gain(6.45, 5.25, 15.0), gain(6.45, 5.25, 9.0))), SETTINGS)
    assert (wide.gain.uncertain, sure.gain.uncertain) == (True, False)
    report = of(wide)
    said = "0 % to 65 % of an iteration, perhaps 57 %"
    for text in (markdown.render(report), checklist.render(report), comment.render(report)):
        assert said in text
        assert "about 57 %" not in text
    assert said in re.sub(r"<[^>]+>", "", page.render(report))
    assert (
        "**Gain, uncertain:** an iteration of `step` goes from 15.0 ms to between 5.25 ms and 15.0 ms, perhaps 6.45 ms"
        in (markdown.render(report))
    )
    assert "40 % to 65 % of an iteration, about 57 %" in markdown.render(of(sure))


def test_the_verdict_says_the_range_first() -> None:
    (wide,) = rank.marked([finding(gain=gain(6.45, 5.25, 15.0))], SETTINGS)
    text = verdict._top(of(wide).run, wide, SETTINGS["wide_interval"])
    assert text.endswith("would save between 0 % and 65 % of an iteration of `step`, perhaps 57 %.")


def test_times_that_print_alike_are_given_by_their_difference() -> None:
    said = gain_words.gain(finding(gain=gain(14.98, 14.97, 15.0)), {1: of().run.loops[0]})
    assert "an iteration of `step`, 15.0 ms now, takes 20.0 µs less" in said
    assert "15.0 ms to 15.0 ms" not in said


# Places.


def test_places_that_do_not_add_up_say_that_there_are_more() -> None:
    named = finding(where=[Place(file="a.py", line=n, share=0.115) for n in (1, 2)])
    assert "- elsewhere: 77 % of this cost" in markdown.render(of(named))
    many = finding(where=[Place(file="a.py", line=n, share=0.1) for n in range(1, 9)], evidence={"places": 30})
    assert "- 25 more places: 50 % of this cost" in markdown.render(of(many))
    assert "`a.py:1`: 12 % of this cost and 1 other place" in markdown.render(of(named), 0)


# Words.


@pytest.mark.parametrize(
    ("said", "iterations", "counted"),
    [
        ("The loop makes 0.89 copies an iteration.", 9, "The loop makes 8 copies in 9 iterations."),
        ("It copies (0.97 copies an iteration, all large)", 37, "It copies (36 copies in 37 iterations, all large)"),
        ("It runs 0.91 times an iteration.", 11, "It runs 10 times in 11 iterations."),
        ("0.077 kernel launches an iteration", 13, "1 kernel launch in 13 iterations"),
        ("It runs 0.97 times an iteration.", 450, "It runs about once an iteration."),
        ("It copies (0.97 copies an iteration)", None, "It copies (about one copy an iteration)"),
        ("0.73 copies an iteration", 450, "about 8 copies in 11 iterations"),
        ("0.0296296 copies an iteration", None, "about 4 copies in 135 iterations"),  # as a saved report holds it
        ("0.5 copies an iteration", 9, "about 1 copy in 2 iterations"),  # no whole number of 9
        ("3.5 copies an iteration", 9, "3.5 copies an iteration"),
    ],
)
def test_less_than_one_an_iteration_is_counted_over_several(said: str, iterations: int | None, counted: str) -> None:
    assert iteration_words.counted(said, iterations) == counted


def test_counts_below_one_are_evidence_in_whole_numbers() -> None:
    item = EvidenceItem(label="copies an iteration", unit="per_iteration")
    assert str(evidence_words.labelled(item, 8 / 9)) == "copies an iteration = 8 in 9"
    assert str(evidence_words.labelled(item, 0.972973)) == "copies an iteration = 36 in 37"


def test_no_rule_speaks_of_iterations_where_nothing_repeats() -> None:
    rules = [rule for rule in corpus.library().rules if rule.kind == "finding"]
    filled = (re.sub(r"{%.*?%}", "", re.sub(r"{{.*?}}", "7 ms", f"{rule.title}\n{rule.message}")) for rule in rules)
    left = [iteration_words.of_run(" ".join(text.split())) for text in filled]
    assert [text for text in left if re.search(r"(?<!first )\biteration\b(?!')", text)] == []


def test_a_reason_is_joined_in_lower_case() -> None:
    assert clause("Not all CUDA events might have been collected.") == "not all CUDA events might have been collected"
    for name in ("CUDA was not traced", "Nsight lost events", "Unified Memory cannot be traced", "cuInit failed"):
        assert clause(name) == name


def test_a_capture_that_lost_its_events_says_so() -> None:
    report = report_of(stored(corpus.CAPTURES / "jax_callback_every_step" / "fixed"))
    assert "because Nsight Systems warned: Not all CUDA events" in report.verdict.text
