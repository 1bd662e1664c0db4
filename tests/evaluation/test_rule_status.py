"""Which rules the corpus backs: the criterion of CONTRIBUTING.md. The scores are synthetic."""

from __future__ import annotations

from typing import Any

from evaluation import rule_status


def score(role: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "split": "validation", "alarms": [], "forbidden": [], **more}


SLOW = score("slow", planted="S01", first="S01", rank=1)


def backed(code: str, fixed: dict[str, str] | None = None, **scores: dict[str, Any]) -> bool:
    named = {name.replace("__", "/"): one for name, one in scores.items()}
    return rule_status.evidence(named, fixed or {})[code].backed


def test_a_rule_first_on_a_validation_program_is_backed() -> None:
    assert backed("S01", a__slow=SLOW)


def test_development_programs_alone_do_not_back_a_rule() -> None:
    assert not backed("S01", a__slow=SLOW | {"split": "development"})


def test_a_planted_fault_that_is_not_first_speaks_against_it() -> None:
    missed = score("slow", planted="S01", first="H02", rank=2)
    assert not backed("S01", a__slow=SLOW, b__slow=missed)


def test_an_alarm_on_a_healthy_program_speaks_against_it() -> None:
    assert not backed("S01", a__slow=SLOW, b__healthy=score("healthy", alarms=["S01"]))


def test_a_finding_that_stays_after_its_fix_speaks_against_it() -> None:
    fixed = {"a/fixed": "S01"}
    assert not backed("S01", fixed, a__slow=SLOW, a__fixed=score("fixed", alarms=["S01"]))
    assert backed("S01", fixed, a__slow=SLOW, a__fixed=score("fixed", alarms=["H01"]))


def test_another_recording_of_one_program_is_no_more_evidence() -> None:
    scores = {"a/slow": SLOW | {"split": "development"}, "a/slow/no-nvtx": SLOW}
    assert not rule_status.evidence(scores, {})["S01"].backed
