"""The test beside a rule: rows of the canonical tables in, the rule's rows out.

Each case of `<smell>.test.yaml` gives rows, in microseconds, and what the rule must say of them. Columns left out take
the defaults of `tables`, ids default to the row's position, and devices, threads and the like that rows refer to exist
without being named. `repeat: 12, every: 100` writes a row twelve times, 100 µs apart; a row with a `label` can be
referred to by it, and then each repetition refers to its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from gpudiag import pipeline
from gpudiag.authoring import case_store
from gpudiag.authoring.case_tables import ROW_WORDS, fill
from gpudiag.errors import GpudiagError
from gpudiag.evaluate.engine import Known, by_loop, evaluate, message
from gpudiag.evaluate.sandbox import create_views
from gpudiag.library import yaml_file
from gpudiag.library.load import Library
from gpudiag.library.sql_check import SqlProblem, read_views
from gpudiag.model import Fired, NotEvaluated, Outcome, Row, Rule
from gpudiag.schema import BY_NAME

Connection = duckdb.DuckDBPyConnection

_DIRECTIVES = {"expect", "expect_not_evaluated", "expect_message", "params", "settings", "capability"}
_TOLERANCE = 1e-3  # relative: expectations are written by hand


@dataclass(frozen=True, slots=True)
class CaseResult:
    """Outcome of one case; `problem` is empty when it passed. `positive` cases expect rows, `silent` ones none."""

    name: str
    line: int
    positive: bool
    silent: bool
    problem: str = ""


def test_path(rule_file: Path) -> Path:
    """Return the path of the rule's test."""
    return rule_file.with_name(f"{rule_file.stem}.test.yaml")


def run_cases(rule_file: Path, library: Library, file: yaml_file.YamlFile | None = None) -> list[CaseResult]:
    """Every case beside the rule; `file` holds them where it was read already. Raises GpudiagError."""
    rule = next((r for r in library.rules if library.sources[r.code].path == rule_file), None)
    if rule is None:
        raise GpudiagError(f"{rule_file}: is not a rule of this library; give its folder with --rules.")
    file = file or yaml_file.read(test_path(rule_file))
    if not isinstance(file.data, dict) or not file.data:
        raise GpudiagError(f"{file.path}:1: holds no case; write `case name: {{table: [rows], expect: [rows]}}`.")
    if rule.code in library.user_codes:
        file = library.former.case(file)
    return [run_case(str(name), case, rule, library, file) for name, case in file.data.items()]


def run_case(name: str, case: Any, rule: Rule, library: Library, file: yaml_file.YamlFile) -> CaseResult:
    """One case, in a store of its own."""
    line = file.line((name,))
    expected = case.get("expect") if isinstance(case, dict) else None
    try:
        _check_form(name, case, file)
        outcome, text = _evaluate(case, rule, library)
        problem = _compare(case, outcome, text)
    except (GpudiagError, SqlProblem, duckdb.Error) as error:
        problem = " ".join(str(error).split())
    return CaseResult(name, line, bool(expected), expected == [], problem)


def example(rule: Rule, library: Library) -> str:
    """The message of the first case beside the rule that expects rows; empty if there is none."""
    path = test_path(library.sources[rule.code].path)
    file = yaml_file.read(path) if path.exists() else None
    for case in (file.data or {}).values() if file else ():
        if case.get("expect"):
            return _evaluate(case, rule, library)[1]
    return ""


def _check_form(name: str, case: Any, file: yaml_file.YamlFile) -> None:
    if not isinstance(case, dict) or ("expect" in case) == ("expect_not_evaluated" in case):
        raise GpudiagError("wants exactly one of expect and expect_not_evaluated")
    for key, rows in case.items():
        if key in _DIRECTIVES:
            continue
        if key not in BY_NAME:
            raise GpudiagError(
                f"line {file.line((name, key))}: {key} is neither a table nor {', '.join(sorted(_DIRECTIVES))}"
            )
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise GpudiagError(f"line {file.line((name, key))}: {key} wants a list of rows")
        for position, row in enumerate(rows):
            unknown = set(row) - set(BY_NAME[key].column_names) - ROW_WORDS
            if unknown:
                where = file.line((name, key, position))
                raise GpudiagError(f"line {where}: {key} has no column {', '.join(sorted(map(str, unknown)))}")


def _evaluate(case: Mapping[str, Any], rule: Rule, library: Library) -> tuple[Outcome, str]:
    overrides = {f"{rule.code}.{name}": value for name, value in (case.get("params") or {}).items()}
    overrides |= {f"settings.{name}": value for name, value in (case.get("settings") or {}).items()}
    library = library.with_overrides(overrides)
    # Another setting may change the type of a stored view's column: such a case has its views created anew.
    con = _plain_store() if case.get("settings") else case_store.with_views(library)
    own = [view for _, sql in library.user_views for view in read_views(con, sql)]
    needed = case_store.needed_views(rule.query, tuple(library.views), tuple(view.body for view in own))
    con.begin()
    try:
        fill(con, case, library)
        if case.get("settings"):
            pipeline.prepare(con, replace(library, views=needed), side_by_side=False)
        else:
            case_store.fill_views(con, needed)
        if own:
            create_views(con, library.user_views, library.view_names)
        outcome = evaluate(library.by_code[rule.code], con, library)
        return outcome, _summary(outcome, con, library)
    finally:
        con.rollback()


@cache
def _plain_store() -> Connection:
    return case_store.plain()


def _summary(outcome: Outcome, con: Connection, library: Library) -> str:
    if not isinstance(outcome, Fired):
        return ""
    loops = Known.of(library, con).loops
    return "\n".join(message(outcome.rule, rows, loops) for rows in by_loop(outcome.rows).values())


def _compare(case: Mapping[str, Any], outcome: Outcome, text: str) -> str:
    if isinstance(outcome, NotEvaluated):
        wanted = case.get("expect_not_evaluated")
        return "" if wanted and str(wanted) in outcome.reason else f"was not evaluated: {outcome.reason}"
    rows: Sequence[Row] = outcome.rows if isinstance(outcome, Fired) else ()
    if "expect_not_evaluated" in case:
        return f"was evaluated and gave {len(rows)} rows"
    wanted_rows = case["expect"] or []
    got = json.dumps(rows, default=str, ensure_ascii=False)
    if len(rows) != len(wanted_rows):
        return f"gave {len(rows)} rows instead of {len(wanted_rows)}: {got}"
    for position, (row, wanted_row) in enumerate(zip(rows, wanted_rows, strict=True)):
        for name, value in wanted_row.items():
            if name not in row:
                return f"row {position + 1} has no column {name}; it has {', '.join(row)}"
            if not same(row[name], value):
                return f"expected {name} {_shown(value)}, found {_shown(row[name])} (column {name}, row {position + 1})"
    part = str(case.get("expect_message") or "")
    return "" if part in text else f"its message lacks {part!r}: {text}"


def _shown(value: Any) -> str:
    """Write a value as a test case would."""
    return json.dumps(value, default=str, ensure_ascii=False)


def same(got: Any, wanted: Any) -> bool:
    """Compare a value with the expected one; floating-point numbers may differ by a thousandth."""
    if isinstance(got, float) and isinstance(wanted, int | float) and not isinstance(wanted, bool):
        return math.isclose(got, wanted, rel_tol=_TOLERANCE, abs_tol=1e-9)
    if isinstance(got, list) and isinstance(wanted, list):
        return len(got) == len(wanted) and all(same(a, b) for a, b in zip(got, wanted, strict=True))
    return bool(got == wanted)
