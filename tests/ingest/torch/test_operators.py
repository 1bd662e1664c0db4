"""How much of the host's time between CUDA calls lies in operators that make such calls."""

from __future__ import annotations

from pathlib import Path

from torch_traces import call, event, of


def test_time_in_operators_that_launch_is_kept_for_each_call(tmp_path: Path) -> None:
    con = of(
        tmp_path, call("cudaLaunchKernel", 0, 10, 1),
        event("cpu_op", "aten::sort", 12, 8),  # launches nothing, and nor does what it calls
        event("cpu_op", "CompiledFunctionBackward", 30, 200), event("cpu_op", "aten::mm", 40, 40),
        event("cpu_op", "aten::empty", 45, 5), event("cpu_op", "aten::sort", 85, 7),
        call("cudaLaunchKernel", 60, 10, 2), call("cuLaunchKernel", 62, 4, 3), call("cudaLaunchKernel", 100, 10, 4),
        event("cpu_op", "aten::add", 225, 15), call("cudaLaunchKernel", 232, 2, 5),
        call("cudaLaunchKernel", 300, 10, 6), call("cudaLaunchKernel", 400, 10, 7, tid=77),
    )  # fmt: skip
    found = con.execute("select operators_before_ns from api_call where parent is null order by start").fetchall()
    # 10 to 60: from 30 on, without 5; 70 to 100: without 7; 110 to 232; 234 to 300: until 240
    assert found == [(0,), (25_000,), (23_000,), (122_000,), (6_000,), (None,)]


def test_operators_on_the_cpu_alone_do_not_count(tmp_path: Path) -> None:
    con = of(
        tmp_path, call("cudaLaunchKernel", 0, 10, 1), event("cpu_op", "aten::sort", 12, 80),
        call("cudaLaunchKernel", 100, 10, 2),
    )  # fmt: skip
    assert con.execute("select operators_before_ns from api_call order by start").fetchall() == [(0,), (0,)]
