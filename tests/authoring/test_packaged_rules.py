"""Every case of every `*.test.yaml` beside a rule, and that each rule has the cases it needs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gpudiag.authoring import cases as rulecheck
from gpudiag.authoring import lint
from gpudiag.library import load, yaml_file

pytestmark = pytest.mark.slow

_GROUPED = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_FILTERED_COUNT = re.compile(rf"\bcount\s*{_GROUPED}\s*filter\s*{_GROUPED}\s*over\b", re.I)

LIBRARY, _ = load.scan()
FILES = {rule.code: LIBRARY.sources[rule.code].path for rule in LIBRARY.rules}


@pytest.mark.parametrize("code", FILES)
def test_cases_of_rule(code: str, subtests: pytest.Subtests) -> None:
    path = rulecheck.test_path(FILES[code])
    assert path.exists(), f"{code} has no {path.name}"
    file = yaml_file.read(path)
    for name, case in file.data.items():
        with subtests.test(name):
            result = rulecheck.run_case(name, case, LIBRARY.by_code[code], LIBRARY, file)
            assert result.problem == "", f"{file.path}:{result.line}"
    expected = [case.get("expect") for case in file.data.values()]
    assert any(expected), f"{code}: no case expects rows"
    if LIBRARY.by_code[code].kind == "finding":
        assert [] in expected, f"{code}: no case expects silence for a near miss"


def test_every_test_file_belongs_to_a_rule() -> None:
    tests = {str(path) for path in load.packaged_dir().rglob("*.test.yaml")}
    assert tests <= {str(rulecheck.test_path(path)) for path in FILES.values()}


def test_packaged_rules_pass_their_own_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def passed(name: str, case: Any, *_: object, **__: object) -> rulecheck.CaseResult:
        expected = case.get("expect")
        return rulecheck.CaseResult(name, 1, bool(expected), expected == [], "")

    monkeypatch.setattr(rulecheck, "run_case", passed)  # all cases run above, and take minutes
    assert [str(problem) for problem in lint.check()] == []


def test_no_window_counts_with_a_filter() -> None:
    """DuckDB takes time that is quadratic in the rows for it: 1.6 s for 120,000, and 0.01 s for `count_if`."""
    assert _FILTERED_COUNT.search("count(*) filter (where kind in ('a', 'b')) over (order by x)")
    queries = {code: rule.query for code, rule in LIBRARY.by_code.items()} | dict(LIBRARY.views)
    assert [name for name, sql in queries.items() if _FILTERED_COUNT.search(sql)] == []
