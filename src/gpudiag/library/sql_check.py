"""Limits on a rule's query and on a view file, checked with DuckDB's own parser before anything is run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

import duckdb

from gpudiag.library.sql_functions import FUNCTIONS, SPELT_AS_COLUMNS, TABLE_FUNCTIONS
from gpudiag.model import Ids
from gpudiag.schema import TABLES

Connection = duckdb.DuckDBPyConnection

MAX_CHARACTERS = 10_000  # of a query: four times the longest of ours; a longer one is a view that is missing
LITERALS = frozenset({0, 1, 100, 0.5, 1e3, 1e6, 1e9})  # and their negatives: signs, halves and unit factors
# Canonical tables of things, not of events: a view could only repeat them. Events are seen through views alone.
PLAIN_TABLES = frozenset({"input", "capability", "device", "diagnostic", "loop", "iteration", "window"})
_QUERY_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "CTE_NODE", "RECURSIVE_CTE_NODE"})
_REFUSED_REFS = frozenset({"SHOW_REF", "PIVOT", "COLUMN_DATA", "DELIM_GET"})
_EXPRESSIONS = frozenset(
    {"BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION", "LAMBDA",
     "LAMBDA_REF", "OPERATOR", "PARAMETER", "POSITIONAL_REFERENCE", "STAR", "SUBQUERY", "TYPE", "WINDOW"}
)  # fmt: skip
_TABLE_REFS = frozenset({"BASE_TABLE", "JOIN", "SUBQUERY", "TABLE_FUNCTION", "EMPTY", "EXPRESSION_LIST", "CTE"})

# Columns that pricing, locating and ranking read, with the types they may have.
_INTEGER = frozenset({"INTEGER", "BIGINT"})
RESERVED: dict[str, frozenset[str]] = {
    "loop": _INTEGER, "nvtx_path": frozenset({"VARCHAR"}), "share": frozenset({"DOUBLE", "FLOAT"}),
    "forbids_healthy": frozenset({"BOOLEAN"}), "forbids_findings": frozenset({"BOOLEAN"}),
    "remedies": frozenset({"VARCHAR[]"}),
    **dict.fromkeys(get_args(Ids), frozenset({"INTEGER[]", "BIGINT[]"})),
}  # fmt: skip


class SqlProblem(Exception):
    """SQL that is refused, in words for its author."""


def parse_select(con: Connection, query: str) -> dict[str, Any]:
    """The parse tree of one SELECT. Raises SqlProblem when it is anything else."""
    try:
        statements = con.extract_statements(query)
    except duckdb.Error as error:
        raise SqlProblem(f"is not SQL: {first_line(error)}") from None
    if len(statements) != 1:
        raise SqlProblem(f"holds {len(statements)} statements; a rule is exactly one SELECT")
    if (kind := _kind(statements[0])) != "SELECT":
        raise SqlProblem(f"is a {kind} statement; a rule is exactly one SELECT")
    row = con.execute("select json_serialize_sql(?)", [query]).fetchone()
    tree: dict[str, Any] = _parsed(row[0]) if row else {"error": True}
    if tree.get("error"):
        raise SqlProblem(f"cannot be checked: {tree.get('error_message', 'no parse tree')}; write a plain SELECT")
    return tree


def _kind(statement: duckdb.Statement) -> str:
    try:
        return str(statement.type).rpartition(".")[2]
    except ValueError:  # one that DuckDB's Python package has no name for
        return "special"


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise SqlProblem("is nested too deeply; move the inner queries to views") from None


def check_query(con: Connection, query: str, relations: AbstractSet[str], params: AbstractSet[str]) -> None:
    """Refuse a query that leaves the views, names an undeclared parameter, or hides a threshold.

    `relations` are the names it may select from beside PLAIN_TABLES: views and table macros. Raises SqlProblem.
    """
    if len(query) > MAX_CHARACTERS:
        raise SqlProblem(f"has {len(query):,} characters, more than {MAX_CHARACTERS:,}; move a part to a view")
    tree = parse_select(con, query)
    check_reach(tree, relations | PLAIN_TABLES)
    _check_common_tables(tree, _taken(con))
    used = {str(node["identifier"]) for node in walk(tree) if node.get("type") == "VALUE_PARAMETER"}
    if undeclared := used - params:
        raise SqlProblem(f"uses ${', $'.join(sorted(undeclared))}, which params does not declare")
    if unused := params - used:
        raise SqlProblem(f"never uses ${', $'.join(sorted(unused))}, which params declares")
    for node in walk(tree):
        value = _number(node)
        if value is not None and abs(value) not in LITERALS:
            raise SqlProblem(f"holds the number {value:g}; give thresholds a name, unit and reason in params")


def check_reach(tree: Mapping[str, Any], relations: AbstractSet[str]) -> None:
    """Refuse relations outside `relations`, functions that look outside the data, and anything that writes."""
    own = {entry["key"].lower() for node in walk(tree) for entry in _common_tables(node)}
    for node in walk(tree):
        kind = str(node.get("type", ""))
        if kind.endswith("_NODE") and kind not in _QUERY_NODES:
            raise SqlProblem(f"holds a {kind.removesuffix('_NODE').lower()}; a rule only selects")
        if kind in _REFUSED_REFS or ("ref_type" in node and kind not in _TABLE_REFS):
            raise SqlProblem(f"uses {kind.lower()}; a rule is a plain SELECT over views")
        if node.get("sample") or node.get("at_clause"):
            raise SqlProblem("takes a sample or an old version of a table; a rule sees all rows as they are")
        if kind == "BASE_TABLE":
            path = [part for part in (node.get("catalog_name"), node.get("schema_name")) if part]
            name = str(node["table_name"])
            if path or name.lower() not in relations | own:
                raise SqlProblem(f"selects from {'.'.join([*path, name])}, {_instead(name, relations)}")
        elif kind == "TABLE_FUNCTION":
            name = str(node["function"]["function_name"]).lower()
            if name not in TABLE_FUNCTIONS | relations:
                raise SqlProblem(f"calls the table function {name}, which rules may not")
        elif "class" in node:
            _check_expression(node, relations)


def _instead(name: str, relations: AbstractSet[str]) -> str:
    """Say why a relation is refused, and what a rule reads in its place where that is known."""
    analysed = f"analysed_{name.lower()}"
    if analysed in relations:
        return f"which is a table of the reader; a rule reads the view {analysed}"
    return "which is not a view that rules may use"


def _check_expression(node: Mapping[str, Any], relations: AbstractSet[str]) -> None:
    kind = str(node["class"])
    if kind not in _EXPRESSIONS:
        raise SqlProblem(f"uses {kind.lower()}, which rules may not")
    name = str(node.get("function_name", "")).lower()
    if kind in ("FUNCTION", "WINDOW") and name not in FUNCTIONS | relations:
        raise SqlProblem(f"calls {name}, which is none of the functions that rules may call")
    column = node.get("column_names")
    if kind == "COLUMN_REF" and column and len(column) == 1 and str(column[0]).lower() in SPELT_AS_COLUMNS:
        raise SqlProblem(f"asks for {column[0]}; a rule's result depends on the profile alone")


def check_output(con: Connection, query: str, params: Mapping[str, float], wanted: str | None) -> dict[str, str]:
    """Bind the query to the (empty) store: output column → type. `wanted` is the column that `price.on` names."""
    try:
        columns = {str(row[0]): str(row[1]) for row in con.execute(f"describe {query}", dict(params)).fetchall()}
    except duckdb.Error as error:
        raise SqlProblem(f"does not bind: {first_line(error)}") from None
    for name, types in RESERVED.items():
        if name in columns and columns[name] not in types:
            raise SqlProblem(f"gives {name} as {columns[name]}; it must be {' or '.join(sorted(types))}")
    if wanted and wanted not in columns:
        raise SqlProblem(f"gives no column {wanted}, which price.on names")
    return columns


_CREATE_VIEW = re.compile(r"create\s+view\s+(\w+)\s+as\s+(.+)", re.I | re.S)
_CREATE_MACRO = re.compile(r"create\s+macro\s+(\w+)\s*\(([\w\s,]*)\)\s+as\s+(table\s+)?(.+)", re.I | re.S)


@dataclass(frozen=True, slots=True)
class OwnView:
    """A view or macro that a user's file creates: the statement without comments, and the SELECT in it."""

    name: str
    statement: str
    body: str
    is_macro: bool


def read_views(con: Connection, sql: str) -> list[OwnView]:
    """Return the views that a user's view file creates, from DuckDB's parser. Raises SqlProblem for anything else."""
    try:
        statements = [statement.query.strip().rstrip(";") for statement in con.extract_statements(sql)]
    except duckdb.Error as error:
        raise SqlProblem(f"is not SQL: {first_line(error)}") from None
    views: list[OwnView] = []
    for statement in statements:
        plain = strip_comments(statement)
        if match := _CREATE_VIEW.fullmatch(plain):
            views.append(OwnView(match[1].lower(), plain, match[2], is_macro=False))
        elif match := _CREATE_MACRO.fullmatch(plain):
            body = match[4] if match[3] else f"select {match[4]}"
            views.append(OwnView(match[1].lower(), plain, body, is_macro=True))
        else:
            head = " ".join(plain.split()[:3])
            raise SqlProblem(
                f"holds `{head:.60} …`; only `create view NAME as` and `create macro NAME(…) as` are allowed"
            )
    return views


def check_views(con: Connection, views: Iterable[OwnView], relations: AbstractSet[str]) -> None:
    """Refuse views that read anything but `relations`, or that take the name of something else. Raises SqlProblem."""
    taken = _taken(con)
    functions, outside = _functions(con), _outside_functions(con)
    for view in views:
        try:
            if view.name in (functions if view.is_macro else taken | outside):
                raise SqlProblem("is the name of something that exists already; choose another")
            check_reach(tree := parse_select(con, view.body), relations)
            _check_common_tables(tree, taken)
        except SqlProblem as problem:
            raise SqlProblem(f"{view.name:.60} {problem}") from None


@cache
def relations_of(select: str) -> frozenset[str]:
    """Names of the tables, views and table functions that a SELECT reads; CTEs of its own may be among them."""
    row = _parser().cursor().execute("select json_serialize_sql(?)", [select]).fetchone()
    tree = json.loads(row[0]) if row else {}
    tables = {str(node["table_name"]).lower() for node in walk(tree) if node.get("type") == "BASE_TABLE"}
    calls = (node["function"] for node in walk(tree) if node.get("type") == "TABLE_FUNCTION")
    return frozenset(tables | {str(call["function_name"]).lower() for call in calls})


@cache
def _parser() -> Connection:
    return duckdb.connect(config={"threads": "1"})


def _check_common_tables(tree: Mapping[str, Any], taken: AbstractSet[str]) -> None:
    """`with gpu_op as (select * from gpu_op) …` would read the very table that its name then hides."""
    for entry in (entry for node in walk(tree) for entry in _common_tables(node)):
        name = entry["key"].lower()
        if not re.fullmatch(r"[^\W_]\w*", name) or name in taken:
            raise SqlProblem(f"names a WITH query {name}, as something that exists may be named; choose another name")


def _taken(con: Connection) -> frozenset[str]:
    """Every table and view there is, DuckDB's own catalogue included."""
    rows = con.execute("select table_name from duckdb_tables() union select view_name from duckdb_views()").fetchall()
    return canonical_names() | {str(row[0]).lower() for row in rows}


def _functions(con: Connection) -> frozenset[str]:
    """Every function and macro there is."""
    rows = con.execute("select distinct lower(function_name) from duckdb_functions()").fetchall()
    return frozenset(str(row[0]) for row in rows)


def _outside_functions(con: Connection) -> frozenset[str]:
    """Functions that rules may not call. A view called `query` would make that one look like one of the user's own."""
    tables = "select distinct lower(function_name) from duckdb_functions() where function_type like 'table%'"
    relations = frozenset(str(row[0]) for row in con.execute(tables).fetchall())
    return (_functions(con) - FUNCTIONS) | (relations - TABLE_FUNCTIONS)


def canonical_names() -> frozenset[str]:
    """The canonical tables: a user's views may read them, rules may not."""
    return frozenset(table.name for table in TABLES)


def strip_comments(sql: str) -> str:
    """`sql` without `--` and `/* */` comments; quoted texts are kept whole."""
    pattern = r"('(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")|--[^\n]*|/\*.*?\*/"
    return re.sub(pattern, lambda match: match[1] or " ", sql, flags=re.S).strip()


def walk(node: Any) -> Iterator[dict[str, Any]]:
    """Every object of a parse tree."""
    stack = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            yield item
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def first_line(error: Exception) -> str:
    """DuckDB's message without the echo of the query."""
    return " ".join(str(error).split("\nLINE ")[0].split("\n\n")[0].split())


def _common_tables(node: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    entries = node.get("cte_map")
    named = [{"key": node["cte_name"]}] if node.get("cte_name") else []
    return [*(entries.get("map", []) if isinstance(entries, dict) else []), *named]


def _number(node: Mapping[str, Any]) -> float | None:
    """The number that a constant node stands for. DuckDB 1.x stores a value, 2.x the literal's text."""
    if node.get("type") != "VALUE_CONSTANT":
        return None
    if "literal" in node:
        literal = node["literal"]
        return float(str(literal["text"]).replace("_", "")) if literal["kind"] in ("INTEGER", "NUMERIC") else None
    value = node["value"]
    kind, raw = value["type"]["id"], value.get("value")
    if value.get("is_null") or not isinstance(raw, int | float) or isinstance(raw, bool):
        return None
    return raw / 10.0 ** value["type"]["type_info"]["scale"] if kind == "DECIMAL" else float(raw)
