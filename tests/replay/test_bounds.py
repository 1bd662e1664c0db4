"""What a fix can at most remove: intervals of recorded time, never more than there is. All rows are synthetic."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag.model import Rule
from gpudiag.replay import bounds
from gpudiag.replay.edits import registry
from gpudiag.store import database
from random_timelines import LAW, read_blocks, timelines, waiting
from timelines import Case, iterations, launched, opened, rows

VIEWS = (
    "idle_interval",
    "work",
    "transfer",
    "loop_budget",
    "loop_facts",
    "device_state",
    "readback_range",
    "host_result_work",
    "device_link",
)
claims = st.dictionaries(
    st.sampled_from(["interval:1", "interval:2", "op:1", "op:2", "loop"]), st.floats(0, 1e6), max_size=5
)


def rule(*edits: str, on: str = "api_calls", **price: Any) -> Rule:
    return Rule.model_validate({
        "code": "H01", "kind": "finding", "id": "x", "title": "T", "query": "select 1", "message": "m", "why": "w",
        "not_a_problem_when": "n", "what": "x", "price": {"kind": "expected", "on": on, "expected": edits, **price},
    })  # fmt: skip


def removed(case: Case, edits: tuple[str, ...], on: str = "api_calls", **row: Any) -> float:
    """What the edits could take from loop 0, in µs."""
    with opened(case, *VIEWS) as con:
        return sum(bounds.claim(con, rule(*edits, on=on), [row], 0, _total(con)).values()) / 1000


def _total(con: database.Connection) -> float:
    return float(rows(con, "select total_ns from loop_facts where loop = 0")[0]["total_ns"])


# Merging


@given(a=claims, b=claims, c=claims)
def test_merging_obeys_set_laws_and_never_shrinks(a: bounds.Claim, b: bounds.Claim, c: bounds.Claim) -> None:
    def merged(*parts: bounds.Claim) -> bounds.Claim:
        result: bounds.Claim = {}
        for part in parts:
            bounds.merge(result, part)
        return result

    assert merged(a, b, a) == merged(a, b) == merged(b, a)
    assert merged(a, b, c) == merged(merged(a, b), c) == merged(a, merged(b, c))
    total = 1e7
    assert bounds.measure(merged(a, b), total) >= max(bounds.measure(a, total), bounds.measure(b, total))
    assert bounds.measure(merged(a, b), total) <= bounds.measure(a, total) + bounds.measure(b, total) + 1e-9


@given(a=claims, total=st.floats(0, 1e6))
def test_no_claim_is_more_than_the_whole_loop(a: bounds.Claim, total: float) -> None:
    assert 0 <= bounds.measure(a, total) <= 1


# Edits


@pytest.mark.slow
def test_dropping_a_wait_frees_the_idle_time_in_and_after_it() -> None:
    case = waiting(wait=100, until_launch=40)
    assert removed(case, ("drop_sync",), api_calls=[1]) == 45
    case["gpu_op"][0]["end"] = 65  # the host sleeps on for 40 µs after the GPU is done
    assert removed(case, ("drop_sync",), api_calls=[1]) == 85
    assert removed(case, ("graph_region",), api_calls=[1]) == 0


@pytest.mark.slow
def test_a_graph_saves_launching_and_nothing_of_a_wait() -> None:
    case = {"iteration": [iterations(5, 80)], **launched(5, 80, ("a()", 0, 10, 20), ("b()", 40, 50, 20))}
    calls = list(range(10))
    assert removed(case, ("graph_region",), api_calls=calls) == pytest.approx(200, abs=10)
    assert removed(case, ("drop_sync",), api_calls=calls) < removed(case, ("graph_region",), api_calls=calls)


def test_workers_take_what_the_host_did_before_the_call() -> None:
    made = launched(5, 1000, ("a()", 900, 905, 95))
    case = {"iteration": [iterations(5, 1000)], **made}
    assert removed(case, ("to_workers",), api_calls=[1, 2]) == pytest.approx(2 * 900, rel=0.01)


def copying(copy: float, kernel: float, kind: str = "pageable", size: int = 1 << 20) -> Case:
    """Ten iterations: a copy in, then a kernel, nothing else."""
    made = launched(10, copy + kernel, ("gemm()", 3, copy, kernel))
    made["api_call"].append(
        {"label": "copy", "name": "cudaMemcpyAsync", "start": 0, "duration": 2, "repeat": 10, "every": copy + kernel}
    )
    made["gpu_op"].append({
        "api_call": "copy", "kind": "memcpy", "copy_kind": "host_to_device", "src_kind": kind, "bytes": size,
        "start": 0, "duration": copy, "repeat": 10, "every": copy + kernel,
    })  # fmt: skip
    return {"iteration": [iterations(10, copy + kernel)], **made}


@pytest.mark.slow
@pytest.mark.parametrize(("copy", "kernel"), [(40, 60), (70, 30), (10, 200)])
def test_overlap_makes_no_loop_shorter_than_its_busiest_engine(copy: float, kernel: float) -> None:
    ops = list(range(10, 20))
    assert removed(copying(copy, kernel), ("overlap_copy",), "gpu_ops", gpu_ops=ops) == pytest.approx(
        10 * min(copy, kernel)
    )
    assert removed(copying(copy, kernel), ("drop_copy",), "gpu_ops", gpu_ops=ops) == pytest.approx(10 * copy)


@pytest.mark.slow
def test_pinning_keeps_the_time_the_link_needs() -> None:
    case = copying(400, 100, size=5_500_000)  # 100 µs at the 55 GB/s of settings.pinned_bytes_per_s
    assert removed(case, ("pin",), "gpu_ops", gpu_ops=list(range(10, 20))) == pytest.approx(10 * 300)
    assert removed(case, ("pin", "overlap_copy"), "gpu_ops", gpu_ops=list(range(10, 20))) == pytest.approx(10 * 100)
    fast = copying(50, 100, size=5_500_000)
    assert removed(fast, ("pin",), "gpu_ops", gpu_ops=list(range(10, 20))) == 0


@pytest.mark.slow
def test_dropping_a_range_takes_its_whole_block() -> None:
    for launches, whole in ((4, True), (20, False)):
        case = read_blocks(launches)
        with opened(case, "call") as con:
            reads = [row["id"] for row in rows(con, "select id from call where kind = 'copy' order by id")]
        alone = removed(case, ("drop_sync", "drop_copy", "graph_region"), api_calls=reads)
        block = removed(case, ("drop_sync", "drop_copy", "drop_range"), api_calls=reads)
        assert (block > alone) is whole


def test_kernels_that_overlap_are_worth_the_time_they_share() -> None:
    made = launched(4, 100, ("a()", 0, 5, 80), ("b()", 5, 10, 75))
    for op in made["gpu_op"]:
        op["stream"] = 0 if op["name"] == "a()" else 1
    case = {"iteration": [iterations(4)], **made}
    assert removed(case, ("shrink_kernel",), "gpu_ops", gpu_ops=list(range(8))) == pytest.approx(4 * 80)
    half = removed(case, ("shrink_kernel",), "gpu_ops", gpu_ops=list(range(8)), recoverable=0.5)
    assert half == pytest.approx(2 * 80)


@pytest.mark.slow
def test_intervals_are_claimed_as_they_are() -> None:
    case = {"iteration": [iterations(5, 80)], **launched(5, 80, ("a()", 0, 10, 20), ("b()", 40, 50, 20))}
    with opened(case, "idle_interval") as con:
        found = rows(con, 'select idle_interval, "end" - start as ns from idle_interval order by idle_interval limit 2')
    first, second = found
    intervals = [first["idle_interval"], second["idle_interval"]]
    assert (
        removed(case, ("graph_region",), "idle_intervals", idle_intervals=intervals) * 1000
        == first["ns"] + second["ns"]
    )
    thrice = [first["idle_interval"]] * 3
    assert removed(case, ("graph_region",), "idle_intervals", idle_intervals=thrice) * 1000 == first["ns"]


def test_rows_without_ids_claim_their_share_at_most() -> None:
    case = copying(40, 60)
    with opened(case, *VIEWS) as con:
        share = [{"share": 0.6}, {"share": 0.7}]
        assert bounds.claim(con, rule("drop_sync"), share, 0, 1000.0) == {"loop": 1000.0}
        assert bounds.claim(con, rule("drop_sync"), share[:1], 0, 1000.0) == {"loop": 600.0}


def test_nothing_selected_promises_nothing() -> None:
    case = copying(40, 60)
    with opened(case, *VIEWS) as con:
        for edit in registry.known():
            for on in ("api_calls", "gpu_ops", "idle_intervals"):
                assert bounds.claim(con, rule(edit, on=on), [{on: []}], 0, 1e6) == {}
        test = rule(kind="test_needed", test="Try it.", expected=())
        assert bounds.claim(con, test, [{"api_calls": [0, 1]}], 0, 1e6) == {}
        assert bounds.claim(con, rule("drop_copy", on="gpu_ops"), [{"gpu_ops": [10]}], 7, 1e6) == {}, (
            "another loop's time"
        )


@pytest.mark.slow
@LAW
@given(
    case=timelines(),
    edits=st.lists(st.sampled_from(list(registry.known())), min_size=1, max_size=4),
    part=st.floats(0, 1),
)
def test_a_claim_grows_with_its_rows_up_to_the_loop(case: Case, edits: list[str], part: float) -> None:
    with opened(case, *VIEWS) as con:
        total = _total(con)
        for on, ids in (("api_calls", range(len(case["api_call"]))), ("gpu_ops", range(len(case["gpu_op"])))):
            everything = bounds.claim(con, rule(*edits, on=on), [{on: list(ids)}], 0, total)
            some = bounds.claim(con, rule(*edits, on=on), [{on: list(ids)[: int(part * len(ids))]}], 0, total)
            assert sum(everything.values()) <= total * (1 + 1e-9)
            assert all(ns >= 0 for ns in everything.values())
            assert set(some) <= set(everything)
            assert sum(some.values()) <= sum(everything.values()) * (1 + 1e-9)
