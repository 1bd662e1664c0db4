"""The page's tables of time by line and by kernel."""

from __future__ import annotations

import re

import samples
from gpudiag.model import KernelUse, Loop, Phase, Place, Report
from gpudiag.report.html import page, tables

LONG = f"void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::Meta<(int)2>, {'float, ' * 12}"


def with_times(**changes: object) -> Report:
    """Synthetic: two lines, kernels and some more in the loop of a launch-bound report."""
    report = samples.launch_bound()
    line = Phase(name="step", place=Place(file="decode.py", line=31, function="step"), share=0.6, computing_share=0.1)
    span = Phase(name="sample", place=Place(nvtx="decode_token / sample"), share=0.2, computing_share=0.05)
    uses = (
        KernelUse(name="gemm", launches=4, ms=0.8),
        KernelUse(name=f"{LONG}std::plus>", launches=2, ms=0.1),
        KernelUse(name=f"{LONG}std::divides>", launches=2, ms=0.1),
        KernelUse(name="", launches=9, ms=0.05, others=7),
    )
    loop = report.run.loops[0].model_copy(update={"phases": (line, span), "kernels": uses, **changes})
    return report.model_copy(update={"run": report.run.model_copy(update={"loops": (loop,)})})


def test_a_line_of_a_phase_and_of_a_finding_is_one_row() -> None:
    report = with_times()
    rows = {re.sub("<[^>]*>", "", row.place): row for row in tables.by_line(report, "").rows}
    assert list(rows)[:2] == ["decode.py:31 calls step", "range decode_token / sample"]
    assert rows["decode.py:31 calls step"].time == "3.42 ms"  # 0.6 of 5.7 ms
    assert rows["decode.py:31 calls step"].findings == [(1, " (93 % of its cost)")]
    only_named = rows["decode.py:44 in sample"]
    assert (only_named.time, only_named.share) == ("", "") and only_named.findings[0][0] == 1


def test_each_kernel_has_its_time_and_full_name() -> None:
    table = tables.by_kernel(with_times())
    gemm, *alike, more = table.rows
    assert (gemm.time, gemm.share, gemm.launches, gemm.one) == ("800 µs", "14 %", "4", "200 µs")
    assert [row.full for row in alike] == [f"{LONG}std::plus>", f"{LONG}std::divides>"]
    assert [row.short[-9:] for row in alike] == ["td::plus>", ":divides>"]
    assert all(len(row.short) <= 90 for row in alike)
    assert (more.short, more.full, more.one) == ("7 more kernels", "", "")
    assert not table.loops


def test_graphs_recorded_as_a_whole_are_a_row() -> None:
    first, *_ = tables.by_kernel(with_times(graphs=KernelUse(name="", launches=2, ms=1.5))).rows
    assert (first.short, first.full) == ("CUDA graphs, recorded as one block each", "")
    assert (first.time, first.share, first.launches, first.one) == ("1.50 ms", "26 %", "2", "750 µs")


def test_rows_name_their_loop_where_there_are_several() -> None:
    report = with_times()
    second: Loop = report.run.loops[0].model_copy(update={"id": 2, "name": "prefill"})
    both = report.model_copy(update={"run": report.run.model_copy(update={"loops": (*report.run.loops, second)})})
    text = page.render(both)
    assert '<th scope="col">loop</th>' in text and "<td>prefill</td>" in text
    assert "aria-sort" not in re.sub("<script>.*</script>|<style>.*</style>", "", text, flags=re.DOTALL)


def test_a_report_without_times_has_no_empty_tables() -> None:
    text = page.render(samples.kernel_only())
    assert 'id="by-kernel"' not in text and 'id="by-line"' not in text
    assert 'id="search"' in text  # the profiled kernels are searched


def test_the_script_makes_no_markup_of_what_a_capture_holds() -> None:
    script = page.render(with_times()).rsplit("<script>", 1)[1]
    assert "textContent" in script
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", script)


def test_hostile_names_stay_text_in_the_tables() -> None:
    evil = '"><img src=x onerror=alert(1)></script>'
    phase = Phase(name=evil, place=Place(file=evil, line=1, function=evil), share=0.5, computing_share=0.1)
    ranged = Phase(name=evil, place=Place(nvtx=evil), share=0.3, computing_share=0.1)
    text = page.render(with_times(name=evil, phases=(phase, ranged), kernels=(KernelUse(name=evil, launches=1, ms=1),)))
    assert "<img" not in text and "alert(1)&gt;" in text
