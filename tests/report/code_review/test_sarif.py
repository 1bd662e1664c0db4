"""What code scanning and editors get: valid SARIF, an alert a finding, at a path that the checkout has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import samples
from evaluation.corpus import CAPTURES
from gpudiag.model import Place, Report
from gpudiag.report.code_review import sarif
from paths import sarif_schema

SCHEMA = sarif_schema()
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)


def log(report: Report, root: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(sarif.render(report, root))
    assert [error.message for error in VALIDATOR.iter_errors(value)] == []
    return value


def run_of(report: Report, root: Path) -> dict[str, Any]:
    run: dict[str, Any] = log(report, root)["runs"][0]
    return run


@pytest.mark.parametrize("name", samples.ALL)
def test_every_sample_is_valid(name: str, tmp_path: Path) -> None:
    log(samples.ALL[name](), tmp_path)


@pytest.mark.capture
def test_a_capture_is_valid_and_its_rules_are_explained(tmp_path: Path) -> None:
    from captures import report_of

    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/item_every_stage.py").touch()
    report = report_of(CAPTURES / "item_every_stage/slow.sqlite.xz")
    run = run_of(report, tmp_path)
    assert [result["ruleId"] for result in run["results"]] == [f.code for f in report.findings if f.where[0].line]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "sub/item_every_stage.py", "uriBaseId": "%SRCROOT%"}
    for rule in run["tool"]["driver"]["rules"]:
        assert "**Why it costs time:**" in rule["help"]["markdown"]
        assert "**Fix: " in rule["help"]["markdown"]


def test_a_finding_is_one_result_that_links_to_its_other_lines(tmp_path: Path) -> None:
    run = run_of(samples.launch_bound(), tmp_path)
    first, second = run["results"]
    assert [first["ruleId"], second["ruleId"]] == ["H01", "S01"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["H01", "S01"]
    assert first["locations"][0]["physicalLocation"]["region"]["startLine"] == 31
    assert [place["id"] for place in first["relatedLocations"]] == [1]
    assert first["message"]["text"].endswith("Also at [line 44](1).")
    assert first["partialFingerprints"] == {"gpudiag/v1": "9f2c41d07a3b"}
    assert first["level"] == "warning"
    assert first["rank"] == pytest.approx(100 * 0.789 * 0.919, rel=1e-4)


def test_a_line_of_the_checkout_precedes_one_of_a_library(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    where = (
        Place(file="/opt/lib/python3.12/site-packages/torch/nn/linear.py", line=114, share=0.9),
        Place(file="/home/u/proj/train.py", line=7, share=0.1),
    )
    finding = samples.launch_bound_finding(where=where)
    result = run_of(samples.launch_bound().model_copy(update={"findings": (finding,)}), tmp_path)["results"][0]
    here, there = (
        place["physicalLocation"]["artifactLocation"] for place in result["locations"] + result["relatedLocations"]
    )
    assert here == {"uri": "train.py", "uriBaseId": "%SRCROOT%"}
    assert there == {"uri": "torch/nn/linear.py", "uriBaseId": "RECORDED"}


def test_findings_without_a_line_are_listed_but_are_no_alerts(tmp_path: Path) -> None:
    run = run_of(samples.kernel_only(), tmp_path)
    assert run["results"] == [] and run["tool"]["driver"]["rules"] == []
    summary = [note["message"]["text"] for note in run["invocations"][0]["toolExecutionNotifications"]]
    assert [text[:3] for text in summary] == ["W01", "L04"]
    assert "kernel `gather" in summary[0]


def test_smaller_things_are_no_alerts(tmp_path: Path) -> None:
    assert "M05" not in sarif.render(samples.launch_bound(), tmp_path)


def test_odd_file_names_are_encoded_and_cannot_make_links(tmp_path: Path) -> None:
    where = tuple(Place(file=f"/p/{name}", line=1) for name in ("a b%.py", "x](1).py", "javascript:alert(1)", "ü\n.py"))
    finding = samples.launch_bound_finding(where=where, message="See [this](https://evil.example) and `f[](int)`.")
    result = run_of(samples.launch_bound().model_copy(update={"findings": (finding,)}), tmp_path)["results"][0]
    places = result["locations"] + result["relatedLocations"]
    uris = [place["physicalLocation"]["artifactLocation"]["uri"] for place in places]
    assert uris == ["a%20b%25.py", "x%5D%281%29.py", "javascript%3Aalert%281%29", "%C3%BC%0A.py"]
    links = re.findall(r"(?<!\\)\]\((.*?)\)", result["message"]["text"])
    assert links == ["1", "2", "3"]


def test_the_same_report_gives_the_same_bytes(tmp_path: Path) -> None:
    assert sarif.render(samples.hostile(), tmp_path) == sarif.render(samples.hostile(), tmp_path)
