"""Profiled kernels in a timeline: matched by name, grid and block, and priced by what the loop gains. Synthetic."""

from __future__ import annotations

from typing import Any

import pytest

from gpudiag.diagnosis import run_summary
from gpudiag.diagnosis.kernels import few_warps, placed
from gpudiag.diagnosis.rank import rank
from gpudiag.evaluate.engine import Evaluation
from gpudiag.model import Finding, Fired, Row, Rule
from timelines import Case, iterations, launched, library, opened, rows

VIEWS = (
    "kernel_match", "kernel_use", "loop_phase", "idle_interval", "loop_gpu_op", "transfer", "loop_budget", "loop_facts",
    "loop_extent",
    "loop_pause",
    "pause_first_use",
    "device_state", "readback_range",
    "device_link", "kernel_roofline", "kernel_waves", "kernel_wait", "call_sample", "loop_sample",
    "backward_stretch", "call_place",
    "framework_seen",
    "kernel_facts", "smi_gpu", "python_function_time",
)  # fmt: skip
PRICE = {"kind": "expected", "on": "profiles", "expected": ["shrink_kernel"]}


def timeline(name: str, *profiled: str, grid: int = 64, block: int = 128) -> Case:
    """Return ten iterations of 100 µs: 90 µs of one kernel that the host waits for; and launches that ncu measured."""
    case = launched(10, 100, (name, 0, 5, 90))
    case["api_call"].append({"name": "cudaDeviceSynchronize", "start": 4, "duration": 92, "repeat": 10, "every": 100})
    for op in case["gpu_op"]:
        op.update(grid=grid, block=block)
    profiles = [{"name": other, "grid": 64, "block": 128, "duration_ns": 90_000} for other in profiled]
    return {"iteration": [iterations(10)], **case, "kernel_profile": profiles}


def rule(code: str = "K01", **price: Any) -> Rule:
    return Rule.model_validate({
        "code": code, "kind": "finding", "id": "x", "title": "t", "severity": "high", "query": "select 1",
        "message": "m", "why": "w", "what": "x", "not_a_problem_when": "n",
        "price": {**PRICE, **price}, "locate": ("kernel",),
    })  # fmt: skip


def found(case: Case, row: Row, **price: Any) -> tuple[list[Finding], list[Finding]]:
    with opened(case, *VIEWS) as con:
        run = run_summary.run(con, library().setting_values, {})
        outcome = Fired(rule=rule(**price), rows=(row,))
        findings, minor = rank(con, Evaluation(outcomes=(outcome,)), library(), run.loops, run.frameworks)
        return findings, minor


@pytest.mark.slow
@pytest.mark.parametrize(
    ("in_timeline", "profiled"),
    [
        ("transpose(float*, const float*)", "transpose(float*, const float*)"),
        ("void tile<(int)32>(const float *, float *)", "void tile<32>(const float *, float *)"),
        ("void at::native::<unnamed>::soft<c10::Half, (bool)1>(T3 *)", "void at::<unnamed>::soft<Half, 1>(T3 *)"),
        ("__main__::relax[abi:v1,cw51](Array<float, (int)1>)", "relax[v1,cw51](Array<float, 1>)"),
    ],
)
def test_both_profilers_names_of_one_kernel_agree(in_timeline: str, profiled: str) -> None:
    with opened({}, *VIEWS) as con:
        assert con.execute("select kernel_key(?) = kernel_key(?)", [in_timeline, profiled]).fetchall() == [(True,)]


def test_launches_that_fill_a_part_of_the_gpu_are_called_so() -> None:
    device = {
        "id": 0, "sm_count": 132, "max_warps_per_sm": 64, "max_blocks_per_sm": 32, "registers_per_sm": 65_536,
        "shared_bytes_per_sm": 233_472,
    }  # fmt: skip
    settings = library().setting_values

    def said(name: str, grid: int, registers: int) -> str:
        case = timeline(name, grid=grid)
        for op in case["gpu_op"]:
            op.update(registers=registers)
        with opened({**case, "device": [device]}, *VIEWS, "kernel_filling") as con:
            return few_warps(con, 0, name.partition("(")[0], settings)

    assert "keeps 16 warps on each multiprocessor, where 64 fit (a launch of more blocks" in said("trace(int)", 512, 31)
    assert said("trace(int)", 4_096, 31) == ""
    assert said("trace(int)", 512, 168) == ""  # their registers let 12 warps fit: the launch fills them
    assert said("cutlass_80_gemm(int)", 512, 31) == ""  # a library chooses its launch itself


def test_a_profiled_kernel_is_found_in_the_loop() -> None:
    with opened(timeline("void tile<(int)32>(float *)", "void tile<32>(float *)"), *VIEWS) as con:
        [match] = rows(con, "select loop, share, len(gpu_ops) as ops, exactly from kernel_match")
    assert match["loop"] == 0 and match["ops"] == 10 and match["exactly"]
    assert match["share"] == pytest.approx(0.9, abs=0.02)


def test_another_instance_of_the_same_template_is_another_kernel() -> None:
    case = timeline("void tile<(int)32>(float *)", "void tile<33>(float *)", grid=8)
    with opened(case, *VIEWS) as con:
        assert rows(con, "select * from kernel_match") == []


def test_another_grid_of_a_kernel_is_the_last_resort() -> None:
    with opened(timeline("step(float*)", "step(float*)", grid=8), *VIEWS) as con:
        assert [match["exactly"] for match in rows(con, "select exactly from kernel_match")] == [False]


def test_a_kernels_gain_is_its_part_of_the_loop() -> None:
    row = {"profiles": [0], "share": 1.0, "duration_ns": 9e4, "kernel": "step", "recoverable": 0.5,
           "recoverable_low": 0.4, "recoverable_high": 0.6}  # fmt: skip
    [finding] = found(timeline("step(float*)", "step(float*)"), row)[0]
    gain = finding.gain
    assert (gain.basis, gain.loop, gain.kind) == ("loop", 0, "expected")
    assert gain.before_ms == pytest.approx(0.1, rel=0.03)
    assert gain.after_ms == pytest.approx(0.055, rel=0.05)
    assert gain.low_ms == pytest.approx(0.046, rel=0.05) and gain.high_ms == pytest.approx(0.064, rel=0.05)


def test_a_bound_of_a_profiled_kernel_never_passes_the_roof() -> None:
    row = {"profiles": [0], "share": 1.0, "duration_ns": 9e4, "kernel": "step", "recoverable": 0.5}
    [finding] = found(
        timeline("step(float*)", "step(float*)"), row, kind="upper_bound", expected=(), high=PRICE["expected"]
    )[0]
    gain = finding.gain
    assert gain.before_ms is not None and gain.low_ms is not None
    assert gain.before_ms - gain.low_ms == pytest.approx(0.045, rel=0.02)  # half of the kernel, whoever waits for it


def test_a_kernel_that_the_loops_do_not_run_is_not_listed_first() -> None:
    row = {"profiles": [0], "share": 1.0, "duration_ns": 9e6, "kernel": "init", "recoverable": 0.9}
    findings, minor = found(timeline("step(float*)", "init(float*)"), row)
    assert findings == [] and [finding.gain.basis for finding in minor] == ["kernel"]


def test_what_timeline_and_profile_both_say_is_written_once() -> None:
    with opened(timeline("step(float*)", "step(float*)"), *VIEWS) as con:
        [(ops,)] = con.execute("select gpu_ops from kernel_match").fetchall()
        both = [
            {"loop": 0, "gpu_ops": ops, "profiles": None, "share": 0.9},
            {"loop": None, "gpu_ops": None, "profiles": [0], "share": 1.0},
        ]
        [row] = placed(con, both)
    assert row["profiles"] == [0] and row["loop"] == 0 and row["gpu_ops"] == ops and row["share"] == 0.9


def test_a_kernel_without_a_time_is_reported_as_such() -> None:
    with opened({"kernel_profile": [{"name": "step(float*)", "duration_ns": None}]}, *VIEWS) as con:
        run = run_summary.run(con, library().setting_values, {})
    assert [(kernel.name, kernel.duration_ms) for kernel in run.kernels] == [("step", 0.0)]


def test_a_kernel_version_of_another_duration_does_not_match() -> None:
    case = timeline("step(float*)", "step(float*)")
    case["kernel_profile"][0]["duration_ns"] = 400_000
    with opened(case, *VIEWS) as con:
        assert rows(con, "select * from kernel_match") == []


def test_parts_that_cannot_be_are_brought_into_range() -> None:
    with opened(timeline("step(float*)", "other(float*)"), *VIEWS) as con:
        wild = {"loop": None, "profiles": [0], "share": 1.7, "recoverable": -0.4, "duration_ns": float("nan")}
        [row] = placed(con, [wild])
    assert (row["share"], row["recoverable"], row["duration_ns"]) == (1.0, 0.0, 0.0)


def test_without_a_proof_no_number_is_printed() -> None:
    row = {
        "loop": 0,
        "gpu_ops": list(range(10)),
        "share": 0.9,
        "duration_ns": 9e4,
        "kernel": "step",
        "recoverable": None,
    }
    [finding] = found(
        timeline("step(float*)"), row, kind="upper_bound", on="gpu_ops", expected=(), high=PRICE["expected"],
        test="Run it once with larger blocks.",
    )[0]  # fmt: skip
    assert finding.gain.kind == "test_needed" and finding.gain.after_ms is None
    assert finding.gain.test == "Run it once with larger blocks."
