"""Several loops one after another, and what repeats but is none of them. All rows but one capture's are synthetic."""

from __future__ import annotations

from pathlib import Path

import pytest

import timelines
from evaluation.packed import recording
from gpudiag.ingest import ingest
from gpudiag.loops.detect import detect
from gpudiag.store import database
from paths import ROOT
from timelines import Case, launched, library, opened

TRAIN = (("gemm()", 2.0, 10.0, 30.0), ("relu()", 6.0, 45.0, 10.0))
SOLVE = (("solve()", 2.0, 10.0, 40.0), ("norm()", 6.0, 55.0, 10.0))
CHECK = (("eval()", 2.0, 10.0, 20.0), ("add()", 6.0, 35.0, 10.0))


def after(*cases: Case) -> Case:
    """The calls and operations of cases, one after the other with a millisecond between."""
    every: Case = {"api_call": [], "gpu_op": []}
    for number, case in enumerate(cases):
        begins = max((_end(row) for rows in every.values() for row in rows), default=-1000) + 1000
        for row in case["api_call"]:
            every["api_call"].append({**row, "label": f"{row['label']} of {number}", "start": row["start"] + begins})
        for row in case["gpu_op"]:
            call = f"{row['api_call']} of {number}"
            every["gpu_op"].append({**row, "api_call": call, "start": row["start"] + begins})
    return every


def _end(row: Case) -> float:
    return float(row["start"] + row["duration"] + (row.get("repeat", 1) - 1) * row.get("every", 0))


def found(case: Case, **settings: float) -> list[tuple[str, int]]:
    """The loops in order, each with its iterations, warm-up included."""
    query = """
        select l.marker as name, count(*) as iterations from loop l join iteration i on i.loop = l.id
        where l.period_source = 'period' group by l.id, l.marker order by l.id
    """
    with opened(case, settings=settings) as con:
        return [(row["name"], row["iterations"]) for row in timelines.rows(con, query)]


def busy(case: Case) -> dict[str, int]:
    """GPU-busy time before, inside, between and after the loops (µs)."""
    with opened(case) as con:
        return {row["place"]: row["busy_ns"] // 1000 for row in timelines.rows(con, "select * from loop_coverage")}


def loading(case: Case, every: float, count: int) -> Case:
    """The same with code loaded again and again."""
    load = {"label": "load", "name": "cuModuleLoadData", "start": 60, "duration": 20, "repeat": count, "every": every}
    return {**case, "api_call": [*case["api_call"], load]}


@pytest.mark.slow
def test_two_loops_one_after_another() -> None:
    train, solve = launched(40, 100, *TRAIN), launched(30, 80, *SOLVE)
    assert found(after(train, solve)) == [("every gemm", 40), ("every solve", 30)]
    assert found(after(solve, train)) == [("every solve", 30), ("every gemm", 40)], "in order of time"
    assert busy(after(train, solve)) == {"before": 0, "inside": 40 * 40 + 30 * 50, "between": 0, "after": 0}
    assert found(after(train, solve), further_loops=0) == [("every gemm", 40)]


def test_three_loops_one_after_another() -> None:
    case = after(launched(40, 100, *TRAIN), launched(30, 80, *SOLVE), launched(40, 60, *CHECK))
    assert found(case) == [("every gemm", 40), ("every solve", 30), ("every eval", 40)]


def test_a_loop_that_goes_on_after_another_one_is_one_loop() -> None:
    case = after(launched(20, 100, *TRAIN), launched(60, 60, *CHECK), launched(20, 100, *TRAIN))
    assert found(case) == [("every gemm", 40), ("every eval", 60)]
    assert busy(case)["inside"] == 40 * 40 + 60 * 30


def test_a_loop_is_over_where_the_next_one_begins_on_the_gpu() -> None:
    """A host that runs far ahead launches the second loop while the GPU works on the first iterations of the first."""
    case: Case = {"api_call": [], "gpu_op": []}
    for name, steps, every, called, begins in (("a", TRAIN, 100, 0, 0), ("b", SOLVE, 80, 200, 4010)):
        one = launched(40, 5, *((kernel, n, at, ns) for n, (kernel, _, at, ns) in enumerate(steps)))
        for row in one["api_call"]:
            moved = {"label": row["label"] + name, "start": row["start"] + called, "duration": 1}
            case["api_call"].append({**row, **moved})
        for row in one["gpu_op"]:
            moved = {"api_call": row["api_call"] + name, "start": row["start"] + begins, "every": every}
            case["gpu_op"].append({**row, **moved})
    query = 'select loop, min(start) as since, max("end") as until from iteration where in_steady_state group by loop'
    with opened(case) as con:
        first, second = timelines.rows(con, f"{query} order by loop")
    assert first["until"] <= second["since"]
    assert first["until"] == pytest.approx(3_955_000, rel=0.01)
    assert second["until"] == pytest.approx(4_010_000 + 39 * 80_000 + 65_000, rel=0.01)


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param(launched(30, 80, ("eval()", 2, 10, 3), ("add()", 6, 20, 1)), id="too little work"),
        pytest.param(launched(6, 300, ("eval()", 2, 10, 100), ("add()", 6, 120, 100)), id="too seldom"),
        pytest.param(launched(1, 9000, *((f"k{n}()", 60 * n, 60 * n + 9, 40) for n in range(60))), id="no repetition"),
    ],
)
def test_a_tail_is_no_loop(tail: Case) -> None:
    assert found(after(launched(60, 100, *TRAIN), tail)) == [("every gemm", 60)]


def test_most_of_what_a_loop_leaves_is_its_own() -> None:
    """A tenth of the program repeats in what comes after, behind much that does not."""
    once = launched(1, 9000, *((f"k{n}()", 60 * n, 60 * n + 9, 50) for n in range(30)))
    case = after(launched(80, 100, *TRAIN), once, launched(30, 60, ("eval()", 2, 10, 15), ("add()", 6, 35, 10)))
    assert found(case) == [("every gemm", 80)]
    assert found(case, further_loop_part=0.3) == [("every gemm", 80), ("every eval", 30)]


@pytest.mark.slow
def test_setting_up_is_no_loop() -> None:
    train = launched(40, 100, *TRAIN)
    fill = launched(40, 60, ("random()", 2, 10, 30))
    assert found(after(fill, train)) == [("every gemm", 40)], "one kernel that fills memory block by block"
    assert found(after(train, fill)) == [("every gemm", 40), ("every random", 40)], "after it nothing is set up"
    upload = launched(40, 60, ("", 2, 10, 30))
    upload["gpu_op"] = [{**upload["gpu_op"][0], "name": None, "kind": "memcpy", "copy_kind": "host_to_device"}]
    assert found(after(upload, train)) == found(after(train, upload)) == [("every gemm", 40)]
    convert = launched(40, 60, ("", 2, 10, 30), ("cast()", 6, 42, 2), ("scale()", 9, 46, 2))
    convert["gpu_op"][0] |= {"name": None, "kind": "memcpy", "copy_kind": "host_to_device"}
    assert found(after(convert, train)) == [("every gemm", 40)], "copies are most of it"


def tuning(kernel: str, repetitions: int = 12) -> Case:
    """Sixteen candidates, each loaded and then timed, with a cache flushed before each time."""
    timed = launched(repetitions, 60, ("flush()", 2, 10, 5), (kernel, 8, 20, 25))
    case: Case = {"api_call": [], "gpu_op": []}
    for candidate in range(16):
        begins, name = candidate * 2500, f" {candidate}"
        case["api_call"].append({"label": f"load{name}", "name": "cuModuleLoadData", "start": begins, "duration": 900})
        for row in timed["api_call"]:
            case["api_call"].append({**row, "label": row["label"] + name, "start": begins + 1000 + row["start"]})
        for row in timed["gpu_op"]:
            moved = {"api_call": row["api_call"] + name, "start": begins + 1000 + row["start"]}
            case["gpu_op"].append({**row, **moved})
    return case


@pytest.mark.slow
def test_tuning_gives_way_to_the_loop_that_it_is_for() -> None:
    train = launched(60, 100, ("norm()", 2, 10, 20), ("matmul()", 6, 32, 30), ("act()", 10, 65, 20))
    case = after(tuning("matmul()"), train)
    assert [count for _, count in found(tuning("matmul()"))] == [16 * 12], "alone it is all that there is"
    assert found(case) == [("every norm", 60)]
    assert busy(case) == {"before": 16 * 12 * 30, "inside": 60 * 70, "between": 0, "after": 0}
    assert found(after(tuning("matmul_of_another_tile()"), train)) == [("every norm", 60)]


def test_a_kernel_timed_by_itself_gives_way_to_its_loop() -> None:
    train = launched(40, 100, ("norm()", 2, 10, 10), ("gemm()", 6, 22, 30), ("relu()", 10, 55, 10))
    case = after(launched(60, 50, ("gemm()", 2, 10, 30)), train)
    assert found(case) == [("every norm", 40)]
    assert busy(case)["before"] == 60 * 30
    other = after(launched(60, 50, ("scan()", 2, 10, 30)), train)
    assert found(other) == [("every norm", 40)], "what one kernel does before may fill memory block by block"


def test_a_loop_that_loads_code_stays_beside_a_validation() -> None:
    train, check = launched(60, 100, *TRAIN), launched(20, 60, *CHECK)
    case = after(loading(train, 100, 60), check)
    assert found(case) == [("every gemm", 60), ("every eval", 20)]
    longer = after(loading(train, 100, 60), launched(60, 60, *CHECK))
    assert found(longer) == [("every eval", 60)], "of comparable work the later one is the program's"
    optimised = launched(60, 100, *TRAIN, ("multi_tensor_apply_kernel<FusedAdamMathFunctor>()", 10, 60, 5))
    longer = after(loading(optimised, 100, 60), launched(60, 60, *CHECK))
    assert [name for name, _ in found(longer)][1:] == ["every eval"], "what updates parameters trains"


@pytest.mark.capture
def test_an_operation_in_some_iterations_hides_no_real_run(tmp_path: Path) -> None:
    """Each of the 14 iterations transforms 40 pictures; some of cuFFT's kernels run in nine of them only."""
    con = database.create(small=True)
    ingest(recording(ROOT / "fixtures" / "captures" / "fft_plan_cache" / "slow"), con, tmp_path)
    con.execute("delete from nvtx_range")
    database.load_settings(con, library().setting_values)
    database.load_macros(con, library().views)
    detect(con)
    assert con.execute("select loop, count(*) from iteration group by loop").fetchall() == [(0, 14)]
