"""Reports of logs of nvidia-smi, alone and beside a timeline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluation.packed import recording
from gpudiag import compare as comparison
from gpudiag import pipeline
from gpudiag.library import load as library
from gpudiag.model import Report
from gpudiag.options import Options
from gpudiag.report import markdown
from paths import CAPTURES

FOLDER = CAPTURES / "healthy_two_stream_pipeline"
OPTIONS = Options(cached=False)
HEADER = (
    "timestamp, index, utilization.gpu [%], clocks.current.sm [MHz], clocks.max.sm [MHz], clocks_event_reasons.active"
)


@pytest.fixture(scope="module")
def alone() -> Report:
    return pipeline.explain([FOLDER / "smi.csv.xz"], OPTIONS)


@pytest.fixture(scope="module")
def beside() -> Report:
    return pipeline.explain([FOLDER / "smi.csv.xz", recording(FOLDER / "healthy")], OPTIONS)


def codes(report: Report) -> set[str]:
    return {one.code for one in (*report.findings, *report.minor)}


@pytest.mark.capture
def test_a_log_alone_is_never_healthy_and_names_no_cause(alone: Report) -> None:
    assert alone.verdict.state == "cannot_tell" and not alone.findings
    assert "only a timeline tells" in alone.verdict.text and "nsys profile" in alone.verdict.text
    (note,) = [note for note in alone.notes if note.code == "T08"]
    assert "What the GPU waited for, no log of nvidia-smi can tell" in note.text
    page = markdown.render(alone)
    assert "only a timeline tells" in page and "idle" not in page.partition("## Not evaluated")[0].lower()


@pytest.mark.capture
def test_what_a_log_rules_out_is_said_and_nothing_else(alone: Report) -> None:
    assert set(alone.clear) == {"T02", "T06", "T03"} & set(alone.clear) and {"T02", "T06"} <= set(alone.clear)
    missing = {one.code: one.reason for one in alone.not_evaluated}
    assert missing["T07"].startswith("neither the log of nvidia-smi (memory.total)")
    assert missing["T03"] == "the log of nvidia-smi does not show the PCIe link"
    assert missing["H01"] == "GPU activity was not recorded"


@pytest.mark.capture
def test_beside_a_timeline_the_timeline_judges(beside: Report) -> None:
    own = pipeline.explain([recording(FOLDER / "healthy")], OPTIONS)
    assert [one.kind for one in beside.inputs] == ["smi", "nsys"]
    assert beside.verdict == own.verdict and codes(beside) == codes(own)
    assert beside.run.devices == own.run.devices and beside.run.loops == own.run.loops
    assert "T08" not in {note.code for note in beside.notes}
    assert {"T02", "T06"} <= set(beside.clear)
    assert {one.code: one.reason for one in own.not_evaluated}["T02"] == "no log of nvidia-smi was given"


def test_a_low_clock_is_a_finding_with_the_test_that_tells(tmp_path: Path) -> None:
    log = tmp_path / "smi.csv"
    rows = [f"2026/01/03 15:36:{n:02}.500, 0, 97 %, 1410 MHz, 1980 MHz, 0x2" for n in range(30)]
    log.write_text("\n".join([HEADER, *rows, ""]))
    report = pipeline.explain([log], OPTIONS)
    (finding,) = report.findings
    assert finding.code == "T02" and finding.gain.kind == "test_needed" and finding.gain.basis == "run"
    assert report.verdict.state == "problems" and "only a timeline tells" in report.verdict.text
    assert report.verdict.text in markdown.render(report).replace("\\", "")
    assert report.run.measured_clocks_mhz == (1410,)


@pytest.mark.capture
def test_diff_refuses_sides_at_other_clocks(beside: Report) -> None:
    rules = library.load()

    def at(clock: float | None) -> Report:
        clocks = () if clock is None else (clock,)
        return beside.model_copy(update={"run": beside.run.model_copy(update={"measured_clocks_mhz": clocks})})

    def compared(base: float | None, head: float | None) -> tuple[str, str]:
        found = comparison.compare([at(base)], [at(head)], rules.setting_values, rules.budget_parts)
        return found.state, found.text

    state, text = compared(1980, 1755)
    assert state == "incomparable" and "1,980 MHz before and at 1,755 MHz now, 11 % apart" in text
    assert compared(1980, 1935)[0] == "noise"
    assert compared(1980, None)[0] == "noise"


@pytest.mark.capture
def test_a_saved_report_keeps_the_clocks(beside: Report) -> None:
    assert json.loads(beside.model_dump_json())["run"]["measured_clocks_mhz"] == [1980.0]


@pytest.mark.capture
def test_a_log_given_twice_counts_once(tmp_path: Path) -> None:
    from gpudiag.errors import GpudiagError

    copy = tmp_path / "copy.csv.xz"
    copy.write_bytes((FOLDER / "smi.csv.xz").read_bytes())
    with pytest.raises(GpudiagError, match="holds the same as"):
        pipeline.explain([FOLDER / "smi.csv.xz", copy], OPTIONS)
