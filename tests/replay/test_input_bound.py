"""Waits for input: which of them set the pace of a loop, and which only take as long as they took. Times in µs."""

from __future__ import annotations

import pytest

from gpudiag.replay import estimate, simulate
from replaying import fixed, graph_of, loop_model, rule, settings
from timelines import Case, iterations

from .test_edits import N, ids, kernel, launch, loop, row

EVERY = 1000


def waiting(*iterations: int) -> Case:
    """A kernel of 890 and a wait for it; before the launch of these iterations, 700 of waiting for a batch instead."""
    busy = [i for i in range(N) if i + 1 not in iterations]
    short = [i for i in range(N) if i + 1 in iterations]
    calls = [launch(str(i), i * EVERY, EVERY) | {"repeat": 1} for i in range(N)]
    ends = {i: 900 if i in busy else 300 for i in range(N)}
    calls += [row("cudaStreamSynchronize", i * EVERY + 5, ends[i] - 5, EVERY) | {"repeat": 1} for i in range(N)]
    ops = [kernel(str(i), i * EVERY + 8, ends[i] - 10, EVERY) | {"repeat": 1} for i in range(N)]
    case = loop(EVERY, calls, ops)
    case["nvtx_range"] = [{"name": "data_loading", "start": i * EVERY + 305, "duration": 690} for i in short]
    case["os_call"] = [{"name": "poll", "start": i * EVERY + 310, "duration": 680} for i in short]
    return case


def halved(case: Case) -> float:
    """How long the loop takes with kernels of half their time."""
    return fixed(case, "shrink_kernel", gpu_ops=ids(case, *range(N), table="gpu_op"), recoverable=0.5)


def test_one_wait_for_input_does_not_pin_the_loop() -> None:
    assert halved(waiting(5)) == pytest.approx(9 * (EVERY - 445) + (EVERY - 145), rel=0.02)


def test_a_wait_at_the_end_of_a_loader_does_not_pin_it() -> None:
    assert halved(waiting(N - 1)) == pytest.approx(9 * (EVERY - 445) + (EVERY - 145), rel=0.02)


def test_a_loader_waited_for_every_time_sets_the_pace() -> None:
    assert halved(waiting(*range(1, N))) == pytest.approx(N * EVERY, rel=0.06)


def test_input_that_is_ready_ahead_ends_the_pace() -> None:
    case = waiting(*range(1, N))
    fetched = ids(case, *range(1, N))
    assert fixed(case, "to_workers", api_calls=fetched, changed={"replay_workers": 100}) < 0.5 * N * EVERY


def test_a_stretch_promises_no_more_than_its_loop() -> None:
    case = waiting(*range(1, N))
    wanted, fetched = rule("to_workers"), ids(case, *range(1, N))
    with loop_model(case, replay_workers=100) as model:
        chosen = model.select(wanted, [{"api_calls": fetched}])
        assert chosen is not None
        assert estimate.price(model, wanted, chosen).expected < 0.5
        model.computing, model.stretch = 0.9, True  # of the loop, of which the rows are a stretch
        price = estimate.price(model, wanted, chosen)
    assert 0.85 < price.low <= price.expected < 0.95


def asleep(for_each: float) -> Case:
    """A GPU that is always busy, and a host that sleeps in each iteration for a reason that was not recorded."""
    case: Case = {
        "iteration": [iterations(N, EVERY)],
        "api_call": [launch("a", 0, EVERY)],
        "gpu_op": [kernel("a", 8, 985, EVERY)],
        "os_call": [{"name": "poll", "start": 10, "duration": for_each, "repeat": N, "every": EVERY}],
    }
    return case


def test_a_replay_that_sleep_alone_holds_is_not_believed() -> None:
    doubt = simulate.held([graph_of(asleep(980))], settings())
    assert doubt is not None
    assert doubt.kind == "held"


def test_a_host_that_works_is_no_reason_for_doubt() -> None:
    assert simulate.held([graph_of(asleep(100))], settings()) is None


def test_a_thread_that_pins_a_batch_hands_nothing_over_late() -> None:
    """Each iteration waits for a thread that pins its batch, first to look at the batch and then to launch."""
    calls = [
        row("cudaHostAlloc", 100, 400, EVERY) | {"thread": 1},
        row("cudaEventQuery", 510, 5, EVERY),
        row("cudaEventRecord", 520, 280, EVERY) | {"thread": 1},
        launch("k", 810, EVERY),
    ]
    case = loop(EVERY, calls, [kernel("k", 818, 100, EVERY)])
    ready = fixed(case, "to_workers", api_calls=ids(case, 1), changed={"replay_workers": 100})
    assert ready < N * (EVERY - 700)
