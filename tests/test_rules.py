"""Every case of every `*.test.yaml` beside a rule, and that each rule has the cases it needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpudiag import library, rulecheck, rulelint, yamlfile

LIBRARY, _ = library.scan()
FILES = {rule.code: LIBRARY.sources[rule.code].path for rule in LIBRARY.rules}


def cases() -> list[Any]:
    found = []
    for code, path in FILES.items():
        test = rulecheck.test_path(path)
        if test.exists():
            file = yamlfile.read(test)
            found += [pytest.param(code, file, name, id=f"{code}-{name}") for name in file.data or {}]
    return found


@pytest.mark.parametrize(("code", "file", "name"), cases())
def test_case(code: str, file: yamlfile.YamlFile, name: str) -> None:
    result = rulecheck.run_case(name, file.data[name], LIBRARY.by_code[code], LIBRARY, file)
    assert result.problem == "", f"{file.path}:{result.line}"


@pytest.mark.parametrize("code", FILES)
def test_rule_is_shown_firing_and_staying_silent(code: str) -> None:
    path = rulecheck.test_path(FILES[code])
    assert path.exists(), f"{code} has no {path.name}"
    expected = [case.get("expect") for case in yamlfile.read(path).data.values()]
    assert any(expected), f"{code}: no case expects rows"
    if LIBRARY.by_code[code].kind == "finding":
        assert [] in expected, f"{code}: no case expects silence for a near miss"


def test_every_test_file_belongs_to_a_rule() -> None:
    tests = {str(path) for path in library.packaged_dir().rglob("*.test.yaml")}
    assert tests <= {str(rulecheck.test_path(path)) for path in FILES.values()}


def test_packaged_rules_pass_their_own_check() -> None:
    # Cases run above, one by one: here only what is not a case.
    problems = [problem for problem in rulelint.check() if not Path(problem.path).name.endswith(".test.yaml")]
    assert [str(problem) for problem in problems] == []
