"""A saved report is the report: it prints the same in every format, and anything else is refused in a sentence."""

import json
from pathlib import Path

import pytest

import samples
from gpudiag import pipeline
from gpudiag.errors import GpudiagError
from gpudiag.options import Options
from gpudiag.report import formats, json_format, saved


def save(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "report.json"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", formats.BY_NAME)
def test_a_saved_report_prints_as_it_did(tmp_path: Path, name: str) -> None:
    report = samples.launch_bound()
    again = pipeline.report([save(tmp_path, json_format.render(report))])
    assert formats.render(again, name) == formats.render(report, name)


def test_keys_of_a_newer_version_are_left_out(tmp_path: Path) -> None:
    content = json.loads(json_format.render(samples.healthy()))
    content["novelty"] = content["run"]["novelty"] = {"a": 1}
    assert saved.read(save(tmp_path, json.dumps(content))) == samples.healthy()


def test_loops_called_by_their_kernels_are_marked(
    tmp_path: Path,
) -> None:
    content = json.loads(json_format.render(samples.launch_bound()))
    loop = content["run"]["loops"][0]
    loop |= {"name": "every gemm", "nvtx_path": None, "source": "period"}
    loop.pop("marker", None)
    former = saved.read(save(tmp_path, json.dumps(content))).run.loops[0]
    assert (former.name, former.marker) == ("every gemm", "every gemm")
    loop["source"] = "nvtx"  # a range that is called so is no kernel
    assert saved.read(save(tmp_path, json.dumps(content))).run.loops[0].marker is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "nor a report of gpudiag"),
        ('{"traceEvents": []}', "a trace of torch.profiler"),
        ('\n{\n  "schemaVersion": 1,\n  "deviceProperties": [' + "0, " * 50_000, "a trace of torch.profiler"),
        ('[{"name": "k", "ph": "X", "ts": 1}]', "a trace of torch.profiler"),
        ('{"loops": []}', "nor a report of gpudiag"),
        ('{"schema_version": 2}', r"newer gpudiag \(schema_version\)"),
        ('{"schema_version": 1}', r"damaged report.*\(tool\)"),
        ("\x00", "is not JSON"),
        ('{"schema_version": 1, "share": NaN}', "is not JSON"),
    ],
)
def test_anything_else_is_refused_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(GpudiagError, match=said):
        saved.read(save(tmp_path, text))


@pytest.mark.parametrize(
    "facts",
    [
        {"limit": "magic", "busy_pct": 90.0},
        {"limit": "dram"},
        {"limit": "dram", "busy_pct": "much"},
        {"limit": "empty", "busy_pct": 3.0},
        {"intensity": 3.0},
        {"waves": [1]},
        {"intensity": 3.0, "limit": "dram", "busy_pct": 3.0},
    ],
)
def test_figures_of_a_kernel_that_cannot_be_are_refused(tmp_path: Path, facts: dict[str, object]) -> None:
    content = json.loads(json_format.render(samples.kernel_only()))
    content["run"]["kernels"][0]["facts"] = facts
    with pytest.raises(GpudiagError, match=r"damaged report.*\(run\.kernels\.0\.facts"):
        saved.read(save(tmp_path, json.dumps(content)))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("run.loops.0.iterations", "0"),
        ("run.loops.0.iteration_ms", "0"),
        ("run.loops.0.iteration_ms", "-1"),
        ("run.loops.0.iteration_ms", "1e999"),
        ("run.loops.0.iteration_ms", "1e-320"),
        ("run.span_ms", '"1e999"'),
        ("run.loops.0.budget.compute", "1e308"),
        ("run.loops.0.budget.compute", "-1e308"),
        ("run.loops.0.launches", "9" * 400),
        ("findings.0.gain.share", "1e6"),
        ("findings.0.evidence.deep", "[" * 900 + "]" * 900),
    ],
)
def test_figures_that_cannot_be_are_refused_by_their_place(tmp_path: Path, place: str, value: str) -> None:
    content = json.loads(json_format.render(samples.launch_bound()))
    *path, key = place.split(".")
    inner = content
    for part in path:
        inner = inner[int(part)] if part.isdigit() else inner[part]
    inner[key] = "HERE"
    with pytest.raises(GpudiagError, match=rf"damaged report: {place}"):
        saved.read(save(tmp_path, json.dumps(content).replace('"HERE"', value)))


@pytest.mark.parametrize("fact", ["dram_pct", "ridge", "intensity"])
@pytest.mark.parametrize("value", ["-1", "1e999"])
def test_counters_that_cannot_be_are_refused(tmp_path: Path, fact: str, value: str) -> None:
    content = json.loads(json_format.render(samples.kernel_only()))
    content["run"]["kernels"][0]["facts"][fact] = "HERE"
    with pytest.raises(GpudiagError, match=rf"damaged report: run.kernels.0.facts.{fact}"):
        saved.read(save(tmp_path, json.dumps(content).replace('"HERE"', value)))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(GpudiagError, match=r"none\.json cannot be read"):
        saved.read(tmp_path / "none.json")


def test_thresholds_cannot_change_what_was_found(tmp_path: Path) -> None:
    path = save(tmp_path, json_format.render(samples.healthy()))
    with pytest.raises(GpudiagError, match="apply to captures only"):
        pipeline.report([path], Options(overrides={"H01.min_share": 0.3}))


def test_a_trace_called_as_reports_are_is_read_as_a_capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "LARGEST", 1000)
    path = save(tmp_path, '{"traceEvents": [' + '{"ph": "X"},' * 1000)
    with pytest.raises(GpudiagError, match="the trace is cut short"):
        pipeline.report([path])
