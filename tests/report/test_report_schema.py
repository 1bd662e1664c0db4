"""The published schema: every report fits it, and it only ever gains keys."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

import samples
from evaluation.corpus import CAPTURES
from gpudiag.report import json_format
from paths import ROOT

SCHEMA: dict[str, Any] = json.loads((ROOT / "docs/reference/report.schema.json").read_text("utf-8"))
# Keys that programs rely on: add to this file what the report gains, and take nothing out.
KEYS: dict[str, list[str]] = json.loads((ROOT / "tests/data/report-keys-v1.json").read_text("utf-8"))


def fits(text: str) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))


@pytest.mark.parametrize("name", samples.ALL)
def test_every_sample_fits(name: str) -> None:
    fits(json_format.render(samples.ALL[name]()))


@pytest.mark.capture
def test_a_capture_s_report_fits() -> None:
    from captures import report_of

    fits(json_format.render(report_of(CAPTURES / "item_every_stage/slow.sqlite.xz")))


def test_the_schema_itself_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("kind", KEYS)
def test_no_key_of_version_1_is_lost(kind: str) -> None:
    shape = SCHEMA if kind == "Report" else SCHEMA["$defs"][kind]
    assert set(KEYS[kind]) <= set(shape["required"])


def test_a_reader_of_today_takes_keys_of_tomorrow() -> None:
    value = json.loads(json_format.render(samples.launch_bound()))
    value["later"] = value["findings"][0]["later"] = value["run"]["later"] = 1
    fits(json.dumps(value))


def test_a_missing_key_or_a_wrong_type_is_noticed() -> None:
    value = json.loads(json_format.render(samples.launch_bound()))
    del value["findings"][0]["fingerprint"]
    with pytest.raises(jsonschema.ValidationError, match="fingerprint"):
        fits(json.dumps(value))
