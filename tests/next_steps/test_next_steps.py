"""`gpudiag next`: which kernels it proposes on the labelled captures, where it proposes none, and its commands."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from captures import named
from gpudiag import prepare
from gpudiag.authoring.cases import fill
from gpudiag.cli import main
from gpudiag.errors import GpudiagError
from gpudiag.next_steps.candidates import about_kernels, launches, window
from gpudiag.next_steps.ncu_command import PROGRAM, command, files, follow_up, pattern
from gpudiag.next_steps.proposals import NextSteps, Proposal
from gpudiag.options import Options
from gpudiag.pipeline import next_steps as planned
from gpudiag.report import next_steps
from gpudiag.store import database
from paths import CAPTURES
from timelines import Case, iterations, launched, library, opened, rows

pytestmark = pytest.mark.capture

HOSTILE = "evil`$(touch x)`'\"<!-- # |@you"


@cache
def steps_of(*names: str, **times: float) -> NextSteps:
    return planned([named(name) for name in names], Options(iteration_times=times))


def proposed(steps: NextSteps) -> list[str]:
    return [kernel.name for kernel in steps.kernels]


# The labelled captures: the fault is in a kernel, elsewhere, or recognised by the timeline alone.


@pytest.mark.parametrize(
    ("capture", "kernel"),
    [
        ("transpose/slow-naive", "transpose_naive"),
        ("stencil_spills/slow", "filter_energy"),
        ("matmul_tail_wave/slow", "matmul"),
        ("float64_literals/slow", "relax"),
        ("small_uncoalesced_kernel/fixed-fused", "transpose_naive"),
        ("small_uncoalesced_kernel/slow", "transpose_naive"),  # 3 % of the loop, 11 % once the chain before it is fused
    ],
)
def test_the_kernel_at_fault_is_proposed(capture: str, kernel: str) -> None:
    steps = steps_of(capture)
    assert steps.state == "profile"
    assert kernel in proposed(steps)
    assert len(steps.kernels) <= library().setting_values["next_kernels"]


@pytest.mark.parametrize(
    ("captures", "code"),
    [
        (("game_of_life_small/slow",), "H01"),
        (("item_every_stage/slow.sqlite.xz",), "S01"),
        (("power_iteration/slow",), "S05"),
        (("alloc_free_per_step/slow.no-nvtx",), "A01"),
        (("loader_without_workers/slow",), "D01"),
        (("chunked_pipeline/slow-pinned",), "M02"),
        (("ddp_slow_rank/slow-host.rank0", "ddp_slow_rank/slow-host.rank1"), "D01"),
    ],
)
def test_no_kernel_is_proposed_where_the_loop_waits_elsewhere(captures: tuple[str, ...], code: str) -> None:
    steps = steps_of(*captures)
    assert (steps.state, steps.code, steps.kernels) == ("fix_first", code, ())
    assert code in steps.text
    assert steps.text.count(". ") == 0


@pytest.mark.parametrize(
    ("capture", "code", "kernel"),
    [
        ("row_reduction_one_block/slow", "L01", "add_rows"),
        ("elementwise_chain/slow", "H03", "elementwise_kernel"),
        ("game_of_life_large/slow", "H03", "cupy_add__int64_int64_int64"),
        ("launch_bound_fp32/slow-fp32", "P01", "sm80_xmma_gemm"),
    ],
)
def test_a_kernel_explained_by_the_timeline_needs_no_profile(capture: str, code: str, kernel: str) -> None:
    steps = steps_of(capture)
    assert (steps.state, steps.code, steps.kernels) == ("known", code, ())
    assert kernel in steps.text


def test_other_kernels_are_weighed_with_timeline_findings_fixed() -> None:
    steps = steps_of("small_uncoalesced_kernel/slow")
    assert steps.code == "H03"
    assert not [name for name in proposed(steps) if name.startswith("cupy_")]
    for kernel in steps.kernels:
        assert kernel.saved_share_then is not None
        assert kernel.saved_share_then > 2 * kernel.saved_share


def test_hidden_kernels_are_not_proposed() -> None:
    steps = steps_of("chunked_pipeline/fixed-streams")
    assert (steps.state, steps.kernels) == ("fix_first", ())


def test_graphs_recorded_whole_say_how_to_record_kernels() -> None:
    steps = steps_of("healthy_graph_decode/healthy")
    assert (steps.state, steps.kernels) == ("cannot_tell", ())
    assert "--cuda-graph-trace=node" in steps.text


def asleep(kernels: int) -> Case:
    """Iterations of 1,000 that a GPU fills with so many kernels, and a host that sleeps for an unrecorded reason."""
    length = 985 / kernels
    steps = [(f"k{i}()", 0.2 * i, 8 + length * i, length) for i in range(kernels)]
    case = launched(10, 1000, *((name, start, begin, took) for name, start, begin, took in steps))
    for call in case["api_call"]:
        call["duration"] = 0.1
    sleep = {"name": "poll", "start": 15, "duration": 980, "repeat": 10, "every": 1000}
    return {"iteration": [iterations(10, 1000)], **case, "os_call": [sleep]}


@pytest.mark.parametrize(("kernels", "state"), [(1, "profile"), (40, "cannot_tell")])
def test_a_loop_that_is_held_is_not_said_to_be_fine(kernels: int, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay that something unrecorded holds would save nothing by any kernel: that is no reason to say so."""
    with database.create(small=True) as con:
        fill(con, asleep(kernels), library())
        prepare.prepare(con, library())
        monkeypatch.setattr(prepare, "analysed", lambda _paths, _options, work: work(con, library(), None))
        steps = planned([Path("a.sqlite")])
    assert steps.state == state
    assert "worth profiling" not in steps.text
    if steps.kernels:
        assert "it would save at most 49 % of" in next_steps.markdown(steps)
    else:
        assert "what sets its pace was not recorded" in steps.text


def test_graphs_that_hide_more_than_a_kernel_shows_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    case = launched(20, 1000, ("head()", 0, 5, 230), ("graph()", 10, 236, 760))
    case["api_call"][1]["name"], case["gpu_op"][1] = "cudaGraphLaunch", {**case["gpu_op"][1], "kind": "graph"}
    waits = {"name": "cudaDeviceSynchronize", "start": 20, "duration": 977, "repeat": 20, "every": 1000}
    case["api_call"].append({"label": "wait", **waits})
    with database.create(small=True) as con:
        fill(con, {"iteration": [iterations(20, 1000)], **case}, library())
        prepare.prepare(con, library())
        monkeypatch.setattr(prepare, "analysed", lambda _paths, _options, work: work(con, library(), None))
        steps = planned([Path("a.sqlite")])
    assert proposed(steps) == ["head"]
    assert steps.text.startswith("76 % of")
    assert "`nsys profile --cuda-graph-trace=node` records them. Worth a profile: `head`" in steps.text
    assert not steps.notes


def test_profiled_kernels_are_not_proposed_again() -> None:
    steps = steps_of("transpose/slow-naive.sqlite.xz", "transpose/slow-naive.raw.csv.xz")
    assert (steps.state, steps.kernels) == ("profiled", ())
    assert "transpose_naive" in steps.text


def test_profiles_without_a_timeline_ask_for_one() -> None:
    steps = steps_of("transpose/slow-naive.raw.csv.xz")
    assert steps.state == "cannot_tell"
    assert "nsys profile" in steps.text


def test_the_unprofiled_time_counts() -> None:
    """Under the profiler the host cannot keep up; without it, it can, and the kernels set the pace."""
    capture = "item_every_stage/fixed"
    before = steps_of(capture)
    assert before.state == "fix_first"
    assert ["--iteration-time" in note for note in before.notes] == [True]
    steps = steps_of(capture, **{"": 6.957e6})
    assert steps.state == "profile"
    assert steps.kernels[0].name.startswith("nvjet_")
    assert steps.kernels[0].saved_share > 0.25


def test_twice_the_same_answer() -> None:
    paths = [CAPTURES / "transpose" / "slow-naive.sqlite.xz"]
    assert planned(paths) == planned(paths)


def test_only_what_changes_kernels_themselves_is_about_kernels() -> None:
    by_code = library().by_code
    assert [code for code in ("H03", "L01", "P01", "K01") if not about_kernels(by_code[code])] == []
    elsewhere = ("H01", "H04", "H05", "H08", "S01", "A01", "D01", "M02", "M07", "N02", "O01")
    assert [code for code in elsewhere if about_kernels(by_code[code])] == []


# Where to begin: launches of the same base name before the steady state, and among other kernels.

EVERY = 100.0
BEFORE: Case = {
    "iteration": [iterations(6, start=1000)],
    "gpu_op": [
        {"name": "void scale<float>(float*)", "start": 0, "duration": 20, "repeat": 7, "every": EVERY},
        {"name": "other(float*)", "start": 50, "duration": 20, "repeat": 7, "every": EVERY},
        {"name": "void scale<float>(float*)", "start": 1000, "duration": 50, "repeat": 6, "every": EVERY},
        {"name": "void scale<double>(double*)", "start": 1060, "duration": 9, "repeat": 6, "every": EVERY},
    ],
}


def test_launches_before_the_steady_state_are_skipped() -> None:
    with opened(BEFORE, "profile_candidate", "kernel_launch") as con:
        found = rows(con, "select * from profile_candidate order by share desc")
        assert [row["name"] for row in found] == ["void scale<float>(float*)", "void scale<double>(double*)"]
        settings = library().setting_values
        assert launches(con, settings, found[0])[:3] == (7, 3, 5)  # the other instance stands between them
        assert launches(con, settings, found[1])[:3] == (8, 3, 5)


def test_a_name_in_several_sizes_is_one_candidate() -> None:
    case: Case = {
        "iteration": [iterations(6)],
        "gpu_op": [
            {"name": "f()", "start": 0, "duration": 10, "grid": 8, "block": 64, "repeat": 6, "every": EVERY},
            {"name": "f()", "start": 20, "duration": 30, "grid": 4, "block": 32, "repeat": 6, "every": EVERY},
        ],
    }
    with opened(case, "profile_candidate") as con:
        [row] = rows(con, "select * from profile_candidate")
    assert (row["grid"], row["block"], row["sizes"], row["median_ns"]) == (4, 32, 2, 30_000)
    assert row["share"] == pytest.approx(0.4)
    assert row["launches_per_iteration"] == 2


@pytest.mark.parametrize(
    ("places", "found"),
    [
        ([5], (5, 1, 1)),
        ([5, 6, 7, 8], (5, 3, 3)),
        ([5, 9, 20, 21, 22], (20, 3, 3)),
        ([0, 100, 101, 200], (100, 2, 2)),
        ([0, 100, 200], (0, 1, 1)),
    ],
)
def test_the_shortest_row_of_launches_is_measured(places: list[int], found: tuple[int, int, int]) -> None:
    assert window(places, wanted=3, most=20) == found


# The command.


def test_the_command_measures_one_kernel_after_the_warm_up() -> None:
    words = shlex.split(command("gemm", "gemm", 12, 3))
    assert words[0] == "ncu"
    assert words[-1] == PROGRAM
    options = dict(zip(words[1:-1:2], words[2:-1:2], strict=True))
    assert options == {
        "--set": "full", "--import-source": "yes", "-k": "regex:^gemm$", "--launch-skip": "12", "--launch-count": "3",
        "--clock-control": "none", "-o": "gemm",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["gemm", "operator()", "a.b*c", "f[x]{2}|g^$\\", "naïf", HOSTILE, "x" * 300])
def test_any_name_is_matched_and_safe_in_a_shell(name: str) -> None:
    assert re.search(pattern(name), name)
    assert not re.search(pattern(name), f"other_{name}")
    line = command(name, files([name])[0], 0, 3)
    assert line.isprintable()
    assert not set('`"!') & set(line)
    assert shlex.split(line)[6] == f"regex:{pattern(name)}"
    assert len(line) < 500


def test_a_tag_behind_the_name_is_matched() -> None:
    assert re.search(pattern("relax", tagged=True), "relax")
    assert re.search(pattern("relax", tagged=True), "relax[abi:v1,cw51]")
    assert not re.search(pattern("relax", tagged=True), "relax_more")


def test_reports_have_names_of_their_own() -> None:
    names = files(["f", "f", HOSTILE, "f", "-o", "é"])
    assert names[:2] == ["f", "f_2"]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"\w+", name, re.ASCII) for name in names)


def test_the_follow_up_names_the_timeline_and_the_profiles() -> None:
    assert follow_up(["my run.sqlite"], ["f"]) == "gpudiag explain 'my run.sqlite' f.ncu-rep"
    assert follow_up(["a\nb"], ["f"]) == "gpudiag explain YOUR-REPORT f.ncu-rep"


# The page.


def proposal(**changes: object) -> Proposal:
    values: dict[str, object] = {
        "name": "gemm", "loop": "step", "share": 0.6, "saved_share": 0.3, "replayed": True, "launches": 2.0,
        "median_ms": 1.5, "grid": 264, "block": 128, "sizes": 1, "library": False, "open": "Why?", "decides": "That.",
        "command": command("gemm", "gemm", 12, 3), "wanted": 3, "count": 3,
    }  # fmt: skip
    return Proposal.model_validate(values | changes)


def test_the_page_tells_kernel_question_and_command() -> None:
    steps = NextSteps(state="profile", text="Two.", kernels=(proposal(),), then=follow_up(["a.sqlite"], ["gemm"]))
    page = next_steps.markdown(steps)
    assert "## 1. `gemm`\n" in page
    assert "60 % of `step`, twice as fast, it would save 30 % of `step`, 2 launches an iteration, 1.50 ms each" in page
    assert "-k 'regex:^gemm$'" in page
    assert "\ngpudiag explain a.sqlite gemm.ncu-rep\n" in page
    assert page.count("```") == 4


def test_launches_of_other_kernels_are_owned_up_to() -> None:
    assert "3 of these 7 launches" in next_steps.markdown(
        NextSteps(state="profile", text="x", kernels=(proposal(count=7),))
    )


def test_a_saving_that_could_not_be_replayed_is_a_bound() -> None:
    assert "save at most 30 %" in next_steps.markdown(
        NextSteps(state="profile", text="x", kernels=(proposal(replayed=False),))
    )


def test_hostile_names_stay_text() -> None:
    kernel = proposal(name=HOSTILE, loop=HOSTILE, command=command(HOSTILE, files([HOSTILE])[0], 0, 3))
    page = next_steps.markdown(
        NextSteps(state="profile", text=f"See `{HOSTILE}`.", kernels=(kernel,), inputs=(HOSTILE,))
    )
    assert "<!--" not in page
    assert "@you" not in re.sub(r"(`+).*?\1", "", page, flags=re.DOTALL)


def test_a_wrapped_command_is_still_one_command() -> None:
    line = command("nvjet_sm90_hsh_320x128_64x3_1x2_h_bz_coopB_NNT", "a" * 60, 1234, 3)
    wrapped = next_steps.wrapped(line)
    assert wrapped.count("\n") > 1
    said = subprocess.run(["sh", "-c", f"printf '%s\\n' {wrapped}"], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == shlex.split(line)
    assert max(map(len, wrapped.splitlines())) <= next_steps.WIDTH + len(next_steps.INDENT) + 2


# The command line.


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(main, ["next", *map(str, args)])


def test_json_has_the_promised_keys(tmp_path: Path) -> None:
    out = tmp_path / "next.json"
    result = run(CAPTURES / "transpose" / "slow-naive.sqlite.xz", "--format", "json", "-o", out)
    assert (result.exit_code, result.output) == (0, "")
    document = json.loads(out.read_text())
    assert {"state", "text", "kernels"} <= document.keys()
    [kernel] = document["kernels"]
    assert {
        "name", "loop", "share", "saved_share", "launches", "median_ms", "grid", "block", "library", "open", "decides",
        "command",
    } <= kernel.keys()  # fmt: skip
    assert kernel["launches"] == 1
    assert document["then"].endswith("slow-naive.sqlite.xz transpose_naive.ncu-rep")


def test_errors_are_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    result = run(tmp_path / "missing.sqlite")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("gpudiag: ")
    capture = CAPTURES / "transpose" / "slow-naive.sqlite.xz"
    assert run(capture, "--iteration-time", "nowhere=3ms").exit_code == 2
    assert run(capture, "--set", "H99.none=3").exit_code == 2
    assert run().exit_code == 2


def test_a_threshold_can_be_set() -> None:
    capture = CAPTURES / "transpose" / "slow-naive.sqlite.xz"
    result = run(capture, "--format", "json", "--set", "settings.next_min_saved=0.6")
    assert json.loads(result.stdout)["state"] == "no_kernel"


def test_a_saved_report_is_refused_by_what_it_is(tmp_path: Path) -> None:
    saved = tmp_path / "report.json"
    saved.write_text('{"schema_version": 1}')
    with pytest.raises(GpudiagError, match=r"report\.json is a saved report: .*the capture, so give that\.$"):
        planned([saved])
