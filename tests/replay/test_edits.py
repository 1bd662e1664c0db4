"""What each fix makes of a tiny loop, against lengths that can be computed by hand. Times are in µs."""

from __future__ import annotations

from typing import Any

import pytest

from replaying import fixed, loop_model, rule
from timelines import Case, turns

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
    return {"iteration": [turns(N, every)], "api_call": calls, "gpu_op": ops}


def ids(case: Case, *places: int, table: str = "api_call") -> list[int]:
    """Ids of all repetitions of those rows."""
    starts = [sum(row.get("repeat", 1) for row in case[table][:place]) for place in places]
    return [
        start + turn for start, place in zip(starts, places, strict=True)
        for turn in range(case[table][place].get("repeat", 1))
    ]  # fmt: skip


def waiting(host: float) -> Case:
    """A launch, a kernel of 100, a wait for it, then host work until the next turn: 110 + host."""
    every = 110 + host
    return loop(
        every,
        [launch("a", 0, every), row("cudaStreamSynchronize", 5, 105, every, label="wait")],
        [kernel("a", 8, 100, every)],
    )


def test_without_the_wait_the_host_runs_ahead_and_the_gpu_sets_the_pace() -> None:
    case = waiting(host=80)
    assert fixed(case, "drop_sync", api_calls=ids(case, 1)) == pytest.approx(8 + N * 101, rel=0.01)


def test_without_the_wait_a_slow_host_still_sets_the_pace() -> None:
    case = waiting(host=400)
    assert fixed(case, "drop_sync", api_calls=ids(case, 1)) == pytest.approx(N * 405, rel=0.01)


def test_a_wait_that_is_dropped_in_half_of_the_turns_gives_back_half() -> None:
    case = waiting(host=400)
    assert fixed(case, "drop_sync", api_calls=ids(case, 1)[::2]) == pytest.approx(N / 2 * (405 + 510), rel=0.01)


def fetching() -> Case:
    """Host work of 900, a launch, a kernel of 92 and a wait for it."""
    return loop(
        1000,
        [launch("a", 900, 1000), row("cudaStreamSynchronize", 903, 97, 1000)],
        [kernel("a", 906, 92, 1000)],
    )


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
    del case["api_call"][2]  # no wait follows: host 35 + 3 + 3 and 52 until the next turn, below the GPU's 450
    assert fixed(case, "run_async", api_calls=ids(case, 0)) == pytest.approx(N * (400 + 1 + 50 + 1), rel=0.02)


def test_without_the_copy_its_time_and_its_call_go() -> None:
    case = copying("pageable", 5_500_000)
    # The launch reaches the GPU after 6, the kernel, 2 until the host sees it, host work.
    assert fixed(case, "drop_copy", gpu_ops=ids(case, 0, table="gpu_op")) == pytest.approx(
        N * (6 + 50 + 2 + 35), rel=0.01
    )


def tiny(kernels: int = 20, every: float = 220) -> Case:
    """Launches 10 apart of kernels of 3, then a wait for them, then host work."""
    end = 10 * kernels
    calls = [launch(f"k{number}", 10 * number, every, 4) for number in range(kernels)]
    ops = [kernel(f"k{number}", 10 * number + 6, 3, every) for number in range(kernels)]
    return loop(every, [*calls, row("cudaStreamSynchronize", end - 3, 4, every)], ops)


def test_a_graph_leaves_its_kernels_with_small_gaps_and_one_launch() -> None:
    case = tiny()
    left = 10 + 20 * 3 + 19 * 0.2  # the launch, the kernels, 0.2 between them
    found = fixed(case, "graph_region", api_calls=ids(case, *range(20)))
    assert found == pytest.approx(N * (left + 2 + 19), rel=0.06)


def test_a_graph_ends_at_a_wait() -> None:
    case = tiny(kernels=10, every=120)
    case["api_call"].insert(5, row("cudaStreamSynchronize", 44, 6, 120))
    found = fixed(case, "graph_region", api_calls=ids(case, *range(5), *range(6, 11)))
    one = fixed(tiny(kernels=10, every=120), "graph_region", api_calls=ids(tiny(kernels=10, every=120), *range(10)))
    assert found > one + N * 10, "a wait between them makes two graphs, each launched once a turn"


def test_host_work_between_launches_stays_when_they_become_a_graph() -> None:
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
    case["iteration"] = [turns(N - 1, every), {"start": every * (N - 1), "duration": every + 10}]
    return case


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


def test_an_allocation_from_a_pool_costs_next_to_nothing() -> None:
    case = loop(
        100, [row("cudaMalloc", 0, 60, 100), launch("a", 60, 100)], [kernel("a", 66, 10, 100)]
    )  # fmt: skip
    assert fixed(case, "pool_allocation", api_calls=ids(case, 0)) == pytest.approx(N * (1 + 40), rel=0.01)


def test_a_free_into_a_pool_does_not_wait_for_the_gpu() -> None:
    case = loop(
        150, [launch("a", 0, 150), row("cudaFree", 5, 105, 150)], [kernel("a", 8, 100, 150)]
    )  # fmt: skip
    # The host needs 45 a turn then: the GPU sets the pace.
    assert fixed(case, "pool_allocation", api_calls=ids(case, 1)) == pytest.approx(8 + N * 101, rel=0.01)


def test_a_fused_kernel_is_launched_once_and_does_the_work_of_all() -> None:
    case = tiny()
    found = fixed(case, "fuse_kernels", gpu_ops=ids(case, *range(20), table="gpu_op")[: 20 * N])
    assert found == pytest.approx(N * (6 + 20 * 3 + 2 + 19), rel=0.05)


def test_kernels_of_two_turns_do_not_become_one() -> None:
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


def test_copies_of_two_turns_are_not_made_in_one_call() -> None:
    """Even when the host makes all of them before the GPU begins the second turn."""
    case = uploads(100, 60)
    assert fixed(case, "batch_copies", gpu_ops=ids(case, 0, table="gpu_op")) == pytest.approx(10 + N * 160, rel=0.01)


def test_a_graph_ends_with_its_turn_however_far_the_host_runs_ahead() -> None:
    # Two kernels of 40, each 10 after the one before it: the pause within a turn goes, the one between turns stays.
    case = loop(100, [launch("a", 0, 10), launch("b", 5, 10)], [kernel("a", 10, 40, 100), kernel("b", 60, 40, 100)])
    case["iteration"] = [turns(N - 1, 100), {"start": 100 * (N - 1), "duration": 100}]
    assert fixed(case, "graph_region", api_calls=ids(case, 0, 1)) == pytest.approx(N * (40 + 0.2 + 40 + 10), rel=0.01)


def busy() -> Case:
    """Kernels of 100 that follow one another; the host launches early."""
    case = loop(100, [launch("a", 0, 10)], [kernel("a", 8, 100, 100)])
    case["iteration"] = [turns(N - 1, 100), {"start": 100 * (N - 1), "duration": 108}]
    return case


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
    case["iteration"] = [turns(N - 1, 200), {"start": 200 * (N - 1), "duration": 208}]
    assert fixed(case, "drop_call", api_calls=ids(case, 0)) == pytest.approx(8 + N * 100, rel=0.01)


def test_a_range_that_goes_takes_the_host_work_before_its_calls_with_it() -> None:
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


def test_a_framework_that_waits_after_each_copy_waits_once_for_all() -> None:
    calls = [row("cudaMemcpyAsync", 20 * n, 6, 200, label=f"c{n}") for n in range(8)]
    waits = [row("cudaStreamSynchronize", 20 * n + 7, 8, 200) for n in range(8)]
    case = loop(200, [*calls, *waits], [copy(f"c{n}", 20 * n + 7, 2, 200) for n in range(8)])
    # One call, one wait, and the host work of 45 after the last one; seven waits of 8 are gone.
    assert fixed(case, "batch_copies", gpu_ops=ids(case, *range(8), table="gpu_op")) == pytest.approx(
        N * (7 + 8 + 7 * 1 + 45), rel=0.2
    )
