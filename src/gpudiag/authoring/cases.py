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
from gpudiag.errors import GpudiagError
from gpudiag.evaluate.engine import Known, evaluate
from gpudiag.evaluate.rule_sentences import by_loop, message
from gpudiag.evaluate.sandbox import create_views
from gpudiag.library import yaml_file
from gpudiag.library.catalogue import Library
from gpudiag.library.sql_check import SqlProblem, read_views
from gpudiag.model import Fired, NotEvaluated, Outcome, Row, Rule
from gpudiag.schema import BY_NAME, Table

Connection = duckdb.DuckDBPyConnection
Rows = list[dict[str, Any]]

_DIRECTIVES = {"expect", "expect_not_evaluated", "expect_message", "params", "settings", "capability"}
_ROW_WORDS = {"label", "repeat", "every", "duration"}
_TIMES = {"start", "end", "time", "duration", "every"}
_NS = 1000  # nanoseconds in the microsecond that cases are written in
# What other rows may refer to without saying more about it.
_IMPLIED = ("input", "device", "process", "thread", "stream")
_COUNTED = {("iteration", "ordinal"), ("kernel_profile", "ordinal")}
MAX_REPEAT = 10_000  # rows that `repeat` may write: far more than a smell needs to show
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
            unknown = set(row) - set(BY_NAME[key].column_names) - _ROW_WORDS
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


def fill(con: Connection, case: Mapping[str, Any], library: Library) -> None:
    """Write a case's rows into an empty store."""
    tables = {key: _expand(key, rows) for key, rows in case.items() if key in BY_NAME and key != "capability"}
    tables["capability"] = _capabilities(case.get("capability"), library)
    _complete_loops(tables)
    _resolve(tables)
    for name in _IMPLIED:
        _imply(name, tables)
    for name, rows in tables.items():
        _insert(con, BY_NAME[name], rows)


def _expand(name: str, rows: Rows) -> Rows:
    """Repetitions written out, microseconds into nanoseconds, `duration` into `end`, ids given."""
    columns = BY_NAME[name].column_names
    expanded: Rows = []
    for row in rows:
        _check_words(name, row)
        times = {key: round(value * _NS) for key, value in row.items() if key in _TIMES and value is not None}
        for iteration in range(int(row.get("repeat", 1))):
            copy = {key: value for key, value in row.items() if key not in _ROW_WORDS}
            shift = iteration * times.get("every", 0)
            copy |= {key: value + shift for key, value in times.items() if key in ("start", "end", "time")}
            if "duration" in times:
                copy["end"] = copy.get("start", 0) + times["duration"]
            if "id" in columns:
                copy.setdefault("id", len(expanded))
            for column in columns:
                if (name, column) in _COUNTED:
                    copy.setdefault(column, len(expanded))
            copy["label"], copy["iteration"] = row.get("label"), iteration
            expanded.append(copy)
    return expanded


def _check_words(table: str, row: Mapping[str, Any]) -> None:
    """Refuse what is no time, and repetitions without end. Raises GpudiagError."""
    for key in _TIMES & row.keys():
        if row[key] is not None and (not isinstance(row[key], int | float) or not math.isfinite(row[key])):
            raise GpudiagError(f"{table}.{key} wants microseconds, not {row[key]!r}")
    repeat = row.get("repeat", 1)
    if not isinstance(repeat, int) or not 0 <= repeat <= MAX_REPEAT:
        raise GpudiagError(f"{table}: repeat wants a whole number up to {MAX_REPEAT}, not {repeat!r}")


def _complete_loops(tables: dict[str, Rows]) -> None:
    """Iterations imply their loop and its figures."""
    iterations: dict[int, Rows] = {}
    for row in tables.get("iteration", []):
        iterations.setdefault(row.get("loop", 0), []).append(row)
    loops = tables.setdefault("loop", [])
    loops += [{"id": loop} for loop in iterations if loop not in {row["id"] for row in loops}]
    for row in loops:
        steady = [iteration for iteration in iterations.get(row["id"], []) if iteration.get("in_steady_state", True)]
        lengths = sorted(iteration["end"] - iteration["start"] for iteration in steady)
        if lengths:
            row.setdefault("steady_iterations", len(lengths))
            row.setdefault("steady_ns", sum(lengths))
            row.setdefault("iteration_ns", float(lengths[len(lengths) // 2]))
    total = sum(row.get("steady_ns", 0) for row in loops)
    for row in loops if total else []:
        row.setdefault("share_of_span", row.get("steady_ns", 0) / total)


def _resolve(tables: dict[str, Rows]) -> None:
    """Texts into ids: names are interned, labels are looked up; an operation shares its call's correlation."""
    labels = {
        (row["label"], row["iteration"]): row["id"] for rows in tables.values() for row in rows if row.get("label")
    }
    names = tables.setdefault("name", [])
    known = {row["text"]: row["id"] for row in names}
    for table, rows in tables.items():
        for column in BY_NAME[table].columns:
            if column.type != "integer" or column.name == "id":
                continue
            interned = column.meaning.startswith("references name")
            for row in rows:
                value = row.get(column.name)
                if isinstance(value, str) and interned:
                    if value not in known:
                        known[value] = len(known)
                        names.append({"id": known[value], "text": value, "short": short_name(value)})
                    row[column.name] = known[value]
                elif isinstance(value, str):
                    own = labels.get((value, row["iteration"])) or labels.get((value, 0))
                    if own is None:
                        raise GpudiagError(f"{table}.{column.name}: no row is labelled {value!r}")
                    row[column.name] = own
    calls = {row["id"]: row for row in tables.get("api_call", [])}
    for call in calls.values():
        call.setdefault("correlation", call["id"] + 1)
    for op in tables.get("gpu_op", []):
        if "correlation" not in op and op.get("api_call") in calls:
            op["correlation"] = calls[op["api_call"]]["correlation"]


def short_name(text: str) -> str:
    """A kernel's base name: `void at::native::sum<float>(…)` → `sum`; other texts stay."""
    head = text.partition("(")[0].partition("<")[0]
    return (head.split()[-1] if head.split() else text).split("::")[-1] or text


def _imply(name: str, tables: dict[str, Rows]) -> None:
    rows = tables.setdefault(name, [])
    wanted = {0} | {
        row[name]
        for table, others in tables.items()
        if any(column.name == name and column.type == "integer" for column in BY_NAME[table].columns)
        for row in others
        if row.get(name) is not None
    }
    for number in sorted(wanted - {row["id"] for row in rows}):
        number_columns = {"device": "ordinal", "process": "pid", "thread": "tid", "stream": "number"}
        extra = {number_columns[name]: number + (7 if name == "stream" else 0)} if name in number_columns else {}
        rows.append({"id": number, **extra})


def _capabilities(given: Any, library: Library) -> Rows:
    """Everything counts as recorded but what the case says otherwise: a mapping name → state, or rows."""
    if isinstance(given, list):
        return [dict(row) for row in given]
    names = {name for name in library.capabilities if not name.endswith("*")}
    names |= {name for rule in library.rules for wanted in rule.requires for name in wanted.split("|")}
    states = dict.fromkeys(sorted(names), "recorded") | dict(given or {})
    return [{"name": name, "state": state} for name, state in states.items()]


def _insert(con: Connection, table: Table, rows: Rows) -> None:
    if not rows:
        return
    defaults = {column.name: _literal(column.default) for column in table.columns}
    values = [row.get(name, default) for row in rows for name, default in defaults.items()]
    marks = "(" + ", ".join(f"?::{column.type}" for column in table.columns) + ")"
    con.execute(f'insert into "{table.name}" values {", ".join([marks] * len(rows))}', values)


def _literal(sql: str) -> Any:
    """A default of tables.py as a Python value: null, true, false, a number or a quoted text."""
    if sql.startswith("'"):
        return sql[1:-1]
    return {"null": None, "true": True, "false": False}[sql] if sql.isalpha() else json.loads(sql)
