"""The evidence beside a finding's message: labels and units as its rule declares them."""

from __future__ import annotations

import pytest

import samples
from gpudiag.model import EvidenceItem, EvidenceLabel, Finding
from gpudiag.model.evidence import UNITS, Unit
from gpudiag.report.wording.evidence_words import labelled, news

TIME = EvidenceLabel(label="waiting", unit="ns")


def finding(**changes: object) -> Finding:
    return samples.launch_bound_finding(**changes)


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        ("ns", 2.5e6, "2.50 ms"), ("us", 2500, "2.50 ms"), ("ms", 2.5, "2.50 ms"), ("s", 0.0025, "2.50 ms"),
        ("bytes", 4096, "4.0 KiB"), ("B/s", 1.5e12, "1,500 GB/s"), ("percent", 40.0, "40 %"), ("share", 0.5, "50 %"),
        ("count", 12_345, "12,345"), ("per_iteration", 8 / 9, "8 in 9"), ("per_iteration", 3, "3"),
        ("name", "gemm", "`gemm`"), ("name", ["a", "b", "c", "d"], "`a`, `b`, `c` and 1 more"), ("yes_no", False, "no"),
    ],
)  # fmt: skip
def test_a_figure_is_printed_in_its_unit(unit: Unit, value: object, text: str) -> None:
    assert str(labelled(EvidenceItem(label="figure", unit=unit), value)) == f"figure = {text}"
    assert unit in UNITS


def test_labels_are_the_rule_s_and_not_the_column_s() -> None:
    one = finding(evidence={"places": 1, "stall_pct": 5000.0, "other_ns": 7}, evidence_labels={"stall_pct": TIME})
    assert news(one) == ["waiting = 5.00 µs"]


def test_a_figure_that_the_message_states_is_left_out() -> None:
    said = TIME.model_copy(update={"in_message": True})
    evidence = {"places": 1, "wait_ns": 5000.0, "copy_ns": 5000.0}
    labels = {"wait_ns": said, "copy_ns": EvidenceLabel(label="copying", unit="ns")}
    one = finding(evidence=evidence, evidence_labels=labels, message="It waits 5.00 µs.")
    assert news(one) == ["copying = 5.00 µs"], "an equal figure of another column is no repetition"


def test_a_former_report_is_printed_as_it_was() -> None:
    one = finding(evidence={"wait_ns": 5000.0, "copy_bytes": 4096}, message="It waits 5.00 µs.")
    assert news(one) == ["copy = 4.0 KiB"]


def test_a_unit_of_a_later_version_is_printed_as_a_number() -> None:
    later = EvidenceLabel(label="energy", unit="joule")
    assert news(finding(evidence={"energy": 12.0}, evidence_labels={"energy": later})) == ["energy = 12"]
