"""Two sides compared: verdicts and their intervals, refusals, kernels, findings; on synthetic reports, and repeats."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from captures import report_of
from comparing import BLUR, BUDGET_PARTS, KERNELS, SETTINGS, WAITING, between, finding, loop, report
from evaluation import corpus, packed
from gpudiag.cli import main
from gpudiag.compare import causes, change_state, compare, hidden_causes, loop_matching
from gpudiag.errors import GpudiagError
from gpudiag.model import Diff, Finding, Gain, Kernel, KernelUse, Leaf, Loop, Place, Report, Unevaluated, vocabulary
from gpudiag.report import diff as diffpage
from gpudiag.report import json_format

RECORDED_AGAIN = packed.recordings(corpus.ROOT / "fixtures" / "repeats")

# Verdicts.


def test_equal_work_that_takes_clearly_longer_is_a_regression() -> None:
    found = between(report(loop(10.0)), report(loop(13.0)))
    assert found.state == "regression"
    assert found.ratio is not None
    assert 1 < found.ratio.low < 1.3 < found.ratio.high
    assert found.text.startswith("Slower: an iteration of `step` takes")


def test_less_than_recordings_differ_by_is_noise() -> None:
    found = between(report(loop(10.0)), report(loop(10.2)))
    assert found.state == "noise"


def test_a_faster_host_bound_recording_may_be_profiler_overhead() -> None:
    slow = loop(10.0, budget=WAITING, calls=1500.0, launches=1200.0)
    found = between(report(slow), report(loop(7.0, budget=WAITING, calls=700.0)))
    assert found.state == "cannot_tell"
    assert "without the profiler would tell (`--iteration-time`" in found.text
    assert "--base" not in found.text, "is printed where that option does not exist"


def test_times_measured_without_the_profiler_settle_it() -> None:
    slow = loop(10.0, budget=WAITING, calls=1500.0, launches=1200.0)
    sides = report(slow), report(loop(7.0, budget=WAITING, calls=700.0))
    found = between(*sides, base_times={"": [5.1, 5.0, 5.2]}, head_times={"step": [3.9, 4.0, 3.8]})
    assert found.state == "improvement"
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(3.9 / 5.1, rel=0.01)
    assert found.loops[0].base.unprofiled_ms == pytest.approx((5.1, 5.0, 5.2))


def test_an_unprofiled_time_of_a_saved_report_is_preferred() -> None:
    found = between(report(loop(10.0, iteration_ms_unprofiled=5.0)), report(loop(10.0, iteration_ms_unprofiled=8.0)))
    assert found.state == "regression"


def test_same_work_recorded_slower_is_noise_when_host_bound() -> None:
    sides = [report(loop(ms, budget={"compute": 1 / ms, "idle_launch": 1 - 1 / ms})) for ms in (10.0, 14.0)]
    found = between(*sides)
    assert (found.state, found.loops[0].same_work) == ("noise", True)
    assert "would show" in found.text


def test_repeats_narrow_or_widen_the_interval() -> None:
    def width(base: Sequence[float], head: Sequence[float]) -> float:
        found = compare([report(loop(ms)) for ms in base], [report(loop(ms)) for ms in head], SETTINGS, BUDGET_PARTS)
        assert found.ratio is not None
        return math.log(found.ratio.high / found.ratio.low)

    one = width([10], [11])
    assert width([10, 10.02, 9.98, 10], [11, 11.02, 10.98, 11]) < one
    assert width([10, 12, 8.5, 10], [11, 13, 9.3, 11]) > one


def test_a_time_for_a_loop_that_is_not_there_is_refused() -> None:
    with pytest.raises(GpudiagError, match=r"--head-time names 'decode'.*step"):
        between(report(loop()), report(loop()), head_times={"decode": [3.0]})


# Laws.


@st.composite
def some_loop(draw: st.DrawFn) -> Loop:
    """Any loop that a report may hold: busy or idle in any mixture, with few calls or many, timed or not."""
    parts = {name: draw(st.floats(0.01, 1)) for name in ("compute", "exposed_copy", "idle_launch", "idle_other")}
    ms = draw(st.floats(1e-3, 1e4))
    return loop(
        ms,
        budget={name: part / sum(parts.values()) for name, part in parts.items()},
        calls=draw(st.floats(0, 1e4)),
        launches=draw(st.floats(0, 1e4)),
        iteration_ms_unprofiled=draw(st.none() | st.floats(0.3 * ms, ms)),
        kernels=tuple(KernelUse(name=f"k{n}", launches=draw(st.floats(0.1, 100)), ms=ms / 9) for n in range(3)),
    )


SIDE = st.lists(some_loop(), min_size=1, max_size=3)


def reports(loops: Sequence[Loop]) -> list[Report]:
    return [report(one) for one in loops]


@given(SIDE)
def test_reports_against_themselves_are_noise_around_no_change(side: list[Loop]) -> None:
    found = compare(reports(side), reports(side), SETTINGS, BUDGET_PARTS)
    assert found.state == "noise"
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(1)
    assert math.log(found.ratio.high) == pytest.approx(-math.log(found.ratio.low))


@given(SIDE, SIDE)
def test_swapping_the_sides_inverts_the_answer(base: list[Loop], head: list[Loop]) -> None:
    one, other = (compare(reports(a), reports(b), SETTINGS, BUDGET_PARTS) for a, b in ((base, head), (head, base)))
    assert one.ratio is not None
    assert other.ratio is not None
    assert one.ratio.value == pytest.approx(1 / other.ratio.value)
    assert (one.ratio.low, one.ratio.high) == pytest.approx((1 / other.ratio.high, 1 / other.ratio.low))
    mirror = {"improvement": "regression", "regression": "improvement"}
    assert one.state == mirror.get(other.state, other.state)


@given(SIDE, SIDE)
def test_the_interval_is_one_and_holds_what_was_measured(base: list[Loop], head: list[Loop]) -> None:
    ratio = compare(reports(base), reports(head), SETTINGS, BUDGET_PARTS).ratio
    assert ratio is not None
    assert 0 < ratio.low <= ratio.value <= ratio.high < math.inf


# Refusals.


@pytest.mark.parametrize(
    ("base", "head", "why"),
    [
        (report(loop(), devices=("GPU A",)), report(loop(), devices=("GPU B",)), "`GPU A` and head on `GPU B`"),
        (report(loop(), devices=("A", "A")), report(loop(), devices=("A",)), "base ran on 2 GPUs and head on 1 GPU"),
        (report(kernels=(Kernel(name="k", launches=1, duration_ms=1.0),)), report(loop()), "kernel profiles"),
        (report(loop()), report(), "head shows nothing to compare"),
        (report(loop()), report(loop(name="eval", nvtx_path="eval")), "no loop of base (`step`) was found"),
        (
            report(loop()),
            report(loop(kernels=(BLUR,)), frameworks=("cuda",)),
            "two programs",
        ),
        (
            report(loop(), frameworks=("cuda",), programs=("sort",)),
            report(loop(kernels=(BLUR,)), frameworks=("cuda",), programs=("blur",)),
            "the processes have other names: these look like two programs",
        ),
        (
            report(kernels=tuple(Kernel(name=name, launches=1, duration_ms=1.0) for name in "ab")),
            report(kernels=(Kernel(name="c", launches=1, duration_ms=1.0),)),
            "no kernel was measured at one launch size on both sides",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused_with_the_reason(base: Report, head: Report, why: str) -> None:
    found = between(base, head)
    assert found.state == "incomparable"
    assert why in found.text
    assert found.ratio is None


def test_a_long_name_does_not_make_a_long_sentence() -> None:
    names = (f"{'<' * 300}a", f"{'<' * 300}b")
    kernels = [(KernelUse(name=name, launches=1, ms=1.0),) for name in names]
    loops = [
        loop(name=name, nvtx_path=None, source="period", kernels=uses)
        for name, uses in zip(names, kernels, strict=True)
    ]
    found = between(*(report(one) for one in loops))
    assert "are these two programs?" in found.text
    assert len(found.text) < 450


def test_other_kernels_of_the_same_name_cause_a_warning() -> None:
    found = between(report(loop()), report(loop(4.0, kernels=(KernelUse(name="fused", launches=1, ms=3.5),))))
    assert found.state == "improvement"
    assert any("two programs" in note for note in found.notes)


def test_another_part_of_the_run_is_reported() -> None:
    whole = {"span_ms": 9.0, "busy_share": 0.5, "gpus": 2, "gpu_ops": 100, "processes": 2}
    ranks = [report(loop(), selection={"text": "Synthetic.", "ranks": (rank,), "whole": whole}) for rank in (0, 1)]
    assert "rank 0 before, rank 1 now" in between(*ranks).notes[0]
    assert "all of it before, rank 1 now" in between(report(loop()), ranks[1]).notes[0]
    assert not between(ranks[1], ranks[1]).notes


def test_another_clock_is_reported() -> None:
    found = between(report(loop(), clocks_mhz=(1980.0,)), report(loop(), clocks_mhz=(1755.0,)))
    assert any("1,980 MHz before, 1,755 MHz now" in note for note in found.notes)


def test_loops_without_nvtx_are_matched_by_their_kernels() -> None:
    base = loop(name="every gemm", nvtx_path=None, source="period")
    found = between(report(base), report(loop(9.9, name="every relu", nvtx_path=None, source="period")))
    assert [(change.name, change.head_name, change.matched_by) for change in found.loops] == [
        ("every gemm", "every relu", "kernels")
    ]
    half = loop(5.0, name="every relu", nvtx_path=None, source="period", launches=15.0)
    assert between(report(base), report(half)).state == "incomparable"  # an iteration of it is half the work


def test_loops_are_matched_by_their_markers() -> None:
    def one(number: int, name: str, kernel: str, ms: float, share: float) -> Loop:
        marked = {"nvtx_path": None, "source": "period", "marker": f"every {kernel}", "share_of_span": share}
        return loop(ms, id=number, name=name, **marked)

    base = report(one(1, "step", "gemm", 10.0, 0.6), one(2, "step 2", "scan", 8.0, 0.4))
    head = report(one(1, "step", "scan", 8.0, 0.6), one(2, "step 2", "gemm", 5.0, 0.4))
    found = between(base, head)
    assert {(change.name, change.head_name, change.matched_by) for change in found.loops} == {
        ("step", "step 2", "name"),
        ("step 2", "step", "name"),
    }


def test_a_finding_is_of_the_loop_that_its_side_names() -> None:
    def one(number: int, name: str, kernel: str, share: float) -> Loop:
        marked = {"nvtx_path": None, "source": "period", "marker": f"every {kernel}", "share_of_span": share}
        return loop(10.0, id=number, name=name, **marked)

    base = report(one(1, "step", "gemm", 0.6), one(2, "step 2", "scan", 0.4))
    head = report(one(1, "step", "scan", 0.6), one(2, "step 2", "gemm", 0.4), findings=[finding()])
    pairs = loop_matching.paired(base, head, SETTINGS)
    found = causes.changes(base, head, pairs, SETTINGS, {}, set())
    changed = {pair.base.name: hidden_causes.changed(pair, found) for pair in pairs}
    assert changed == {"step": False, "step 2": True}


def test_a_slower_loop_is_reported_beside_an_unchanged_one() -> None:
    long, short = loop(10.0, share_of_span=0.9), loop(1.0, id=2, name="eval", nvtx_path="eval", share_of_span=0.1)
    found = between(report(long, short), report(long, short.model_copy(update={"iteration_ms": 1.6})))
    assert found.state == "regression"
    assert "`eval`" in found.text


# Kernels.


def test_a_kernels_change_is_split_into_count_and_duration() -> None:
    head = (KernelUse(name="gemm", launches=15, ms=6.0), KernelUse(name="fused", launches=1, ms=1.0))
    found = between(report(loop()), report(loop(kernels=head))).loops[0].kernels
    gemm = next(kernel for kernel in found if kernel.name == "gemm")
    assert (gemm.by_count_ms, gemm.by_duration_ms) == pytest.approx((4.0, -6.0))  # 5 more of 0.8 ms; 15 of 0.4 less
    assert {kernel.name: kernel.state for kernel in found} == {"gemm": "changed", "relu": "gone", "fused": "new"}


def test_other_template_arguments_are_the_same_kernel() -> None:
    base = loop(kernels=(KernelUse(name="void tile<(int)32>(float *)", launches=1, ms=9.0),))
    head = loop(4.0, kernels=(KernelUse(name="void tile<(int)33>(float *)", launches=1, ms=3.0),))
    (kernel,) = between(report(base), report(head)).loops[0].kernels
    assert (kernel.state, kernel.renamed) == ("changed", "void tile<(int)33>(float *)")


def test_a_kernel_perhaps_among_the_others_is_not_new_nor_gone() -> None:
    head = loop(kernels=(KERNELS[0], KernelUse(name="", launches=50, ms=2.0, others=9)))
    assert between(report(loop()), report(head)).loops[0].kernels == ()


def test_profiled_kernels_are_compared_launch_by_launch() -> None:
    def page(ms: float, name: str = "filter") -> Report:
        return report(kernels=(Kernel(name=name, launches=3, duration_ms=ms, facts={"limit": "l2", "busy_pct": 40}),))

    assert between(page(0.8), page(0.3)).state == "improvement"
    assert between(page(0.8), page(0.81)).state == "noise"
    renamed = between(page(0.8, "slow"), page(0.3, "fast")).profiles[0]
    assert (renamed.state, renamed.matched_by) == ("improvement", "only one")


def test_another_launch_size_is_other_work_unless_all_match() -> None:
    def page(*kernels: tuple[str, int, float]) -> Report:
        return report(
            kernels=tuple(Kernel(name=n, launches=1, duration_ms=ms, grid=grid, block=256) for n, grid, ms in kernels)
        )

    found = between(page(("sum", 4, 0.01), ("slow_sum", 4096, 1.0)), page(("sum", 4096, 0.2)))
    assert found.state == "incomparable"
    assert between(page(("sum", 1, 1.0)), page(("sum", 132, 0.2))).state == "improvement"
    replaced = between(page(("sum", 4, 0.01), ("slow", 99, 1.0)), page(("sum", 4, 0.01), ("fast", 99, 0.2)))
    assert replaced.state == "cannot_tell"
    both = page(("sum", 4, 0.01), ("sum", 4096, 1.0))
    assert [change.base_ms for change in between(both, both).profiles] == pytest.approx([1.0, 0.01])


# Findings.


def states(
    base: Sequence[Finding], head: Sequence[Finding], ms: tuple[float, float] = (10.0, 10.0), **changes: Any
) -> list[tuple[str, str]]:
    after = report(loop(ms[1]), findings=head).model_copy(update=changes)
    return [(f.code, f.state) for f in between(report(loop(ms[0]), findings=base), after).findings]


def test_findings_are_new_gone_and_unchanged() -> None:
    other = finding("M01", fingerprint="bb")
    assert states([finding()], [finding(), other]) == [("M01", "new"), ("S01", "unchanged")]
    assert states([finding(), other], [other]) == [("S01", "gone"), ("M01", "unchanged")]


def test_a_finding_whose_lines_moved_is_the_same_one() -> None:
    moved = finding(fingerprint="cc", where=(Place(file="/b/train.py", line=99, function="step"),))
    assert states([finding()], [moved]) == [("S01", "unchanged")]


def small() -> Finding:
    return finding(gain=Gain(kind="expected", basis="loop", loop=1, before_ms=10.0, after_ms=9.8, share=0.02))


def test_a_smaller_finding_is_better_even_below_the_gate() -> None:
    assert states([finding()], [], (14.0, 10.0), minor=(small(),)) == [("S01", "better")]
    assert states([small()], [finding()], (10.0, 14.0)) == [("S01", "worse")]


def test_where_the_verdict_is_noise_no_fix_is_worth_more_or_less() -> None:
    assert states([finding()], [small()]) == [("S01", "unchanged")]
    assert states([small()], [finding()]) == [("S01", "unchanged")]


def launches(share: float, ms: float) -> Finding:
    gain = Gain(kind="expected", basis="loop", loop=1, before_ms=ms, after_ms=ms * (1 - share), share=share)
    return finding("H01", fingerprint="hh", gain=gain)


def slower_launches(base_idle: float, head_idle: float, *, gone: bool = False) -> str:
    """A wait of 7 ms that comes or goes beside launches that cost as many ms as given; how H01 is called."""
    waiting = {"compute": 6.0, "idle_sync": 7.0, "idle_launch": base_idle}
    free = {"compute": 6.0, "idle_launch": head_idle}
    sides = []
    for parts, found in ((waiting, finding()), (free, launches(0.25, sum(free.values())))):
        ms = sum(parts.values())
        budget = {name: part / ms for name, part in parts.items()}
        sides.append(report(loop(ms, budget=budget), findings=[found]))
    summary = between(*(reversed(sides) if gone else sides)).findings
    assert next(f.state for f in summary if f.code == "S01") == ("new" if gone else "gone")
    return next(f.state for f in summary if f.code == "H01")


def test_a_cause_that_another_one_hid_is_not_called_new_or_gone() -> None:
    assert slower_launches(3.5, 3.7) == "now_visible"
    assert slower_launches(3.5, 3.7, gone=True) == "no_longer_visible"
    assert slower_launches(0.1, 3.7) == "new"
    assert slower_launches(0.1, 3.7, gone=True) == "gone"


@pytest.mark.capture
@pytest.mark.parametrize(("base", "head"), [("slow", "fixed"), ("fixed", "slow")])
def test_a_real_wait_goes_and_slow_launches_remain(base: str, head: str) -> None:
    folder = corpus.CAPTURES / "item_every_stage"
    found = between(*(report_of(packed.stored(folder / side)) for side in (base, head)))
    expected = {"S01": "gone", "H01": "better"} if base == "slow" else {"S01": "new", "H01": "worse"}
    assert {f.code: f.state for f in found.findings} == expected


# The time tree.


def divided(ms: float, changes: dict[str, Any] | None = None, **shares: float) -> Loop:
    """A loop whose iteration spends these parts in these leaves, and the rest computing."""
    leaves = {"computing": 1 - sum(shares.values())} | shares
    budget: dict[str, float] = {}
    for leaf, share in leaves.items():
        part = vocabulary.LEAVES[leaf].part
        budget[part] = budget.get(part, 0.0) + share
    values = {"budget": budget, "tree": {leaf: Leaf(share=share) for leaf, share in leaves.items()}}
    return loop(ms, **(values | (changes or {})))


def changed(found: Diff) -> list[tuple[str, float, float]]:
    """The leaves that changed beyond noise: name, ms before, ms now."""
    return [(leaf.leaf, round(leaf.base_ms, 2), round(leaf.head_ms, 2)) for leaf in found.loops[0].tree if leaf.changed]


@pytest.mark.capture
def test_a_real_fix_shrinks_the_leaf_that_it_is_about() -> None:
    """Values are read back after every stage, then no more: the waits go, the launches take as long as before."""
    folder = corpus.CAPTURES / "item_every_stage"
    sides = [report_of(packed.stored(folder / side)) for side in ("slow", "fixed")]
    found = between(*sides)
    wait = sides[0].run.loops[0].tree["sync"].share * sides[0].run.loops[0].iteration_ms
    assert wait > 2.5
    assert changed(found) == [("sync", round(wait, 2), 0.0)]
    said = "Changed beyond noise, in an iteration as recorded: idle after the host waited for the GPU, 2.96 ms → 0."
    assert said in diffpage.markdown(found)
    assert said in diffpage.text(found)
    assert [(leaf, now, before) for leaf, before, now in changed(between(*reversed(sides)))] == changed(found)


def test_leaves_come_by_the_size_of_their_change() -> None:
    found = between(report(divided(10.0, sync=0.2, input=0.5)), report(divided(3.0, sync=0.01)))
    assert changed(found) == [("input", 5.0, 0.0), ("sync", 2.0, 0.03)]
    assert [leaf.leaf for leaf in found.loops[0].tree] == ["input", "sync", "computing"]


@pytest.mark.capture
@pytest.mark.parametrize(
    ("leaf", "before", "now", "named"),
    [
        ("computing", 0.52, 0.505, False),
        ("computing", 0.52, 0.48, True),
        ("exposed_copy", 0.52, 0.47, False),  # they depend on where the host's memory lies
        ("exposed_copy", 0.52, 0.43, True),
        ("sync", 0.4, 0.25, False),  # the profiler may have slowed one recording more than the other
        ("sync", 0.4, 0.2, True),
        ("submitting", 0.3, 0.0, False),  # what it added to the whole iteration may stand in this leaf
        ("submitting", 0.5, 0.0, True),
        ("sync", 0.018, 0.0, False),  # gone for sure, and not worth a word
        ("sync", 0.022, 0.0, True),
    ],
)
def test_a_leaf_is_named_beyond_what_recordings_differ_by(leaf: str, before: float, now: float, named: bool) -> None:
    """Of 10 ms an iteration a third is idle for other reasons; head makes other calls, and the leaf takes less."""
    rest = "sync" if leaf != "sync" else "blocked"
    shares = [{rest: 0.34} | ({} if leaf == "computing" else {leaf: part}) for part in (before, now)]
    base = divided(10.0, **shares[0])
    left = 1 - before + now
    head = divided(10.0 * left, {"calls": 60.0}, **{name: share / left for name, share in shares[1].items()})
    for sides in ((base, head), (head, base)):
        names = [name for name, *_ in changed(between(*map(report, sides)))]
        assert (leaf in names) == named


def test_repeats_that_differ_as_much_name_no_leaf() -> None:
    base = [report(divided(ms, sync=0.4)) for ms in (10.0, 10.0, 10.0)]
    other = {"calls": 60.0}
    head = [report(divided(ms, other, sync=share)) for ms, share in ((7.0, 0.1), (7.1, 0.1), (9.9, 0.4))]
    assert "sync" in [leaf for leaf, *_ in changed(compare(base, head[:2], SETTINGS, BUDGET_PARTS))]
    assert "sync" not in [leaf for leaf, *_ in changed(compare(base, head, SETTINGS, BUDGET_PARTS))]


def test_under_noise_no_leaf_changed() -> None:
    found = between(report(divided(10.0, sync=0.1)), report(divided(10.1, submitting=0.1)))
    assert (found.state, changed(found)) == ("noise", [])
    assert "hanged beyond noise" not in diffpage.markdown(found)


def test_leaves_of_equal_work_are_compared() -> None:
    """Four iterations became one: each leaf is four times as long, and only the waits are less than that."""
    unnamed = {"source": "period", "nvtx_path": None}
    four = [KernelUse(name=use.name, launches=4 * use.launches, ms=4 * use.ms) for use in KERNELS]
    more = unnamed | {"launches": 120.0, "calls": 160.0, "kernels": four}
    base, head = divided(10.0, unnamed | {"iterations": 80}, sync=0.3), divided(29.0, more, sync=0.03)
    found = between(report(base), report(head))
    assert found.loops[0].ratio_of == "equal work"
    assert changed(found) == [("sync", 3.0, 0.87)]
    said = "as an iteration before as recorded: idle after the host waited for the GPU, 3.00 ms → 218 µs."
    assert said in diffpage.markdown(found)


@pytest.mark.parametrize("old", ["base", "head", "both"])
def test_a_report_without_a_tree_is_compared_by_its_budget(old: str, tmp_path: Path) -> None:
    ms = {"base": 10.0, "head": 5.0}
    sides = {side: divided(ms[side], {"tree": {}} if old in (side, "both") else {}, submitting=0.7) for side in ms}
    paths = [saved(tmp_path, f"{side}.json", report(one)) for side, one in sides.items()]
    for path in paths:  # as an older version wrote it: without the key
        data = json.loads(Path(path).read_text())
        if not data["run"]["loops"][0]["tree"]:
            del data["run"]["loops"][0]["tree"]
            Path(path).write_text(json.dumps(data))
    page = CliRunner().invoke(main, ["diff", *paths, "--format", "markdown"])
    assert page.exit_code == 0, page.output
    assert "| **idle, the host is launching work**" in page.stdout
    assert "| 7.00 ms | 3.50 ms | −3.50 ms |" in page.stdout
    assert "hanged beyond noise" not in page.stdout
    data = json.loads(CliRunner().invoke(main, ["diff", *paths, "--format", "json"]).stdout)
    assert data["loops"][0]["tree"] == []
    assert data["loops"][0]["budget"]


def test_a_cause_that_was_not_looked_for_is_not_called_gone() -> None:
    blind = (Unevaluated(code="S01", reason="no CUDA calls were recorded"),)
    assert states([finding()], [], not_evaluated=blind) == [("S01", "not_evaluated")]


def test_a_cause_that_was_looked_for_is_gone_though_time_is_left() -> None:
    unsure = (Unevaluated(code="S01", reason="for 9 % the GPU idles, which no finding explains", undecided=True),)
    assert states([finding()], [], not_evaluated=unsure) == [("S01", "gone")]


# Real repeats, and the command line.


@pytest.mark.capture
@pytest.mark.parametrize("again", RECORDED_AGAIN, ids=lambda path: f"{path.parent.name}-{packed.stem(path)}")
def test_the_same_program_recorded_again_is_noise_both_ways(again: Path) -> None:
    first = report_of(packed.stored(corpus.CAPTURES / again.parent.name / packed.stem(again)))
    second = report_of(again)
    for base, head in ((first, second), (second, first)):
        found = between(base, head)
        assert found.state == "noise"
        assert changed(found) == []
        assert found.ratio is not None
        assert found.ratio.low < 1 < found.ratio.high


def saved(folder: Path, name: str, report: Report) -> str:
    path = folder / name
    path.write_text(json_format.render(report))
    return str(path)


def test_a_regression_fails_only_where_asked(tmp_path: Path) -> None:
    sides = saved(tmp_path, "a.json", report(loop(10.0))), saved(tmp_path, "b.json", report(loop(14.0)))
    summary = CliRunner().invoke(main, ["diff", *sides])
    assert (summary.exit_code, summary.stdout.startswith("regression: an iteration of 'step'")) == (0, True)
    assert CliRunner().invoke(main, ["diff", *sides, "--fail-on-regression"]).exit_code == 1
    assert CliRunner().invoke(main, ["diff", *reversed(sides), "--fail-on-regression"]).exit_code == 0


@pytest.mark.parametrize(
    ("option", "exit_code", "why"),
    [
        (["--fail-on-regression"], 0, ""),
        (["--fail-on", "regression"], 0, ""),
        (["--fail-on", "cannot-tell"], 1, "fails: it cannot be known whether head is slower"),
        (["--fail-on", "regression", "--fail-on", "new-high"], 1, "fails: new and of high severity: S01 A cause"),
    ],
)  # fmt: skip
def test_what_is_unknown_fails_where_asked_and_says_why(
    tmp_path: Path, option: list[str], exit_code: int, why: str
) -> None:
    base = report(loop(10.0, budget=WAITING, calls=700.0))
    head = report(loop(10.5, budget=WAITING, calls=1500.0), findings=[finding()])
    sides = saved(tmp_path, "a.json", base), saved(tmp_path, "b.json", head)
    summary = CliRunner().invoke(main, ["diff", *sides, *option])
    assert summary.stdout.startswith("cannot tell")
    assert summary.exit_code == exit_code
    assert why in summary.stderr
    assert ("fails" in summary.stderr) == bool(why)


def test_a_finding_of_less_than_high_severity_is_no_new_high_one(tmp_path: Path) -> None:
    head = report(loop(10.0), findings=[finding(severity="medium")])
    sides = saved(tmp_path, "a.json", report(loop(10.0))), saved(tmp_path, "b.json", head)
    assert CliRunner().invoke(main, ["diff", *sides, "--fail-on", "new-high"]).exit_code == 0


def test_a_refusal_exits_with_2_and_still_delivers_the_json(tmp_path: Path) -> None:
    sides = saved(tmp_path, "a.json", report(loop())), saved(tmp_path, "b.json", report(loop(), devices=("GPU B",)))
    out = tmp_path / "diff.json"
    summary = CliRunner().invoke(main, ["diff", *sides, "-o", str(out)])
    assert summary.exit_code == 2
    assert "different GPU models" in summary.stderr
    assert json.loads(out.read_text())["state"] == "incomparable"


def test_repeats_and_times_are_taken_from_the_command_line(tmp_path: Path) -> None:
    sides = [saved(tmp_path, f"{ms}.json", report(loop(ms))) for ms in (10.0, 10.1, 9.0, 9.1)]
    words = ["diff", sides[0], sides[2], "--base", sides[1], "--head", sides[3], "--format", "json"]
    found = json.loads(CliRunner().invoke(main, words).stdout)
    assert (found["base"]["reports"], found["head"]["reports"]) == (2, 2)
    timed = [*words, "--base-time", "8ms", "--base-time", "8.1ms", "--head-time", "step=8.05ms"]
    found = json.loads(CliRunner().invoke(main, timed).stdout)
    assert found["loops"][0]["base"]["unprofiled_ms"] == pytest.approx([8.0, 8.1])
    assert found["state"] == "noise"


def test_only_thresholds_of_the_comparison_can_be_set(tmp_path: Path) -> None:
    sides = saved(tmp_path, "a.json", report(loop(10.0))), saved(tmp_path, "b.json", report(loop(13.0)))
    lenient = CliRunner().invoke(main, ["diff", *sides, "--set", "settings.diff_least=0.5"])
    assert lenient.stdout.startswith("noise")
    assert CliRunner().invoke(main, ["diff", *sides, "--set", "H01.min_share=0.5"]).exit_code == 2


# Thresholds and times that make no sense, and reports that tell less.


@pytest.mark.parametrize(
    "wrong",
    [
        *("least=1", "least=-0.1", "narrow=-1", "prior=0", "most_slowed=0", "most_slowed=1e308", "host=1000"),
        *("gpu=1000", "copy=1e308", "unlike=1e308", "timed_gpu=1000", "least_host=2", "same_busy=-1"),
    ],
)
def test_thresholds_of_a_comparison_have_a_range(wrong: str, tmp_path: Path) -> None:
    files = [saved(tmp_path, f"{name}.json", report(loop(10.0))) for name in ("base", "head")]
    result = CliRunner().invoke(main, ["diff", *files, "--set", f"settings.diff_{wrong}"])
    assert result.exit_code == 2
    assert "makes no sense: give " in result.stderr


@pytest.mark.parametrize("name", [name for name in SETTINGS if name.startswith(change_state.PREFIX)])
def test_the_ends_of_each_range_can_be_compared_with(name: str) -> None:
    sides = loop(10.0, budget=WAITING), loop(7.0, budget=WAITING, calls=900.0)
    change_state.check(SETTINGS)
    for value in change_state.RANGES.get(name, change_state.SHARE):
        settings = {**SETTINGS, name: value}
        change_state.check(settings)
        for base, head in (sides, sides[::-1], (sides[0], sides[0])):
            assert compare([report(base)], [report(head)], settings, BUDGET_PARTS).ratio


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"base_times": {"": [3.9]}}, "--base-time .* 3.90 ms .* is less than the 9.70 ms in which the GPU works"),
        ({"head_times": {"step": [9900.0]}}, "--head-time .* is 1,000 times the recorded .* only 20 were recorded"),
        ({"head_times": {"step": [15.0]}}, "--head-time .* is 1.5 times the recorded"),
    ],
)
def test_a_time_that_cannot_be_the_loops_is_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(GpudiagError, match=why):
        between(report(loop(10.0)), report(loop(9.9)), **given)


def test_a_given_time_of_several_iterations_is_divided() -> None:
    found = between(report(loop(10.0)), report(loop(9.9)), base_times={"": [79.8, 80.4]}, head_times={"": [9.9]})
    assert found.loops[0].base.unprofiled_ms == pytest.approx((9.975, 10.05))
    assert "`--base-time` 80.1 ms is 8 times the iteration found" in found.notes[0]


@pytest.mark.parametrize("lacking", [{"launches": 0.0}, {"calls": 0.0}, {"kernels": ()}])
def test_work_missing_from_a_report_is_not_called_different(lacking: dict[str, Any]) -> None:
    full, old = loop(10.0, budget=WAITING), loop(7.0, budget=WAITING, **lacking)
    for base, head in ((full, old), (old, full)):
        found = between(report(base), report(head))
        assert found.loops[0].same_work is None
        assert found.state == "cannot_tell"
        assert "whether both do the same work is not recorded" in found.text
        assert "different work" not in found.text
    other = loop(7.0, budget=WAITING, **{"launches": 90.0, "calls": 90.0} | lacking)
    assert between(report(full), report(other)).loops[0].same_work is False
