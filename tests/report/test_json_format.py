"""The contract: bots rely on these keys."""

import json
import math
from typing import Any

import jsonschema
import pytest

import samples
from gpudiag.model import Report
from gpudiag.report import json_format

KEYS = [
    "schema_version",
    "tool",
    "inputs",
    "verdict",
    "run",
    "findings",
    "minor",
    "clear",
    "not_evaluated",
    "suppressed",
    "notes",
    "titles",
    "job",
]
LOOP = ["id", "name", "source", "iterations", "iteration_ms", "iteration_ms_unprofiled", "share_of_span", "budget"]
FINDING = [
    "rank",
    "code",
    "id",
    "kind",
    "status",
    "title",
    "severity",
    "confidence",
    "fingerprint",
    "gain",
    "where",
    "evidence",
    "message",
    "remedies",
    "references",
]
GAIN = [
    "kind",
    "basis",
    "loop",
    "before_ms",
    "after_ms",
    "low_ms",
    "high_ms",
    "speedup",
    "share",
    "cumulative_after_ms",
]


def rendered(report: Report) -> Any:
    return json.loads(json_format.render(report))


@pytest.mark.slow
@pytest.mark.parametrize("name", samples.ALL)
def test_a_report_fits_the_schema_and_reads_back(name: str) -> None:
    value = rendered(samples.ALL[name]())
    jsonschema.validate(value, Report.model_json_schema())
    assert json_format.render(Report.model_validate(value)) == json_format.render(samples.ALL[name]())


def test_the_contract_s_keys_are_there() -> None:
    value = rendered(samples.launch_bound())
    finding = value["findings"][0]
    assert list(value) == KEYS
    assert value["schema_version"] == 1
    assert set(LOOP) <= set(value["run"]["loops"][0])
    assert set(FINDING) <= set(finding)
    assert set(GAIN) <= set(finding["gain"])
    place = {"file", "line", "function", "nvtx", "kernel", "operator", "module", "backward", "share"}
    assert set(finding["where"][0]) == place
    assert {"id", "framework", "text"} <= set(finding["remedies"][0])


def test_floats_are_short_and_integers_whole() -> None:
    finding = samples.launch_bound_finding(
        evidence={"x": 1 / 3, "n": 123_456_789, "nan": math.nan, "deep": {"y": [2 / 3]}}
    )
    value = rendered(samples.launch_bound().model_copy(update={"findings": (finding,)}))
    assert value["findings"][0]["evidence"] == {"x": 0.333333, "n": 123_456_789, "nan": None, "deep": {"y": [0.666667]}}


def test_it_is_ascii_with_one_newline_at_the_end() -> None:
    text = json_format.render(samples.hostile())
    assert text.isascii()
    assert text.endswith("}\n")
    assert "\x1b" not in text


def test_the_same_report_gives_the_same_bytes() -> None:
    assert json_format.render(samples.launch_bound()) == json_format.render(samples.launch_bound())
