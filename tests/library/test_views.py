"""What the packaged views make of a timeline: examples by hand, then laws on random timelines. Synthetic."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag.store import database
from random_timelines import LAW, read_blocks, timelines, waiting
from timelines import Case, iterations, launched, library, opened, rows

KERNEL = {"name": "gemm()", "duration": 40}


def budget(case: Case, **changed: float) -> dict[str, int]:
    """Nanoseconds of each category of loop 0."""
    with opened(case, "loop_budget", settings=changed) as con:
        return {row["category"]: row["ns"] for row in rows(con, "select * from loop_budget where loop = 0")}


# Examples: the state of a device


def test_all_streams_together_are_one_gpu() -> None:
    case = {"iteration": [iterations(1)], "gpu_op": [{**KERNEL, "start": 0}, {**KERNEL, "start": 30, "stream": 1}]}
    assert budget(case) == {"compute": 70_000, "idle_launch": 30_000}


def test_compute_hides_communication_which_hides_copies() -> None:
    case = {"iteration": [iterations(1)], "gpu_op": [
        {"kind": "memcpy", "copy_kind": "host_to_device", "start": 0, "duration": 90, "stream": 2},
        {"name": "ncclDevKernel_AllReduce(x)", "start": 20, "duration": 60, "stream": 1},
        {**KERNEL, "start": 40},
    ]}  # fmt: skip
    assert budget(case) == {
        "compute": 40_000, "exposed_communication": 20_000, "exposed_copy": 30_000, "idle_launch": 10_000,
    }  # fmt: skip


def test_a_graph_traced_as_one_block_is_busy() -> None:
    case = {"iteration": [iterations(1)], "gpu_op": [{"kind": "graph", "graph": 3, "start": 0, "duration": 100}]}
    assert budget(case) == {"compute": 100_000}


def test_the_moment_between_two_queued_kernels_is_not_idle() -> None:
    case = {"iteration": [iterations(1)], "gpu_op": [{**KERNEL, "start": 0}, {**KERNEL, "start": 41}]}
    assert budget(case) == {"compute": 81_000, "idle_launch": 19_000}
    assert budget(case, idle_noise_ns=900) == {"compute": 80_000, "idle_launch": 20_000}


def test_many_short_gaps_together_are_idle_time() -> None:
    # Kernels of 2 with gaps of 1: a third of the time is no noise.
    case = {"iteration": [iterations(1)], "gpu_op": [{**KERNEL, "duration": 2, "start": 0, "repeat": 33, "every": 3}]}
    assert budget(case) == {"compute": 66_000, "idle_launch": 34_000}


def test_two_gpus_count_twice() -> None:
    case = {
        "iteration": [iterations(2)],
        "gpu_op": [{**KERNEL, "start": 0}, {**KERNEL, "start": 0, "device": 1, "stream": 1}],
    }
    assert sum(budget(case).values()) == 400_000


def test_a_loop_without_a_gpu_is_all_host() -> None:
    case: Case = {"iteration": [iterations(4), iterations(4, loop=1, start=1000)], "gpu_op": [{**KERNEL, "start": 0}]}
    with opened(case, "loop_budget", "loop_facts") as con:
        assert rows(con, "select category, share from loop_budget where loop = 1") == [
            {"category": "idle_other", "share": 1.0}
        ]
        assert rows(con, "select busy_share, devices from loop_facts where loop = 1") == [
            {"busy_share": 0.0, "devices": 0}
        ]


def test_warm_up_and_what_follows_the_loop_are_not_looked_at() -> None:
    case: Case = {
        "iteration": [iterations(2, in_steady_state=False), {"start": 200, "duration": 100}],
        "gpu_op": [{**KERNEL, "start": start} for start in (0, 100, 200, 300)],
    }
    assert budget(case) == {"compute": 40_000, "idle_other": 60_000}


# Examples: the cause of idle time


def test_idle_after_a_wait_follows_from_it_within_limits() -> None:
    # 5 µs idle before the first kernel; later 40 until the next launch begins and 5 in it.
    assert budget(waiting(100, 40)) == {"compute": 950_000, "idle_sync": 45_000, "idle_launch": 5_000}
    short = budget(waiting(10, 40))
    assert short["idle_sync"] + short["idle_launch"] == 50_000
    assert 10_000 <= short["idle_sync"] <= 45_000


def test_a_host_computing_for_a_millisecond_is_no_wait() -> None:
    case = waiting(300, 600)
    assert budget(case, cpu_phase_ns=500_000)["idle_other"] == 600_000
    assert "idle_other" not in budget(waiting(300, 40), cpu_phase_ns=500_000)


def test_a_host_phase_after_more_launches_follows_from_the_wait() -> None:
    """The host waits 500 µs for a value, launches a kernel that needs it, and then prepares the next frame for 600."""
    case = launched(12, 1_200, ("first()", 0, 5, 480), ("second()", 520, 525, 40))
    for n in range(12):
        case["api_call"].append(
            {"label": f"wait {n}", "start": n * 1_200 + 10, "duration": 490, "name": "cudaStreamSynchronize"}
        )
    case["iteration"] = [iterations(12, 1_200)]
    after = budget(case, cpu_phase_ns=500_000)
    assert after["idle_sync"] >= 9 * 400_000
    # Without the wait the host would still take 710 µs of 1,200: the rest of its 600 are its own.
    assert after.get("idle_other", 0) <= 12 * 180_000


def test_idle_before_a_launch_is_the_launch_s() -> None:
    case = {"iteration": [iterations(5, 80)], **launched(5, 80, ("a()", 0, 10, 20), ("b()", 40, 50, 20))}
    assert budget(case) == {"compute": 200_000, "idle_launch": 200_000}


def test_allocations_and_loading_have_their_own_places() -> None:
    def case(call: str) -> Case:
        made = launched(5, 100, ("a()", 90, 93, 7))
        made["api_call"].append({"name": call, "start": 10, "duration": 70, "repeat": 5, "every": 100})
        return {"iteration": [iterations(5)], **made}

    assert budget(case("cudaMalloc"))["idle_allocation"] >= 5 * 70_000
    assert budget(case("cuModuleLoadData"))["idle_other"] >= 5 * 70_000
    assert budget(case("cudaFuncGetAttributes"))["idle_launch"] >= 5 * 70_000


def fetching(**more: Any) -> Case:
    made = launched(5, 1000, ("a()", 900, 905, 95))
    return {"iteration": [iterations(5, 1000)], **made, **more}


def test_idle_during_input_is_known_by_annotation_or_stack() -> None:
    assert "idle_input" not in budget(fetching())
    ranges = [{"name": "load_batch", "start": 1, "duration": 890, "repeat": 5, "every": 1000}]
    assert budget(fetching(nvtx_range=ranges))["idle_input"] >= 4 * 880_000
    frames = [
        {"function": "fetch", "file": "/v/site-packages/torch/utils/data/_utils/fetch.py", "line": 9},
        {"function": "main", "file": "/home/u/train.py", "line": 5},
    ]
    samples = [{"time": 100 + 1000 * iteration, "frames": frames} for iteration in range(5)]
    assert budget(fetching(py_sample=samples))["idle_input"] >= 4 * 880_000


# Examples: waits, copies, samples, annotations


def test_a_wait_while_another_stream_works_costs_nothing() -> None:
    case = {
        "iteration": [iterations(1)],
        "api_call": [
            {"label": "a", "name": "cudaLaunchKernel", "start": 0, "duration": 2},
            {"name": "cudaStreamSynchronize", "start": 5, "duration": 50},
        ],
        "gpu_op": [{"api_call": "a", "name": "gemm()", "start": 0, "duration": 100, "stream": 1}],
    }
    with opened(case, "blocking_call") as con:
        assert rows(con, "select kind, idle_ns, busy_share, read_bytes from blocking_call") == [
            {"kind": "sync", "idle_ns": 0, "busy_share": 1.0, "read_bytes": None}
        ]


def test_a_copy_hidden_by_a_kernel_is_not_exposed() -> None:
    copy = {"kind": "memcpy", "copy_kind": "host_to_device", "src_kind": "pageable", "bytes": 1 << 20, "duration": 30}
    case = {"iteration": [iterations(1)], "gpu_op": [
        {**KERNEL, "start": 0}, {**copy, "start": 20, "stream": 1}, {**copy, "start": 60, "src_kind": "pinned"},
    ]}  # fmt: skip
    with opened(case, "transfer") as con:
        assert rows(con, "select exposed_ns, pageable, duration_ns from transfer order by op") == [
            {"exposed_ns": 10_000, "pageable": True, "duration_ns": 30_000},
            {"exposed_ns": 30_000, "pageable": False, "duration_ns": 30_000},
        ]


def test_a_sample_belongs_to_the_call_it_interrupts_or_leads_to() -> None:
    own, library_frame = (
        {"function": "f", "file": "/home/u/a.py", "line": 7},
        {"function": "to", "file": "/v/site-packages/torch/x.py"},
    )
    case = {
        "iteration": [iterations(1)], **launched(1, 100, ("a()", 20, 25, 5), ("b()", 60, 70, 5)),
        "py_sample": [
            {"time": 10, "frames": [library_frame, own]}, {"time": 21, "frames": [own]},
            {"time": 61, "frames": [library_frame]},
            {"time": 90, "frames": [own]}, {"time": 10, "frames": [own], "thread": 1},
        ],
    }  # fmt: skip
    with opened(case, "call_sample") as con:
        found = rows(con, "select sample, api_call, inside, file, line from call_sample order by sample")
    assert [tuple(row.values()) for row in found] == [
        (0, 0, False, "/home/u/a.py", 7), (1, 0, True, "/home/u/a.py", 7), (2, 1, True, None, None),
    ]  # fmt: skip


def test_a_call_is_placed_in_its_innermost_annotation() -> None:
    case = {
        "iteration": [iterations(1)], **launched(1, 100, ("a()", 5, 6, 1), ("b()", 20, 21, 1),
                                             ("c()", 40, 41, 1), ("d()", 90, 91, 1)),
        "nvtx_range": [
            {"name": "step_7", "start": 0, "duration": 80, "label": "step"},
            {"name": "forward", "start": 15, "duration": 20, "parent": "step"},
            {"name": "cub::Scan", "start": 39, "duration": 9, "domain": "CCCL"},
        ],
    }  # fmt: skip
    with opened(case, "call_place") as con:
        assert [row["path"] for row in rows(con, "select path from call_place order by api_call")] == [
            "step", "step / forward", "step", None,
        ]  # fmt: skip


def test_calls_before_and_after_the_loop_are_separate() -> None:
    case = launched(12, 100, ("a()", 2, 10, 40), start=1000)
    case["nvtx_range"] = [{"name": "step", "start": 1000, "duration": 95, "repeat": 12, "every": 100}]
    case["api_call"] += [{"name": "cudaMalloc", "start": start, "duration": 10} for start in (0, 1050, 1550, 5000)]
    with opened(case, "setup_call") as con:
        phases = rows(con, "select phase, n from setup_call order by start")
    assert [tuple(row.values()) for row in phases] == [
        ("cold_start", 1), ("cold_start", 2), ("steady_state", 3), ("teardown", 4),
    ]  # fmt: skip


def test_a_small_range_around_a_read_exists_for_the_value() -> None:
    case = read_blocks(launches=2)
    with opened(case, "readback_range") as con:
        assert rows(con, "select distinct path from readback_range") == [{"path": "step / log"}]
    with opened(read_blocks(launches=20), "readback_range") as con:
        assert rows(con, "select distinct path from readback_range") == []


def copied_by_a_helper(sampled: bool = True, copying: float = 60) -> Case:
    """A thread that runs Python launches a step; another one, which does not, copies its result while it waits."""
    again = {"repeat": 4, "every": 100}
    case: Case = {
        "iteration": [iterations(4)],
        "thread": [{}, {}],
        "api_call": [
            {"label": "step", "name": "cuGraphLaunch", "start": 5, "duration": 5, **again},
            {"label": "copy", "thread": 1, "name": "cuMemcpyDtoHAsync", "start": copying, "duration": 4, **again},
        ],
        "gpu_op": [
            {"api_call": "step", "name": "step()", "start": 12, "duration": 40, **again},
            {"api_call": "copy", "kind": "memcpy", "copy_kind": "device_to_host", "start": copying + 1, "duration": 2,
             "src_kind": "device", "dst_kind": "pinned", "bytes": 4, **again},
        ],
    }  # fmt: skip
    if sampled:
        case["py_sample"] = [{"time": 50, "frames": [{"function": "f", "file": "/home/u/a.py", "line": 7}]}]
    return case


def threads_of_copies(case: Case) -> set[int]:
    with opened(case, "call") as con:
        return {row["thread"] for row in rows(con, "select thread from call where kind = 'copy'")}


def test_a_package_that_is_only_imported_is_no_framework_in_use() -> None:
    imported = [
        {"function": "<module>", "file": "/v/site-packages/torch/__init__.py", "line": 38},
        {"function": "<module>", "file": "/home/u/solve.py", "line": 5},
    ]
    used = [
        {"function": "asarray", "file": "/v/site-packages/cupy/_creation/from_data.py", "line": 88},
        {"function": "<module>", "file": "/home/u/solve.py", "line": 9},
    ]
    case = {"py_sample": [{"time": 1, "frames": imported}, {"time": 2, "frames": used}]}
    with opened(case, "framework_seen") as con:
        assert rows(con, "select * from framework_seen") == [{"framework": "cupy"}]


def test_copies_of_a_helping_thread_are_pythons() -> None:
    assert threads_of_copies(copied_by_a_helper()) == {0}
    with opened(copied_by_a_helper(), "idle_interval") as con:
        assert {row["thread"] for row in rows(con, "select thread from idle_interval")} == {0}


def test_a_thread_without_samples_may_run_python() -> None:
    assert threads_of_copies(copied_by_a_helper(sampled=False)) == {1}


def test_what_a_helper_copies_beside_a_call_is_its_own() -> None:
    assert threads_of_copies(copied_by_a_helper(copying=6)) == {1}


def reads_one_by_one(reads: int, kernel: str = "reduce_kernel<512, 1, ReduceOp<float, NormTwoOps>>") -> Case:
    """Two iterations that each launch a step, then as often a kernel and a read-back of 4 bytes."""
    again = {"repeat": 2, "every": 1000}
    calls = [{"label": "step", "name": "cudaLaunchKernel", "start": 0, "duration": 5, **again}]
    ops: list[dict[str, Any]] = [{"api_call": "step", "name": "gemm", "start": 10, "duration": 40, **again}]
    for number in range(reads):
        at = 60 + 30 * number
        calls += [
            {"label": f"norm {number}", "name": "cudaLaunchKernel", "start": at, "duration": 5, **again},
            {"label": f"read {number}", "name": "cudaMemcpy", "start": at + 10, "duration": 15, **again},
        ]
        ops += [
            {"api_call": f"norm {number}", "name": kernel, "start": at + 6, "duration": 10, **again},
            {"api_call": f"read {number}", "kind": "memcpy", "copy_kind": "device_to_host", "src_kind": "device",
             "dst_kind": "pageable", "bytes": 4, "start": at + 18, "duration": 2, **again},
        ]  # fmt: skip
    return {"iteration": [iterations(2, 1000)], "api_call": calls, "gpu_op": ops}


def burst_calls(case: Case) -> list[str]:
    """The functions called in rows of read-backs, in order."""
    query = """
        select n.text as name from readback_burst b
        join api_call a on a.id = b.api_call join name n on n.id = a.name order by a.start
    """
    with opened(case, "readback_burst") as con:
        return [row["name"] for row in rows(con, query)]


def test_values_read_one_by_one_are_a_row() -> None:
    """The first value stays, with what computes it."""
    assert burst_calls(reads_one_by_one(5)) == ["cudaLaunchKernel", "cudaMemcpy"] * 8


def test_a_few_values_are_no_row() -> None:
    assert burst_calls(reads_one_by_one(3)) == []


def test_reads_between_which_work_is_done_are_no_row() -> None:
    assert burst_calls(reads_one_by_one(8, kernel="spmv(float const*)")) == []


@pytest.fixture(scope="module")
def macros() -> database.Connection:
    con = database.create(small=True)
    database.load_settings(con, library().setting_values)
    database.load_macros(con, library().views)
    return con


@pytest.mark.parametrize(
    ("message", "label"),
    [("step_0", "step"), ("Iteration 12", "Iteration"), ("batch 3/100", "batch"), ("steps 10 to 20", "steps # to"),
     ("epoch [3]", "epoch"), ("forward", "forward"), ("12", "12"), ("layer2.conv1", "layer2.conv"), ("train", "train")],
)  # fmt: skip
def test_iteration_numbers_are_no_part_of_a_label(macros: database.Connection, message: str, label: str) -> None:
    assert macros.execute("select range_label(?)", [message]).fetchall() == [(label,)]


@pytest.mark.parametrize(
    ("message", "input_"),
    [("load_batch", True), ("data", True), ("dataloader", True), ("next batch", True), ("decode_jpeg", True),
     ("decode", False), ("decoder_layer", False), ("train", False),
     ("forward", False), ("decode_token", False), ("upload", False), ("database", False), ("next_token", False),
     ("load_weights", False), ("wait_for_allreduce", False), ("all2all_data:wait", False), ("halo_wait", False)],
)  # fmt: skip
def test_ranges_that_fetch_input_are_known_by_name(macros: database.Connection, message: str, input_: bool) -> None:
    assert macros.execute("select names_input(?)", [message]).fetchall() == [(input_,)]


def test_a_kernel_that_runs_when_a_pause_begins_computes_in_it() -> None:
    case: Case = {
        "iteration": [
            {"start": 0, "duration": 100, "repeat": 6, "every": 100},
            {"start": 600, "duration": 1100},
            {"start": 1700, "duration": 100, "repeat": 6, "every": 100},
        ],
        "api_call": [{"label": "a", "name": "cudaLaunchKernel", "start": 0, "duration": 3, "repeat": 18, "every": 100}],
        "gpu_op": [
            {"api_call": "a", "name": "short()", "start": 10, "duration": 50, "repeat": 6, "every": 100},
            {"name": "long()", "start": 595, "duration": 805},
            {"name": "short()", "start": 1710, "duration": 50, "repeat": 6, "every": 100},
        ],
    }
    with opened(case, "loop_pause") as con:
        [pause] = rows(con, "select * from loop_pause")
    assert (pause["idle_ns"], pause["kernels"]) == (200_000, 0)


# Laws


@pytest.mark.slow
@LAW
@given(case=timelines())
def test_every_nanosecond_of_every_device_is_accounted_for_once(case: Case) -> None:
    with opened(case, "gpu_time_slice", "loop_budget", "loop_facts", "host_blocking_call", "transfer") as con:
        intervals = rows(con, 'select device, start, "end", category from gpu_time_slice order by device, start')
        spans = rows(con, 'select start, "end" from steady_interval order by start')
        length = sum(span["end"] - span["start"] for span in spans)
        by_device: dict[int | None, list[Any]] = defaultdict(list)
        for interval in intervals:
            by_device[interval["device"]].append(interval)
            assert any(span["start"] <= interval["start"] < interval["end"] <= span["end"] for span in spans)
        for own in by_device.values():
            assert sum(interval["end"] - interval["start"] for interval in own) == length
            assert all(a["end"] <= b["start"] for a, b in pairwise(own)), "intervals of one device are disjoint"
        assert rows(con, "select sum(share) as s from loop_budget")[0]["s"] == pytest.approx(1)
        facts = rows(con, "select total_ns, busy_share + idle_share as both from loop_facts")
        assert facts == [{"total_ns": length * len(by_device), "both": pytest.approx(1)}]
        _idle_is_idle(con, intervals)
        _gaps_have_causes(con)
        _shadows_end(con)
        assert rows(con, "select op from transfer where exposed_ns > duration_ns or exposed_ns < 0") == []


def _idle_is_idle(con: database.Connection, intervals: list[Any]) -> None:
    """While any stream of a device works, no interval of it is idle."""
    ops = rows(con, 'select device, start, "end" from gpu_op')
    for interval in intervals:
        if interval["category"].startswith("idle"):
            inside = [
                o
                for o in ops
                if o["device"] == interval["device"] and o["start"] < interval["end"] and o["end"] > interval["start"]
            ]
            assert not inside


def _gaps_have_causes(con: database.Connection) -> None:
    """Every interval of idle time lies in one gap, and a gap is made of its intervals."""
    wrong = rows(con, """
        select g.gap from gap g left join idle_interval p using (gap)
        group by g.gap, g.start, g."end" having coalesce(sum(p."end" - p.start), 0) <> g."end" - g.start
            or min(p.start) <> g.start or max(p."end") <> g."end"
    """)  # fmt: skip
    assert wrong == []
    assert rows(con, "select idle_interval from idle_interval group by idle_interval having count(*) > 1") == []


def _shadows_end(con: database.Connection) -> None:
    """No idle time follows from a call that had not yet returned."""
    assert rows(con, """
        select h.id from host_blocking_call h join idle_interval p on p.cause_call = h.id where p.start < h."end"
    """) == []  # fmt: skip


@pytest.mark.slow
@LAW
@given(case=timelines(), where=st.floats(0, 1), length=st.integers(1, 40))
def test_more_work_never_makes_more_idle(case: Case, where: float, length: int) -> None:
    with opened(case, "loop_facts", "gap") as con:
        gaps = rows(con, 'select device, start / 1000 as start, "end" / 1000 as end from gap order by gap')
        before = rows(con, "select sum(total_ns * idle_share) as ns, sum(total_ns) as total from loop_facts")[0]
    if not gaps:
        return
    gap = gaps[int(where * (len(gaps) - 1))]
    more = {
        "device": gap["device"],
        "stream": 2 * gap["device"],
        "name": "gemm()",
        "start": gap["start"],
        "duration": length,
    }
    with opened({**case, "gpu_op": [*case["gpu_op"], more]}, "loop_facts") as con:
        after = rows(con, "select sum(total_ns * idle_share) as ns, sum(total_ns) as total from loop_facts")[0]
    assert after["total"] == before["total"]
    assert after["ns"] < before["ns"]
