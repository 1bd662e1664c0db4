"""The message of a failing case: the one figure that is wrong, its line, and the threshold that decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpudiag.authoring import cases, scaffold
from gpudiag.authoring.case_result import compare
from gpudiag.evaluate.engine import PLACEHOLDER
from gpudiag.library import load as library
from gpudiag.library import yaml_file
from gpudiag.model import Fired, Rule

SHORT = """\
a case:
  iteration: [{start: 0, duration: 100, repeat: 10, every: 100}]
  gpu_op: [{name: tiny, start: 10, duration: 2, repeat: 10, every: 100}]
  expect:
  - loop: 0
    launches: 10
    busy_ns: 20000
"""


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> library.Library:
    """A library of the scaffolded rule beside the packaged ones."""
    folder = tmp_path_factory.mktemp("rules")
    for path in scaffold.scaffold(folder, "sync", "my-smell", "U01"):
        path.write_text(path.read_text("utf-8").replace(PLACEHOLDER, "Written"), "utf-8")
    return library.load([folder])


def failed(known: library.Library, text: str, code: str = "U01") -> cases.CaseResult:
    file = yaml_file.parse(text, Path("x.test.yaml"))
    [case] = file.data.values()
    return cases.run_case("a case", case, known.by_code[code], known, file)


def outcome(known: library.Library, *rows: dict[str, Any]) -> Fired:
    rule: Rule = known.by_code["U01"]
    return Fired(rule=rule, rows=rows)


@pytest.mark.slow
def test_a_wrong_value_has_its_line(known: library.Library) -> None:
    assert failed(known, SHORT).problem == ""
    result = failed(known, SHORT.replace("20000", "21000"))
    assert (result.line, result.problem) == (7, "expected busy_ns 21000, found 20000 (column busy_ns, row 1)")


def test_other_wrong_columns_are_named(known: library.Library) -> None:
    result = failed(known, SHORT.replace("20000", "21000").replace("launches: 10", "launches: 11"))
    assert result.line == 6
    assert result.problem.endswith("(column launches, row 1); other columns that differ: busy_ns")


def test_a_missed_threshold_is_named_with_the_value(known: library.Library) -> None:
    result = failed(known, SHORT.replace("duration: 2,", "duration: 5.1,"))
    assert result.line == 5
    assert "gave 0 rows instead of 1; row 1 did not come: {loop: 0, launches: 10, busy_ns: 20000}" in result.problem
    assert result.problem.endswith("it would fire with max_kernel_ns above 5100 (it is 5000 ns)")


def test_the_threshold_that_lets_it_fire_is_named(known: library.Library) -> None:
    result = failed(known, f"{SHORT.partition('  expect')[0]}  expect: []\n")
    assert "gave 1 row instead of 0; row 1 was not expected: {loop: 0, kernel:" in result.problem
    assert "it would stay quiet with max_kernel_ns below 2000 (it is 5000 ns)" in result.problem


def test_where_no_threshold_decides_that_is_said(known: library.Library) -> None:
    result = failed(known, SHORT.replace("name: tiny", "kind: memcpy, name: tiny"))
    assert result.problem.endswith("so look at shared settings and at what the query joins and filters")


ATOMICS = """\
a case:
  kernel:
    preset: pointer_chase
    metrics:
      lts__t_sectors.sum: 76875081
      lts__t_sectors_srcunit_tex_op_red.sum: 49112696
      lts__cycles_active.max: 6730
      lts__cycles_active.avg: 1000
  expect: [{stall_share: 0.99}]
"""


def test_rows_that_are_left_to_others_are_no_threshold(known: library.Library) -> None:
    result = failed(known, ATOMICS, "W01")
    assert "gave 0 rows instead of 1" in result.problem
    assert result.problem.endswith("its query gives rows, of which C04 or K01 or K03 or K06 or L04 speaks")


def test_the_row_that_came_too_much_is_shown(known: library.Library) -> None:
    rows = [{"kernel": "a", "n": 1}, {"kernel": "b", "n": 2}]
    found = compare({"expect": [{"kernel": "b"}]}, outcome(known, *rows), "")
    assert found is not None
    assert found.text == 'gave 2 rows instead of 1; row 1 was not expected: {kernel: "a"}'
    assert found.at == ("expect",)


def test_the_row_that_did_not_come_has_its_place(known: library.Library) -> None:
    found = compare({"expect": [{"kernel": "a"}, {"kernel": "b"}]}, outcome(known, {"kernel": "a"}), "")
    assert found is not None
    assert found.at == ("expect", 1)
    assert 'row 2 did not come: {kernel: "b"}' in found.text
