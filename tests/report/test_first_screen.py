"""The first screen: time, cause, place, fix and gain at a glance, each number once. The reports are made by hand."""

import samples
from gpudiag.model import Gain, Leaf, Loop, Note, Report
from gpudiag.report import markdown
from gpudiag.report.wording import first_words


def screen(report: Report) -> str:
    return markdown.section("head", markdown.view(report))


def step(**leaves: float) -> Loop:
    tree = {leaf: Leaf(share=share) for leaf, share in leaves.items()}
    values = {"id": 1, "name": "step", "source": "nvtx", "iterations": 9, "iteration_ms": 10.0, "share_of_span": 1.0}
    return Loop.model_validate({**values, "tree": tree})


def with_gain(**gain: object) -> Report:
    values = {"kind": "expected", "basis": "loop", "loop": 1, "before_ms": 10.0, **gain}
    finding = samples.launch_bound_finding(gain=Gain.model_validate(values))
    return samples.launch_bound().model_copy(update={"findings": (finding,)})


def test_a_row_names_cause_place_fix_and_gain() -> None:
    assert (
        "| 1 | The GPU waits for small kernels to be launched | `decode.py:31` in `step` and elsewhere"
        " | Replay the step as one CUDA graph | up to 79 % of `decode_token` |\n"
    ) in screen(samples.launch_bound())


def test_a_loop_is_its_time_what_the_gpu_computes_and_a_bar() -> None:
    line = first_words.loop_line(step(computing=0.4, exposed_copy=0.1, submitting=0.5))
    assert line.text == "`step`: 10.0 ms an iteration, of which the GPU computes 40 %"
    assert line.bar == "█" * 12 + "░" * 15 + "▓" * 3
    assert line.rest == "50 % idle, waiting for a launch · 10 % copying memory"


def test_parts_too_small_to_name_are_summed_up() -> None:
    line = first_words.loop_line(step(computing=0.985, submitting=0.009, sync=0.006))
    assert (line.rest, len(line.bar)) == ("1.5 % not computing", first_words.BAR)


def test_a_range_wider_than_the_expectation_stands_alone() -> None:
    assert "| between 5.0 % and 70 % of `decode_token` |" in screen(
        with_gain(after_ms=5.0, low_ms=3.0, high_ms=9.5, share=0.5)
    )
    assert "| about 50 % (40 % to 60 %) of `decode_token` |" in screen(
        with_gain(after_ms=5.0, low_ms=4.0, high_ms=6.0, share=0.5)
    )


def test_the_gravest_note_is_on_the_screen_and_only_there() -> None:
    notes = [Note(code=f"Q0{n}", text=f"Note {n}.", severity=s) for n, s in enumerate(("low", "high", "medium"), 1)]
    report = samples.launch_bound().model_copy(update={"notes": (Note(code="Q09", text="Harmless."), *notes)})
    assert "**Keep in mind:** Note 2. (Q02)" in screen(report)
    text = markdown.render(report)
    assert (text.count("Note 2."), text.count("Note 3."), text.count("Harmless.")) == (1, 1, 1)


def test_a_note_that_takes_nothing_from_the_figures_stays_below() -> None:
    report = samples.launch_bound().model_copy(update={"notes": (Note(code="Q09", text="Harmless."),)})
    assert "Harmless." not in screen(report)


def test_the_verdict_leads_where_no_row_says_it() -> None:
    assert samples.healthy().verdict.text in screen(samples.healthy())
    problems = samples.launch_bound()
    assert problems.verdict.text not in markdown.render(problems)
    undecided = problems.verdict.model_copy(update={"state": "cannot_tell"})
    assert undecided.text in screen(problems.model_copy(update={"verdict": undecided}))


def test_of_equal_notes_the_larger_is_the_caveat() -> None:
    small, large, slight = (
        Note(code=code, text="…", severity=severity, share=share)
        for code, severity, share in (("Q02", "medium", 0.05), ("Q18", "medium", 0.3), ("Q05", "low", 0.9))
    )
    assert first_words.caveat([small, large, slight]) == large
