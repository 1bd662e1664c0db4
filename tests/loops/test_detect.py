"""Loops found in a capture, the length of their iterations, and what counts as warm-up. All rows are synthetic."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest

import timelines
from timelines import Case, iterations, launched, opened

# 40 µs of kernels in each iteration of 100 µs.
STEP = (("gemm()", 2.0, 10.0, 30.0), ("relu()", 6.0, 45.0, 10.0))


def ranges(
    count: int, name: str, start: float = 0, every: float = 100, duration: float = 90, **more: Any
) -> list[Case]:
    """Ranges numbered like iterations: name_0, name_1 …"""
    return [
        {"name": f"{name}_{n}", "start": start + n * every, "duration": duration, "label": f"{name}_{n}", **more}
        for n in range(count)
    ]


def loops(case: Case, **settings: float) -> list[dict[str, Any]]:
    with opened(case, settings=settings) as con:
        return timelines.rows(con, "select * from loop order by id")


def iterations_of(case: Case, **settings: float) -> list[dict[str, Any]]:
    with opened(case, settings=settings) as con:
        return timelines.rows(con, "select * from iteration order by loop, process, ordinal")


def both(first: Case, later: Case) -> Case:
    """The calls and operations of two launched cases, one after the other."""
    return {
        "api_call": first["api_call"] + [{**row, "label": f"{row['label']} later"} for row in later["api_call"]],
        "gpu_op": first["gpu_op"] + [{**row, "api_call": f"{row['api_call']} later"} for row in later["gpu_op"]],
    }


def test_numbered_ranges_are_one_loop() -> None:
    [loop] = loops({**launched(12, 100, *STEP), "nvtx_range": ranges(12, "step")})
    assert (loop["name"], loop["nvtx_path"], loop["period_source"]) == ("step", "step", "nvtx")
    assert (loop["steady_iterations"], loop["iteration_ns"], loop["share_of_span"]) == (
        9,
        pytest.approx(99_000, rel=0.02),
        1,
    )


def test_an_iteration_holds_both_alternating_phases() -> None:
    case = launched(12, 100, *STEP)
    case["nvtx_range"] = [
        {"name": "data", "start": 0, "duration": 20, "repeat": 12, "every": 100},
        {"name": "train", "start": 21, "duration": 70, "repeat": 12, "every": 100},
    ]
    [loop] = loops(case)
    assert loop["name"] == "data + train"
    assert loop["steady_iterations"] == 9
    assert loop["iteration_ns"] == pytest.approx(99_000, rel=0.02)


def test_an_epoch_filled_by_iterations_gives_way_to_them() -> None:
    case = launched(60, 100, *STEP)
    epochs = ranges(6, "epoch", every=1000, duration=1000)
    inner = [{**row, "parent": f"epoch_{n // 10}"} for n, row in enumerate(ranges(60, "iteration", duration=99))]
    case["nvtx_range"] = epochs + inner
    [loop] = loops(case)
    assert (loop["name"], loop["nvtx_path"]) == ("iteration", "epoch / iteration")
    assert loop["iteration_ns"] == pytest.approx(100_000, rel=0.02)


@pytest.mark.parametrize(
    "annotation",
    [
        {"name": "ncclAllReduce", "domain": "NCCL"},
        {"name": "aten::add, op_id = 3"},
        {"name": "step", "kind": "start_end"},
    ],
    ids=["library domain", "operator", "start_end"],
)
def test_annotations_that_mark_no_iterations_are_passed_over(annotation: Case) -> None:
    case = launched(40, 100, *STEP)
    case["nvtx_range"] = [{**annotation, "start": 0, "duration": 90, "repeat": 40, "every": 100}]
    [loop] = loops(case)
    assert (loop["period_source"], loop["nvtx_path"]) == ("period", None)


def test_the_same_code_in_two_processes_is_one_loop() -> None:
    one = launched(12, 100, *STEP)
    other = launched(12, 100, *STEP, start=7)
    for row in (*other["api_call"], *other["gpu_op"]):
        row |= {"process": 1}
    for row in other["api_call"]:
        row |= {"thread": 1, "label": f"second {row['label']}"}
    for row in other["gpu_op"]:
        row |= {"device": 1, "stream": 1, "api_call": f"second {row['api_call']}"}
    step = {"name": "step", "start": 0, "duration": 90, "repeat": 12, "every": 100}
    [loop] = loops({
        "thread": [{"id": 0, "process": 0}, {"id": 1, "process": 1}],
        "api_call": one["api_call"] + other["api_call"], "gpu_op": one["gpu_op"] + other["gpu_op"],
        "nvtx_range": [step, {**step, "process": 1, "thread": 1, "start": 7}],
    })  # fmt: skip
    assert (loop["name"], loop["processes"], loop["steady_iterations"]) == ("step", 2, 18)


def test_a_host_that_runs_ahead_is_measured_on_the_gpu_s_clock() -> None:
    # The host passes an iteration in 10 µs; the GPU needs 100 µs for the kernel that the iteration queues.
    calls = {"label": "k", "name": "cudaLaunchKernel", "start": 1, "duration": 3, "repeat": 20, "every": 10}
    kernels = {"api_call": "k", "name": "gemm()", "start": 5, "duration": 100, "repeat": 20, "every": 100}
    case = {"api_call": [calls], "gpu_op": [kernels], "nvtx_range": ranges(20, "step", every=10, duration=9)}
    [loop] = loops(case)
    assert loop["iteration_ns"] == pytest.approx(100_000, rel=0.02)
    last = iterations_of(case)[-1]
    assert last["end"] == 2_005_000, "the last iteration holds what was still queued"


def once(case: Case, kind: str, start: float, begins: float, duration: float) -> Case:
    """The case with a copy that the host makes once."""
    call = {"label": "once", "name": "cudaMemcpyAsync", "start": start, "duration": 3}
    copy = {"api_call": "once", "kind": "memcpy", "copy_kind": kind, "start": begins, "duration": duration}
    return {**case, "api_call": [*case["api_call"], call], "gpu_op": [*case["gpu_op"], {**copy, "bytes": 1 << 20}]}


def test_the_last_iteration_ends_with_its_own_work() -> None:
    # The host is 150 µs ahead of the GPU, so it asks for the result before the last iteration is done.
    step = (("gemm()", 2.0, 150.0, 30.0), ("relu()", 6.0, 185.0, 10.0))
    case = once(launched(20, 100, *step), "device_to_host", 1912, 2100, 500)
    assert iterations_of(case)[-1]["end"] == 2_095_000, "the result is copied after it"


def test_a_copy_that_ends_each_iteration_ends_the_last_one_too() -> None:
    step = launched(20, 100, ("gemm()", 2.0, 150.0, 30.0), ("relu()", 6.0, 185.0, 10.0))
    call = {"label": "copy", "name": "cudaMemcpyAsync", "start": 12, "duration": 3, "repeat": 20, "every": 100}
    copy = {"api_call": "copy", "kind": "memcpy", "copy_kind": "device_to_host", "start": 196, "duration": 8}
    step["api_call"].append(call)
    step["gpu_op"].append({**copy, "repeat": 20, "every": 100, "bytes": 4})
    case = once(step, "device_to_host", 1930, 2200, 500)
    assert iterations_of(case)[-1]["end"] == 2_104_000


def test_a_longer_last_iteration_is_not_cut() -> None:
    solve = [("gemm()", 2.0 + 4 * n, 150.0 + 12 * n, 10.0) for n in range(3)]
    usual = launched(19, 100, *solve[:2], ("relu()", 10.0, 175.0, 10.0))
    last = launched(1, 100, *solve, ("relu()", 14.0, 190.0, 10.0), start=1900)
    assert iterations_of(both(usual, last))[-1]["end"] == 2_100_000


def test_first_iterations_warm_up_and_do_not_count() -> None:
    slow = launched(3, 1000, *STEP)
    fast = launched(20, 100, *STEP, start=3000)
    case = {
        **both(slow, fast),
        "nvtx_range": ranges(3, "step", every=1000, duration=990) + [
            {**row, "name": f"step_{n + 3}"} for n, row in enumerate(ranges(20, "step", start=3000))
        ],
    }  # fmt: skip
    [loop] = loops(case)
    assert loop["steady_iterations"] == 20
    assert loop["iteration_ns"] == pytest.approx(99_500, rel=0.01)
    assert [row["in_steady_state"] for row in iterations_of(case)][:4] == [False, False, False, True]


def test_of_thousands_of_iterations_a_hundred_warm_up() -> None:
    case = {**launched(3000, 100, *STEP), "nvtx_range": ranges(3000, "step")}
    assert sum(not row["in_steady_state"] for row in iterations_of(case)) == 100


def test_cold_start_steady_state_and_teardown_follow_one_another() -> None:
    case = launched(12, 100, *STEP, start=5000)
    case["nvtx_range"] = ranges(12, "step", start=5000)
    case["api_call"] += [
        {"name": "cudaMalloc", "start": 0, "duration": 100},
        {"name": "cudaFree", "start": 9000, "duration": 50},
    ]
    with opened(case) as con:
        windows = timelines.rows(con, 'select kind, start, "end" from "window" order by start')
    assert [(w["kind"], w["start"], w["end"]) for w in windows] == [
        ("cold_start", 0, 5_300_000), ("steady_state", 5_300_000, 6_190_000), ("teardown", 6_190_000, 9_050_000),
    ]  # fmt: skip


def test_a_pause_of_many_iterations_belongs_to_no_iteration() -> None:
    one, other = launched(10, 100, *STEP), launched(10, 100, *STEP, start=50_000)
    case = {**both(one, other), "nvtx_range": ranges(10, "step") + ranges(10, "step", start=50_000)}
    assert max(row["end"] - row["start"] for row in iterations_of(case)) <= 100_000


@pytest.mark.parametrize(("steps", "bursts", "pause"), [(4, 10, 3000), (20, 6, 4000)])
def test_frequent_or_long_pauses_are_part_of_the_loop(steps: int, bursts: int, pause: int) -> None:
    """A batch is waited for in every fourth iteration; or five pauses take two thirds of the time."""
    case: Case = {"api_call": [], "gpu_op": [], "nvtx_range": []}
    for burst in range(bursts):
        start = burst * (steps * 100 + pause)
        work = launched(steps, 100, *STEP, start=start)
        case["api_call"] += [{**row, "label": f"{row['label']} {burst}"} for row in work["api_call"]]
        case["gpu_op"] += [{**row, "api_call": f"{row['api_call']} {burst}"} for row in work["gpu_op"]]
        case["nvtx_range"] += ranges(steps, "step", start=start)
    lengths = [row["end"] - row["start"] for row in iterations_of(case)]
    assert max(lengths) == pytest.approx((pause + 100) * 1000, rel=0.02)
    assert sorted(lengths)[len(lengths) // 2] == pytest.approx(100_000, rel=0.02)


def test_a_validation_after_every_fourth_step_is_no_part_of_it() -> None:
    case: Case = {"api_call": [], "gpu_op": [], "nvtx_range": []}
    for burst in range(10):
        start = burst * 3400
        checked = launched(29, 100, ("validate()", 2, 10, 88), start=start + 450)
        for work, name in ((launched(4, 100, *STEP, start=start), "step"), (checked, "validate")):
            case["api_call"] += [{**row, "label": f"{row['label']} {name} {burst}"} for row in work["api_call"]]
            case["gpu_op"] += [{**row, "api_call": f"{row['api_call']} {name} {burst}"} for row in work["gpu_op"]]
        case["nvtx_range"] += ranges(4, "step", start=start)
    steps = [row["end"] - row["start"] for row in iterations_of(case) if row["loop"] == 0]
    assert max(steps) <= 110_000


def test_three_ranges_are_phases_and_no_loop() -> None:
    case = launched(30, 100, *STEP)
    case["nvtx_range"] = ranges(3, "epoch", every=1000, duration=990)
    assert [loop["period_source"] for loop in loops(case)] == ["period"]


def test_annotations_of_little_work_do_not_represent_the_run() -> None:
    case = launched(60, 100, *STEP)
    case["nvtx_range"] = ranges(4, "validate", start=0)
    assert [(loop["marker"], loop["period_source"]) for loop in loops(case)] == [("every gemm", "period")]
    case["nvtx_range"] = ranges(40, "validate", start=0)
    assert [loop["period_source"] for loop in loops(case)] == ["nvtx"]


def test_annotations_represent_the_run_after_a_long_warm_up() -> None:
    tuning = {"api_call": [], "gpu_op": []}
    for number in range(60):  # kernels that never come again, far more work than the loop holds
        once = launched(1, 100, (f"candidate_{number * number}()", 2.0, 10.0, 80.0), start=number * 100)
        tuning = both(tuning, once)
        tuning["api_call"][-1]["label"] = tuning["gpu_op"][-1]["api_call"] = f"candidate {number}"
    case = both(launched(20, 100, *STEP, start=6000), tuning)
    case["nvtx_range"] = ranges(20, "step", start=6000)
    [loop] = loops(case)
    assert (loop["name"], loop["period_source"]) == ("step", "nvtx")


def test_without_annotations_the_kernel_period_is_the_loop() -> None:
    case = launched(40, 100, *STEP)
    [loop] = loops(case)
    assert (loop["marker"], loop["period_source"]) == ("every gemm", "period")
    assert loop["iteration_ns"] == pytest.approx(100_000, rel=0.02)


def test_an_unannotated_iteration_begins_after_the_longest_pause() -> None:
    case = launched(40, 100, ("relu()", 2, 10, 10), ("gemm()", 40, 45, 10), ("softmax()", 44, 60, 10))
    assert [loop["marker"] for loop in loops(case)] == ["every relu"]
    case = launched(40, 100, ("relu()", 2, 10, 10), ("gemm()", 6, 25, 10), ("softmax()", 80, 85, 10))
    assert [loop["marker"] for loop in loops(case)] == ["every softmax"]


def test_work_that_never_repeats_is_one_iteration_and_says_so() -> None:
    case = launched(1, 100, *[(f"kernel{n}()", n * 20, n * 20 + 5, 10) for n in range(60)])
    [loop] = loops(case)
    assert (loop["name"], loop["period_source"], loop["steady_iterations"]) == ("whole run", "unknown", 1)
    assert loop["iteration_ns"] == 59 * 20_000 + 15_000


def test_a_handful_of_operations_is_nothing_to_diagnose() -> None:
    case = launched(1, 100, *[(f"kernel{n}()", n * 20, n * 20 + 5, 10) for n in range(5)])
    assert loops(case) == []
    assert [loop["name"] for loop in loops(case, min_ops=5)] == ["whole run"]
    assert [loop["name"] for loop in loops(case, long_op_ns=10_000)] == ["whole run"]


def test_one_long_kernel_is_worth_a_look() -> None:
    case = launched(1, 100_000, ("fill()", 0, 5, 10), ("align()", 20, 25, 12_000))
    assert [loop["name"] for loop in loops(case)] == ["whole run"]


def test_short_ranges_without_gpu_work_are_no_loop() -> None:
    """A compiler marks its passes: they repeat and take little, and the kernels come later."""
    case = launched(40, 100, *STEP, start=2000)
    passes = {"name": "add_output", "start": 100, "duration": 3, "repeat": 6, "every": 200}
    case["nvtx_range"] = [*ranges(40, "step", start=2000), passes]
    assert [loop["name"] for loop in loops(case)] == ["step"]
    passes["duration"] = 190  # long enough to be worth running on the GPU
    assert [loop["name"] for loop in loops(case)] == ["add_output", "step"]


def test_short_ranges_of_a_host_that_runs_ahead_are_a_loop() -> None:
    case = launched(40, 10, ("gemm()", 2, 1000, 5))
    case["gpu_op"][0] |= {"every": 1000}
    case["nvtx_range"] = ranges(40, "step", every=10, duration=9)
    assert [(loop["name"], loop["period_source"]) for loop in loops(case)] == [("step", "nvtx")]


def test_uploads_in_a_few_bursts_are_no_loop() -> None:
    """A simulator copies its parameters to symbols before its first step: eight at a time, with pauses between."""
    case: Case = {"api_call": [], "gpu_op": []}
    for burst in range(8):
        again = {"start": burst * 10_000.0, "repeat": 8, "every": 4}
        label = f"copy {burst}"
        case["api_call"].append({"label": label, "name": "cudaMemcpyToSymbolAsync", "duration": 2, **again})
        upload = {"kind": "memcpy", "copy_kind": "host_to_device", "bytes": 8, "duration": 1}
        case["gpu_op"].append({"api_call": label, **again, **upload, "start": burst * 10_000.0 + 1})
    assert [loop["name"] for loop in loops(case)] == ["whole run"]


def test_a_very_long_loop_is_analysed_in_part_only() -> None:
    case = launched(100, 100, *STEP)
    case["nvtx_range"] = ranges(100, "step")
    found = iterations_of(case, max_ops=40)
    assert len(found) == 100
    analysed = [row["ordinal"] for row in found if row["analysed"] and row["in_steady_state"]]
    assert 10 <= len(analysed) <= 30
    assert analysed == list(range(100 - len(analysed), 100)), "the last iterations: the first may meet new shapes"


def test_an_iteration_takes_what_those_analysed_take() -> None:
    """The first half of a long loop takes twice as long an iteration, as while code is built for new shapes."""
    case = launched(100, 100, *STEP)
    slow, fast = ({"name": "step", "duration": every - 1, "every": every} for every in (200, 100))
    case["nvtx_range"] = [{**slow, "start": 0, "repeat": 25}, {**fast, "start": 5_000, "repeat": 50}]
    assert loops(case, max_ops=40)[0]["iteration_ns"] == pytest.approx(100_000, rel=0.01)
    assert loops(case)[0]["iteration_ns"] > 120_000


def test_a_long_loop_is_analysed_where_it_is_typical() -> None:
    """A solver needs as long for its last twenty time steps as for the sixty before them."""
    case = launched(100, 100, *STEP)
    fast, slow = ({"name": "step", "duration": every - 1, "every": every} for every in (100, 300))
    case["nvtx_range"] = [{**fast, "start": 0, "repeat": 60}, {**slow, "start": 6_000, "repeat": 20}]
    assert loops(case, max_ops=40)[0]["iteration_ns"] == pytest.approx(loops(case)[0]["iteration_ns"], rel=0.2)


def test_rare_long_iterations_have_their_part_in_a_stretch() -> None:
    """Every 24th step takes nine times as long, and none of the last eighteen does."""
    case = launched(100, 100, *STEP)
    each = [900 if number % 24 == 16 else 100 for number in range(83)]
    begins = [sum(each[:number]) for number in range(len(each))]
    case["nvtx_range"] = [
        {"name": "step", "start": start, "duration": length - 1} for start, length in zip(begins, each, strict=True)
    ]
    assert loops(case, max_ops=40)[0]["iteration_ns"] == pytest.approx(loops(case)[0]["iteration_ns"], rel=0.2)


def test_iterations_of_a_loop_never_overlap() -> None:
    case = launched(20, 10, ("gemm()", 1, 5, 100))
    case["nvtx_range"] = ranges(20, "step", every=10, duration=9)
    found = iterations_of(case)
    assert all(a["end"] <= b["start"] for a, b in pairwise(found))
    assert all(row["end"] >= row["start"] for row in found)


def test_iterations_do_not_depend_on_the_batch_size(monkeypatch: pytest.MonkeyPatch) -> None:
    case = {**launched(30, 100, *STEP), "nvtx_range": ranges(30, "step")}
    blocks_per_wave = iterations_of(case)
    monkeypatch.setattr("gpudiag.loops.iteration_bounds._AT_ONCE", 7)
    assert iterations_of(case) == blocks_per_wave


def test_given_iterations_are_kept() -> None:
    case: Case = {"iteration": [iterations(5, 50)], **launched(20, 100, *STEP)}
    assert len(iterations_of(case)) == 5


def later(case: Case, start: float) -> Case:
    """The same calls and operations, `start` µs later."""
    return {table: [{**row, "start": row["start"] + start} for row in rows] for table, rows in case.items()}


def in_iterations(iterations_: list[tuple[str, ...]], every: float = 100) -> Case:
    """An iteration for each tuple of kernels, 10 µs a kernel."""
    case: Case = {"api_call": [], "gpu_op": []}
    for number, kernels in enumerate(iterations_):
        one = launched(1, every, *[(kernel, n * 12.0, n * 12.0 + 4, 10.0) for n, kernel in enumerate(kernels)])
        for row in one["api_call"]:
            row["label"] += f" of {number}"
        for row in one["gpu_op"]:
            row["api_call"] += f" of {number}"
        moved = later(one, number * every)
        case = {table: case[table] + moved[table] for table in case}
    return case


def test_products_of_sizes_that_vary_are_one_step_of_the_loop() -> None:
    """A library picks another kernel for each size: no two iterations launch the same ones."""
    tiles = [f"cutlass_80_tensorop_gemm_{(n * 7) % 41}x{n}" for n in range(80)]
    [loop] = loops(in_iterations([("norm()", tiles[n], "gate()", tiles[79 - n]) for n in range(40)]))
    assert loop["period_source"] == "period"
    assert loop["iteration_ns"] == pytest.approx(100_000, rel=0.02)


def test_batches_of_a_few_lengths_are_one_step_each() -> None:
    """Batches of four lengths alternate; a library has products for two of them, and one for a single length."""
    tiles = {"up": "aabb", "down": "cddc", "qkv": "efef", "out": "gghi"}
    chance, batches = random.Random(4), []
    for _ in range(16):
        for length in chance.sample(range(4), 4):
            layer = [name for part, names in tiles.items() for name in (f"gemm_{part}_{names[length]}", "act", "norm")]
            batches.append(("embed", *layer * 2, "argmax"))
    [loop] = loops(in_iterations(batches, every=400))
    assert loop["iteration_ns"] == pytest.approx(400_000, rel=0.02)


def transforming(count: int, *, fed: bool) -> Case:
    """Batches whose transforms are of one size, then of another; each may have its own upload."""
    case: Case = {"api_call": [], "gpu_op": []}
    for number in range(count):
        size = (4096, 2048)[number % 2]
        forward = f"void vector_fft_symm_r2c<{size}u>(p)" if size == 2048 else f"void regular_fft_factor<{size}u>(p)"
        back = f"void vector_fft_symm_c2r<{size}u>(p)"
        kernels = ("calibrate()", forward, *("filter()", back, "keep()") * 4, "threshold()")
        one = later(in_iterations([kernels], every=400), number * 400)
        for row in one["api_call"]:
            row["label"] += f" {number}"
        for row in one["gpu_op"]:
            row["api_call"] += f" {number}"
        if fed or not number:
            one["api_call"].append(
                {"label": f"up {number}", "name": "cudaMemcpyAsync", "start": number * 400 - 8, "duration": 4}
            )
            one["gpu_op"].append({
                "api_call": f"up {number}", "kind": "memcpy", "copy_kind": "host_to_device", "bytes": 1_000_000,
                "start": number * 400 - 4, "duration": 3,
            })  # fmt: skip
        case = {table: case[table] + one[table] for table in case}
    return later(case, 100)


@pytest.mark.parametrize(("fed", "each"), [(True, 400_000), (False, 800_000)])
def test_transforms_of_alternating_sizes_are_one_batch_each(fed: bool, each: float) -> None:
    """A library has other kernels for each size; without an input of its own each half may be part of one step."""
    [loop] = loops(transforming(40, fed=fed))
    assert loop["iteration_ns"] == pytest.approx(each, rel=0.02)


def days(count: int, rounds: int, arrays: int) -> Case:
    """Days of rounds, after each of which one kernel more runs; the fourth kernel of a round is given host arrays."""
    case: Case = {"api_call": [], "gpu_op": []}
    given, returned = ["up"] * arrays, ["down"] * arrays
    kernels = [*("walk()", "scan()", "sort()", *given, "decide()", *returned, "settle()") * rounds, "replace()"]
    for number, kernel in enumerate(kernels * count):
        label, begins = f"{kernel} {number}", number * 12.0
        case["api_call"].append({"label": label, "name": "cuLaunchKernel", "start": begins, "duration": 3})
        op = {"api_call": label, "name": kernel, "start": begins + 4, "duration": 7}
        if kernel in ("up", "down"):
            direction = {"up": "host_to_device", "down": "device_to_host"}[kernel]
            op |= {"name": None, "kind": "memcpy", "copy_kind": direction, "bytes": 40_000}
        case["gpu_op"].append(op)
    return case


@pytest.mark.parametrize("arrays", [1, 2])
def test_a_kernel_s_host_array_is_no_input_of_a_round(arrays: int) -> None:
    """What each round is given is what an iteration works on, but for arrays that come back after their kernel."""
    [loop] = loops(days(40, 12, arrays))
    each = 12 * (12 * (5 + 2 * arrays) + 1) * 1000
    assert (loop["iteration_ns"], loop["repeats"]) == (pytest.approx(each, rel=0.02), 12)


def test_kernels_that_share_a_short_name_are_distinguished() -> None:
    """A stencil of rolls and arithmetic has two short names, in no order that tells where an iteration ends."""
    chance = random.Random(1)
    iteration = tuple(chance.choice(("roll_kernel()", f"elementwise<op{n}>()")) for n in range(80))
    [loop] = loops(in_iterations([iteration] * 12, every=1000))
    assert (loop["period_source"], loop["iteration_ns"]) == ("period", pytest.approx(1_000_000, rel=0.02))


def on_thread(case: Case, thread: int) -> Case:
    """The same calls by another thread."""
    return {**case, "api_call": [{**row, "thread": thread} for row in case["api_call"]]}


def test_a_kernel_tuning_thread_does_not_hide_another_loop() -> None:
    tuning = on_thread(launched(60, 50, ("candidate()", 1, 4, 0.5), ("check()", 9, 12, 0.5)), 1)
    case = both(tuning, launched(20, 100, *STEP, start=10_000))
    [loop] = loops({"thread": [{"id": 0, "process": 0}, {"id": 1, "process": 0}], **case})
    assert (loop["marker"], loop["iteration_ns"]) == ("every gemm", pytest.approx(100_000, rel=0.05))


def test_a_stray_call_in_some_iterations_does_not_hide_the_loop() -> None:
    """A sync in every iteration, and allocations that only some need: more calls than a tenth of the events."""
    case = launched(40, 100, *[(f"kernel{n}()", n * 10, n * 10 + 2, 5) for n in range(4)])
    case["api_call"].append({"name": "cudaDeviceSynchronize", "start": 80, "duration": 5, "repeat": 40, "every": 100})
    strays = [8, 9, 17, 18, 21, 29, 30, 35]
    case["api_call"] += [{"name": "cudaMalloc", "start": n * 100 + 15, "duration": 3} for n in strays]
    [loop] = loops(case)
    assert (loop["period_source"], loop["iteration_ns"]) == ("period", pytest.approx(100_000, rel=0.02))


def test_threads_that_only_wait_for_results_mark_no_iteration() -> None:
    """Two writers share the results: each waits in every second iteration."""
    case = launched(40, 100, *[(f"kernel{n}()", n * 10, n * 10 + 2, 5) for n in range(4)])
    case["api_call"] += [
        {"thread": 1 + n % 2, "name": "cudaEventSynchronize", "start": n * 100 + 45, "duration": 5} for n in range(40)
    ]
    [loop] = loops({"thread": [{"id": n, "process": 0} for n in range(3)], **case})
    assert (loop["period_source"], loop["iteration_ns"]) == ("period", pytest.approx(100_000, rel=0.02))


def test_what_an_autotuner_launches_is_no_part_of_the_loop() -> None:
    """After some steps a kernel is tuned for a new length: a flush and the kernel, again and again."""
    steps, tunings = range(60), (7, 18, 23, 41, 48)
    moments = [100 * n + 900 * sum(at < n for at in tunings) for n in steps]
    work = [(moment + at, name) for moment in moments for name, at, _, _ in STEP]
    work += [(moments[at] + 120 + 20 * n, "flush()" if n % 2 else "gemm()") for at in tunings for n in range(40)]
    case: Case = {
        "api_call": [
            {"label": f"call {n}", "name": "cudaLaunchKernel", "start": time, "duration": 3}
            for n, (time, _) in enumerate(work)
        ],
        "gpu_op": [
            {"api_call": f"call {n}", "name": name, "start": time + 5, "duration": 10}
            for n, (time, name) in enumerate(work)
        ],
    }
    found = [loop["steady_iterations"] for loop in loops(case)]
    frames = [{"function": "_bench", "file": "/v/triton/runtime/autotuner.py", "line": 163}]
    case["py_sample"] = [{"time": moments[at] + 110, "repeat": 90, "every": 10, "frames": frames} for at in tunings]
    case["py_sample"] += [{"time": moment + 50, "frames": [{"function": "step"}]} for moment in moments]
    [loop] = loops(case)
    assert [loop["steady_iterations"]] != found
    assert loop["steady_iterations"] in range(45, 60)


@pytest.mark.parametrize("tuned_by", ["/v/triton/runtime/autotuner.py", "/u/train.py"])
def test_annotations_represent_a_run_but_for_what_was_tuned(tuned_by: str) -> None:
    """Half of the iterations are annotated; a tuner before them launched more than all of these hold."""
    case = both(
        in_iterations([(f"candidate_{n * n}()",) for n in range(300)], every=20), later(launched(40, 100, *STEP), 7_000)
    )
    case["nvtx_range"] = ranges(20, "step", start=9_000)
    frames = [{"function": "_bench", "file": tuned_by, "line": 163}]
    case["py_sample"] = [{"time": 0, "repeat": 610, "every": 10, "frames": frames}, {"time": 6_900, "frames": []}]
    [loop] = loops(case, min_coverage=0.3)
    assert loop["period_source"] == ("nvtx" if "triton" in tuned_by else "period")


def tuned(count: int) -> Case:
    """Kernels that a compiler tries out, each once."""
    return in_iterations([(f"candidate_{n * n}()",) for n in range(count)], every=40)


def test_a_loop_after_much_tuning_is_found() -> None:
    case = both(tuned(60), later(launched(20, 100, ("step()", 2, 10, 8), ("next()", 12, 22, 8)), 10_000))
    [loop] = loops(case)
    assert (loop["period_source"], loop["iteration_ns"]) == ("period", pytest.approx(100_000, rel=0.05))
    case["nvtx_range"] = ranges(20, "iteration", start=10_000)
    assert [loop["name"] for loop in loops(case)] == ["iteration"], "iterations that the program names come first"
    del case["nvtx_range"]
    [loop] = loops(case, late_coverage=0.5)
    assert loop["period_source"] == "unknown"


def test_a_loop_does_not_represent_much_work_after_it() -> None:
    case = both(launched(20, 100, ("step()", 2, 10, 8), ("next()", 12, 22, 8)), later(tuned(60), 10_000))
    assert [loop["period_source"] for loop in loops(case)] == ["unknown"]


def test_a_loop_is_called_by_a_kernel_that_tells_something() -> None:
    fill, copy = ("elementwise_kernel<fill>()", 2, 10, 20), ("elementwise_kernel<copy>()", 30, 40, 5)
    [loop] = loops(launched(40, 100, fill, copy, ("gemm()", 36, 50, 9), ("loss()", 44, 60, 2), ("scan()", 50, 70, 8)))
    assert loop["marker"] == "every scan", "the longest that is neither element-wise nor the library's"
    [loop] = loops(launched(40, 100, fill, ("gemm()", 36, 50, 9)))
    assert loop["marker"] == "every gemm"
    [loop] = loops(launched(40, 100, fill, copy))
    assert loop["marker"] == "every elementwise_kernel"


def test_what_one_call_launches_is_never_divided() -> None:
    """A graph whose eight nodes were traced: each repeats the same kernel, and one call launches them all."""
    call = {"label": "graph", "name": "cudaGraphLaunch", "start": 0, "duration": 5, "repeat": 30, "every": 100}
    nodes = [
        {"api_call": "graph", "name": "gemm()", "start": 10 + 8 * n, "duration": 7, "repeat": 30, "every": 100}
        for n in range(8)
    ]
    [loop] = loops({"api_call": [call], "gpu_op": nodes})
    assert (loop["period_source"], loop["iteration_ns"]) == ("period", pytest.approx(100_000, rel=0.02))


def test_a_long_copy_of_the_result_does_not_hide_the_loop() -> None:
    case = launched(40, 100, ("transpose()", 2, 10, 80))
    case["api_call"].append({"label": "back", "name": "cudaMemcpy", "start": 4100, "duration": 9000})
    case["gpu_op"].append({"api_call": "back", "kind": "memcpy", "copy_kind": "device_to_host", "name": None,
                           "start": 4110, "duration": 8900})  # fmt: skip
    [loop] = loops(case)
    assert (loop["period_source"], loop["iteration_ns"]) == ("period", pytest.approx(100_000, rel=0.02))


def pooled(*steps: tuple[str, float, float, float]) -> Case:
    """Iterations that any of three threads may submit."""
    chance, case = (
        random.Random(5),
        {"thread": [{"id": n, "process": 0} for n in range(3)], "api_call": [], "gpu_op": []},
    )
    for number in range(24):
        one = later(launched(1, 100, *steps), number * 100)
        for row in one["api_call"]:
            row["label"] += f" of {number}"
        for row in one["gpu_op"]:
            row["api_call"] += f" of {number}"
        case["api_call"] += [{**row, "thread": chance.randrange(3)} for row in one["api_call"]]
        case["gpu_op"] += one["gpu_op"]
    return case


def test_work_that_a_pool_of_threads_submits_is_one_loop() -> None:
    [loop] = loops(pooled(("input()", 2, 10, 5), ("field()", 8, 20, 30), ("update()", 20, 60, 20)))
    assert (loop["period_source"], loop["iteration_ns"]) == ("period", pytest.approx(100_000, rel=0.02))
