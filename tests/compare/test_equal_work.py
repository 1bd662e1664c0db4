"""Comparisons of loops that do unequal work, of causes that are gone, and what is called noise."""

from __future__ import annotations

from typing import Any

import pytest

from captures import report_of
from comparing import WAITING, between, finding, loop, report
from evaluation import corpus
from evaluation.packed import stored
from gpudiag.model import Gain, Loop, Report
from gpudiag.report import diff

pytestmark = pytest.mark.capture


def work(ms: float, iterations: int, times: float = 1, **changes: Any) -> Loop:
    """A loop whose iteration launches two kernels `times` as often."""
    uses = (("gemm", 10 * times, 0.7 * ms, 10 * times * 4096), ("relu", 20 * times, 0.25 * ms, 20 * times * 256))
    kernels = [{"name": n, "launches": count, "ms": took, "threads": threads} for n, count, took, threads in uses]
    return loop(ms, iterations=iterations, kernels=kernels, launches=30 * times, calls=40 * times, **changes)


def rows(ms: float, iterations: int, threads: float, source: str = "period") -> Report:
    """A loop that nobody annotated: one launch of one kernel, of that size."""
    kernels = [{"name": "scale", "launches": 1, "ms": 0.9 * ms, "threads": threads}]
    sizes = {"kernels": kernels, "launches": 1, "calls": 2, "iterations": iterations, "source": source}
    return report(loop(ms, name="every scale", nvtx_path=None, **sizes))


def test_a_batch_made_of_many_rows_is_not_slower_than_a_row() -> None:
    one_by_one, together = rows(2.0, 1000, 1e3), rows(34.0, 1, 1e6, "unknown")
    found = between(one_by_one, together)
    assert found.state == "improvement"
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(34.0 / 2000.0)
    assert between(together, one_by_one).state == "regression"


def test_a_larger_launch_that_may_be_more_work_is_left_open() -> None:
    found = between(rows(2.0, 100, 1e3), rows(34.0, 100, 1e6))
    assert found.state == "cannot_tell"
    assert "does 1,000 times the work" in found.text
    assert "59 times as fast" in found.text


@pytest.mark.parametrize(("ms", "state"), [(79.0, "noise"), (60.0, "improvement"), (110.0, "regression")])
def test_iterations_fused_into_one_compare_as_equal_work(ms: float, state: str) -> None:
    found = between(report(work(10.0, 80)), report(work(ms, 10, 8)))
    assert found.state == state
    assert "8 times the work" in found.text
    assert found.loops[0].same_work is False
    again = between(report(work(ms, 10, 8)), report(work(10.0, 80)))
    mirror = {"improvement": "regression", "regression": "improvement"}
    assert again.state == mirror.get(state, state)


def test_more_work_in_as_many_annotated_iterations_is_left_open() -> None:
    found = between(report(work(10.0, 80)), report(work(76.0, 80, 8)))
    assert found.state == "cannot_tell"
    assert "takes 5.0 % less; if not, an iteration takes 7.6 times as much" in found.text


def test_loops_recognised_by_half_of_their_work_are_compared() -> None:
    unnamed = {"name": "every gemm", "nvtx_path": None, "source": "period"}
    found = between(report(work(10.0, 40, **unnamed)), report(work(5.1, 80, 0.5, **unnamed)))
    assert (found.state, found.loops[0].work) == ("noise", 0.5)


def test_a_split_in_more_launches_is_the_same_work() -> None:
    halves = [{"name": "gemm", "launches": 20, "ms": 9.0, "threads": 40960}]
    whole = [{"name": "gemm", "launches": 10, "ms": 9.0, "threads": 40960}]
    sides = [report(loop(ms, kernels=kernels)) for ms, kernels in ((10.0, whole), (12.5, halves))]
    assert between(*sides).state == "regression"


def test_other_kernels_in_far_fewer_iterations_are_left_open() -> None:
    before = report(loop(1.0, iterations=10000))
    after = report(loop(10.0, iterations=17, kernels=[{"name": "fused", "launches": 1, "ms": 9.0}], launches=1.0))
    found = between(before, after)
    assert found.state == "cannot_tell"
    assert "10,000 of them were recorded before and 17 now" in found.text


def test_the_page_shows_the_time_of_equal_work() -> None:
    summary = diff.markdown(between(report(work(10.0, 80)), report(work(60.0, 10, 8))))
    row = next(line for line in summary.splitlines() if "as much work as an iteration before" in line)
    assert "7.12 ms to 7.66 ms" in row
    assert "\u221233 % to \u221216 %" in row


# Causes that came or went with the time.


def paced(ms: float, calls: float, *codes: str, **changes: Any) -> Report:
    gain = Gain(kind="expected", basis="loop", loop=1, before_ms=ms, after_ms=0.8 * ms, share=0.2)
    findings = [finding(code, fingerprint=code, gain=gain) for code in codes]
    budget = {"compute": 3.0 / ms, "idle_sync": 1 - 3.0 / ms}
    return report(loop(ms, budget=budget, calls=calls, **changes), findings=findings)


@pytest.mark.parametrize("ms", [8.5, 6.6])
def test_a_cause_gone_with_its_time_is_an_improvement(ms: float) -> None:
    found = between(paced(10.0, 700, "S01"), paced(ms, 699))
    assert found.state == "improvement"
    assert found.loops[0].causes == ("S01",)
    assert "a cause that explains it is gone: A cause (S01)" in found.text
    assert between(paced(ms, 699), paced(10.0, 700, "S01")).state == "regression"


def test_a_cause_that_came_instead_leaves_it_open() -> None:
    assert between(paced(10.0, 700, "S01"), paced(8.5, 699, "A01")).state == "cannot_tell"


def test_one_call_less_is_not_the_same_work() -> None:
    found = between(paced(10.0, 40), paced(8.5, 39))
    assert (found.state, found.loops[0].same_work) == ("cannot_tell", False)


def test_copying_other_amounts_is_not_the_same_work() -> None:
    found = between(paced(10.0, 40, copied_bytes=4e6), paced(8.5, 40, copied_bytes=8e6))
    assert (found.state, found.loops[0].same_work) == ("cannot_tell", False)


def test_noise_is_stated_with_its_numbers() -> None:
    found = between(report(loop(10.0)), report(loop(10.2)))
    assert found.state == "noise"
    assert "which is 2.0 % more. Had nothing changed, it could come out as anything from" in found.text
    host = between(report(loop(10.0, budget=WAITING)), report(loop(8.5, budget={"compute": 0.353, "idle_sync": 0.647})))
    assert (host.state, host.loops[0].same_work) == ("noise", True)
    assert "15 % less" in host.text


@pytest.mark.parametrize("slug", ["item_every_stage", "monte_carlo_free_all_blocks"])
def test_a_real_fix_of_a_host_paced_loop_is_an_improvement(slug: str) -> None:
    slow, fixed = (report_of(stored(corpus.CAPTURES / slug / side)) for side in ("slow", "fixed"))
    assert between(slow, fixed).state == "improvement"
    assert between(fixed, slow).state == "regression"
