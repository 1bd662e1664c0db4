"""The verdict and the head of the report. All rows are synthetic."""

from __future__ import annotations

import re
from importlib import resources
from typing import get_args

import pytest

from gpudiag.diagnosis import run_summary, time_tree
from gpudiag.diagnosis import verdict as verdicts
from gpudiag.errors import GpudiagError
from gpudiag.model import Finding, Gain, Run, Verdict, vocabulary
from gpudiag.replay.simulate import Doubt
from ranking import VIEWS, program
from timelines import Case, launched, library, opened


def judged(case: Case, *findings: Finding) -> tuple[Run, Verdict]:
    with opened(case, *VIEWS) as con:
        run = run_summary.run(con, library().setting_values, {})
        trees = time_tree.with_trees(con, run.loops, (), library().setting_values)
        run = run.model_copy(update={"loops": trees})
        return run, verdicts.verdict(con, run, findings, library().setting_values)


def test_a_capture_without_gpu_activity_says_why() -> None:
    case: Case = {"api_call": [{"name": "cudaMalloc", "start": 0, "duration": 5}]}
    run, verdict = judged(case)
    assert (run.loops, verdict.state) == ((), "cannot_tell")
    assert verdict.text.startswith("No GPU activity was recorded, because ")
    case["capability"] = [{"name": "gpu_ops", "state": "not_recorded", "how": "CUDA tracing was off."}]
    assert judged(case)[1].text == (
        "No GPU activity was recorded, because CUDA tracing was off; nothing can be said about the GPU."
        " Of the host's CUDA calls these took longest: `cudaMalloc` 5.00 µs (1 call)."
    )


def test_an_unrelated_warning_is_not_the_reason() -> None:
    case: Case = {
        "api_call": [{"name": "cudaMalloc", "start": 0, "duration": 5}],
        "capability": [{"name": "gpu_ops", "state": "recorded", "how": "no call starts GPU work"}],
        "diagnostic": [{"severity": "warning", "text": "CUDA device 0: Unified Memory cannot be traced"}],
    }
    assert "because no call starts GPU work;" in judged(case)[1].text


def test_a_handful_of_operations_is_too_little_to_judge() -> None:
    run, verdict = judged(launched(1, 100, ("a()", 0, 5, 10), ("b()", 20, 25, 10)))
    assert (run.loops, verdict.state) == ((), "cannot_tell")
    assert "Only 2 GPU operations were recorded" in verdict.text


def test_an_idle_gpu_without_a_finding_is_not_called_healthy() -> None:
    run, verdict = judged(program())
    assert verdict.state == "cannot_tell"
    assert verdict.text == (
        "The GPU computes only 40 % of `iter`; 54 % it waits for a host that is busy elsewhere,"
        " in `step` (`train.py:31`), and no rule that could be evaluated names a fix."
    )
    assert sum(run.loops[0].budget.values()) == pytest.approx(1)
    assert set(run.loops[0].budget) == set(vocabulary.BUDGET)


def test_code_that_a_note_explains_lacks_no_rule() -> None:
    settings = library().setting_values
    with opened(program(), *VIEWS) as con:
        run = run_summary.run(con, settings, {})
        [loop] = time_tree.with_trees(con, run.loops, (), settings)
        waiting = loop.tree["host_work"]
        for claimed, lacking in ((0.0, True), (waiting.share, False)):
            tree = {"computing": loop.tree["computing"], "compiling": waiting.model_copy(update={"claimed": claimed})}
            building = run.model_copy(update={"loops": (loop.model_copy(update={"tree": tree}),)})
            assert ("names a fix" in verdicts.verdict(con, building, (), settings).text) == lacking


def exposing(copy: float) -> Case:
    """Iterations of 1,000: an upload of that many, and kernels for the rest."""
    case = launched(20, 1000, ("a()", 0, copy, 1000 - copy))
    case["nvtx_range"] = [{"name": "iter", "start": 0, "duration": 999, "repeat": 20, "every": 1000}]
    upload = {"kind": "memcpy", "copy_kind": "host_to_device", "src_kind": "pinned", "dst_kind": "device", "bytes": 9}
    case["gpu_op"].append({**upload, "start": 0, "duration": copy, "repeat": 20, "every": 1000})
    return case


def test_a_recording_without_kernels_does_not_say_idle() -> None:
    again = {"repeat": 400, "every": 1000}
    case: Case = {
        "api_call": [{"label": "read", "name": "cuMemcpyDtoHAsync", "start": 0, "duration": 5, **again}],
        "gpu_op": [{"api_call": "read", "kind": "memcpy", "copy_kind": "device_to_host", "start": 6, "duration": 2,
                    "bytes": 4, **again}],
    }  # fmt: skip
    _, verdict = judged(case)
    assert verdict.state == "cannot_tell"
    assert re.match(r"No kernel was recorded in .*, so what the GPU computed is not known\.", verdict.text)


@pytest.mark.slow
def test_copies_that_nothing_hides_are_no_computing() -> None:
    verdict = judged(exposing(240))[1]
    assert verdict.state == "cannot_tell"
    assert verdict.text.startswith("The GPU computes only 76 % of `iter`; 24 % it only copies memory")
    assert judged(exposing(50))[1].state == "healthy"


def test_a_loop_whose_replay_is_held_is_not_healthy() -> None:
    with opened(exposing(5), *VIEWS) as con:
        run = run_summary.run(con, library().setting_values, {})
        settings = library().setting_values
        assert verdicts.verdict(con, run, (), settings).state == "healthy"
        held = {run.loops[0].id: Doubt("held", -0.05)}
        verdict = verdicts.verdict(con, run, (), settings, (), held)
    assert verdict.state == "cannot_tell"
    assert "what sets its pace was not recorded" in verdict.text


def test_a_busy_loop_needs_no_replay_to_be_healthy() -> None:
    settings = library().setting_values
    for copy, state in ((5, "healthy"), (80, "cannot_tell")):
        with opened(exposing(copy), *VIEWS) as con:
            run = run_summary.run(con, settings, {})
            trees = time_tree.with_trees(con, run.loops, (), settings)
            run = run.model_copy(update={"loops": trees})
            missed = {run.loops[0].id: Doubt("missed", -0.15)}
            assert verdicts.verdict(con, run, (), settings, (), missed).state == state


def test_a_bound_too_small_to_be_listed_is_not_denied() -> None:
    with opened(exposing(5), *VIEWS) as con:
        run = run_summary.run(con, library().setting_values, {})
        settings = library().setting_values
        small = finding(Gain(kind="upper_bound", basis="loop", loop=0, share=0.09))
        text = verdicts.verdict(con, run, (), settings, (small,)).text
        assert "no fix that gpudiag knows could save more than 9.0 %" in text
        assert "is worth 5 % or more" in verdicts.verdict(con, run, (), settings).text


def mostly_in_graphs() -> Case:
    """Iterations of 1,000 of which a graph that was recorded whole takes 880, a kernel before it the rest."""
    case = launched(20, 1000, ("head()", 0, 5, 110), ("graph()", 10, 116, 880))
    case["nvtx_range"] = [{"name": "iter", "start": 0, "duration": 999, "repeat": 20, "every": 1000}]
    case["api_call"][1]["name"], case["gpu_op"][1] = "cudaGraphLaunch", {**case["gpu_op"][1], "kind": "graph"}
    return case


def test_kernels_inside_graphs_are_not_called_fast() -> None:
    run, verdict = judged(mostly_in_graphs())
    assert verdict.state == "healthy"
    graphs = run.loops[0].graphs
    assert graphs and graphs.launches == 1 and graphs.ms == pytest.approx(0.88, rel=0.01)
    assert "88 % of it runs inside CUDA graphs, whose kernels were not recorded" in verdict.text
    assert "head" not in verdict.text


def standing_still(pause: int) -> Case:
    """Two stretches of 20 iterations with a pause of the host between them (µs)."""
    case = launched(20, 1000, ("a()", 0, 5, 995))
    later = launched(20, 1000, ("a()", 0, 5, 995), start=20_000 + pause)
    marks = {"name": "iter", "duration": 999, "repeat": 20, "every": 1000}
    case["nvtx_range"] = [{**marks, "start": 0}, {**marks, "start": 20_000 + pause}]
    case["api_call"] += [{**row, "label": f"{row['label']} later"} for row in later["api_call"]]
    case["gpu_op"] += [{**row, "api_call": f"{row['api_call']} later"} for row in later["gpu_op"]]
    return case


@pytest.mark.slow
def test_a_loop_that_stands_still_is_not_healthy() -> None:
    """One pause is no rhythm and fires no rule; the time of an iteration does not hold it."""
    for pause, state in ((60, "healthy"), (20_000, "cannot_tell")):
        verdict = judged(standing_still(pause))[1]
        assert verdict.state == state, pause
    assert "it computed nothing once, for 20.0 ms in all: 3" in verdict.text


@pytest.mark.slow
def test_a_pause_to_compile_a_new_kernel_comes_once() -> None:
    case = standing_still(20_000)
    compiling = {"function": "compile", "file": "/v/site-packages/cupy/cuda/compiler.py", "line": 9}
    frames = [compiling, {"function": "log", "file": "/u/run.py", "line": 7}]
    case["py_sample"] = [{"time": 30_000, "frames": frames}]
    assert judged(case)[1].state == "cannot_tell", "the kernels after it have run before"
    case["gpu_op"].append({"name": "norm()", "start": 39_950, "duration": 10})
    verdict = judged(case)[1]
    assert verdict.state == "healthy"
    assert "But between iterations of `iter` the GPU computed nothing once, for 20.0 ms in all: 3" in verdict.text
    assert "while code was built that had never run before. Whether such pauses return" in verdict.text


def test_what_fired_and_is_small_is_named_where_nothing_else_is() -> None:
    small = finding(Gain(kind="expected", basis="loop", loop=0, share=0.0))
    with opened(program(), *VIEWS) as con:
        run = run_summary.run(con, library().setting_values, {})
        verdict = verdicts.verdict(con, run, (), library().setting_values, (small,))
    assert verdict.text.endswith("What fired (S01) stands under smaller things.")


def finding(gain: Gain) -> Finding:
    return Finding(
        rank=1, code="S01", id="x", status="draft", title="A value is read back", severity="high", confidence="high",
        fingerprint="f", gain=gain, message="m", why="w", not_a_problem_when="n",
    )  # fmt: skip


@pytest.mark.slow
def test_the_first_finding_makes_the_verdict() -> None:
    measured = finding(Gain(kind="upper_bound", basis="loop", loop=0, share=0.5))
    verdict = judged(program(), measured)[1]
    assert verdict.state == "problems"
    assert verdict.text.startswith("A value is read back. Fixing it would save at most ")
    assert "`iter`" in verdict.text
    unknown = finding(Gain(kind="test_needed", basis="loop", loop=0, test="Try."))
    assert "only an experiment can tell" in judged(program(), unknown)[1].text


def test_an_iteration_time_of_an_unknown_loop_is_refused() -> None:
    with opened(program(), *VIEWS) as con:
        assert run_summary.run(con, library().setting_values, {"iter": 5e4}).loops[0].iteration_ms_unprofiled == 0.05
        with pytest.raises(GpudiagError, match=r"'itr'.*iter"):
            run_summary.run(con, library().setting_values, {"itr": 5e4})


def test_cold_start_is_separate_from_the_run() -> None:
    case = launched(20, 100, ("a()", 2, 10, 50), start=5000)
    case["nvtx_range"] = [{"name": "step", "start": 5000, "duration": 99, "repeat": 20, "every": 100}]
    case["api_call"].append({"name": "cudaMalloc", "start": 0, "duration": 100})
    run, _ = judged(case)
    assert run.cold_start_ms == pytest.approx(5.3)
    assert run.span_ms == pytest.approx(7, rel=0.01)


def test_every_budget_category_has_words_and_a_colour() -> None:
    views = "".join(sql for _, sql in library().views)
    known = set(re.findall(r"'((?:compute|exposed|idle)(?:_[a-z]+)?)'", views)) - {"idle"}
    assert known == set(vocabulary.BUDGET)
    style = resources.files("gpudiag.report.html").joinpath("assets/page.css").read_text("utf-8")
    assert [key for key in vocabulary.BUDGET if not re.search(rf"\.k-{key}\b[^}}]*fill", style)] == []


def test_a_rule_can_name_every_framework_that_has_words() -> None:
    assert get_args(vocabulary.Framework) == tuple(vocabulary.FRAMEWORKS)


def test_loops_of_several_files_name_their_file() -> None:
    case: Case = {
        "input": [{"file": "a.sqlite"}, {"file": "b.sqlite"}],
        "process": [{"input": 0}, {"input": 1, "pid": 2}],
        "loop": [{"name": "iter"}, {"name": "iter"}],
        "iteration": [{"loop": number, "process": number, "start": 0, "duration": 100} for number in range(2)],
    }
    with opened(case) as con:
        assert run_summary.files(con) == {0: "a.sqlite", 1: "b.sqlite"}
    case["process"][1]["input"] = 0
    with opened(case) as con:
        assert run_summary.files(con) == {}


@pytest.mark.parametrize(("of_log", "notes"), [("NVIDIA H200", 0), ("RTX 4090", 1), (None, 0)])
def test_a_log_of_another_gpu_is_not_about_the_recording(of_log: str | None, notes: int) -> None:
    case: Case = {
        "input": [{"kind": "nsys", "file": "a.sqlite"}, {"kind": "smi", "file": "log.csv"}],
        "device": [{"input": 0, "name": "NVIDIA H200"}, {"input": 1, "name": of_log}],
    }
    with opened(case) as con:
        found = run_summary.other_gpu(con)
    assert len(found) == notes
    assert all("is of RTX 4090, the recording of NVIDIA H200" in note.text for note in found)
