"""The test beside a rule: rows of the canonical tables in, the rule's rows out.

Each case of `<smell>.test.yaml` gives rows, in microseconds, and what the rule must say of them. Columns left out take
the defaults of `schema`, ids default to the row's position, and devices, threads and the like that rows refer to exist
without being named. `repeat: 12, every: 100` writes a row twelve times, 100 µs apart; a row with a `label` can be
referred to by it, and then each repetition refers to its own. `kernel: NAME` starts from a preset (`kernel_presets`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from gpudiag import prepare
from gpudiag.authoring import case_store, kernel_presets, near_miss
from gpudiag.authoring.case_result import Mismatch, compare
from gpudiag.authoring.case_tables import ROW_WORDS, fill
from gpudiag.errors import GpudiagError
from gpudiag.evaluate.engine import evaluate
from gpudiag.evaluate.evidence import Known
from gpudiag.evaluate.precedence import give_way
from gpudiag.evaluate.rule_sentences import by_loop, message
from gpudiag.evaluate.sandbox import create_views
from gpudiag.library import yaml_file
from gpudiag.library.catalogue import Library
from gpudiag.library.sql_check import SqlProblem, check_query, read_views
from gpudiag.library.yaml_file import Loc
from gpudiag.model import Fired, NotEvaluated, Outcome, Rule
from gpudiag.schema import BY_NAME

Connection = duckdb.DuckDBPyConnection

_DIRECTIVES = {"expect", "expect_not_evaluated", "expect_message", "params", "settings", "capability"}
_EXPLAINED = 2  # failing cases of a rule: the check of a user's rule has ten seconds in all
_WORDS = {*_DIRECTIVES, kernel_presets.KEY}


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


def run_cases(
    rule_file: Path,
    library: Library,
    file: yaml_file.YamlFile | None = None,
    presets: kernel_presets.Presets | None = None,
) -> list[CaseResult]:
    """Every case beside the rule; `file` holds them where it was read already. Raises GpudiagError."""
    rule = next((r for r in library.rules if library.sources[r.code].path == rule_file), None)
    if rule is None:
        raise GpudiagError(f"{rule_file}: is not a rule of this library; give its folder with --rules.")
    file = file or yaml_file.read(test_path(rule_file))
    if not isinstance(file.data, dict) or not file.data:
        raise GpudiagError(f"{file.path}:1: holds no case; write `case name: {{table: [rows], expect: [rows]}}`.")
    if rule.code in library.user_codes:
        file = library.former.case(file)
    results: list[CaseResult] = []
    for name, case in file.data.items():
        why = sum(bool(result.problem) for result in results) < _EXPLAINED
        results.append(run_case(str(name), case, rule, library, file, presets, why=why))
    return results


def run_case(
    name: str,
    case: Any,
    rule: Rule,
    library: Library,
    file: yaml_file.YamlFile,
    presets: kernel_presets.Presets | None = None,
    *,
    why: bool = True,
) -> CaseResult:
    """One case, in a store of its own; without `presets` it may start from the packaged ones.

    `why`: also look for the threshold that decided, which takes a second or two where the case fails.
    """
    expected = case.get("expect") if isinstance(case, dict) else None
    at: Loc = ()
    try:
        _check_form(name, case, file)
        at = (kernel_presets.KEY,)
        case = kernel_presets.expand(case, kernel_presets.packaged() if presets is None else presets)
        at = ()
        found = _run(case, rule, library, why=why)
    except (GpudiagError, SqlProblem, duckdb.Error) as error:
        found = Mismatch(" ".join(str(error).split()), at)
    line = file.line((name, *(found.at if found else ())))
    return CaseResult(name, line, bool(expected), expected == [], found.text if found else "")


def _run(case: Mapping[str, Any], rule: Rule, library: Library, *, why: bool) -> Mismatch | None:
    """The first difference from what the case expects, with the threshold that decided where rows came or did not."""
    with _evaluated(case, rule, library) as (outcome, text, con):
        found = compare(case, outcome, text)
        if not (found and why) or isinstance(outcome, NotEvaluated) or "expect" not in case:
            return found
        turned = isinstance(outcome, Fired) != bool(case["expect"])
        hint = near_miss.hint(outcome.rule, con, expected=bool(case["expect"])) if turned else ""
        return replace(found, text=f"{found.text}; {hint}") if hint else found


def example(rule: Rule, library: Library) -> str:
    """The message of the first case beside the rule that expects rows; empty if there is none."""
    path = test_path(library.sources[rule.code].path)
    file = yaml_file.read(path) if path.exists() else None
    for case in (file.data or {}).values() if file else ():
        if case.get("expect"):
            with _evaluated(kernel_presets.expand(case, kernel_presets.packaged()), rule, library) as (_, text, _):
                return text
    return ""


def _check_form(name: str, case: Any, file: yaml_file.YamlFile) -> None:
    if not isinstance(case, dict) or ("expect" in case) == ("expect_not_evaluated" in case):
        raise GpudiagError("wants exactly one of expect and expect_not_evaluated")
    for key, rows in case.items():
        if key in _WORDS:
            continue
        if key not in BY_NAME:
            raise GpudiagError(
                f"line {file.line((name, key))}: {key} is neither a table nor {', '.join(sorted(_WORDS))}"
            )
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise GpudiagError(f"line {file.line((name, key))}: {key} wants a list of rows")
        for position, row in enumerate(rows):
            unknown = set(row) - set(BY_NAME[key].column_names) - ROW_WORDS
            if unknown:
                where = file.line((name, key, position))
                raise GpudiagError(f"line {where}: {key} has no column {', '.join(sorted(map(str, unknown)))}")


@contextmanager
def _evaluated(
    case: Mapping[str, Any], rule: Rule, library: Library
) -> Iterator[tuple[Outcome, str, duckdb.DuckDBPyConnection]]:
    """The outcome of a case and the rule's message, with the store that holds the case's rows."""
    overrides = {f"{rule.code}.{name}": value for name, value in (case.get("params") or {}).items()}
    overrides |= {f"settings.{name}": value for name, value in (case.get("settings") or {}).items()}
    library = library.with_overrides(overrides)
    # Another setting may change the type of a stored view's column: such a case has its views created anew.
    store = None if case.get("settings") else case_store.with_views(library)
    con = store.con if store else _plain_store()
    own = [view for _, sql in library.user_views for view in read_views(con, sql)]
    others = [library.by_code[code] for code in rule.yields_to if code in library.by_code]
    more = (*(view.body for view in own), *(other.query for other in others))
    needed = case_store.needed_views(rule.query, tuple(library.views), more)
    con.begin()
    try:
        content = fill(con, case, library, store.held if store else {})
        if store:
            case_store.fill_views(store, needed, content)
        else:
            prepare.prepare(con, replace(library, views=needed), side_by_side=False)
        names = create_views(con, library.user_views, library.view_names) if own else library.view_names
        for other in others:
            if other.code in library.user_codes:
                check_query(con, other.query, names, frozenset(other.params))
        known = Known.of(library, con)
        outcome = evaluate(library.by_code[rule.code], con, library, known)
        if isinstance(outcome, Fired):
            found = [evaluate(other, con, library, known) for other in others]
            outcome = give_way(outcome, [one for one in found if isinstance(one, Fired)])
        yield outcome, _summary(outcome, known), con
    finally:
        con.rollback()


@cache
def _plain_store() -> Connection:
    return case_store.plain()


def _summary(outcome: Outcome, known: Known) -> str:
    if not isinstance(outcome, Fired):
        return ""
    return "\n".join(message(outcome.rule, rows, known.loops) for rows in by_loop(outcome.rows).values())
