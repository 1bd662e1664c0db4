"""What the profiler cost: the host's time is fitted to the unprofiled time, the GPU's never. All rows are synthetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag.replay.graph import Graph
from gpudiag.replay.overhead import Calibration, plausible, solve
from gpudiag.replay.simulate import length, replay
from replaying import graph_of, settings
from timelines import Case, iterations, launched


def host_bound() -> Graph:
    """Ten iterations of 200 µs, in which ten launches of 10 µs each leave the GPU idle most of the time."""
    case = launched(10, 200, *((f"k{n}()", 20 * n, 20 * n + 14, 2) for n in range(10)))
    for row in case["api_call"]:
        row["duration"] = 10
    return graph_of({"iteration": [iterations(10, 200)], **case})


def gpu_bound() -> Graph:
    """Ten iterations of 200 µs, in which the GPU is busy all the time and the host launches a kernel every 20 µs."""
    case: Case = launched(10, 200, ("gemm()", 0, 8, 200))
    case["api_call"][0] |= {"every": 20, "duration": 10}
    return graph_of({"iteration": [iterations(9, 200), {"start": 1800, "duration": 208}], **case})


HOST_BOUND, GPU_BOUND = host_bound(), gpu_bound()
SETTINGS = settings()


def takes(graph: Graph, calibration: Calibration) -> float:
    return length(graph, replay(graph, calibration.durations(graph)))


@pytest.mark.parametrize("part", [0.4, 0.55, 0.7, 0.9, 0.99, 1.1, 1.25])
def test_a_host_bound_loop_takes_its_unprofiled_time(part: float) -> None:
    wanted = HOST_BOUND.length * part
    assert takes(HOST_BOUND, solve(HOST_BOUND, wanted, SETTINGS)) == pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize("part", [0.98, 1.0, 1.02])
def test_a_loop_that_the_gpu_paces_says_nothing_of_the_host(part: float) -> None:
    assert solve(GPU_BOUND, GPU_BOUND.length * part, SETTINGS) == plausible(SETTINGS)[0]


@pytest.mark.parametrize(("graph", "part"), [(GPU_BOUND, 0.5), (HOST_BOUND, 0.01)], ids=["gpu", "host"])
def test_a_time_too_short_for_the_host_alone_gives_the_shortest(graph: Graph, part: float) -> None:
    found = takes(graph, solve(graph, graph.length * part, SETTINGS))
    rest = [takes(graph, guess) for guess in (*plausible(SETTINGS), Calibration(0, 1), Calibration(30_000, 0.3))]
    assert graph.length * part < found <= min(rest)


def test_a_time_too_long_for_the_host_alone_gives_the_longest() -> None:
    slowest = Calibration(0.0, SETTINGS["replay_host_floor"], SETTINGS["replay_most_host"])
    assert solve(HOST_BOUND, 3 * HOST_BOUND.length, SETTINGS) == slowest
    assert HOST_BOUND.length < takes(HOST_BOUND, slowest) < 1.31 * HOST_BOUND.length
    assert takes(GPU_BOUND, solve(GPU_BOUND, 3 * GPU_BOUND.length, SETTINGS)) == pytest.approx(
        GPU_BOUND.length, rel=0.01
    )


def test_recording_is_taken_off_each_call_and_leaves_part_of_it() -> None:
    def launch_ns(per_call: float) -> float:
        return float(Calibration(per_call, 0.3).durations(HOST_BOUND)[HOST_BOUND.leave[3]])

    assert launch_ns(0) == 10_000
    assert launch_ns(4_000) == 6_000
    assert launch_ns(1e6) == pytest.approx(3_000), "a launch takes some time whatever recording cost"


def test_recording_slows_python_but_no_long_phase() -> None:
    def shorter(host_us: float) -> float:
        """What is left of an iteration that the host spends almost all of in one stretch."""
        case = launched(10, host_us + 20, ("k()", host_us, host_us + 15, 2))
        graph = graph_of({"iteration": [iterations(10, host_us + 20)], **case})
        usual, slowed = plausible(SETTINGS)[0], plausible(SETTINGS, python=True)[0]
        return takes(graph, slowed) / takes(graph, usual)

    assert shorter(300) == pytest.approx(SETTINGS["replay_python"], abs=0.03)
    assert shorter(5_000) > 0.99


@given(per_call=st.floats(0, 1e5), floor=st.floats(0, 1), driver=st.floats(0.1, 1.3))
def test_gpu_work_takes_as_long_with_a_profiler_as_without(per_call: float, floor: float, driver: float) -> None:
    for graph in (HOST_BOUND, GPU_BOUND):
        found = Calibration(per_call, floor, driver).durations(graph)
        np.testing.assert_array_equal(found[graph.op], graph.duration[graph.op])
        assert (found >= 0).all()


@given(per_call=st.floats(0, 3e4), more=st.floats(0, 3e4))
def test_the_more_recording_cost_the_shorter_the_loop_without_it(per_call: float, more: float) -> None:
    assert takes(HOST_BOUND, Calibration(per_call + more, 0.3)) <= takes(HOST_BOUND, Calibration(per_call, 0.3)) + 1e-3


def graph_launches() -> Graph:
    """Ten iterations of 200 µs: a graph of 40 kernels, handed over by a launch of 40 µs, for 30 µs of GPU work."""
    case: Case = launched(10, 200, ("node()", 0, 45, 30))
    case["api_call"][0] |= {"name": "cudaGraphLaunch", "duration": 40}
    (op,) = case["gpu_op"]
    first = op["start"]
    case["gpu_op"] = [{**op, "start": first + 0.75 * n, "duration": 0.7, "graph_node": n + 1} for n in range(40)]
    return graph_of({"iteration": [iterations(10, 200)], **case})


def test_a_graph_starts_sooner_where_its_nodes_go_unrecorded() -> None:
    graph, usual = graph_launches(), plausible(SETTINGS)[0]
    saved = graph.duration[graph.leave] - usual.durations(graph)[graph.leave]
    assert saved == pytest.approx(np.full(10, 4_000 + 40 * 600.0))
    first = graph.op[0]
    recorded, faster = (replay(graph, one)[first] for one in (None, usual.durations(graph)))
    assert recorded - faster == pytest.approx(saved[0], rel=0.01)
