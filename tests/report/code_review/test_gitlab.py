"""What GitLab reads beside a merge request's diff."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import samples
from evaluation.corpus import CAPTURES
from gpudiag.model import Report
from gpudiag.report.code_review import gitlab
from paths import DATA

SCHEMA = json.loads((DATA / "gitlab-codequality.schema.json").read_text("utf-8"))


def entries(report: Report, root: Path) -> list[dict[str, Any]]:
    value: list[dict[str, Any]] = json.loads(gitlab.render(report, root))
    jsonschema.validate(value, SCHEMA)
    return value


@pytest.mark.parametrize("name", samples.ALL)
def test_every_sample_is_valid(name: str, tmp_path: Path) -> None:
    entries(samples.ALL[name](), tmp_path)


@pytest.mark.capture
def test_a_capture_gives_an_entry_at_the_line_in_the_checkout(tmp_path: Path) -> None:
    from captures import report_of

    (tmp_path / "bench").mkdir()
    (tmp_path / "bench/item_every_stage.py").touch()
    first = entries(report_of(CAPTURES / "item_every_stage/slow.sqlite.xz"), tmp_path)[0]
    assert first["check_name"] == "gpudiag/S01"
    assert first["location"] == {"path": "bench/item_every_stage.py", "lines": {"begin": 39}}


def test_an_entry_says_what_why_and_where_else(tmp_path: Path) -> None:
    first, second = entries(samples.launch_bound(), tmp_path)
    assert first["severity"] == second["severity"] == "critical"
    assert first["description"].startswith(
        "The GPU waits for small kernels to be launched: up to 79 % of an iteration."
    )
    assert first["description"].endswith("Also at line 44.")


@pytest.mark.parametrize(
    ("severity", "shown"), [("high", "critical"), ("medium", "major"), ("low", "minor"), ("info", "info")]
)
def test_severity(severity: str, shown: str, tmp_path: Path) -> None:
    finding = samples.launch_bound_finding(severity=severity)
    assert entries(samples.launch_bound().model_copy(update={"findings": (finding,)}), tmp_path)[0]["severity"] == shown


def test_fingerprints_are_unique_and_outlive_lines_and_times(tmp_path: Path) -> None:
    def fingerprints(*lines: int) -> list[str]:
        findings = tuple(
            samples.launch_bound_finding(
                rank=i, message=f"{line} µs", where=({"file": "a.py", "line": line, "function": "f"},)
            )
            for i, line in enumerate(lines, 1)
        )
        report = samples.launch_bound().model_copy(update={"findings": findings})
        return [entry["fingerprint"] for entry in entries(report, tmp_path)]

    before, after = fingerprints(3, 4), fingerprints(30, 40)
    assert before == after
    assert len(set(before)) == 2


def test_findings_without_a_line_have_no_place_in_it(tmp_path: Path) -> None:
    assert entries(samples.kernel_only(), tmp_path) == []
