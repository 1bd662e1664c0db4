"""The scorecard: a right first finding, place and interval count; a score that gets worse is said."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from captures import report_of
from evaluation import accuracy_page, corpus, scorecard
from evaluation.scoring import Score, score

pytestmark = pytest.mark.capture


def kit(name: str) -> ModuleType:
    """A module of the capture kit, which is not on the path: it runs on GPU machines."""
    spec = importlib.util.spec_from_file_location(name, corpus.ROOT / "fixtures" / "kit" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def item() -> corpus.Case:
    return next(case for case in corpus.cases() if str(case) == "item_every_stage-slow")


def expecting(case: corpus.Case, **changes: Any) -> Score:
    return score(replace(case, expect={**case.expect, **changes}), report_of(*case.captures))


def test_a_right_first_finding_with_its_line_is_a_hit(item: corpus.Case) -> None:
    found = expecting(item)
    assert (found.hit, found.rank, found.place, found.first) == (True, 1, True, "S01")


def test_another_planted_cause_is_a_miss_and_predicts_nothing(item: corpus.Case) -> None:
    found = expecting(item, top="M01", alternates=[])
    assert (found.hit, found.rank, found.predicted_ms) == (False, None, None)


def test_a_line_far_from_the_planted_one_is_wrong(item: corpus.Case) -> None:
    place = {"file": "item_every_stage.py", "line_contains": "import torch"}
    assert expecting(item, place=place).place is False


def test_a_finding_that_the_label_rules_out_is_noted(item: corpus.Case) -> None:
    assert expecting(item, must_not=["S01", "M01"]).forbidden == ("S01",)


def test_a_finding_on_a_healthy_program_is_an_alarm(item: corpus.Case) -> None:
    found = score(replace(item, role="healthy", expect={"top": None}), report_of(*item.captures))
    assert "S01" in found.alarms
    assert not found.hit


SCORE = Score("p", "slow", "development", "slow", "", "S01", "S01", 1, ("S01",), (), (), place=True)


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (SCORE, None),
        (replace(SCORE, rank=2, first="H01"), "is now H01"),
        (replace(SCORE, place=False), "no longer"),
        (replace(SCORE, forbidden=("M01",)), "M01 is said now"),
        (replace(SCORE, program="other"), "missing"),
    ],
)
def test_a_score_that_gets_worse_is_reported(now: Score, said: str | None) -> None:
    problems = scorecard.worse(json.loads(scorecard.as_json([SCORE])), [now])
    assert (problems == []) if said is None else (said in problems[0])


def test_every_miss_needs_a_written_cause() -> None:
    missed = replace(SCORE, rank=None, first="H01")
    assert accuracy_page.unexplained([missed, SCORE]) == [missed]
    assert "p `slow`" in accuracy_page.page([missed], [], []).partition("## Misses")[2]


def test_every_program_is_on_one_side_of_the_split() -> None:
    programs = {case.slug for case in corpus.cases()}
    assert programs == corpus.splits().keys()


def test_only_captures_listed_as_pending_are_missing() -> None:
    assert corpus.missing() == corpus.pending("captures").keys()


def test_every_label_is_unprofiled_with_its_interval() -> None:
    for case in corpus.cases():
        waits = corpus.pending("captures").keys() | corpus.pending("times").keys()
        if case.role != "slow" or not case.expect.get("fixed_by") or case.slug in waits:
            continue
        ratios = corpus.label(case.slug)["ratios"]
        mine = [ratio for pair, ratio in ratios.items() if pair.startswith(f"{case.variant} / ")]
        assert mine, f"{case}: no label"
        assert all(ratio["low"] <= ratio["ratio"] <= ratio["high"] and min(ratio["n"]) >= 3 for ratio in mine), str(
            case
        )


def test_the_interval_of_a_ratio_narrows_with_the_noise() -> None:
    interval = kit("label").interval
    quiet, noisy = interval([10, 10.1, 9.9, 10, 10], [5, 5, 5.1, 4.9, 5]), interval([10, 14, 7, 11, 9], [5, 7, 4, 5, 6])
    assert quiet["low"] <= 2 <= quiet["high"]
    assert quiet["high"] - quiet["low"] < noisy["high"] - noisy["low"]
