"""Real traces: each beside an Nsight Systems recording of the same program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from captures import report_of
from evaluation import packed
from gpudiag.ingest import ingest
from gpudiag.model import Report
from gpudiag.store.database import create
from paths import CAPTURES

pytestmark = pytest.mark.capture

FILES = packed.traces_of(CAPTURES)


def name(path: Path) -> str:
    return f"{path.parent.name}-{path.name.split('.')[0]}"


@pytest.mark.parametrize("trace", FILES, ids=name)
def test_the_reader_keeps_every_event(trace: Path, tmp_path: Path) -> None:
    con = create()
    ingest(packed.opened(trace), con, tmp_path)
    events = [one for one in json.loads(packed.plain(trace).read_bytes())["traceEvents"] if one.get("ph") == "X"]
    for table, kinds in {
        "api_call": ("cuda_runtime", "cuda_driver"),
        "gpu_op": ("kernel", "gpu_memcpy", "gpu_memset"),
        "nvtx_range": ("user_annotation",),
        "overhead": ("overhead",),
    }.items():
        wanted = [one for one in events if one["cat"] in kinds]
        length = sum(round(one["dur"] * 1000) for one in wanted)
        assert con.execute(f'select count(*), coalesce(sum("end" - start), 0) from {table}').fetchall() == [
            (len(wanted), length)
        ]
    calls = {one["args"]["correlation"] for one in events if one["cat"] in ("cuda_runtime", "cuda_driver")}
    gpu = [one["args"]["correlation"] for one in events if one["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    # What the warm-up launched may run within the trace; its calls lie before it.
    without = len([one for one in gpu if one not in calls])
    assert con.execute("select count(*) from gpu_op where api_call is null").fetchall() == [(without,)]
    assert without < len(gpu) / 20


def steps(report: Report) -> tuple[str, int]:
    (loop,) = report.run.loops
    return loop.name, loop.iterations


@pytest.mark.parametrize("trace", FILES, ids=name)
def test_the_profilers_step_is_the_loop(trace: Path) -> None:
    report = report_of(trace)
    assert steps(report) == ("ProfilerStep", 4)
    assert "None" not in report.verdict.text  # places in a trace have no line


# docs/both_ways.md has them all.
APART = {"boolean_mask_loss-slow", "loader_without_workers-slow"}


@pytest.mark.parametrize(
    "trace",
    [
        one for one in FILES
        if (one.name.startswith("slow") or "loader" in one.parent.name) and name(one) not in APART
    ],
    ids=name,
)  # fmt: skip
def test_both_profilers_give_the_same_first_finding(trace: Path) -> None:
    twin = report_of(packed.stored(trace.with_name(packed.stem(trace).removesuffix(packed.TRACE))))
    report = report_of(trace)
    assert [one.code for one in report.findings[:1]] == [one.code for one in twin.findings[:1]]
    if not report.findings:
        return
    first, expected = report.findings[0], twin.findings[0]
    # As parts of an iteration: torch.profiler slows the host down more.
    ranges = [
        (1 - (found.gain.high_ms or 0) / found.gain.before_ms, 1 - (found.gain.low_ms or 0) / found.gain.before_ms)
        for found in (first, expected)
        if found.gain.before_ms
    ]
    assert ranges[0][0] <= ranges[1][1] and ranges[1][0] <= ranges[0][1]
    files = {Path(place.file).name for place in expected.where if place.file}
    if files:
        assert first.where[0].file in files and first.where[0].function and first.where[0].line is None


@pytest.mark.parametrize("slug", ["elementwise_chain", "rollout_eager"])
def test_a_fixed_program_of_few_tiny_steps_is_quiet(slug: str) -> None:
    """The profiler slows its host down several times: no finding is left without that."""
    assert not report_of(packed.stored(CAPTURES / slug / "fixed.pt.trace")).findings
