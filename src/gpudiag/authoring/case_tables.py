"""A test case's rows as the tables hold them: repetitions written out, names interned, what they refer to added."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import duckdb

from gpudiag.errors import GpudiagError
from gpudiag.library.catalogue import Library
from gpudiag.schema import BY_NAME, Column, Table

Connection = duckdb.DuckDBPyConnection
Rows = list[dict[str, Any]]

ROW_WORDS = {"label", "repeat", "every", "duration"}
_TIMES = {"start", "end", "time", "duration", "every"}
_NS = 1000  # nanoseconds in the microsecond that cases are written in
# What other rows may refer to without saying more about it.
_IMPLIED = ("input", "device", "process", "thread", "stream")
_COUNTED = {("iteration", "ordinal"), ("kernel_profile", "ordinal")}
_NUMBERED = {("smi_sample", "reading")}  # by its repetition: fields of one reading are rows of their own
_NONE: Mapping[str, str] = MappingProxyType({})
MAX_REPEAT = 10_000  # rows that `repeat` may write: far more than a smell needs to show


def fill(con: Connection, case: Mapping[str, Any], library: Library, held: Mapping[str, str] = _NONE) -> dict[str, str]:
    """Write a case's rows into a store; returns the rows of each table that has some as text, equal for equal rows.

    held: what this returned for the rows that the store holds already; it is empty otherwise.
    """
    tables = {key: _expand(key, rows) for key, rows in case.items() if key in BY_NAME and key != "capability"}
    tables["capability"] = _capabilities(case.get("capability"), library)
    _complete_loops(tables)
    _resolve(tables)
    for name in _IMPLIED:
        _imply(name, tables)
    written = {name: _insertion(BY_NAME[name], rows) for name, rows in tables.items() if rows}
    texts = {name: f"{statement} {values}" for name, (statement, values) in written.items()}
    for name in held:
        if texts.get(name) != held[name]:
            con.execute(f'delete from "{name}"')
    for name, (statement, values) in written.items():
        if texts[name] != held.get(name):
            con.execute(statement, values)
    return texts


def _expand(name: str, rows: Rows) -> Rows:
    """Repetitions written out, microseconds into nanoseconds, `duration` into `end`, ids given."""
    columns = BY_NAME[name].column_names
    expanded: Rows = []
    for row in rows:
        _check_words(name, row)
        times = {key: round(value * _NS) for key, value in row.items() if key in _TIMES and value is not None}
        for iteration in range(int(row.get("repeat", 1))):
            copy = {key: value for key, value in row.items() if key not in ROW_WORDS}
            shift = iteration * times.get("every", 0)
            copy |= {key: value + shift for key, value in times.items() if key in ("start", "end", "time")}
            if "duration" in times:
                copy["end"] = copy.get("start", 0) + times["duration"]
            if "id" in columns:
                copy.setdefault("id", len(expanded))
            for column in columns:
                if (name, column) in _COUNTED:
                    copy.setdefault(column, len(expanded))
                if (name, column) in _NUMBERED:
                    copy.setdefault(column, iteration)
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


def _insertion(table: Table, rows: Rows) -> tuple[str, list[list[Any]]]:
    """Return the statement that writes rows, and its values by column."""
    given = set().union(*rows)
    # A column that no row gives and that is null by default is not named: each takes time to plan.
    columns = [(column, default) for column, default in _defaults(table) if column.name in given or default is not None]
    names = ", ".join(f'"{column.name}"' for column, _ in columns)
    # One parameter for all rows: parsing a mark for each value takes longer than storing them.
    lists = ", ".join(f"unnest(?::{column.type}[])" for column, _ in columns)
    values = [[row.get(column.name, default) for row in rows] for column, default in columns]
    return f'insert into "{table.name}" ({names}) select {lists}', values


@cache
def _defaults(table: Table) -> tuple[tuple[Column, Any], ...]:
    return tuple((column, _literal(column.default)) for column in table.columns)


def _literal(sql: str) -> Any:
    """A default of tables.py as a Python value: null, true, false, a number or a quoted text."""
    if sql.startswith("'"):
        return sql[1:-1]
    return {"null": None, "true": True, "false": False}[sql] if sql.isalpha() else json.loads(sql)
