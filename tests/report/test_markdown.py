"""What a reader would notice in a report; the whole of it is in the snapshots."""

import pytest
from markdown_it import MarkdownIt

import samples
from gpudiag.model import Gain, KernelUse, Loop, Report, Suppressed
from gpudiag.report import markdown
from gpudiag.report.wording import gain_words, words
from gpudiag.report.wording.evidence_words import former_fact

GFM = MarkdownIt("gfm-like", {"linkify": False})


def loop(number: int, share: float, **changes: object) -> Loop:
    values = {"id": number, "name": f"loop_{number}", "source": "nvtx", "iterations": 10, "iteration_ms": 2.0}
    return Loop.model_validate({**values, "share_of_span": share, "budget": {"compute": 1.0}, **changes})


def with_loops(*loops: Loop) -> Report:
    base = samples.healthy()
    return base.model_copy(update={"run": base.run.model_copy(update={"loops": loops})})


@pytest.mark.parametrize("name", samples.ALL)
def test_no_heading_is_empty(name: str) -> None:
    lines = [line for line in markdown.render(samples.ALL[name]()).split("\n") if line]
    levels = [len(line) - len(line.lstrip("#")) for line in lines]
    for level, following in zip(levels, [*levels[1:], 1], strict=True):
        assert not level or not following or following > level


@pytest.mark.parametrize("name", samples.ALL)
def test_blank_lines_come_alone_and_the_file_ends_in_one_newline(name: str) -> None:
    text = markdown.render(samples.ALL[name]())
    prose = "code".join(part for i, part in enumerate(text.split("```")) if i % 2 == 0) if name != "hostile" else text
    assert "\n\n\n" not in prose
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert not any(line.endswith(" ") for line in text.split("\n"))


def test_hostile_names_make_no_html_images_headings_or_links() -> None:
    tokens = GFM.parse(markdown.render(samples.hostile().model_copy(update={"titles": samples.TITLES})))
    inline = [child for token in tokens for child in token.children or ()]
    assert not {"html_inline", "image"} & {token.type for token in inline}
    assert not {"html_block"} & {token.type for token in tokens}
    assert all(t.attrs["href"].startswith("http") for t in inline if t.type == "link_open")  # type: ignore[union-attr]
    headings = [t.map for t in tokens if t.type == "heading_open"]
    assert len(headings) == 10
    rows = [t for t in tokens if t.type == "tr_open"]
    assert len(rows) == 6 + 2 + 2  # budget, kernels, first screen


def test_the_remedy_of_the_readers_framework_is_shown() -> None:
    text = markdown.render(samples.launch_bound())
    assert "reduce-overhead" in text
    assert "begin_capture" not in text


def test_without_a_known_framework_all_remedies_are_shown() -> None:
    base = samples.launch_bound()
    text = markdown.render(base.model_copy(update={"run": base.run.model_copy(update={"frameworks": ()})}))
    assert "reduce-overhead" in text
    assert "begin_capture" in text


def test_a_rule_that_fires_in_two_loops_is_explained_once() -> None:
    second = samples.launch_bound_finding(rank=2, message="Again, elsewhere.")
    text = markdown.render(
        samples.launch_bound().model_copy(update={"findings": (samples.launch_bound_finding(), second), "minor": ()})
    )
    assert text.count("reduce-overhead") == 1
    assert text.count("Why it costs time:") == 1
    assert "as in finding 1" in text


def test_a_remedy_shared_by_two_rules_is_printed_once() -> None:
    second = samples.launch_bound_finding(rank=2, code="H02", title="Another smell", why="Another reason.")
    text = markdown.render(
        samples.launch_bound().model_copy(update={"findings": (samples.launch_bound_finding(), second)})
    )
    assert text.count("reduce-overhead") == 1
    assert "Another reason." in text
    assert "See finding 1." in text


def test_findings_over_the_limit_get_a_line_each() -> None:
    text = markdown.render(samples.launch_bound(), limit=1)
    assert "### 1." in text
    assert "### 2." not in text
    assert "2. A scalar is read back from the GPU in every iteration: about 5.1 % of an iteration" in text


def test_many_loops_are_counted_not_listed() -> None:
    loops = [loop(n, 0.30 if n < 3 else 0.04) for n in range(10)]
    text = markdown.render(with_loops(*loops))
    assert text.count("| GPU time |") == 3
    assert "7 more loops, 28 % of all steady time" in text


def test_a_long_loop_says_how_many_iterations_are_analysed() -> None:
    text = markdown.render(with_loops(loop(1, 1.0, iterations=89, analysed_iterations=26), loop(2, 1.0)))
    assert "`loop_1`: 89 iterations, 26 of them analysed, 100 % of all steady time." in text
    assert "`loop_2`: 10 iterations, 100 % of all steady time." in text


def test_a_loop_with_a_finding_is_shown_however_small() -> None:
    finding = samples.launch_bound_finding(gain=Gain(kind="expected", basis="loop", loop=9, share=0.5))
    report = with_loops(*(loop(n, 0.30 if n < 3 else 0.01) for n in range(10)))
    text = markdown.render(report.model_copy(update={"findings": (finding,)}))
    assert "\n**`loop_9`: 2.00 ms an iteration" in text


def test_a_run_without_iterations_is_described_as_a_whole() -> None:
    text = markdown.render(with_loops(loop(1, 1.0, source="unknown", iterations=1)))
    assert "The recorded work, in which nothing repeats: 2.00 ms" in text
    assert "an iteration" not in text


def test_budget_rows_keep_their_order_and_skip_nothings() -> None:
    rows = words.budget_rows(loop(1, 1.0, budget={"idle_other": 0.25, "exposed_copy": 0.0001, "compute": 0.7499}))
    assert [row.share for row in rows] == ["75 %", "25 %"]


@pytest.mark.parametrize(
    ("gain", "headline", "sentence"),
    [
        (
            {"kind": "upper_bound", "before_ms": 4.0, "after_ms": 1.0, "speedup": 4.0, "share": 0.75},
            "up to 75 % of an iteration",
            "**Gain, at most:** an iteration of `step` goes from 4.00 ms to 1.00 ms (4.0 times as fast).",
        ),
        (
            {"kind": "expected", "before_ms": 4.0, "after_ms": 3.0, "low_ms": 2.5, "high_ms": 3.5, "share": 0.25},
            "about 25 % of an iteration",
            "**Gain, expected:** an iteration of `step` goes from 4.00 ms to 3.00 ms (2.50 ms to 3.50 ms).",
        ),
        (
            {"kind": "lower_bound", "share": 0.25},
            "at least 25 % of an iteration",
            "**Gain, at least:** 25 % of `step`.",
        ),
        (
            {"kind": "test_needed", "test": "Run it with `--x`."},
            "gain to be tested",
            "**Gain:** only an experiment can tell. Run it with `--x`.",
        ),
        (
            {"kind": "expected", "before_ms": 4.0, "after_ms": 3.0, "share": 0.25, "cumulative_after_ms": 1.0},
            "about 25 % of an iteration",
            (
                "**Gain, expected:** an iteration of `step` goes from 4.00 ms to 3.00 ms. "
                "With the fixes above as well: 1.00 ms."
            ),
        ),
    ],
)
def test_a_gain_says_its_kind_and_its_denominator(gain: dict[str, object], headline: str, sentence: str) -> None:
    finding = samples.launch_bound_finding(rank=2, gain={"basis": "loop", "loop": 1, **gain})
    loops = {1: loop(1, 1.0, name="step")}
    assert gain_words.headline(finding, loops) == headline
    assert gain_words.gain(finding, loops) == sentence


def test_a_gain_in_part_of_the_run_names_its_share_of_all() -> None:
    gain = Gain(kind="upper_bound", basis="loop", loop=1, before_ms=4.0, after_ms=1.0, share=0.75)
    said = gain_words.gain(samples.launch_bound_finding(gain=gain), {1: loop(1, 0.2)})
    assert "which saves 15 % of all steady time" in said


def news(facts: dict[str, object]) -> list[str]:
    """What a report printed of a former rule's figures."""
    return [str(fact) for column, value in facts.items() if (fact := former_fact(column, value))]


def test_former_evidence_reads_units_off_the_names() -> None:
    facts = {
        "idle_after_ns": 2.5e6,
        "copy_bytes": 4,
        "dram_bytes_per_s": 1.5e12,
        "idle_share": 0.5,
        "sm_pct": 40.0,
        "launches": 12_345,
        "pinned": False,
        "kernel": "gemm",
        "missing": None,
    }
    assert news(facts) == [
        "idle after = 2.50 ms",
        "copy = 4 B",
        "dram = 1,500 GB/s",
        "idle share = 50 %",
        "sm = 40 %",
        "launches = 12,345",
        "pinned = no",
        "kernel = `gemm`",
    ]


def test_titles_are_optional() -> None:
    report = samples.healthy().model_copy(update={"suppressed": (Suppressed(code="S02", by="X01", reason="why"),)})
    text = markdown.render(report)
    assert "S02, M02, A01, D01." in text
    assert "- S02: why (X01)" in text


def test_a_gain_of_everything_does_not_promise_zero() -> None:
    gain = Gain(kind="upper_bound", basis="loop", loop=1, before_ms=4.0, after_ms=0.0, share=1.0)
    said = gain_words.gain(samples.launch_bound_finding(gain=gain), {1: loop(1, 1.0, name="step")})
    assert said == "**Gain, at most:** all of an iteration of `step` (4.00 ms)."


def test_a_loop_without_gpu_work_says_so() -> None:
    rows = words.budget_rows(loop(1, 1.0, budget={"compute": 0.0, "idle_other": 1.0}))
    assert [row.words for row in rows] == ["**idle**: this loop sends it no work"]


def test_the_list_of_places_tells_their_number() -> None:
    places = tuple(samples.Place(file="a.py", line=n) for n in range(1, 9))
    few = samples.launch_bound_finding(where=places[:3], evidence={"places": 3})
    merged = samples.launch_bound_finding(where=places[:7], evidence={"places": 9})
    many = samples.launch_bound_finding(where=places, evidence={"places": 49})
    base = samples.launch_bound()
    assert "Evidence" not in markdown.render(base.model_copy(update={"findings": (few,)}))
    for finding, more in ((merged, 2), (many, 44)):
        text = markdown.render(base.model_copy(update={"findings": (finding,)}))
        assert f"- {more} more places" in text
        assert "places =" not in text


def test_evidence_says_an_iteration_for_per_iteration() -> None:
    facts = news({"launches_per_iteration": 3, "ns_per_iteration": 2e6, "matrix_per_iteration_ns": 1e6})
    assert facts == [
        "launches an iteration = 3", "time an iteration = 2.00 ms", "matrix products an iteration = 1.00 ms"
    ]  # fmt: skip


def test_a_third_fix_is_named_without_details() -> None:
    remedies = [samples.KEEP.model_copy(update={"id": f"fix-{n}", "title": f"Fix number {n}"}) for n in range(3)]
    text = markdown.render(
        samples.launch_bound().model_copy(update={"findings": (samples.launch_bound_finding(remedies=remedies),)})
    )
    assert text.count("done |= token") == 2
    assert "**Or:** Fix number 2. The code: `gpudiag rules show H01`" in text


def test_a_hint_that_is_a_command_is_shown_as_one() -> None:
    missing = samples.Unevaluated(code="K01", reason="no counters", hint="ncu --set full -k <kernel> …")
    text = markdown.render(samples.healthy().model_copy(update={"not_evaluated": (missing,)}))
    assert "- no counters: K01. Try: `ncu --set full -k <kernel> …`" in text


def test_evidence_does_not_repeat_the_message() -> None:
    evidence = {"idle_ns": 1.5e6, "kernels": 22, "queued": 2}
    finding = samples.launch_bound_finding(message="22 kernels wait 1.50 ms.", evidence=evidence)
    text = markdown.render(samples.launch_bound().model_copy(update={"findings": (finding,)}))
    assert "**Evidence:** queued = 2\n" in text


def test_paths_start_at_their_common_folder() -> None:
    places = (samples.Place(file="/home/me/app/a/x.py", line=1), samples.Place(file="/home/me/app/y.py", nvtx="other"))
    finding = samples.launch_bound_finding(where=places)
    base = samples.launch_bound()
    text = markdown.render(base.model_copy(update={"findings": (finding,), "minor": ()}))
    assert "Paths are relative to `/home/me/app/`.\n" in text
    assert "- `a/x.py:1`\n- `y.py`, range `other`\n" in text
    apart = samples.launch_bound_finding(where=(*places, samples.Place(file="/opt/z.py")))
    text = markdown.render(base.model_copy(update={"findings": (apart,), "minor": ()}))
    assert "Paths are relative to" not in text
    assert "`/home/me/app/a/x.py:1`" in text


def test_the_loop_is_not_named_again_as_a_place() -> None:
    text = markdown.render(samples.launch_bound())
    assert "range `decode_token`\n" not in text
    assert "range `decode_token/sample`" in text


def test_without_a_loop_gains_are_of_the_recorded_work() -> None:
    gain = Gain(kind="upper_bound", basis="loop", loop=1, before_ms=4.0, after_ms=1.0, share=0.75)
    finding, loops = samples.launch_bound_finding(gain=gain), {1: loop(1, 1.0, source="unknown")}
    assert gain_words.headline(finding, loops) == "up to 75 % of the recorded work"
    assert gain_words.gain(finding, loops) == "**Gain, at most:** the recorded work goes from 4.00 ms to 1.00 ms."


def test_the_first_fix_has_none_above_it() -> None:
    gain = Gain(kind="expected", basis="loop", loop=1, before_ms=4.0, after_ms=1.0, share=0.75, cumulative_after_ms=0.9)
    assert "fixes above" not in gain_words.gain(samples.launch_bound_finding(rank=1, gain=gain), {1: loop(1, 1.0)})


def test_texts_that_no_template_marks_are_escaped_all_the_same() -> None:
    missing = samples.Unevaluated(code="<b>K01</b>", reason="no counters")
    text = markdown.render(samples.healthy().model_copy(update={"not_evaluated": (missing,)}))
    assert "<b>" not in text


def test_forty_times_the_same_is_written_once() -> None:
    notes = tuple(samples.Note(code="Q01", text=f"Warm-up of loop {n}.") for n in range(40))
    minor = tuple(samples.launch_bound_finding(code="D05", title="Small") for _ in range(40))
    nothing = samples.launch_bound_finding(code="M05", title="Nothing", gain=Gain(kind="upper_bound", basis="loop"))
    changes = {"notes": notes, "minor": (*minor, nothing)}
    text = markdown.render(samples.launch_bound().model_copy(update=changes))
    assert text.count("Warm-up of loop") == 2
    assert "- 38 more notes like the last." in text
    assert text.count("- Small") == 1
    assert "; and in 39 more loops (D05)" in text
    assert "- Nothing: fixing it would not shorten" in text


def test_neighbouring_codes_are_drawn_together() -> None:
    assert words.ranges(["A03", "A01", "A02", "C02", "H01", "H02", "M10", "M09", "M08"]) == [
        "A01–A03", "C02", "H01", "H02", "M08–M10",
    ]  # fmt: skip


def test_the_longest_kernels_stand_below_the_times() -> None:
    """Those of one name and operation together, others only in the sum; graphs recorded as a whole count as well."""
    of_library = "void at::native::elementwise_kernel<(int)4, at::native::{}_kernel_cuda(at::TensorIteratorBase &){}>"
    kernels = [
        KernelUse(name="gemm", launches=4, ms=0.5),
        *(KernelUse(name=of_library.format("exp", kind), launches=1, ms=0.3) for kind in ("", "::x")),
        KernelUse(name="", launches=9, ms=0.1, others=7),
    ]
    text = markdown.render(with_loops(loop(1, 1.0, kernels=kernels)))
    rows = [line for line in text.splitlines() if line.startswith(("| `gemm`", "| `elementwise"))]
    assert rows == [
        "| `elementwise_kernel (exp)` | 2 | 600 µs | 30 % |",
        "| `gemm` | 4 | 500 µs | 25 % |",
    ]


def test_graphs_recorded_as_a_whole_are_a_line() -> None:
    kernels, graphs = [KernelUse(name="gemm", launches=4, ms=0.5)], KernelUse(name="", launches=2, ms=1.5)
    text = markdown.render(with_loops(loop(1, 1.0, kernels=kernels, graphs=graphs)))
    assert "| CUDA graphs, recorded as one block each | 2 | 1.50 ms | 75 % |\n| `gemm` | 4 | 500 µs | 25 % |" in text


def test_one_kernel_is_no_list() -> None:
    text = markdown.render(with_loops(loop(1, 1.0, kernels=[KernelUse(name="gemm", launches=4, ms=0.5)])))
    assert "kernels that take most" not in text
