"""Selecting a part of a capture: what is kept, which iterations count, what is said of the rest. Timelines made by hand
are synthetic; captures are the corpus's.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

import gpudiag
from captures import named, report_of
from gpudiag import pipeline
from gpudiag.cli import main
from gpudiag.diagnosis import run_summary
from gpudiag.errors import GpudiagError
from gpudiag.library.catalogue import Library
from gpudiag.loops.clip import inside
from gpudiag.model import Report, Run
from gpudiag.options import Options
from gpudiag.prepare import analysed
from gpudiag.report import formats, json_format
from gpudiag.selection import apply
from gpudiag.selection.spec import ALL, Selection, select, time_range, times
from gpudiag.store import database
from paths import CAPTURES
from timelines import Case, launched, opened, rows

STEP = (("gemm()", 2.0, 10.0, 30.0), ("relu()", 6.0, 45.0, 10.0))
US = 1000


def part(case: Case, selection: Selection = ALL, *views: str) -> AbstractContextManager[database.Connection]:
    """A store of a synthetic case of which this was selected."""
    return opened(case, *views, selection=selection)


@cache
def explained(*names: str, selection: Selection = ALL) -> Report:
    if selection == ALL:
        return report_of(*map(named, names))
    return pipeline.explain([named(name) for name in names], Options(cached=False, selection=selection))


def run(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))


def within(start: float, end: float) -> Selection:
    return Selection(round(start * US), round(end * US))


def annotated(count: int = 40, **more: Any) -> Case:
    """Iterations of 100 µs, each in a range, which the host leaves before the GPU is done."""
    ranges = [{"name": "step", "start": 0, "duration": 60, "repeat": count, "every": 100, **more}]
    return {**launched(count, 100, *STEP), "nvtx_range": ranges}


# What can be written.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2s:5s", (2_000_000_000, 5_000_000_000)),
        ("250ms:", (250_000_000, None)),
        (":5s", (None, 5_000_000_000)),
        ("0:1.5us", (0, 1500)),
        ("10ns:1 µs", (10, 1000)),
    ],
)
def test_ranges_that_can_be_read(text: str, expected: tuple[int | None, int | None]) -> None:
    assert times(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("5s:2s", "2s:2s", ":0", "", ":", "2s", "2:5", "-1s:5s", "1s:2s:3s", "nan:2s", "inf:", "1e3s:", "2s :5s"),
        *("2s:5s\n", "9" * 30 + "s:", "999999999s:", "٢s:", "1s:" + "9" * 10_000, "2 weeks:"),
    ],
)
def test_ranges_that_cannot_be_read_are_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(GpudiagError) as refused:
        times(text)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 250


@given(st.integers(0, 10**15), st.integers(1, 10**15))
def test_a_range_is_written_as_it_can_be_read(start: int, length: int) -> None:
    assert times(time_range(start, start + length)) == (start, start + length)


def test_the_options_of_a_selection_ask_for_the_same() -> None:
    asked = select("2s:", ["a b", "it's"], [0, 1, 0], ["python", "12"], [3])
    assert asked.options == [
        *("--range", "2s:", "--nvtx", "a b", "--nvtx", "it's", "--device", "0", "--device", "1"),
        *("--process", "python", "--process", "12", "--rank", "3"),
    ]


# What is kept.


@pytest.mark.slow
@pytest.mark.parametrize("behind", [0, 270])
def test_what_overlaps_the_range_is_kept_with_its_calls(behind: int) -> None:
    """behind: how much later than usual the GPU works."""
    steps = tuple((name, call, begin + behind, took) for name, call, begin, took in STEP)
    with opened(launched(40, 100, *steps), alone=True) as con:

        @settings(max_examples=10)
        @given(st.integers(0, 4100), st.integers(1, 2000))
        def holds(start: int, length: int) -> None:
            con.execute("begin")
            _kept_is_what_overlaps(con, start * US, (start + length) * US)
            con.execute("rollback")

        holds()


def _kept_is_what_overlaps(con: database.Connection, low: int, high: int) -> None:
    ops = rows(con, 'select id, api_call from gpu_op where start < ? and "end" > ? order by id', high, low)
    calls = {row["id"] for row in rows(con, 'select id from api_call where start < ? and "end" > ?', high, low)}
    calls |= {row["api_call"] for row in ops}
    if not ops:
        with pytest.raises(GpudiagError, match="The GPU did nothing"):
            apply.apply(con, Selection(low, high))
        return
    apply.apply(con, Selection(low, high))
    assert rows(con, "select id, api_call from gpu_op order by id") == ops
    kept = rows(con, 'select id, start, "end" from api_call')
    assert calls <= {row["id"] for row in kept}
    # A host that runs ahead launched before the range what the GPU does in it; other calls of that time come along.
    earliest = min(row["start"] for row in kept if row["id"] in calls)
    assert all(row["id"] in calls or row["end"] > earliest for row in kept)


@pytest.mark.capture
def test_all_of_a_capture_is_the_same_as_no_selection() -> None:
    name = "alloc_free_per_step/slow.sqlite.xz"
    whole, all_of_it = explained(name), explained(name, selection=Selection(0, 10**12))
    summary = all_of_it.run.selection
    assert summary is not None
    assert all_of_it.model_copy(update={"run": all_of_it.run.model_copy(update={"selection": None})}) == whole
    assert '"selection": null' in json_format.render(whole)


@pytest.mark.capture
@pytest.mark.parametrize(
    ("name", "start", "end"),
    [
        ("alloc_free_per_step/slow.sqlite.xz", "544ms", "559ms"),
        ("game_of_life_large/slow", "2513ms", "2627ms"),  # the host is far ahead of the GPU
    ],
)
def test_the_middle_of_a_run_tells_the_same(name: str, start: str, end: str) -> None:
    whole, middle = explained(name), explained(name, selection=select(f"{start}:{end}"))
    assert middle.findings[0].code == whole.findings[0].code
    assert middle.findings[0].gain.share == pytest.approx(whole.findings[0].gain.share, abs=0.05)
    assert middle.run.loops[0].name == whole.run.loops[0].name
    assert middle.run.loops[0].iteration_ms == pytest.approx(whole.run.loops[0].iteration_ms, rel=0.05)
    assert middle.run.loops[0].iterations < whole.run.loops[0].iterations
    assert middle.run.cold_start_ms == 0
    assert not {"Q10", "Q11", "Q12", "REPLAY"} & {note.code for note in middle.notes}


@pytest.mark.slow
def test_only_whole_iterations_count_wherever_the_range_cuts() -> None:
    for start, end in ((1000, 3000), (1050, 3050), (1015, 2999), (1099, 2001)):
        with part(annotated(), within(start, end)) as con:
            [loop] = rows(con, "from loop")
            assert (loop["name"], loop["iteration_ns"]) == ("step", pytest.approx(100 * US))
            assert (end - start) // 100 - 4 <= loop["steady_iterations"] <= (end - start) // 100
            [bounds] = rows(con, 'select min(start) as first, max("end") as last from iteration')
            assert start * US <= bounds["first"] < bounds["last"] <= end * US


def test_inside_one_long_kernel_the_gpu_works_all_the_time() -> None:
    case = launched(1, 100_000, ("before()", 2, 10, 50), ("long()", 70, 100, 5_000_000))
    with part(case, within(1_000_000, 3_000_000), "device_state") as con:
        assert rows(con, "select state from device_state") == [{"state": "compute"}]
        assert rows(con, 'select sum("end" - start) as ns from "window"') == [{"ns": 2_000_000 * US}]


def test_a_part_of_two_steps_is_still_known_by_them() -> None:
    with part(annotated(), within(1050, 1360)) as con:
        [loop] = rows(con, "from loop")
        assert (loop["name"], loop["period_source"], loop["steady_iterations"]) == ("step", "nvtx", 2)
        assert rows(con, "select distinct in_steady_state as steady from iteration") == [{"steady": True}]


def test_a_loop_already_running_at_the_range_start_is_warm() -> None:
    for selection, left_out in ((within(1000, 3000), 0), (within(0, 3000), 3)):
        with part(annotated(), selection) as con:
            [cold] = rows(con, "select count(*) as n from iteration where not in_steady_state")
            assert cold["n"] == left_out
            [window] = rows(con, 'select "end" - start as ns from "window" where kind = \'cold_start\'')
            assert (window["ns"] > 0) == (left_out > 0)


def test_a_long_allocation_is_no_context_creation() -> None:
    case = annotated()
    case["api_call"] += [
        {"label": "first", "name": "cudaMalloc", "start": 0, "duration": 1},
        {"label": "later", "name": "cudaMalloc", "start": 1570, "duration": 25},
    ]
    with part(case, ALL, "setup_call") as con:
        assert [row["n"] for row in rows(con, "select n from setup_call order by start")] == [1, 2]
    with part(case, within(1000, 3000), "setup_call") as con:
        assert [row["n"] for row in rows(con, "select n from setup_call")] == [None]


def test_launches_before_the_part_are_counted() -> None:
    order = "partition by process, short order by called, start, op"
    place = f"select op, row_number() over ({order}) as place from kernel_launch"
    with part(annotated(), ALL, "kernel_launch") as con:
        whole = {row["op"]: row["place"] for row in rows(con, place)}
    with part(annotated(), within(1000, 3000), "kernel_launch") as con:
        own = {row["op"]: row["place"] for row in rows(con, place) if row["op"] is not None}
    assert len(own) == 40
    assert own == {op: whole[op] for op in own}


# Ranges.


def alternating() -> Case:
    """A step of training, then as long an evaluation, whose kernels are its own."""
    train = launched(20, 200, ("train()", 2, 10, 80))
    evaluate = launched(20, 200, ("evaluate()", 2, 10, 80), start=100)
    ranges = [
        {"name": name, "start": start, "duration": 95, "repeat": 20, "every": 200}
        for name, start in (("train_step", 0), ("evaluation", 100))
    ]
    return {table: train[table] + evaluate[table] for table in train} | {"nvtx_range": ranges}


def test_the_selected_range_is_the_loop_without_the_gaps() -> None:
    with part(alternating()) as con:
        [both] = rows(con, "from loop")
        assert (both["name"], both["iteration_ns"]) == ("train_step + evaluation", pytest.approx(200 * US, rel=0.01))
    with part(alternating(), select(nvtx=["train_step"]), "loop_gpu_op") as con:
        [loop] = rows(con, "from loop")
        assert (loop["name"], loop["period_source"]) == ("train_step", "nvtx")
        assert loop["iteration_ns"] == pytest.approx(95 * US, rel=0.05)
        assert {row["short"] for row in rows(con, "select short from loop_gpu_op")} == {"train"}


@pytest.mark.capture
@pytest.mark.parametrize("name", ["transformer_fp32/fixed-bf16", "ddp_slow_rank/slow-compute.rank0"])
def test_phases_of_a_step_add_up_to_the_work_launched(name: str) -> None:
    """The host runs ahead: when it is in a phase, the GPU is in another one, or in another step."""
    phases = ("load", "forward", "backward", "optimizer")
    there = phases[1:] if name.startswith("transformer") else phases
    step = explained(name).run.loops[0]
    together = {loop.name: loop for loop in run_of(name, select(nvtx=there)).loops}
    assert together.keys() == set(phases[1:])
    assert sum(loop.iteration_ms for loop in together.values()) == pytest.approx(step.iteration_ms, rel=0.02)
    assert sum(loop.launches for loop in together.values()) == pytest.approx(step.launches, rel=0.01)
    for phase in phases[1:]:
        run = run_of(name, select(nvtx=[phase]))
        [alone] = run.loops
        assert (alone.iteration_ms, alone.launches) == (together[phase].iteration_ms, together[phase].launches)
        assert run.selection and run.selection.selected_ms
        assert run.selection.selected_ms >= 0.99 * alone.iteration_ms * alone.iterations


def run_of(name: str, selection: Selection) -> Run:
    """What the report of a part says of its loops, for which no rule is asked."""

    def work(con: database.Connection, library: Library, _: Path | None) -> Run:
        return run_summary.run(con, library.setting_values, {})

    return analysed([named(name)], Options(cached=False, selection=selection), work)


def test_a_single_range_is_searched_for_what_repeats_in_it() -> None:
    epochs = [{"label": f"epoch {n}", "name": f"epoch_{n}", "start": n * 1000, "duration": 990} for n in range(4)]
    case = {**launched(40, 100, *STEP), "nvtx_range": epochs}
    with part(case, select(nvtx=["epoch_2"])) as con:
        [loop] = rows(con, "from loop")
        assert (loop["period_source"], loop["iteration_ns"]) == ("period", pytest.approx(100 * US, rel=0.1))
        [bounds] = rows(con, 'select min(start) as first, max("end") as last from iteration')
        assert 2000 * US <= bounds["first"] < bounds["last"] <= 3000 * US
    with part(case, select(nvtx=["epoch"])) as con:  # as the report calls them
        [loop] = rows(con, "from loop")
        assert (loop["name"], loop["period_source"]) == ("epoch", "nvtx")


@given(
    st.lists(st.integers(0, 50), max_size=30),
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), min_size=1, max_size=8),
)
def test_a_time_is_in_a_stretch_however_stretches_overlap(moments: list[int], stretches: list[tuple[int, int]]) -> None:
    bounds = np.array([(begin, begin + length) for begin, length in stretches])
    found = inside(np.array(moments, dtype=np.int64), bounds).tolist()
    assert found == [any(begin <= moment < end for begin, end in bounds) for moment in moments]


def test_ranges_and_time_are_both_to_hold() -> None:
    with part(alternating(), replace(within(1000, 3000), nvtx=("train_step",))) as con:
        [loop] = rows(con, "from loop")
        assert (loop["name"], loop["steady_iterations"]) == ("train_step", pytest.approx(9, abs=1))
    with (
        pytest.raises(GpudiagError, match="lies wholly in the part"),
        part(alternating(), replace(within(110, 150), nvtx=("train_step",))),
    ):
        pass


def test_a_domain_can_be_named() -> None:
    case = annotated()
    case["nvtx_range"] += [{"name": "step", "domain": "lib", "start": 10, "duration": 20, "repeat": 40, "every": 100}]
    with part(case, select(nvtx=["step@lib"])) as con:
        assert rows(con, "select iteration_ns from loop")[0]["iteration_ns"] < 60 * US
    with pytest.raises(GpudiagError, match="'step@other'"), part(case, select(nvtx=["step@other"])):
        pass


def test_an_unknown_range_is_answered_with_those_there_are() -> None:
    with pytest.raises(GpudiagError) as refused, part(annotated(), select(nvtx=["sttep\n`|\x1b[31m%s"])):
        pass
    assert "'step' (40 times)" in str(refused.value)
    assert refused.value.args[0].isprintable()


# Processes, devices, ranks.


def two_processes() -> Case:
    first, second = launched(20, 100, ("mine()", 2, 10, 50)), launched(20, 100, ("theirs()", 2, 10, 70))
    for row in (*second["api_call"], *second["gpu_op"]):
        row["process"] = 1
    for row in second["api_call"]:
        row["thread"] = 1
    for row in second["gpu_op"]:
        row |= {"device": 1, "stream": 1}
    return {
        **{table: first[table] + second[table] for table in first},
        "process": [{"pid": 100, "name": "python", "rank": 0}, {"pid": 200, "name": "server", "rank": 1}],
        "thread": [{"process": 0}, {"process": 1}],
        "device": [{"ordinal": 0}, {"ordinal": 1}],
        "stream": [{"process": 0, "device": 0}, {"process": 1, "device": 1}],
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "selection",
    [
        select(devices=[1]),
        select(processes=["server"]),
        select(processes=["200"]),
        select(ranks=[1]),
        select(ranks=[0, 1], devices=[1]),
        select("0:1s", devices=[1], processes=["server"], ranks=[1]),
    ],
)
def test_one_of_two_processes_is_left(selection: Selection) -> None:
    with part(two_processes(), selection) as con:
        assert {row["text"] for row in rows(con, "select n.text from gpu_op o join name n on n.id = o.name")} == {
            "theirs()"
        }
        assert {row["process"] for row in rows(con, "select process from api_call")} == {1}
        for table in ("process", "thread", "device", "stream"):
            assert [row["id"] for row in rows(con, f"from {table}")] == [1], table
        assert {row["process"] for row in rows(con, "select process from iteration")} == {1}


@pytest.mark.parametrize(
    ("selection", "summary"),
    [
        (select(devices=[7]), "there are 0, 1"),
        (select(processes=["vim"]), r"python \(100\), server \(200\)"),
        (select(ranks=[5]), "there are 0, 1"),
        (select(ranks=[0], processes=["server"]), "Nothing is left"),
        (select("1s:2s"), "The GPU did nothing"),
    ],
)
def test_what_does_not_exist_is_answered_with_what_does(selection: Selection, summary: str) -> None:
    with pytest.raises(GpudiagError, match=summary), part(two_processes(), selection):
        pass


@pytest.mark.capture
def test_ranks_are_still_compared_collective_by_collective() -> None:
    pair = [f"ddp_slow_rank/slow-host.rank{rank}" for rank in (0, 1)]
    both = explained(*pair, selection=select("3550ms:3660ms"))
    [late] = [finding for finding in both.findings if finding.code == "N02"]
    assert late.evidence["cause"] == "host"
    assert late.title.startswith("The other ranks wait for `rank 1`")
    assert (late.caused_by, both.findings[0].code, both.findings[0].process) == (1, "D01", "rank 1")
    assert both.run.cold_start_ms == 0


# What is said.


@pytest.mark.capture
def test_the_report_says_what_was_selected_of_what() -> None:
    report = explained("alloc_free_per_step/slow.sqlite.xz", selection=select("544ms:559ms", devices=[0]))
    summary = report.run.selection
    assert summary is not None
    assert summary.text.startswith("Selected: 544 ms to 559 ms, GPU 0; that is 15.0 ms of ")
    assert (summary.start_ms, summary.end_ms, summary.selected_ms, summary.devices) == (544, 559, 15, (0,))
    assert summary.whole.gpu_ops > sum(loop.launches * loop.iterations for loop in report.run.loops)
    assert 0 < summary.whole.busy_share < 1
    for form in ("markdown", "html"):
        assert "Selected: 544 ms to 559 ms" in formats.render(report, form), form
    assert json.loads(json_format.render(report))["run"]["selection"]["whole"]["gpus"] == 1


HOSTILE: list[tuple[str, ...]] = [
    ("--range", "5s:2s"),
    ("--range", "1s:2s", "--range", "3s:4s"),
    ("--range", "900s:"),
    ("--device", "-1"),
    ("--device", "99999999999999999999"),
    ("--rank", "nan"),
    ("--process", "'; drop table gpu_op; --"),
    ("--nvtx", ".*"),
    ("--nvtx", "%"),
    tuple(word for number in range(3000) for word in ("--nvtx", f"no {number}")),
]


@pytest.mark.capture
@pytest.mark.parametrize("command", ["explain", "next", "check"])
def test_hostile_values_get_one_sentence_and_nothing_is_printed(command: str, tmp_path: Path) -> None:
    file = str(CAPTURES / "healthy_low_occupancy_gemm" / "healthy.sqlite.xz")
    config = tmp_path / "gpudiag.toml"
    config.write_text('[findings]\nfail_on = "high"\n')
    more = ("--config", str(config)) if command == "check" else ()
    for given_ in HOSTILE[: None if command == "explain" else 3]:
        done = run(command, file, *given_, *more)
        assert (done.exit_code, done.stdout) == (2, ""), given_[:4]
        assert done.exception is None or isinstance(done.exception, SystemExit)
        assert len(done.stderr.strip().splitlines()[-1]) < 400


@pytest.mark.capture
def test_neither_a_saved_report_nor_kernel_profiles_can_be_cut(tmp_path: Path) -> None:
    saved = tmp_path / "report.json"
    saved.write_text(json_format.render(explained("alloc_free_per_step/slow.sqlite.xz")))
    done = run("explain", str(saved), "--range", "1s:")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "saved report" in done.stderr
    profile = named("healthy_low_occupancy_gemm/healthy.raw.csv")
    done = run("explain", str(profile), "--device", "0")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "always read whole" in done.stderr


@pytest.mark.capture
def test_python_selects_as_the_command_line_does() -> None:
    file = CAPTURES / "alloc_free_per_step" / "slow.sqlite.xz"
    report = gpudiag.explain(file, range="544ms:559ms", nvtx="iter", device=0, process=24)
    summary = report.data.run.selection
    assert summary is not None
    assert (summary.start_ms, summary.nvtx, summary.devices, summary.processes) == (544, ("iter",), (0,), ("24",))
    wrong: list[dict[str, Any]] = [{"range": 2}, {"device": "0"}, {"rank": -1}, {"nvtx": 3}, {"process": None}]
    for arguments in wrong:
        with pytest.raises(GpudiagError):
            gpudiag.explain(file, **arguments)
