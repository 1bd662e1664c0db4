"""Kernels measured after the timeline: a shell script stands for `ncu`, and prints what a real one once exported.

The timeline and the page are of one program (column_sums). The messages are those of Nsight Compute's documentation.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from captures import named
from evaluation.packed import plain, recording
from gpudiag.capture.ncu import kernel_pass
from gpudiag.cli import main
from gpudiag.cli.recording.kernel_choice import base_name
from paths import CAPTURES
from recorders import MARK, assert_nothing_left, torch
from remembered import remember

NCU = """#!/bin/sh
case "$1" in
  --help) echo '  --kill arg (=0)   Terminate the target application when --launch-count was profiled.'; exit 0;;
  --import) sed "s/column_sums/$(basename "$2" .ncu-rep)/" {page}; exit 0;;
esac
echo "$*" >> {log}
while [ "$1" != -o ]; do shift; done
report="$2"
{body}
"""
WRITES = 'echo made-up > "$report"'
PERMISSION = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the"
    " target device 0. For instructions on enabling permissions and to get more information see"
    " https://developer.nvidia.com/ERR_NVGPUCTRPERM"
)


@pytest.fixture
def timeline(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose nsys gives a real timeline, and whose driver lets everybody read counters."""
    folder = CAPTURES / "column_sums"
    (place / "exported").write_bytes(recording(folder / "slow").read_bytes())
    (place / "page.csv").write_bytes(named("column_sums/slow.raw.csv").read_bytes())
    monkeypatch.setattr(kernel_pass, "_DRIVER", place / "params")
    ncu(place, WRITES)
    remember(monkeypatch)
    return place


def ncu(place: Path, body: str) -> None:
    file = place / "bin" / "ncu"
    file.write_text(NCU.format(page=place / "page.csv", log=place / "ncu.log", body=body))
    file.chmod(0o755)


def captured(place: Path, *options: str) -> Result:
    words = ["--runs", "0", "--kernels", *options, "--format", "json", "--", "sh", "-c", "true"]
    return CliRunner().invoke(main, ["capture", "-d", str(place / "out"), *words])


def report(done: Result) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    content: dict[str, Any] = json.loads(done.stdout)
    return content


@pytest.mark.capture
def test_what_next_proposes_is_measured_and_explained(timeline: Path) -> None:
    done = captured(timeline)
    made = report(done)
    assert [item["kind"] for item in made["inputs"]] == ["nsys", "ncu"]
    assert made["run"]["kernels"][0]["name"] == "column_sums"
    (asked,) = (timeline / "ncu.log").read_text().splitlines()
    assert "-k regex:^column_sums$ --launch-skip 14 --launch-count 3 " in asked and "--kill yes" in asked
    assert asked.endswith("sh -c true")
    assert sorted(file.name for file in (timeline / "out").iterdir()) == [
        "capture.json", "column_sums.csv", "report.sqlite",
    ]  # fmt: skip
    files = json.loads((timeline / "out" / "capture.json").read_text())["files"]
    assert files == ["report.sqlite", "column_sums.csv"]
    assert f"gpudiag explain {timeline / 'out' / 'report.sqlite'} {timeline / 'out' / 'column_sums.csv'}" in done.stderr
    assert list((timeline / "tmp").iterdir()) == []


@pytest.mark.capture
def test_kernels_of_a_trace_are_measured(timeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch and its trace are those of `tests/recorders.py`."""
    (timeline / "bin" / "nsys").unlink()
    program = torch(timeline, monkeypatch) / "infer.py"
    words = ["--runs", "0", "--kernels", "--duration", "0.3", "--format", "json", "--", sys.executable, str(program)]
    made = report(CliRunner().invoke(main, ["capture", "-d", str(timeline / "out"), *words]))
    assert [item["kind"] for item in made["inputs"]] == ["torch", "ncu"]
    assert "-k regex:^gemm" in (timeline / "ncu.log").read_text()


@pytest.mark.capture
def test_where_none_is_proposed_the_longest_are(timeline: Path) -> None:
    """The host holds this program up, so that `next` proposes nothing; who asks gets the counters all the same."""
    (timeline / "exported").write_bytes(plain(CAPTURES / "launch_bound_fp32" / "slow.columns").read_bytes())
    report(captured(timeline))
    asked = (timeline / "ncu.log").read_text().splitlines()
    assert len(asked) == 3
    assert "-k regex:^sm80_xmma_gemm_f32f32_" in asked[0] and "--launch-skip 80 --launch-count 3 " in asked[0]


@pytest.mark.capture
@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (f"echo '{PERMISSION}'; exit 1", "may not read the GPU's counters (ERR_NVGPUCTRPERM): have an administrator"),
        ("echo '==WARNING== No kernels were profiled.'", "column_sums was not launched as often under ncu"),
        ("echo '==ERROR== Failed to connect to process.'; exit 1", "ncu says: Failed to connect to process."),
        ("kill -9 $$", "ncu was ended by signal 9"),
        (f"sleep {MARK}", "ncu did not measure column_sums within the --limit"),
    ],
    ids=["permission", "no launch", "error", "killed", "hangs"],
)
def test_without_counters_the_timeline_is_explained(timeline: Path, body: str, sentence: str) -> None:
    ncu(timeline, body)
    done = captured(timeline, "--limit", "2s")
    assert [item["kind"] for item in report(done)["inputs"]] == ["nsys"]
    said = [line for line in done.stderr.splitlines() if "the report is of the timeline alone: " in line]
    assert len(said) == 1 and sentence in said[0]
    assert sorted(file.name for file in (timeline / "out").iterdir()) == ["capture.json", "report.sqlite"]
    (timeline / "out" / "capture.json").unlink()
    (timeline / "out" / "report.sqlite").unlink()
    (timeline / "out").rmdir()
    assert_nothing_left(timeline)


@pytest.mark.capture
@pytest.mark.parametrize(
    ("missing", "sentence"),
    [(True, "ncu is not on the PATH: install the package nsight-compute"), (False, "ERR_NVGPUCTRPERM")],
    ids=["no ncu", "driver refuses"],
)
def test_what_is_known_before_is_said_before(
    timeline: Path, monkeypatch: pytest.MonkeyPatch, missing: bool, sentence: str
) -> None:
    """The driver's parameters and this process's rights are made up."""
    if missing:
        (timeline / "bin" / "ncu").unlink()
    (timeline / "params").write_text("RmProfilingAdminOnly: 1\n")
    (timeline / "status").write_text("CapEff:\t0000000000000000\n")
    monkeypatch.setattr(kernel_pass, "_STATUS", timeline / "status")
    done = captured(timeline)
    assert report(done)["run"]["kernels"] == []
    assert sentence in done.stderr.splitlines()[0]
    assert not (timeline / "ncu.log").exists()


@pytest.mark.capture
def test_a_page_that_cannot_be_read_leaves_the_timeline(timeline: Path) -> None:
    (timeline / "page.csv").write_text("no page\n")
    done = captured(timeline)
    assert [item["kind"] for item in report(done)["inputs"]] == ["nsys"]
    assert "column_sums.csv: " in done.stderr.splitlines()[-1]


@pytest.mark.capture
def test_kernels_need_the_report(timeline: Path) -> None:
    done = captured(timeline, "--no-explain")
    assert done.exit_code == 2 and "leave --no-explain out" in done.stderr
    assert not (timeline / "log").exists()


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("void at::native::<unnamed>::lerp_scalar_kernel<(int)4>(int, T2)", "lerp_scalar_kernel"),
        ("void (anonymous namespace)::step(float *)", "step"),
        ("nvjet_sm90_tst_64x64", "nvjet_sm90_tst_64x64"),
    ],
)
def test_a_kernel_is_asked_for_by_its_base_name(name: str, base: str) -> None:
    assert base_name(name) == base
