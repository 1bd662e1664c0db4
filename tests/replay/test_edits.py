"""What each fix makes of a tiny loop, against lengths that can be computed by hand. Times are in µs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluation import generate_docs
from gpudiag.authoring import scaffold
from gpudiag.errors import GpudiagError
from gpudiag.library.load import load
from gpudiag.replay import bounds, edits
from gpudiag.replay.edits import registry
from replaying import fixed, loop_model, rule
from timelines import Case, iterations, opened

N = 10


def row(name: str, start: float, duration: float, every: float, **more: Any) -> Case:
    return {"name": name, "start": start, "duration": duration, "repeat": N, "every": every, **more}


def launch(label: str, start: float, every: float, duration: float = 3) -> Case:
    return row("cudaLaunchKernel", start, duration, every, label=label)


def kernel(call: str, start: float, duration: float, every: float, **more: Any) -> Case:
    return row(f"{call}()", start, duration, every, api_call=call, **more)


def copy(call: str, start: float, duration: float, every: float, **more: Any) -> Case:
    kinds: Case = {
        "kind": "memcpy",
        "copy_kind": "host_to_device",
        "src_kind": "pinned",
        "dst_kind": "device",
        "bytes": 1000,
    }
    made = row("", start, duration, every, api_call=call, **kinds | more)
    del made["name"]
    return made


def loop(every: float, calls: list[Case], ops: list[Case]) -> Case:
    return {"iteration": [iterations(N, every)], "api_call": calls, "gpu_op": ops}


def ids(case: Case, *places: int, table: str = "api_call") -> list[int]:
    """Ids of all repetitions of those rows."""
    starts = [sum(row.get("repeat", 1) for row in case[table][:place]) for place in places]
    return [
        start + iteration for start, place in zip(starts, places, strict=True)
        for iteration in range(case[table][place].get("repeat", 1))
    ]  # fmt: skip


def waiting(host: float) -> Case:
    """A launch, a kernel of 100, a wait for it, then host work until the next iteration: 110 + host."""
    every = 110 + host
    return loop(
        every,
        [launch("a", 0, every), row("cudaStreamSynchronize", 5, 105, every, label="wait")],
        [kernel("a", 8, 100, every)],
    )


def test_without_the_wait_the_gpu_sets_the_pace() -> None:
    case = waiting(host=80)
    assert fixed(case, "drop_sync", api_calls=ids(case, 1)) == pytest.approx(8 + N * 101, rel=0.01)


def test_kernels_that_waits_kept_apart_fill_the_gpu_as_before() -> None:
    """Two streams, each waited for: without the waits the GPU still computes for as long as its kernels take."""
    calls = [launch("a", 0, 220), row("cudaStreamSynchronize", 5, 105, 220, label="wait")]
    calls += [launch("b", 112, 220), row("cudaStreamSynchronize", 117, 101, 220, label="wait too")]
    case = loop(220, calls, [kernel("a", 8, 100, 220, stream=1), kernel("b", 118, 100, 220, stream=2)])
    waits = ids(case, 1) + ids(case, 3)
    assert fixed(case, "drop_sync", api_calls=waits) == pytest.approx(N * 200, rel=0.05)


def test_without_the_wait_a_slow_host_still_sets_the_pace() -> None:
    case = waiting(host=400)
    assert fixed(case, "drop_sync", api_calls=ids(case, 1)) == pytest.approx(N * 405, rel=0.01)


def test_a_wait_dropped_in_half_of_the_iterations_saves_half() -> None:
    case = waiting(host=400)
    assert fixed(case, "drop_sync", api_calls=ids(case, 1)[::2]) == pytest.approx(N / 2 * (405 + 510), rel=0.01)


def fetching() -> Case:
    """Host work of 900, a launch, a kernel of 92 and a wait for it."""
    return loop(
        1000,
        [launch("a", 900, 1000), row("cudaStreamSynchronize", 903, 97, 1000)],
        [kernel("a", 906, 92, 1000)],
    )


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "left"), [(2, N * 900 / 2), (8, N * 900 / 8), (100, N * 100)])
def test_workers_share_the_host_work_and_the_rest_stays(workers: int, left: float) -> None:
    case = fetching()
    found = fixed(case, "to_workers", api_calls=ids(case, 0), changed={"replay_workers": workers})
    assert found == pytest.approx(left, rel=0.01)


def copying(src: str, size: int) -> Case:
    """A copy that takes 400 and blocks, a kernel of 50, a wait for it, 35 of host work: 500."""
    return loop(
        500,
        [row("cudaMemcpyAsync", 0, 407, 500, label="c"), launch("a", 407, 500),
         row("cudaStreamSynchronize", 410, 55, 500)],
        [copy("c", 5, 400, 500, src_kind=src, bytes=size), kernel("a", 413, 50, 500)],
    )  # fmt: skip


def test_pinned_memory_moves_at_the_rate_of_the_link() -> None:
    case = copying("pageable", 5_500_000)  # 100 µs at the 55 GB/s of settings.pinned_bytes_per_s
    # Launched after 5, copied in 100, a gap of 1, the kernel, 2 until the host sees it, host work.
    assert fixed(case, "pin", gpu_ops=ids(case, 0, table="gpu_op")) == pytest.approx(
        N * (5 + 100 + 1 + 50 + 2 + 35), rel=0.01
    )


def test_memory_that_is_pinned_already_gains_nothing() -> None:
    case = copying("pinned", 5_500_000)
    assert fixed(case, "pin", gpu_ops=ids(case, 0, table="gpu_op")) == pytest.approx(N * 500, rel=0.001)


def test_a_copy_that_only_enqueues_costs_a_launch() -> None:
    case = copying("pinned", 5_500_000)
    del case["api_call"][2]  # no wait follows: host 35 + 3 + 3 and 52 until the next iteration, below the GPU's 450
    assert fixed(case, "run_async", api_calls=ids(case, 0)) == pytest.approx(N * (400 + 1 + 50 + 1), rel=0.02)


def test_a_wait_right_after_an_asynchronous_copy_goes_too() -> None:
    """A framework copies back, waits, handles what it read for 300 and launches the next kernel of 200."""
    case = loop(
        600,
        [row("cudaLaunchKernel", 0, 5, 600, label="k"), row("cudaMemcpyAsync", 5, 10, 600, label="c"),
         row("cudaStreamSynchronize", 15, 240, 600)],
        [kernel("k", 2, 200, 600), copy("c", 203, 50, 600, src_kind="device", dst_kind="pinned", bytes=2_750_000,
                                        copy_kind="device_to_host")],
    )  # fmt: skip
    left = fixed(case, "run_async", gpu_ops=ids(case, 1, table="gpu_op"))
    assert left == pytest.approx(N * 360, rel=0.05), "the host sets the pace: 345 of its own, a launch and a copy"


def test_without_the_copy_its_time_and_its_call_go() -> None:
    case = copying("pageable", 5_500_000)
    # The launch reaches the GPU after 6, the kernel, 2 until the host sees it, host work.
    assert fixed(case, "drop_copy", gpu_ops=ids(case, 0, table="gpu_op")) == pytest.approx(
        N * (6 + 50 + 2 + 35), rel=0.01
    )


def test_work_on_results_goes_with_their_copies() -> None:
    """A kernel of 95 and its read-back, 3,000 of work on that, an upload; a second kernel, then 1,500 of other work."""
    case = loop(
        5000,
        [
            launch("a", 0, 5000),
            row("cudaMemcpyAsync", 10, 200, 5000, label="back"),
            row("cudaMemcpyAsync", 3210, 60, 5000, label="up"),
            launch("b", 3280, 5000),
            row("cudaStreamSynchronize", 3290, 110, 5000),
        ],
        [
            kernel("a", 3, 95, 5000),
            copy("back", 100, 100, 5000, copy_kind="device_to_host", src_kind="device", bytes=1_000_000),
            copy("up", 3215, 50, 5000, bytes=500_000),
            kernel("b", 3290, 100, 5000),
        ],
    )
    left = fixed(case, "work_on_gpu", gpu_ops=ids(case, 1, 2, table="gpu_op"))
    assert left == pytest.approx(N * (3 + 95 + 100 + 1600), rel=0.02)
    assert fixed(case, "drop_copy", gpu_ops=ids(case, 1, 2, table="gpu_op")) > N * 4500


def tiny(kernels: int = 20, every: float = 220) -> Case:
    """Launches 10 apart of kernels of 3, then a wait for them, then host work."""
    end = 10 * kernels
    calls = [launch(f"k{number}", 10 * number, every, 4) for number in range(kernels)]
    ops = [kernel(f"k{number}", 10 * number + 6, 3, every) for number in range(kernels)]
    return loop(every, [*calls, row("cudaStreamSynchronize", end - 3, 4, every)], ops)


def test_a_graph_has_small_gaps_and_one_launch() -> None:
    case = tiny()
    left = 10 + 20 * 3 + 19 * 0.2  # the launch, the kernels, 0.2 between them
    found = fixed(case, "graph_region", api_calls=ids(case, *range(20)))
    assert found == pytest.approx(N * (left + 2 + 19), rel=0.06)


def test_a_graph_ends_at_a_wait() -> None:
    case = tiny(kernels=10, every=120)
    case["api_call"].insert(5, row("cudaStreamSynchronize", 44, 6, 120))
    found = fixed(case, "graph_region", api_calls=ids(case, *range(5), *range(6, 11)))
    one = fixed(tiny(kernels=10, every=120), "graph_region", api_calls=ids(tiny(kernels=10, every=120), *range(10)))
    assert found > one + N * 10, "a wait between them makes two graphs, each launched once an iteration"
    without = fixed(case, "drop_sync", "graph_region", api_calls=ids(case, *range(11)))
    assert without == pytest.approx(one, rel=0.01), "one graph where nobody needs the wait"


def test_host_work_between_launches_stays_beside_a_graph() -> None:
    case = loop(
        1100, [launch("a", 0, 1100), launch("b", 1003, 1100)], [kernel("a", 8, 20, 1100), kernel("b", 1011, 20, 1100)]
    )
    assert fixed(case, "graph_region", api_calls=ids(case, 0, 1)) > N * 1000


def uploads(copy_us: float, kernel_us: float) -> Case:
    """A copy, then a kernel that needs it, in one stream; the host has launched everything early."""
    every = copy_us + kernel_us
    case = loop(
        every,
        [row("cudaMemcpyAsync", 0, 3, 10, label="c"), launch("a", 5, 10)],
        [copy("c", 10, copy_us, every), kernel("a", 10 + copy_us, kernel_us, every)],
    )
    case["iteration"] = [iterations(N - 1, every), {"start": every * (N - 1), "duration": every + 10}]
    return case


@pytest.mark.slow
@pytest.mark.parametrize(("copy_us", "kernel_us"), [(100, 60), (60, 100)])
def test_overlapped_copies_leave_the_busiest_engine(copy_us: float, kernel_us: float) -> None:
    case = uploads(copy_us, kernel_us)
    ops = ids(case, 0, table="gpu_op")
    both = copy_us + kernel_us
    busiest = N * max(copy_us, kernel_us) + min(copy_us, kernel_us) + 10  # one of the others cannot be hidden
    assert fixed(case, "overlap_copy", gpu_ops=ops, changed={"replay_contention": 1}) == pytest.approx(
        busiest, rel=0.02
    )
    slower = fixed(case, "overlap_copy", gpu_ops=ops, changed={"replay_contention": 1.5})
    assert busiest < slower < N * both, "copies beside kernels take longer"


def test_streams_that_do_not_block_run_side_by_side() -> None:
    """The kernel of 60 on the default stream waits for one of 100 on another: then they overlap."""
    ops = [kernel("a", 10, 100, 200, stream=1), kernel("b", 112, 60, 200, stream=0)]
    case = loop(200, [launch("a", 0, 200), launch("b", 5, 200), row("cudaDeviceSynchronize", 10, 165, 200)], ops)
    case["stream"] = [{"id": 0, "kind": "null"}, {"id": 1, "kind": "blocking"}]
    held = ids(case, 1, table="gpu_op")
    assert fixed(case, "non_blocking_streams", gpu_ops=held) == pytest.approx(N * (200 - 62), rel=0.03)
    case["stream"][1]["kind"] = "non_blocking"
    assert fixed(case, "non_blocking_streams", gpu_ops=held) == pytest.approx(N * 200, rel=0.03), "nothing held it"


def test_a_dropped_call_orders_other_streams_no_more() -> None:
    """A copy of 100 on one stream, a small one on the default stream, a kernel of 60 on a third stream."""
    ops = [
        copy("a", 10, 100, 200, stream=1, copy_kind="device_to_host"),
        copy("c", 112, 2, 200, stream=0),
        kernel("b", 116, 60, 200, stream=2),
    ]
    calls = [
        row("cudaMemcpyAsync", 0, 3, 200, label="a"),
        row("cuMemcpyHtoD", 5, 3, 200, label="c"),
        launch("b", 9, 200),
    ]
    case = loop(200, [*calls, row("cudaDeviceSynchronize", 13, 165, 200)], ops)
    case["stream"] = [{"id": 0, "kind": "null"}, {"id": 1, "kind": "blocking"}, {"id": 2, "kind": "blocking"}]
    left = fixed(case, "drop_call", api_calls=ids(case, 1))
    assert left == pytest.approx(N * (200 - 66), rel=0.03)


def test_all_kernels_after_a_copy_are_freed_from_it() -> None:
    """Two kernels on the default stream wait for a copy of 100 on another; the rule names the first alone."""
    ops = [
        copy("c", 10, 100, 200, stream=1, copy_kind="device_to_host"),
        kernel("a", 112, 30, 200, stream=0),
        kernel("b", 143, 30, 200, stream=0),
    ]
    calls = [row("cudaMemcpyAsync", 0, 3, 200, label="c"), launch("a", 5, 200), launch("b", 9, 200)]
    case = loop(200, [*calls, row("cudaDeviceSynchronize", 13, 165, 200)], ops)
    case["stream"] = [{"id": 0, "kind": "null"}, {"id": 1, "kind": "blocking"}]
    left = fixed(case, "non_blocking_streams", gpu_ops=ids(case, 1, table="gpu_op"))
    assert left == pytest.approx(N * (200 - 63), rel=0.03)


def test_an_allocation_from_a_pool_costs_next_to_nothing() -> None:
    case = loop(
        100, [row("cudaMalloc", 0, 60, 100), launch("a", 60, 100)], [kernel("a", 66, 10, 100)]
    )  # fmt: skip
    assert fixed(case, "pool_allocation", api_calls=ids(case, 0)) == pytest.approx(N * (1 + 40), rel=0.01)


def test_a_free_into_a_pool_does_not_wait_for_the_gpu() -> None:
    case = loop(
        150, [launch("a", 0, 150), row("cudaFree", 5, 105, 150)], [kernel("a", 8, 100, 150)]
    )  # fmt: skip
    # The host needs 45 an iteration then: the GPU sets the pace.
    assert fixed(case, "pool_allocation", api_calls=ids(case, 1)) == pytest.approx(8 + N * 101, rel=0.01)


def test_only_a_collection_that_is_meant_goes_with_its_free() -> None:
    case = loop(
        3000, [launch("a", 0, 3000), row("cudaFree", 2200, 100, 3000)], [kernel("a", 6, 50, 3000)]
    )  # fmt: skip
    # Host work of 2,195 comes before the free, and 700 after it.
    assert fixed(case, "pool_allocation", api_calls=ids(case, 1)) == pytest.approx(N * 2901, rel=0.01)
    assert fixed(case, "drop_collection", api_calls=ids(case, 1)) == pytest.approx(N * 805, rel=0.01)
    assert fixed(case, "drop_collection", api_calls=ids(case, 0)) == pytest.approx(N * 3000, rel=0.01)


def test_a_pool_that_keeps_its_memory_ends_waits_with_the_gpu() -> None:
    # The kernel runs from 1,005 to 1,055; the wait for it goes on until 2,000.
    calls = [
        row("cudaMallocAsync", 0, 1000, 2000),
        launch("a", 1000, 2000),
        row("cudaStreamSynchronize", 1005, 995, 2000),
    ]
    case = loop(2000, calls, [kernel("a", 1005, 50, 2000)])
    assert fixed(case, "keep_pool_memory", api_calls=ids(case, 2)) == pytest.approx(N * 1056, rel=0.02)
    assert fixed(case, "keep_pool_memory", api_calls=ids(case, 0, 2)) == pytest.approx(N * 57, rel=0.2)
    assert fixed(case, "keep_pool_memory", api_calls=ids(case, 1)) == pytest.approx(N * 2000, rel=0.01)


def test_a_fused_kernel_has_one_launch_and_all_the_work() -> None:
    case = tiny()
    found = fixed(case, "fuse_kernels", gpu_ops=ids(case, *range(20), table="gpu_op")[: 20 * N])
    assert found == pytest.approx(N * (6 + 20 * 3 + 2 + 19), rel=0.05)


def test_kernels_of_two_iterations_do_not_become_one() -> None:
    case = loop(1000, [launch("a", 900, 1000)], [kernel("a", 906, 20, 1000)])
    everything = ids(case, 0, table="gpu_op")
    assert fixed(case, "fuse_kernels", gpu_ops=everything) == pytest.approx(N * 1000, rel=0.01)


def small_copies() -> Case:
    """Eight copies of a kilobyte, 10 apart, that take 2 each; then a wait, then host work of 18."""
    calls = [row("cudaMemcpyAsync", 10 * n, 6, 100, label=f"c{n}") for n in range(8)]
    ops = [copy(f"c{n}", 10 * n + 7, 2, 100) for n in range(8)]
    return loop(100, [*calls, row("cudaStreamSynchronize", 76, 6, 100)], ops)


def test_copies_made_in_one_call_pay_for_one() -> None:
    case = small_copies()
    # One call and its latency, one copy, seven times a kilobyte at the link's rate, the wait's end, host work.
    assert fixed(case, "batch_copies", gpu_ops=ids(case, *range(8), table="gpu_op")) == pytest.approx(
        N * (7 + 2 + 7 * 1 + 3 + 18), rel=0.2
    )


def test_kernels_selected_beside_copies_keep_their_time() -> None:
    case = uploads(60, 100)
    assert fixed(case, "batch_copies", gpu_ops=ids(case, 0, 1, table="gpu_op")) == pytest.approx(10 + N * 160, rel=0.01)


def test_copies_of_two_iterations_are_not_made_in_one_call() -> None:
    """Even when the host makes all of them before the GPU begins the second iteration."""
    case = uploads(100, 60)
    assert fixed(case, "batch_copies", gpu_ops=ids(case, 0, table="gpu_op")) == pytest.approx(10 + N * 160, rel=0.01)


def test_a_graph_ends_with_its_iteration() -> None:
    # Two kernels of 40, each 10 after the one before it: the pause within an iteration goes, the one between stays.
    case = loop(100, [launch("a", 0, 10), launch("b", 5, 10)], [kernel("a", 10, 40, 100), kernel("b", 60, 40, 100)])
    case["iteration"] = [iterations(N - 1, 100), {"start": 100 * (N - 1), "duration": 100}]
    both = {"api_calls": ids(case, 0, 1)}
    left = fixed(case, "graph_region", changed={"replay_graph_launches": 2}, **both)
    assert left == pytest.approx(N * (40 + 0.2 + 40 + 10), rel=0.01)
    # Iterations of fewer launches than that are steps of something larger: one graph holds many of them.
    assert fixed(case, "graph_region", **both) == pytest.approx(N * 80 + 2 * N * 0.2, rel=0.02)


def busy() -> Case:
    """Kernels of 100 that follow one another; the host launches early."""
    case = loop(100, [launch("a", 0, 10)], [kernel("a", 8, 100, 100)])
    case["iteration"] = [iterations(N - 1, 100), {"start": 100 * (N - 1), "duration": 108}]
    return case


@pytest.mark.slow
@pytest.mark.parametrize("edit", ["shrink_kernel", "lower_precision"])
@pytest.mark.parametrize("recoverable", [0.25, 0.5])
def test_kernels_lose_the_part_that_can_be_recovered(edit: str, recoverable: float) -> None:
    case = busy()
    found = fixed(case, edit, gpu_ops=ids(case, 0, table="gpu_op"), recoverable=recoverable)
    assert found == pytest.approx(8 + N * 100 * (1 - recoverable), rel=0.01)


def test_kernels_cannot_get_faster_than_the_host_launches_them() -> None:
    case = busy()
    case["api_call"][0]["every"] = 90
    found = fixed(case, "shrink_kernel", gpu_ops=ids(case, 0, table="gpu_op"), recoverable=0.9)
    assert found == pytest.approx((N - 1) * 90 + 8 + 10, rel=0.01)


def test_a_call_that_goes_takes_what_it_started_with_it() -> None:
    case = loop(
        200, [row("cudaMemsetAsync", 0, 3, 10, label="m"), launch("a", 5, 10)],
        [{**copy("m", 8, 100, 200), "kind": "memset", "copy_kind": None}, kernel("a", 108, 100, 200)],
    )  # fmt: skip
    case["iteration"] = [iterations(N - 1, 200), {"start": 200 * (N - 1), "duration": 208}]
    assert fixed(case, "drop_call", api_calls=ids(case, 0)) == pytest.approx(8 + N * 100, rel=0.01)


def test_a_dropped_range_takes_the_host_work_before_its_calls() -> None:
    case = fetching()
    case["api_call"][0]["label"] = None
    case["api_call"] = [launch("a", 900, 1000), row("cudaStreamSynchronize", 903, 97, 1000)]
    whole = fixed(case, "drop_range", api_calls=ids(case, 0))
    assert whole == pytest.approx(N * 100, rel=0.05)


def test_fixes_add_up_to_no_more_than_what_they_save_together() -> None:
    case = waiting(host=400)
    with loop_model(case) as model:
        sync, work = rule("drop_sync"), rule("to_workers")
        dropped = model.select(sync, [{"api_calls": ids(case, 1)}])
        moved = model.select(work, [{"api_calls": ids(case, 0)}])
        assert dropped and moved
        first = model.fixed(sync, dropped, None)
        alone, both = model.remaining(first), model.remaining(model.fixed(work, moved, first))
        assert both < alone < 1
        again = model.remaining(model.fixed(sync, dropped, first))
        assert again == alone, "nothing is saved twice"


@pytest.mark.parametrize("edit", ["balance_ranks", "overlap_collective"])
def test_fixes_that_need_what_was_not_recorded_are_not_replayed(edit: str) -> None:
    case = busy()
    with loop_model(case) as model:
        assert model.select(rule(edit, on="gpu_ops"), [{"gpu_ops": ids(case, 0, table="gpu_op")}]) is None


def test_waits_after_each_copy_become_one_wait() -> None:
    calls = [row("cudaMemcpyAsync", 20 * n, 6, 200, label=f"c{n}") for n in range(8)]
    waits = [row("cudaStreamSynchronize", 20 * n + 7, 8, 200) for n in range(8)]
    case = loop(200, [*calls, *waits], [copy(f"c{n}", 20 * n + 7, 2, 200) for n in range(8)])
    # One call, one wait, and the host work of 45 after the last one; seven waits of 8 are gone.
    assert fixed(case, "batch_copies", gpu_ops=ids(case, *range(8), table="gpu_op")) == pytest.approx(
        N * (7 + 8 + 7 * 1 + 45), rel=0.2
    )


def backward() -> Case:
    """A forward launch; a second thread launches the backward pass; a read-back of the result; host work of 1,435."""
    return loop(
        2000,
        [
            launch("f", 0, 2000),
            launch("b", 20, 2000) | {"thread": 1},
            launch("c", 490, 2000, 10) | {"thread": 1},
            row("cudaStreamSynchronize", 510, 55, 2000),
        ],
        [kernel("f", 10, 10, 2000), kernel("b", 30, 100, 2000), kernel("c", 505, 50, 2000)],
    )


def test_dropping_a_read_keeps_the_backward_pass_before_it() -> None:
    case = backward()
    edits = ("drop_sync", "drop_copy", "drop_range")
    assert fixed(case, *edits, api_calls=ids(case, 3)) == pytest.approx(N * (500 + 1435), rel=0.02)


def arguments() -> Case:
    """Arguments are prepared (100), copied (30), worked on (60) and copied back; then 2,000 of other host work."""
    return loop(
        2500,
        [
            row("cuMemcpyHtoD", 100, 40, 2500, label="h"),
            row("cuLaunchKernel", 150, 10, 2500, label="k"),
            row("cuMemcpyDtoH", 200, 40, 2500, label="d"),
        ],
        [copy("h", 105, 30, 2500), kernel("k", 160, 60, 2500), copy("d", 221, 15, 2500, copy_kind="device_to_host")],
    )


def test_what_prepares_a_dropped_copy_goes_with_it_and_no_more() -> None:
    case = arguments()
    copies = ids(case, 0, 2)
    left = fixed(case, "drop_copy", "drop_preparation", api_calls=copies)
    # The launch and 10 before it stay; so do 2,260 µs before the upload, which are a phase of the host's own.
    assert left == pytest.approx(N * 2260 + N * 20, rel=0.06)
    assert fixed(case, "drop_copy", api_calls=copies) > left + N * 20


def sending(read_bytes: int | None = None) -> Case:
    """Return an upload of 300, a kernel of 600 on it and a wait; perhaps a read-back before the next upload."""
    calls = [
        row("cudaMemcpyAsync", 0, 5, 1000, label="u"), launch("k", 6, 1000),
        row("cudaStreamSynchronize", 10, 910, 1000),
    ]  # fmt: skip
    ops = [copy("u", 10, 300, 1000), kernel("k", 311, 600, 1000)]
    if read_bytes:
        calls.append(row("cudaMemcpyAsync", 930, 5, 1000, label="r"))
        calls.append(row("cudaStreamSynchronize", 936, 24, 1000))
        ops.append(copy("r", 940, 15, 1000, copy_kind="device_to_host", bytes=read_bytes))
    return loop(1000, calls, ops)


def test_an_upload_in_its_own_stream_starts_an_iteration_early() -> None:
    case = sending()
    found = fixed(case, "overlap_copy", gpu_ops=ids(case, 0, table="gpu_op"))
    assert found == pytest.approx(N * (1000 - 300), rel=0.06)


def test_a_loss_that_is_read_does_not_hold_the_next_upload() -> None:
    case = sending(read_bytes=4)
    assert fixed(case, "overlap_copy", gpu_ops=ids(case, 0, table="gpu_op")) < N * 750


def test_an_upload_of_just_read_data_does_not_start_early() -> None:
    case = sending(read_bytes=1000)
    assert fixed(case, "overlap_copy", gpu_ops=ids(case, 0, table="gpu_op")) > N * 950


TOY = """
from gpudiag.replay.edited_graph import EditedGraph, EditTargets
from gpudiag.replay.edits.edit_spec import IDLE_AFTER, IDLE_IN_CALL, EditSpec


def _vanish(edited: EditedGraph, chosen: EditTargets) -> None:
    edited.no_wait(chosen.calls)
    edited.cost(chosen.calls, 0.0)


VANISH = EditSpec("vanish", "the selected calls cost nothing", _vanish, idle_bound=(IDLE_IN_CALL, IDLE_AFTER))
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One more file among those that declare edits."""
    (tmp_path / "toy.py").write_text(TOY)
    monkeypatch.setattr(edits, "__path__", [*edits.__path__, str(tmp_path)])
    registry.known.cache_clear()
    yield
    sys.modules.pop(f"{edits.__name__}.toy", None)
    registry.known.cache_clear()


def bound(case: Case, edit: str, calls: list[int]) -> float:
    """The most that the edit can remove of loop 0, where the replay cannot run (ns)."""
    with opened(case, "idle_interval", "loop_facts", "transfer") as con:
        [(total,)] = con.execute("select total_ns from loop_facts where loop = 0").fetchall()
        return sum(bounds.claim(con, rule(edit, on="api_calls"), [{"api_calls": calls}], 0, float(total)).values())


@pytest.mark.slow
@pytest.mark.usefixtures("toy")
def test_a_file_of_its_own_is_all_that_a_new_edit_needs(tmp_path: Path) -> None:
    case = waiting(50)
    waits = ids(case, 1)
    assert fixed(case, "vanish", api_calls=waits) == pytest.approx(fixed(case, "drop_sync", api_calls=waits))
    assert '"vanish"' in scaffold.schema_json()
    assert "| `vanish` | the selected calls cost nothing |" in generate_docs.rule_format_page(load())
    assert bound(case, "vanish", waits) == pytest.approx(bound(case, "drop_sync", waits))
    assert bound(case, "vanish", waits) > 0
    rules = tmp_path / "rules"
    scaffold.scaffold(rules, "sync", "my-smell", "U01")
    file = rules / "sync" / "my-smell.yaml"
    file.write_text(file.read_text().replace("[graph_region]", "[vanish]"))
    assert load([rules], edits=frozenset(registry.known())).by_code["U01"].price.best == ("vanish",)  # type: ignore[union-attr]


def test_an_edit_that_nobody_declares_is_refused_with_its_line(tmp_path: Path) -> None:
    scaffold.scaffold(tmp_path, "sync", "my-smell", "U01")
    file = tmp_path / "sync" / "my-smell.yaml"
    file.write_text(file.read_text().replace("[graph_region]", "[graph_regoin]"))
    with pytest.raises(GpudiagError, match=r"my-smell\.yaml:\d+: price\.high: 'graph_regoin' is no edit.*graph_region"):
        load([tmp_path], edits=frozenset(registry.known()))


def test_rules_of_ours_name_known_edits_only() -> None:
    rules = load(edits=frozenset(registry.known())).rules
    named = {str(edit) for rule in rules if rule.price for edit in rule.price.expected or ()}
    assert named and named <= set(registry.known())
