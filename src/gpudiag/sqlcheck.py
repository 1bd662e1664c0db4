"""What a rule's query and a view file may say, judged by DuckDB's own parser before anything is run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb

from gpudiag.tables import TABLES

Connection = duckdb.DuckDBPyConnection

MAX_LINES = 25  # a longer query is a view that is missing
LITERALS = frozenset({0, 1, 100, 0.5, 1e3, 1e6, 1e9})  # and their negatives: signs, halves and unit factors
# Canonical tables of things, not of events: a view could only repeat them. Events are seen through views alone.
PLAIN_TABLES = frozenset({"input", "capability", "device", "diagnostic", "loop", "iteration", "window"})
TABLE_FUNCTIONS = frozenset({"unnest", "range", "generate_series"})
_QUERY_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "CTE_NODE", "RECURSIVE_CTE_NODE"})
_REFUSED_REFS = frozenset({"SHOW_REF", "PIVOT", "COLUMN_DATA", "DELIM_GET"})
_TABLE_REFS = frozenset({"BASE_TABLE", "JOIN", "SUBQUERY", "TABLE_FUNCTION", "EMPTY", "EXPRESSION_LIST", "CTE"})

# Columns that pricing, locating and ranking read, with the types they may have.
_INTEGER = frozenset({"INTEGER", "BIGINT"})
RESERVED: dict[str, frozenset[str]] = {
    "loop": _INTEGER, "callsite": frozenset({"VARCHAR"}), "nvtx_path": frozenset({"VARCHAR"}),
    "share": frozenset({"DOUBLE", "FLOAT"}),
    **dict.fromkeys(("api_calls", "gpu_ops", "ranges", "profiles", "pieces"), frozenset({"INTEGER[]", "BIGINT[]"})),
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
    if statements[0].type != duckdb.StatementType.SELECT:
        kind = str(statements[0].type).rpartition(".")[2]
        raise SqlProblem(f"is a {kind} statement; a rule is exactly one SELECT")
    row = con.execute("select json_serialize_sql(?)", [query]).fetchone()
    tree: dict[str, Any] = json.loads(row[0]) if row else {"error": True}
    if tree.get("error"):
        raise SqlProblem(f"cannot be checked: {tree.get('error_message', 'no parse tree')}; write a plain SELECT")
    return tree


def check_query(con: Connection, query: str, relations: AbstractSet[str], params: AbstractSet[str]) -> None:
    """Refuse a query that leaves the views, names an undeclared parameter, or hides a threshold.

    `relations` are the names it may select from beside PLAIN_TABLES: views and table macros. Raises SqlProblem.
    """
    lines = [line for line in query.strip().splitlines() if line.strip()]
    if len(lines) > MAX_LINES:
        raise SqlProblem(f"has {len(lines)} lines, more than {MAX_LINES}; move the relational work to a view")
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
    volatile = _volatile_functions()
    own = {entry["key"].lower() for node in walk(tree) for entry in _common_tables(node)}
    for node in walk(tree):
        kind = str(node.get("type", ""))
        if kind.endswith("_NODE") and kind not in _QUERY_NODES:
            raise SqlProblem(f"holds a {kind.removesuffix('_NODE').lower()}; a rule only selects")
        if kind in _REFUSED_REFS or ("ref_type" in node and kind not in _TABLE_REFS):
            raise SqlProblem(f"uses {kind.lower()}; a rule is a plain SELECT over views")
        if kind == "BASE_TABLE":
            path = [part for part in (node.get("catalog_name"), node.get("schema_name")) if part]
            name = str(node["table_name"])
            if path or name.lower() not in relations | own:
                raise SqlProblem(f"selects from {'.'.join([*path, name])}, which is not a view that rules may use")
        elif kind == "TABLE_FUNCTION":
            name = str(node["function"]["function_name"]).lower()
            if name not in TABLE_FUNCTIONS | relations:
                raise SqlProblem(f"calls the table function {name}, which rules may not")
        elif node.get("class") == "FUNCTION" and str(node["function_name"]).lower() in volatile:
            raise SqlProblem(f"calls {node['function_name']}, whose result does not depend on the profile alone")


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


def check_view_file(con: Connection, sql: str, relations: AbstractSet[str]) -> list[tuple[str, str]]:
    """(name, statement) of a user's view file, which may only create views and macros over `relations`."""
    try:
        statements = [statement.query.strip().rstrip(";") for statement in con.extract_statements(sql)]
    except duckdb.Error as error:
        raise SqlProblem(f"is not SQL: {first_line(error)}") from None
    taken = _taken(con)
    created: list[tuple[str, str]] = []
    bodies: list[tuple[str, str]] = []
    macros: set[str] = set()
    for statement in statements:
        plain = strip_comments(statement)
        if match := _CREATE_VIEW.fullmatch(plain):
            bodies.append((match[1], match[2]))
        elif match := _CREATE_MACRO.fullmatch(plain):
            bodies.append((match[1], match[4] if match[3] else f"select {match[4]}"))
            macros.add(match[1])
        else:
            head = " ".join(plain.split()[:3])
            raise SqlProblem(f"holds `{head} …`; only `create view NAME as` and `create macro NAME(…) as` are allowed")
        created.append((bodies[-1][0].lower(), plain))
    known = relations | {name for name, _ in created}
    for name, body in bodies:
        try:
            if name.lower() in (_functions(con) if name in macros else taken):
                raise SqlProblem("is the name of something that exists already; choose another")
            check_reach(tree := parse_select(con, body), known)
            _check_common_tables(tree, taken)
        except SqlProblem as problem:
            raise SqlProblem(f"{name} {problem}") from None
    return created


@dataclass(frozen=True, slots=True)
class ViewDoc:
    """What the comment block above a view or macro says: what a row is, why it is stored, what each column means."""

    name: str
    file: str
    line: int
    is_macro: bool
    text: str
    materialised: str
    columns: dict[str, str]


_DOCUMENTED = re.compile(r"((?:^[ \t]*--[^\n]*\n)*)^create\s+(view|macro)\s+(\w+)", re.I | re.M)
_COLUMN = re.compile(r"-- {3}(\w+): (.+)")


def view_docs(files: Iterable[tuple[str, str]]) -> list[ViewDoc]:
    """The documentation of every view and macro: `-- what a row is`, then a line `--   column: meaning` each."""
    docs: list[ViewDoc] = []
    for file, sql in files:
        for match in _DOCUMENTED.finditer(sql):
            text: list[str] = []
            why = ""
            columns: dict[str, str] = {}
            for line in match[1].splitlines():
                line = line.strip()
                if column := _COLUMN.match(line):
                    columns[column[1]] = column[2]
                elif line.startswith("-- materialised:"):
                    why = line.partition(":")[2].strip()
                elif columns and line.startswith("--    "):
                    columns[list(columns)[-1]] += f" {line[2:].strip()}"
                else:
                    text.append(line[2:].strip())
            at = sql.count("\n", 0, match.start(2)) + 1
            sentence = " ".join(text).strip()
            docs.append(ViewDoc(match[3], file, at, match[2].lower() == "macro", sentence, why, columns))
    return docs


def check_view_doc(con: Connection, doc: ViewDoc) -> str:
    """What is wrong with a view's documentation, or nothing. The view must exist in `con`."""
    if not doc.text:
        return f"{doc.name} has no comment; say above it what a row is"
    if doc.is_macro:
        return ""
    actual = [str(row[0]) for row in con.execute(f'describe select * from "{doc.name}"').fetchall()]
    missing = [name for name in actual if name not in doc.columns]
    if missing:
        return f"{doc.name} does not say what {', '.join(missing)} means; write `--   column: meaning (unit)` above it"
    gone = [name for name in doc.columns if name not in actual]
    return f"{doc.name} documents {', '.join(gone)}, which it does not have" if gone else ""


@cache
def relations_of(select: str) -> frozenset[str]:
    """Names of the tables, views and table functions that a SELECT reads; CTEs of its own may be among them."""
    row = duckdb.connect().execute("select json_serialize_sql(?)", [select]).fetchone()
    tree = json.loads(row[0]) if row else {}
    tables = {str(node["table_name"]).lower() for node in walk(tree) if node.get("type") == "BASE_TABLE"}
    calls = (node["function"] for node in walk(tree) if node.get("type") == "TABLE_FUNCTION")
    return frozenset(tables | {str(call["function_name"]).lower() for call in calls})


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


@cache
def _volatile_functions() -> frozenset[str]:
    rows = (
        duckdb.connect()
        .execute(
            "select distinct lower(function_name) from duckdb_functions() "
            "where function_type = 'scalar' and stability <> 'CONSISTENT' and function_name <> 'error'"
        )
        .fetchall()
    )
    return frozenset(str(row[0]) for row in rows) | {"getenv", "current_setting"}
