"""The time tree: its leaves, what findings claim of them, and what is shown of the rest."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from captures import labelled, report_of
from evaluation.corpus import ROOT, Case
from evaluation.packed import recording
from gpudiag.model import vocabulary
from gpudiag.report.markdown import render
from timelines import library, rows
from timelines import opened as timeline

WILD = ROOT / "fixtures" / "wild" / "captures"
NEAR = 0.001  # of a loop's time


@pytest.mark.capture
@pytest.mark.parametrize("case", [*labelled("slow"), *labelled("healthy")], ids=str)
def test_leaves_are_all_of_a_loops_time_and_never_claimed_twice(case: Case) -> None:
    for loop in report_of(*case.captures).run.loops:
        assert list(loop.tree) == [leaf for leaf in vocabulary.LEAVES if leaf in loop.tree]
        assert sum(leaf.share for leaf in loop.tree.values()) == pytest.approx(1)
        for name, leaf in loop.tree.items():
            assert 0 <= leaf.claimed <= leaf.share * (1 + 1e-9), name
            assert name != "computing" or not leaf.claimed


def busy(file: Path, start: int, end: int) -> float:
    """Return how long any kernel runs between two moments (ns), straight from the export.

    Gaps below settings.idle_noise_ns count as part of what they lie between.
    """
    noise = library().setting_values["idle_noise_ns"]
    con = sqlite3.connect(file)
    found = con.execute(
        'select max(start, ?), min("end", ?) from CUPTI_ACTIVITY_KIND_KERNEL where start < ? and "end" > ? order by 1',
        (start, end, end, start),
    ).fetchall()
    con.close()
    total, reached = 0, start
    for begin, until in found:
        total += max(0, until - max(begin, reached)) + (begin - reached if 0 < begin - reached < noise else 0)
        reached = max(reached, until)
    return total


@pytest.mark.capture
@pytest.mark.parametrize("name", ["cg_solver.host_scalars", "cufft_poisson.replan", "hf_trainer_gpt2.none"])
def test_computing_is_what_the_export_itself_says(tmp_path: Path, name: str) -> None:
    file = tmp_path / "capture.sqlite"
    file.write_bytes(recording(WILD / name).read_bytes())
    from gpudiag.prepare import opened

    with opened([file]) as (con, _, _):
        spans = rows(con, 'select loop, start, "end" from steady_interval order by loop')
        loop = spans[0]["loop"]
        [tree] = rows(
            con,
            "select sum(ns) as all_ns, sum(ns) filter (leaf = 'computing') as ns from loop_tree where loop = ?",
            loop,
        )
        offset = int(rows(con, "select clock_offset_ns as ns from input")[0]["ns"] or 0)
    own = [(span["start"] - offset, span["end"] - offset) for span in spans if span["loop"] == loop]
    share = sum(busy(file, *span) for span in own) / sum(end - start for start, end in own)
    assert tree["ns"] / tree["all_ns"] == pytest.approx(share, abs=0.01)


def test_the_budget_is_the_tree_in_fewer_words() -> None:
    with timeline({}, "loop_tree") as con:
        for leaf, words in vocabulary.LEAVES.items():
            assert rows(con, "select budget_category(?) as part", leaf) == [{"part": words.part}]


@pytest.mark.capture
def test_unexplained_time_is_shown_with_what_the_host_did() -> None:
    report = report_of(recording(WILD / "cupy_images.none"))
    loop = report.run.loops[0]
    left = {name: leaf.share - leaf.claimed for name, leaf in loop.tree.items() if name != "computing"}
    assert sum(left.values()) > library().setting_values["min_unclaimed_share"]
    assert loop.unclaimed
    for one in loop.unclaimed:
        assert one.share == pytest.approx(left[one.leaf])
        assert one.large == (one.share > library().setting_values["min_unclaimed_row"])
    assert loop.unclaimed[0].where[0].file
    text = render(report)
    assert "Without a fix so far:" in text
    assert (loop.unclaimed[0].where[0].function or "") in text.partition("Without a fix so far:")[2]


@pytest.mark.capture
def test_unexplained_time_leaves_the_causes_of_its_kind_open() -> None:
    explained = report_of(recording(WILD / "cg_solver.none"))
    assert not any(loop.unclaimed for loop in explained.run.loops)
    assert "H04" in explained.clear
    unexplained = report_of(recording(WILD / "cupy_images.none"))
    assert "submitting" in [one.leaf for one in unexplained.run.loops[0].unclaimed]
    assert "H04" not in unexplained.clear
    [rule] = [one for one in unexplained.not_evaluated if one.code == "H04"]
    assert "which no finding explains" in rule.reason
    assert rule.reason.endswith("so nothing of that kind can be ruled out") and "no sign" not in rule.reason


@pytest.mark.capture
def test_a_librarys_kernel_has_the_line_that_launched_it() -> None:
    report = report_of(recording(WILD / "cupy_images.none"))
    place = next(one for one in report.findings if one.code == "L01").where[0]
    assert (place.kernel, place.function) == ("cupy_var_core_float32", "sharpness")
    assert (place.file or "").endswith("cupy_images.py")


@pytest.mark.capture
def test_rules_about_kernels_cannot_see_into_graphs() -> None:
    report = report_of(ROOT / "fixtures" / "captures" / "healthy_graph_decode" / "healthy.columns")
    assert not {"L01", "P01"} & set(report.clear)
    assert "D05" in report.clear
    [rule] = [one for one in report.not_evaluated if one.code == "P01"]
    assert "runs inside CUDA graphs, whose kernels were not recorded" in rule.reason


@pytest.mark.capture
def test_a_healthy_timeline_says_how_few_warps_fill_it() -> None:
    report = report_of(ROOT / "fixtures" / "captures" / "healthy_dependency_chain" / "healthy.columns")
    assert "`stretch` takes 99.9 % and keeps 4 warps on each multiprocessor, where 64 fit" in report.verdict.text


@pytest.mark.capture
def test_a_note_explains_code_that_is_loaded_once() -> None:
    report = report_of(recording(WILD / "triton_moe.experts_by_mask"))
    [note] = [one for one in report.notes if one.code == "Q18"]
    leaf = report.run.loops[0].tree["compiling"]
    assert note.share == pytest.approx(leaf.claimed)
    assert leaf.share > library().setting_values["min_unclaimed_share"]
    assert "compiling" not in [one.leaf for one in report.run.loops[0].unclaimed]


@pytest.mark.slow
def test_time_that_no_finding_claims_names_its_line() -> None:
    loop = report_of(recording(WILD / "jax_fluid.eager_boundary")).run.loops[0]
    [working] = [one for one in loop.unclaimed if one.leaf == "host_work"]
    assert working.share > 0.9
    assert (working.where[0].function, working.where[0].line) == ("run", 153)


@pytest.mark.slow
def test_a_loader_that_pins_in_a_thread_is_explained() -> None:
    loop = report_of(recording(WILD / "accelerate_vit.none")).run.loops[0]
    assert loop.tree["input"].share > 0.1
    assert "input" not in [one.leaf for one in loop.unclaimed if one.large]


@pytest.mark.slow
def test_a_gain_beyond_its_leaf_has_a_reason() -> None:
    most, reasons = library().setting_values["more_than_leaf"], set()
    for name in ("hf_trainer_gpt2.param_norms", "gnn_sage.augment_on_host", "detector_train.no_workers"):
        report = report_of(recording(WILD / name))
        tree = report.run.loops[0].tree
        for finding in (finding for finding in report.findings if finding.leaf):
            assert (finding.also is not None) == (finding.gain.share - tree[finding.leaf or ""].share > most)
            reasons.add(finding.also)
    assert reasons >= {"profiler", "host_ahead", None}  # a longer part of a shorter iteration is no second effect


@pytest.mark.capture
@pytest.mark.parametrize(
    "name", ["cufft_poisson.host_forcing", "equinox_diffusion.none", "greedy_decode.host_confidence"]
)
def test_a_bound_on_host_work_leaves_the_gpu_its_own(name: str) -> None:
    report = report_of(recording(WILD / name))
    (loop,) = report.run.loops
    bounds = [one.gain for one in report.findings if one.code in ("D05", "M13") and one.gain.kind == "upper_bound"]
    assert bounds
    for gain in bounds:
        assert gain.after_ms is not None and gain.cumulative_after_ms is not None
        assert gain.cumulative_after_ms <= gain.after_ms * (1 + NEAR)
        assert gain.after_ms >= 0.985 * loop.tree["computing"].share * loop.iteration_ms
