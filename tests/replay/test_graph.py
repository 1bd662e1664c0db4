"""What held everything back is found: the replay of a recorded timeline gives the timeline. Times by hand, in µs."""

from __future__ import annotations

from typing import Any

from gpudiag.replay.edges.edge_list import EdgeKind
from replaying import unedited
from timelines import Case, iterations, launched

ITERATIONS = 10
FREE = [{"id": 0, "kind": "non_blocking"}, {"id": 1, "kind": "non_blocking"}]


def row(name: str, start: float, duration: float, every: float = 200, **more: Any) -> Case:
    """A call or an operation of each iteration."""
    return {"name": name, "start": start, "duration": duration, "repeat": ITERATIONS, "every": every, **more}


def launch(label: str, start: float, duration: float = 3, **more: Any) -> Case:
    return row("cudaLaunchKernel", start, duration, label=label, **more)


def kernel(call: str, start: float, duration: float, **more: Any) -> Case:
    return row(f"{call}()", start, duration, api_call=call, **more)


def copy(call: str, start: float, duration: float, direction: str = "host_to_device", **more: Any) -> Case:
    kinds: Case = {
        "kind": "memcpy",
        "copy_kind": direction,
        "src_kind": "pinned",
        "dst_kind": "device",
        "bytes": 1 << 20,
    }
    made = row("", start, duration, api_call=call, **kinds | more)
    del made["name"]
    return made


def loop(calls: list[Case], ops: list[Case], every: float = 200, **more: Any) -> Case:
    return {"iteration": [iterations(ITERATIONS, every)], "api_call": calls, "gpu_op": ops, **more}


def wait(name: str, kind: str, start: float, end: float, **more: Any) -> Case:
    """One kernel of 92 µs in stream 0, one of 42 in stream 1, and a wait."""
    return loop(
        [launch("a", 0), launch("b", 5), row(name, start, end - start, label="wait")],
        [kernel("a", 8, 92), kernel("b", 13, 42, stream=1)],
        stream=FREE,
        sync=[
            {"api_call": "wait", "kind": kind, "start": start, "duration": end - start, "repeat": ITERATIONS,
             "every": 200, **more}
        ],
    )  # fmt: skip


def test_launches_set_the_pace() -> None:
    found = unedited({"iteration": [iterations(10)], **launched(10, 100, ("a()", 10, 18, 20), ("b()", 50, 58, 20))})
    found.check(EdgeKind.HOST, EdgeKind.LAUNCH, EdgeKind.STREAM)
    assert EdgeKind.WAIT not in found.kinds


def test_a_gpu_bound_host_may_finish_before_the_window() -> None:
    # Thirty launches within 300 µs; iterations 10 to 29 run from 1015 on.
    again = {"repeat": 30, "label": "a"}
    found = unedited({
        "iteration": [{"start": 1015, "duration": 101, "repeat": 19, "every": 101}, {"start": 2934, "duration": 100}],
        "api_call": [{"name": "cudaLaunchKernel", "start": 0, "duration": 3, "every": 10, **again}],
        "gpu_op": [
            {"name": "gemm()", "api_call": "a", "start": 5, "duration": 100, "repeat": 30, "every": 101}
        ],
    })  # fmt: skip
    found.check(EdgeKind.LAUNCH, EdgeKind.STREAM)
    assert len(found.graph.record.calls) == len(found.graph.record.ops) == 20, "earlier work is not part of the window"


def test_a_stream_wait_holds_the_host_until_it_is_done() -> None:
    found = unedited(wait("cudaStreamSynchronize", "stream", 10, 104, stream=0))
    found.check(EdgeKind.WAIT)
    assert (found.graph.edge_kind == EdgeKind.WAIT).sum() == ITERATIONS, "the other stream is not waited for"


def test_a_wait_for_one_stream_does_not_wait_for_a_longer_one() -> None:
    found = unedited(wait("cudaStreamSynchronize", "stream", 10, 59, stream=1))
    found.check(EdgeKind.WAIT)
    waits = found.graph.edge_kind == EdgeKind.WAIT
    assert set(found.graph.source[waits]) == set(found.graph.op[found.graph.record.ops.stream == 1])


def test_a_device_wait_holds_the_host_until_all_is_done() -> None:
    found = unedited(wait("cudaDeviceSynchronize", "context", 10, 104))
    found.check(EdgeKind.WAIT)
    assert (found.graph.edge_kind == EdgeKind.WAIT).sum() == 2 * ITERATIONS


def test_a_copy_from_pageable_memory_blocks() -> None:
    unedited(loop(
        [row("cudaMemcpyAsync", 0, 60, label="c"), launch("a", 70)],
        [copy("c", 10, 45, src_kind="pageable"), kernel("a", 76, 100)],
    )).check(EdgeKind.WAIT, EdgeKind.STREAM)  # fmt: skip


def test_freeing_memory_waits_for_the_gpu() -> None:
    unedited(loop([launch("a", 0), row("cudaFree", 5, 103)], [kernel("a", 8, 92)])).check(EdgeKind.WAIT)


def test_freeing_memory_that_nothing_uses_waits_for_nothing() -> None:
    found = unedited(loop([launch("a", 0), row("cudaFree", 120, 20)], [kernel("a", 8, 92)]))
    found.check()
    assert EdgeKind.WAIT not in found.kinds


def two_streams(**more: Any) -> Case:
    """A kernel in stream 1, launched early, that begins 3 µs after the one in stream 0 ended."""
    return loop(
        [launch("a", 0), launch("b", 6)],
        [kernel("a", 8, 92, label="first"), kernel("b", 103, 50, stream=1)],
        stream=FREE, **more,
    )  # fmt: skip


def test_a_stream_waits_for_an_event_of_another() -> None:
    events = [{"from_op": "first", "from_stream": 0, "to_stream": 1, "time": 4, "repeat": ITERATIONS, "every": 200}]
    found = unedited(two_streams(event_edge=events))
    found.check(EdgeKind.EVENT)
    events_of = found.graph.edge_kind == EdgeKind.EVENT
    assert found.graph.lag[events_of].tolist() == [3000.0] * ITERATIONS


def test_a_stream_waits_for_another_without_a_recorded_event() -> None:
    found = unedited(two_streams())
    found.check(EdgeKind.INFERRED)
    assert EdgeKind.EVENT not in found.kinds


def test_a_kernel_waits_for_room_beside_another() -> None:
    # It begins 20 µs before the kernel that fills the GPU ends, long after its launch: then there was room.
    found = unedited(loop(
        [launch("a", 0), launch("b", 6)], [kernel("a", 8, 92), kernel("b", 80, 50, stream=1)], stream=FREE,
    ))  # fmt: skip
    found.check(EdgeKind.INFERRED)
    inferred = found.graph.edge_kind == EdgeKind.INFERRED
    assert set(found.graph.lag[inferred].tolist()) == {-20_000.0}


def test_copies_of_one_direction_share_an_engine() -> None:
    calls = [row("cudaMemcpyAsync", 0, 3, label="c"), row("cudaMemcpyAsync", 5, 3, label="d")]
    unedited(loop(calls, [copy("c", 8, 50), copy("d", 59, 50, stream=1)], stream=FREE)).check(EdgeKind.ENGINE)


def test_copies_of_opposite_directions_do_not_share_an_engine() -> None:
    calls = [row("cudaMemcpyAsync", 0, 3, label="c"), row("cudaMemcpyAsync", 5, 3, label="d")]
    ops = [copy("c", 8, 50), copy("d", 13, 50, "device_to_host", stream=1)]
    one = unedited(loop(calls, ops, stream=FREE))
    one.check()
    engine = one.graph.edge_kind == EdgeKind.ENGINE
    direction = dict(zip(one.graph.op.tolist(), one.graph.record.ops.direction.tolist(), strict=True))
    for source, target in zip(one.graph.source[engine].tolist(), one.graph.target[engine].tolist(), strict=True):
        assert direction[source] == direction[target]


def test_the_legacy_default_stream_waits_for_blocking_streams() -> None:
    streams = [{"id": 0, "kind": "null"}, {"id": 1, "kind": "blocking"}]
    calls, ops = [launch("a", 0), launch("b", 6)], [kernel("a", 8, 92, stream=1), kernel("b", 102, 50)]
    unedited(loop(calls, ops, stream=streams)).check(EdgeKind.LEGACY)
    streams[1]["kind"] = "non_blocking"
    found = unedited(loop(calls, ops, stream=streams))
    found.check(EdgeKind.INFERRED)
    assert EdgeKind.LEGACY not in found.kinds


def test_a_second_thread_runs_backward_while_the_first_waits() -> None:
    own = {"thread": 1}
    found = unedited(loop(
        [launch("a", 0), launch("b", 20, **own), launch("c", 60, **own), launch("d", 105, **own), launch("e", 130)],
        [kernel("a", 8, 10), kernel("b", 28, 20), kernel("c", 68, 20), kernel("d", 113, 10), kernel("e", 138, 20)],
    ))  # fmt: skip
    found.check(EdgeKind.CROSS_THREAD)
    one = found.graph
    over = one.edge_kind == EdgeKind.CROSS_THREAD
    own_calls, main = one.leave[one.record.calls.thread == 1], one.enter[one.record.calls.thread == 0]
    assert (set(one.source[over]) & set(own_calls)) and (set(one.target[over]) & set(main))


def test_a_launch_blocks_while_the_queue_is_full() -> None:
    # Four kernels an iteration of 50 µs each; the fourth launch returns when the third kernel has ended.
    calls = [launch(label, start) for label, start in (("a", 0), ("b", 5), ("c", 10))]
    ops = [kernel(label, 43 + 50 * number, 50) for number, label in enumerate("abcd")]
    case = loop([*calls, launch("d", 15, 180)], ops)
    case["iteration"] = [iterations(ITERATIONS - 1, 200), {"start": 200 * (ITERATIONS - 1), "duration": 243}]
    unedited(case).check(EdgeKind.WAIT, EdgeKind.STREAM)


def test_operations_without_launches_keep_their_places() -> None:
    ops = [{**kernel(call, start, 60), "api_call": None} for call, start in (("a", 8), ("b", 100))]
    found = unedited(loop([row("cudaFuncGetAttributes", 0, 3)], ops))
    found.check(EdgeKind.STREAM)
    assert EdgeKind.LAUNCH not in found.kinds
