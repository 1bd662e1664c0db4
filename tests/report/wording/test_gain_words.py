"""What all fixes leave, in one sentence. The findings are made by hand."""

import samples
from gpudiag.model import Finding, Gain, GainKind, Loop
from gpudiag.report import markdown
from gpudiag.report.html import page
from gpudiag.report.wording import gain_words


def loop(number: int = 1, **changes: object) -> Loop:
    values = {"id": number, "name": f"loop_{number}", "source": "nvtx", "iterations": 9, "iteration_ms": 10.0}
    return Loop.model_validate({**values, "share_of_span": 0.5, **changes})


def finding(rank: int, left: float | None, kind: GainKind = "expected", **changes: object) -> Finding:
    """left: ms of an iteration with this fix and those above it."""
    values: dict[str, object] = {"kind": kind, "basis": "loop", "loop": 1, "before_ms": 10.0, "after_ms": 7.0}
    gain = Gain.model_validate({**values, "share": 0.3, "cumulative_after_ms": left, **changes})
    return samples.launch_bound_finding(rank=rank, gain=gain)


def together(*findings: Finding, loops: tuple[Loop, ...] = (loop(),)) -> str:
    return gain_words.together(findings, {one.id: one for one in loops})


def test_fixes_of_one_loop_say_what_they_leave() -> None:
    said = "Gains can overlap: with both fixed, an iteration takes about 5.00 ms instead of 10.0 ms."
    assert together(finding(1, 7.0), finding(2, 5.0)) == said
    assert "with all 3 findings fixed, an iteration takes about 4.00 ms" in together(
        finding(1, 7.0), finding(2, 5.0), finding(3, 4.0)
    )


def test_findings_without_a_price_are_not_among_the_fixed() -> None:
    untested = finding(3, 5.0).model_copy(update={"gain": Gain(kind="test_needed", basis="loop", share=0.1, loop=1)})
    assert "with the first 2 fixed" in together(finding(1, 7.0), finding(2, 5.0), untested)
    first = untested.model_copy(update={"rank": 1})
    assert "with findings 2 and 3 fixed" in together(first, finding(2, 7.0), finding(3, 5.0))


def test_a_fix_that_only_an_experiment_prices_does_not_count() -> None:
    unknown = finding(2, None, "test_needed")
    assert together(finding(1, 7.0), unknown) == ""
    assert "takes about 5.00 ms" in together(finding(1, 7.0), unknown, finding(3, 5.0))


def test_a_fix_that_adds_nothing_to_those_above_is_not_counted() -> None:
    same = finding(2, 7.0, cumulative_before_ms=7.0)
    assert together(finding(1, 7.0), same) == ""
    assert "with findings 1 and 3 fixed, an iteration takes about 5.00 ms" in together(
        finding(1, 7.0), same, finding(3, 5.0, cumulative_before_ms=7.0)
    )


def test_a_bound_among_them_makes_a_best_case() -> None:
    best = finding(1, 7.0, "upper_bound")
    assert "takes at best 5.00 ms instead" in together(best, finding(2, 5.0, "upper_bound"))
    assert "takes at best 5.00 ms instead" in together(best, finding(2, 5.0))
    assert "takes at best 5.00 ms instead" in together(best, finding(2, 5.0, uncertain=True))
    assert "takes perhaps 5.00 ms instead" in together(best, finding(2, 5.0, "lower_bound")), "less than a best case"


def test_with_a_gain_that_may_be_nothing_it_is_a_perhaps() -> None:
    assert "takes perhaps 5.00 ms instead" in together(finding(1, 7.0, uncertain=True), finding(2, 5.0))


def test_of_one_fix_or_none_nothing_is_said() -> None:
    assert together() == together(finding(1, 7.0)) == ""


def test_fixes_of_one_of_two_loops_name_it() -> None:
    assert "an iteration of `loop_1` takes about 5.00 ms" in together(
        finding(1, 7.0), finding(2, 5.0), loops=(loop(), loop(2))
    )


def test_gains_in_two_loops_have_no_common_time() -> None:
    loops = (loop(), loop(2))
    other = finding(3, 7.0, loop=2)
    said = together(finding(1, 7.0), finding(2, 5.0), other, loops=loops)
    assert said == "Gains in one loop can overlap: do not add them up."
    assert together(finding(1, 7.0), other, loops=loops) == ""


def test_without_an_iteration_it_is_the_recorded_work() -> None:
    unknown = loop(source="unknown")
    assert "fixed, the recorded work takes about 5.00 ms" in together(
        finding(1, 7.0), finding(2, 5.0), loops=(unknown,)
    )


def test_what_all_fixes_leave_is_of_the_time_that_the_loop_shows() -> None:
    """The last finding is about the pauses between iterations as well, which its fix takes away."""
    paused = finding(2, 5.0, before_ms=15.0)
    said = together(finding(1, 7.0), paused)
    assert "takes about 5.00 ms instead of 10.0 ms and the pauses after it." in said


def test_fixes_that_leave_everything_are_not_summed_up() -> None:
    assert together(finding(1, 10.0), finding(2, 10.0)) == ""


def test_a_fix_that_helps_only_after_others_says_of_what() -> None:
    late = finding(2, 5.0, share=0.001, cumulative_before_ms=7.0)
    said = gain_words.headline(late, {1: loop()}, "those above", ranged=True)
    assert said == "only after those above: about 20 % of an iteration"
    then = "next to nothing alone. With the fixes above made, an iteration of `loop_1` goes from 7.00 ms to 5.00 ms."
    assert gain_words.gain(late, {1: loop()}) == f"**Gain, expected:** {then}"


def test_a_bound_names_no_other_time_of_an_iteration() -> None:
    """It is of the loop under another guess of what recording cost than the one that the line gives."""
    guess = {"usual_ms": 6.0, "least_ms": 4.0, "most_ms": 10.0}
    times = {"before_ms": 8.0, "after_ms": 6.0, "share": 0.25}
    bound, guessed = finding(1, 5.0, "upper_bound", **times), {1: loop(guessed=guess)}
    assert gain_words.gain(bound, guessed) == (
        "**Gain, at most:** 2.00 ms and 25 % of an iteration of `loop_1`, whatever recording cost"
        ", which saves 12 % of all steady time."
    )
    assert gain_words.headline(bound, guessed, ranged=True) == "up to 25 % of an iteration, up to 2.00 ms"
    same = finding(1, 5.0, "upper_bound", **times | {"before_ms": 6.0, "after_ms": 4.5})
    assert "goes from perhaps 6.00 ms to 4.50 ms" in gain_words.gain(same, guessed), "the time that the line gives"


def test_the_sentence_stands_below_the_rows() -> None:
    said = "with both fixed, an iteration takes at best 1.18 ms instead of 5.70 ms."
    text = markdown.render(samples.launch_bound())
    assert text.index("| 2 | A scalar is read back") < text.index(said) < text.index("## The findings in detail")
    assert f'<p class="aside">Gains can overlap: {said}</p>' in page.render(samples.launch_bound())
