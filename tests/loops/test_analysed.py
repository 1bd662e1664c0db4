"""Iterations that load code for the first time belong to the warm-up, wherever they come. All rows are synthetic."""

from __future__ import annotations

from timelines import Case, iterations, opened, rows

NUMBER, LENGTH = 40, 100.0


def case(
    at: tuple[int, ...],
    kernel: str = "eval_{}()",
    length: float = 300,
    load: float | None = None,
    short: tuple[int, ...] = (),
) -> Case:
    """A loop of 40 iterations; those numbered in `at` also load code, launch a kernel and take `length` µs.

    load: how long the loading takes of that (µs), if not all that they take longer than the others.
    short: more of the kind, which take twice as long as usual.
    """
    lengths = dict.fromkeys(short, 2 * LENGTH) | dict.fromkeys(at, length)
    loads = {n: taken - LENGTH if load is None else load for n, taken in lengths.items()}
    begins = [0.0]
    for number in range(NUMBER):
        begins.append(begins[-1] + lengths.get(number, LENGTH))
    times = [{"start": begins[n], "duration": begins[n + 1] - begins[n]} for n in range(NUMBER)]
    calls = [
        {"label": f"step {n}", "name": "cudaLaunchKernel", "start": begins[n] + 5, "duration": 3} for n in range(NUMBER)
    ]
    ops = [{"api_call": f"step {n}", "name": "train()", "start": begins[n] + 10, "duration": 40} for n in range(NUMBER)]
    for n, taken in loads.items():
        calls += [
            {"label": f"load {n}", "name": "cuLibraryLoadData", "start": begins[n + 1] - 40 - taken, "duration": taken},
            {"label": f"eval {n}", "name": "cudaLaunchKernel", "start": begins[n + 1] - 30, "duration": 3},
        ]
        ops += [{"api_call": f"eval {n}", "name": kernel.format(n), "start": begins[n + 1] - 25, "duration": 20}]
    ranges = [{"name": f"step_{n}", **time} for n, time in enumerate(times)]
    return {"api_call": calls, "gpu_op": ops, "nvtx_range": ranges}


def left_out(captured: Case, **settings: float) -> list[int]:
    with opened(captured, settings=settings) as con:
        found = rows(con, "select ordinal from iteration where not in_steady_state order by ordinal")
    return [row["ordinal"] for row in found if row["ordinal"] >= 4]


def test_a_first_validation_is_warm_up() -> None:
    assert left_out(case((20,))) == [20]


def test_its_kernels_are_known_the_second_time() -> None:
    assert left_out(case((20, 30), kernel="eval()")) == [20]


def test_loading_again_and_again_is_no_warm_up() -> None:
    assert left_out(case(tuple(range(6, 40, 3)))) == []
    assert left_out(case(tuple(range(6, 40, 3))), first_use_share=0.5) == list(range(6, 40, 3))


def test_a_known_kernel_built_once_is_warm_up() -> None:
    assert left_out(case((20,), kernel="train()")) == [20]
    assert left_out(case((20, 30), kernel="train()")) == []


def test_what_others_load_in_no_time_is_another_matter() -> None:
    assert left_out(case((20,), kernel="train()", length=4000, short=(25, 30))) == [20]
    assert left_out(case((20,), kernel="train()", length=900, short=(25, 30))) == []


def test_a_compiler_may_make_small_calls_between_its_phases() -> None:
    seen = case((20,), kernel="train()", load=20)
    seen["api_call"] += [{"name": "cuCtxSetCurrent", "start": start, "duration": 1} for start in (2100, 2150, 2200)]
    assert left_out(seen) == [20]


def test_an_iteration_long_for_another_reason_counts() -> None:
    seen = {**case((20,), kernel="train()", load=20)}
    seen["api_call"].append({"name": "cudaStreamSynchronize", "start": 2060, "duration": 170})
    assert left_out(seen) == []


def test_a_first_use_that_takes_no_longer_counts() -> None:
    assert left_out(case((20,), length=130)) == []


def test_the_iterations_left_make_the_figures() -> None:
    with opened(case((20,), length=4000)) as con:
        [loop] = rows(con, "select * from loop")
    assert (loop["steady_iterations"], loop["iteration_ns"]) == (35, 100_000)


def test_given_iterations_stay_as_they_are() -> None:
    with opened({"iteration": [iterations(12)]}) as con:
        assert len(rows(con, "select * from iteration where in_steady_state")) == 12
