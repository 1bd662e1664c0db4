"""The first screen: time, cause, place, fix and gain at a glance, each number once. The reports are made by hand."""

import re

import samples
from gpudiag.model import FarIterations, Gain, Guess, Kernel, Leaf, Loop, Note, Place, Report, Unclaimed
from gpudiag.report import markdown
from gpudiag.report.github import comment
from gpudiag.report.html import page
from gpudiag.report.wording import first_words, gain_words


def screen(report: Report) -> str:
    return markdown.section("head", markdown.view(report))


def step(**leaves: float) -> Loop:
    tree = {leaf: Leaf(share=share) for leaf, share in leaves.items()}
    values = {"id": 1, "name": "step", "source": "nvtx", "iterations": 9, "iteration_ms": 10.0, "share_of_span": 1.0}
    return Loop.model_validate({**values, "tree": tree})


def with_gain(**gain: object) -> Report:
    values = {"kind": "expected", "basis": "loop", "loop": 1, "before_ms": 10.0, **gain}
    finding = samples.launch_bound_finding(gain=Gain.model_validate(values))
    report = samples.launch_bound()
    loop = report.run.loops[0].model_copy(update={"iteration_ms": 10.0})
    run = report.run.model_copy(update={"loops": (loop,)})
    return report.model_copy(update={"findings": (finding,), "run": run})


def test_a_row_names_cause_place_fix_and_gain() -> None:
    assert (
        "| 1 | The GPU waits for small kernels to be launched | `decode.py:31` in `step`; `:44` in `sample`"
        " | Replay the step as one CUDA graph | up to 79 % of an iteration: 4.50 ms |\n"
    ) in screen(samples.launch_bound())


def test_a_fix_says_what_to_write_in_the_readers_framework() -> None:
    report = samples.launch_bound()
    graphs = samples.GRAPHS.model_copy(update={"hint": '`torch.compile(step, mode="reduce-overhead")`'})
    finding = report.findings[0].model_copy(update={"remedies": (graphs, samples.GRAPHS_CUPY)})
    report = report.model_copy(update={"findings": (finding,)})
    said = 'Replay the step as one CUDA graph: `torch.compile(step, mode="reduce-overhead")`'
    assert f"| {said} |" in screen(report)
    assert f"- Fix: {said}\n" in comment.render(report)


def test_a_loop_is_its_time_what_the_gpu_computes_and_a_bar() -> None:
    line = first_words.loop_line(step(computing=0.4, exposed_copy=0.1, submitting=0.5))
    assert line.text == "`step`: 10.0 ms an iteration, the GPU computes 40 % of it"
    assert line.bar == "█" * 12 + "░" * 15 + "▓" * 3
    assert line.rest == "50 % idle, the host is launching work · 10 % copying memory"


def test_the_part_that_the_gpu_computes_is_of_the_time_before_it() -> None:
    line = first_words.loop_line(step(computing=0.4).model_copy(update={"iteration_ms_unprofiled": 8.0}))
    assert line.text == "`step`: 8.00 ms an iteration; under the profiler 10.0 ms, the GPU computes 40 % of it"


def test_the_time_without_the_profiler_is_guessed_beside_it() -> None:
    guess = Guess(usual_ms=8.0, least_ms=6.0, most_ms=10.0)
    line = first_words.loop_line(step(computing=0.4).model_copy(update={"guessed": guess}))
    said = "the GPU computes 40 % of it; without the profiler perhaps 8.00 ms (6.00 ms to 10.0 ms)"
    assert line.text == f"`step`: 10.0 ms an iteration, {said}"


def test_a_mean_that_few_iterations_make_says_so() -> None:
    loop = step(computing=0.4).model_copy(
        update={"median_ms": 8.0, "far": FarIterations(count=1, of=9, least_ms=26.0, most_ms=26.0)}
    )
    said = "`step`: 10.0 ms an iteration on average, but half take at most 8.00 ms and 1 of 9 takes 26.0 ms"
    assert first_words.loop_line(loop).text == f"{said}; the GPU computes 40 % of the time"
    several = loop.model_copy(update={"far": FarIterations(count=2, of=9, least_ms=14.0, most_ms=18.0)})
    assert "and 2 of 9 take 14.0 ms to 18.0 ms;" in first_words.loop_line(several).text
    down = loop.model_copy(update={"median_ms": 11.0, "far": None})
    assert "on average, but half take at least 11.0 ms; the GPU" in first_words.loop_line(down).text


def test_times_with_and_without_the_profiler_are_both_averages() -> None:
    loop = step(computing=0.4).model_copy(update={"median_ms": 8.0, "iteration_ms_unprofiled": 7.0})
    said = "7.00 ms an iteration; under the profiler 10.0 ms on average, but half take at most 8.00 ms;"
    assert said in first_words.loop_line(loop).text
    guessed = loop.model_copy(
        update={"iteration_ms_unprofiled": None, "guessed": Guess(usual_ms=8.0, least_ms=6.0, most_ms=10.0)}
    )
    assert "perhaps 8.00 ms on average (6.00 ms to 10.0 ms)" in first_words.loop_line(guessed).text


def test_pauses_that_take_much_stand_in_the_loops_line() -> None:
    loop = step(computing=1.0)
    said = first_words.loop_line(loop.model_copy(update={"paused_share": 0.54})).text
    assert said.endswith("; pauses between iterations take 54 % of the loop's time")
    assert "pauses" not in first_words.loop_line(loop.model_copy(update={"paused_share": 0.04})).text


def test_a_bar_of_a_loop_with_pauses_holds_them() -> None:
    line = first_words.loop_line(step(computing=0.6, submitting=0.4).model_copy(update={"paused_share": 0.5}))
    assert line.bar == "█" * 9 + "░" * 6 + "▒" * 15
    assert first_words.legend([line]) == "█ computing · ░ idle · ▒ pauses between iterations"


def test_parts_too_small_to_name_are_summed_up() -> None:
    line = first_words.loop_line(step(computing=0.985, submitting=0.009, sync=0.006))
    assert (line.rest, len(line.bar)) == ("1.5 % not computing", first_words.BAR)


def test_the_range_leads_and_the_expectation_follows() -> None:
    assert "| 5.0 % to 70 % of an iteration, about 50 %: 5.00 ms |" in screen(
        with_gain(after_ms=5.0, low_ms=3.0, high_ms=9.5, share=0.5)
    )
    assert "| 40 % to 60 % of an iteration, about 50 %: 5.00 ms |" in screen(
        with_gain(after_ms=5.0, low_ms=4.0, high_ms=6.0, share=0.5)
    )


def test_no_gain_leads_with_nothing() -> None:
    gain = {"after_ms": 7.8, "low_ms": 5.9, "high_ms": 10.0, "share": 0.22, "uncertain": True}
    assert "| 0 % to 41 % of an iteration, perhaps 22 %: 2.20 ms |" in screen(with_gain(**gain))
    second = samples.launch_bound_finding(
        rank=2, gain=with_gain(**gain, cumulative_before_ms=5.0, cumulative_after_ms=5.0).findings[0].gain
    )
    said = gain_words.headline(second, {1: samples.launch_bound().run.loops[0]}, ranged=True)
    assert said == "no extra gain after the fixes above (alone perhaps 22 % of an iteration)"


def test_the_bar_has_a_legend_of_what_it_draws() -> None:
    assert "█ computing · ░ idle\n" in screen(samples.launch_bound())
    mixed = first_words.loop_line(step(computing=0.4, exposed_copy=0.1, submitting=0.5))
    assert first_words.legend([mixed]) == "█ computing · ▓ moving data · ░ idle"
    assert first_words.legend([]) == ""


def at(*places: tuple[str, int]) -> tuple[Place, ...]:
    return tuple(Place(file=file, line=line) for file, line in places)


def with_places(*places: tuple[Place, ...]) -> Report:
    findings = tuple(
        samples.launch_bound_finding(rank=n, where=where, evidence={}) for n, where in enumerate(places, 1)
    )
    return samples.launch_bound().model_copy(update={"findings": findings})


def test_findings_at_one_line_say_so() -> None:
    report = with_places(at(("a.py", 3)), at(("a.py", 3), ("b.py", 9)), at(("a.py", 4)))
    text = screen(report)
    assert "| `a.py:3` (same line as finding 1) and 1 other place |" in text
    assert text.count("same line") == 1
    assert "`a.py:3`; `b.py:9` (same line as finding 1) ·" in comment.render(report)


def test_other_places_are_counted_each_once() -> None:
    four = at(("a.py", 3), ("a.py", 4), ("b.py", 3), ("b.py", 5), ("a.py", 4))
    assert "| `a.py:3` and 3 other places |" in screen(with_places(four))
    assert "| `a.py:3` |" in screen(with_places(at(("a.py", 3), ("a.py", 3))))


def test_up_to_three_places_are_all_listed() -> None:
    places = at(("a.py", 3), ("a.py", 4), ("b.py", 3))
    assert "| `a.py:3`, `:4`; `b.py:3` |" in screen(with_places(places))


def test_a_function_without_a_name_is_left_out() -> None:
    place = Place(file="a.py", line=3, function="<genexpr>")
    text = markdown.render(with_places((place,)))
    assert "| `a.py:3` |" in text
    assert "genexpr" not in text


def test_a_line_that_is_not_all_of_it_says_how_much_it_is() -> None:
    place = Place(file="a.py", line=3, share=0.6)
    assert "| `a.py:3`, 60 % of this cost |" in screen(with_places((place,)))


def test_a_fix_that_needs_another_names_it() -> None:
    first = samples.launch_bound_finding(code="S01")
    other_loop = samples.launch_bound_finding(rank=2, code="S02", gain=Gain(kind="test_needed", basis="loop", loop=7))
    later = samples.launch_bound_finding(rank=3, after=("S01", "S02", "S03"))
    report = samples.launch_bound().model_copy(update={"findings": (first, other_loop, later)})
    assert "| Replay the step as one CUDA graph |" in screen(report)
    assert "| Once finding 1 is fixed, replay the step as one CUDA graph |" in screen(report)
    assert "| Once findings 1 and 2 are fixed, replay" in screen(
        report.model_copy(update={"findings": (first, samples.launch_bound_finding(rank=2, code="S02"), later)})
    )


def test_an_acronym_stays_one_after_another_fix() -> None:
    remedy = samples.GRAPHS.model_copy(update={"title": "NCCL first"})
    later = samples.launch_bound_finding(rank=2, code="H04", after=("H01",), remedies=(remedy,))
    report = samples.launch_bound().model_copy(update={"findings": (samples.launch_bound_finding(), later)})
    assert "| Once finding 1 is fixed, NCCL first |" in screen(report)


def test_without_python_a_place_not_recorded_gets_a_hint() -> None:
    hint = ": NVTX ranges around parts of the program would show it"
    report = with_places(())
    native = report.model_copy(update={"run": report.run.model_copy(update={"frameworks": ("cuda",)})})
    assert f"| not recorded{hint} |" in screen(native)
    python = report.model_copy(update={"run": report.run.model_copy(update={"frameworks": ("cuda", "cupy")})})
    assert "| not recorded |" in screen(python)


def test_a_consequence_points_at_its_cause() -> None:
    cause = samples.launch_bound_finding(process="rank 1")
    shown = samples.launch_bound_finding(rank=2, caused_by=1, title="The others wait for `rank 1`")
    text = markdown.render(samples.launch_bound().model_copy(update={"findings": (cause, shown)}))
    assert "| rank 1: `decode.py:31` in `step`; `:44` in `sample` |" in text
    assert "| the same time as finding 1, its cause (alone up to 79 % of an iteration) |" in text
    assert "**Cause:** finding 1 accounts for most of this time. Fix that one; this one goes with it." in text
    assert text.count("**Process:** rank 1") == 1


def test_a_gain_above_its_idle_time_says_why() -> None:
    gain = {"after_ms": 5.0, "low_ms": 4.0, "high_ms": 6.0, "share": 0.5}
    finding = with_gain(**gain).findings[0].model_copy(update={"leaf": "input", "also": "ranks"})
    loops = {1: step(computing=0.7, input=0.3)}
    said = gain_words.gain(finding, loops)
    more = "The fix saves more than its part of the time (**idle, waiting for input**: 30 %), because the other ranks"
    assert said.endswith(f". {more} then wait less.")
    assert "more than" not in gain_words.headline(finding, loops, ranged=True)
    assert "more than" not in gain_words.gain(finding.model_copy(update={"also": None}), loops)


def test_a_gain_between_iterations_says_so() -> None:
    gain = {"before_ms": 15.0, "after_ms": 10.0, "low_ms": 9.0, "high_ms": 11.0, "share": 0.33}
    said = gain_words.headline(with_gain(**gain).findings[0], {1: step(computing=1.0)}, ranged=True)
    assert said == "27 % to 40 % of an iteration and the pauses after it, about 33 %: 5.00 ms"


def unexplained(*parts: Unclaimed, found: bool = True) -> Report:
    loop = step(computing=0.6, input=0.3, exposed_copy=0.1).model_copy(update={"unclaimed": parts})
    report = samples.launch_bound()
    run = report.run.model_copy(update={"loops": (loop,)})
    return report.model_copy(update={"run": run, "findings": report.findings if found else ()})


LOADING = Unclaimed(
    leaf="input", share=0.2, large=True, where=(Place(file="a.py", line=3, function="load", share=0.9),)
)


def test_a_large_part_without_a_finding_gets_a_row() -> None:
    text = screen(unexplained(LOADING))
    said = "No finding explains 20 % of an iteration (idle, waiting for input)"
    assert f"| | {said} | the host was in `load` (`a.py:3`) for 90 % of that time | not known | not priced |\n" in text
    assert f"**{said}**: the host was in `load`" in comment.render(unexplained(LOADING))
    assert f"**{said}**: the host was in `load`" in screen(unexplained(LOADING, found=False))
    bare = re.sub(r"<[^>]+>", "", page.render(unexplained(LOADING)))
    assert f"{said}: the host was in load (a.py:3) for 90 % of that time" in bare


def test_a_line_outside_of_functions_is_named_once() -> None:
    outside = LOADING.model_copy(update={"where": (Place(file="/home/u/a.py", line=3, share=0.9),)})
    assert "| the host was in `a.py:3` for 90 % of that time |" in screen(unexplained(outside))


def test_a_place_that_the_host_was_hardly_in_is_not_named() -> None:
    place = Place(file="a.py", line=3, function="load", share=0.004)
    hardly = LOADING.model_copy(update={"where": (place,), "calls": ("cudaLaunchKernel",)})
    assert "| the next CUDA call was `cudaLaunchKernel` |" in screen(unexplained(hardly))
    assert "a.py" not in markdown.section("loops", markdown.view(unexplained(hardly)))


def test_what_a_fix_leaves_names_its_finding() -> None:
    text = screen(unexplained(LOADING.model_copy(update={"about": ("S01",)})))
    assert "| | Fixing finding 2 leaves 20 % of an iteration (idle, waiting for input) |" in text
    assert "No finding explains" not in text


def test_a_part_that_is_not_large_gets_none() -> None:
    assert "No finding explains" not in screen(unexplained(LOADING.model_copy(update={"large": False})))


def test_without_a_line_the_call_is_named() -> None:
    values = {"leaf": "exposed_copy", "share": 0.2, "large": True, "calls": ("cudaMemcpyAsync", "cudaMemcpy")}
    assert "the copies were mostly started by `cudaMemcpyAsync`" in screen(unexplained(Unclaimed(**values)))
    idle = Unclaimed(**{**values, "leaf": "input"})
    assert "the next CUDA call was mostly `cudaMemcpyAsync`" in screen(unexplained(idle))
    unknown = Unclaimed(leaf="input", share=0.2, large=True)
    assert "the recording does not show what the host did" in screen(unexplained(unknown))


def test_kernels_say_what_part_of_the_profile_they_are() -> None:
    first, second = (
        Kernel(name=name, launches=1, duration_ms=time, share=share)
        for name, time, share in (("a", 9, 0.9), ("b", 1, 0.1))
    )
    report = samples.kernel_only()
    both = report.model_copy(update={"run": report.run.model_copy(update={"kernels": (second, first)})})
    assert [line.text for line in first_words.lines(both, ())] == [
        "`a`: 9.00 ms a launch, 90 % of the profiled time",
        "`b`: 1.00 ms a launch, 10 % of the profiled time",
    ]
    alone = report.model_copy(update={"run": report.run.model_copy(update={"kernels": (first,)})})
    assert [line.text for line in first_words.lines(alone, ())] == ["`a`: 9.00 ms a launch"]


def test_a_kernel_that_no_line_names_says_its_part_in_its_row() -> None:
    kernels = tuple(Kernel(name=f"k{n}", launches=1, duration_ms=9 - n, share=(9 - n) / 30) for n in range(5))
    gain = Gain(kind="upper_bound", basis="kernel", before_ms=5.0, after_ms=4.0, share=0.2)
    findings = tuple(
        samples.launch_bound_finding(rank=n, gain=gain, where=(Place(kernel=name),))
        for n, name in ((1, "k0"), (2, "k4"))
    )
    report = samples.kernel_only()
    run = report.run.model_copy(update={"kernels": kernels})
    text = screen(report.model_copy(update={"run": run, "findings": findings}))
    assert "| up to 20 % of one launch of `k0` |" in text
    assert "| up to 20 % of one launch of `k4`, 17 % of the profiled time |" in text


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


def test_a_line_does_not_repeat_the_verdict() -> None:
    loop = step(computing=0.95, launching=0.05)
    assert first_words.loop_line(loop).text == "`step`: 10.0 ms an iteration, the GPU computes 95 % of it"
    for said in ("The timeline is healthy: the GPU computes 95 % of `step`", "The GPU computes only 95 % of `step`"):
        assert first_words.loop_line(loop, said).text == "`step`: 10.0 ms an iteration"
    assert "95 %" in first_words.loop_line(loop, "The GPU computes 95 % of `other`").text
