"""Conditions under which a SELECT gives no rows: an inner join with an empty table gives none, whatever it asks.

DuckDB plans a statement without looking for that, and on a capture of a few megabytes planning is most of the work. A
capture holds only some of what views read (no kernel profiles in a timeline, no timeline in a kernel profile), so a
third of all statements can be known to give nothing before they are planned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import duckdb

Condition = bool | str | list[Any]
"""When a result is empty: never or always; when the relation of that name is; `["any", …]` or `["all", …]` of others.
"""

_ROWS_OF_LEFT = frozenset({"LEFT", "ANTI", "MARK", "SINGLE"})
_ROWS_OF_BOTH = frozenset({"INNER", "SEMI"})
_NEVER: Condition = False
_WORD = re.compile(r"\w+")


def holds(condition: Condition, empty: AbstractSet[str]) -> bool:
    """Tell whether a result is empty where the relations named in `empty` are; the others may hold rows or not."""
    if isinstance(condition, list):
        return (any if condition[0] == "any" else all)(holds(part, empty) for part in condition[1:])
    return condition if isinstance(condition, bool) else condition in empty


def condition_of(con: duckdb.DuckDBPyConnection, select: str, aggregates: AbstractSet[str]) -> Condition:
    """Return when a SELECT certainly gives no rows.

    aggregates: functions that make one row of no rows, by name (`aggregates_in`).
    """
    row = con.execute("select json_serialize_sql(?)", [select]).fetchone()
    tree: dict[str, Any] = json.loads(row[0]) if row else {"error": True}
    return _NEVER if tree.get("error") else _SyntaxReader(aggregates).node(tree["statements"][0]["node"], {})


def aggregates_in(con: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """Names of the aggregate functions, and of the macros that call one."""
    rows = con.execute(
        "select lower(function_name), function_type, macro_definition from duckdb_functions()"
    ).fetchall()
    found = {name for name, kind, _ in rows if kind == "aggregate"}
    macros = {name: {*_WORD.findall(text.lower())} for name, kind, text in rows if kind == "macro"}
    while more := {name for name, words in macros.items() if words & found} - found:
        found |= more
    return frozenset(found)


class _SyntaxReader:
    """Reads parse trees; what it does not know may give rows."""

    def __init__(self, aggregates: AbstractSet[str]) -> None:
        self.aggregates = aggregates

    def node(self, node: Mapping[str, Any], scope: Mapping[str, Condition]) -> Condition:
        """Return when a query is empty. scope: the conditions of the WITH queries that it may name."""
        for entry in (node.get("cte_map") or {}).get("map", []):
            scope = {**scope, entry["key"].lower(): self.node(entry["value"]["query_node"], scope)}
        kind = node["type"]
        if kind == "SELECT_NODE":
            return _NEVER if self._gives_a_row(node) else self._select(node, scope)
        if kind == "SET_OPERATION_NODE":
            parts = [self.node(child, scope) for child in _children(node)]
            joined = {"INTERSECT": _any, "EXCEPT": lambda sides: sides[0], "UNION": _all, "UNION_BY_NAME": _all}
            return joined[node["setop_type"]](parts) if node["setop_type"] in joined else _NEVER
        if kind == "RECURSIVE_CTE_NODE":
            return self.node(node["left"], scope)
        return _NEVER

    def _gives_a_row(self, select: Mapping[str, Any]) -> bool:
        """Return whether it may give a row where it reads none: an aggregate of everything does."""
        if sets := select["group_sets"]:
            return not all(sets)
        columns = [{*_called(column)} & self.aggregates for column in select["select_list"]]
        if select["aggregate_handling"] != "STANDARD_HANDLING":  # group by all: by the columns that are no aggregates
            plain = (column for column, called in zip(select["select_list"], columns, strict=True) if not called)
            return all(column["class"] == "CONSTANT" for column in plain)
        return select["having"] is not None or any(columns)

    def _select(self, select: Mapping[str, Any], scope: Mapping[str, Condition]) -> Condition:
        wanted = [self._test(test, scope) for test in _conjuncts(select["where_clause"])]
        return _any([self._relation(select["from_table"], scope), *wanted])

    def _test(self, test: Mapping[str, Any], scope: Mapping[str, Condition]) -> Condition:
        """`exists (…)` and `… in (…)` are false for every row where the subquery is empty."""
        if test.get("class") == "SUBQUERY" and test.get("subquery_type") in ("EXISTS", "ANY"):
            return self.node(test["subquery"]["node"], scope)
        return _NEVER

    def _relation(self, relation: Mapping[str, Any], scope: Mapping[str, Condition]) -> Condition:
        kind = relation["type"]
        if kind == "BASE_TABLE":
            name = str(relation["table_name"]).lower()
            return scope.get(name, name)
        if kind == "SUBQUERY":
            return self.node(relation["subquery"]["node"], scope)
        if kind != "JOIN":
            return _NEVER
        left = self._relation(relation["left"], scope)
        if relation["join_type"] in _ROWS_OF_LEFT:
            return left
        right = self._relation(relation["right"], scope)
        if relation["ref_type"] == "POSITIONAL":
            return _NEVER
        if relation["join_type"] in _ROWS_OF_BOTH:
            return _any([left, right])
        return {"RIGHT": right, "FULL": _all([left, right]), "OUTER": _all([left, right])}.get(
            relation["join_type"], _NEVER
        )


def _children(node: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """DuckDB 1.x gives a set operation two sides, 2.x a list."""
    return node.get("children") or [node["left"], node["right"]]


def _conjuncts(test: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    if test and test["type"] == "CONJUNCTION_AND":
        for child in test["children"]:
            yield from _conjuncts(child)
    elif test:
        yield test


def _called(node: Any) -> Iterator[str]:
    """Names of the functions that an expression calls, outside its subqueries and not over windows."""
    if isinstance(node, list):
        for item in node:
            yield from _called(item)
    elif isinstance(node, dict) and node.get("class") != "SUBQUERY":
        if node.get("class") == "FUNCTION":
            yield str(node["function_name"]).lower()
        for item in node.values():
            yield from _called(item)


def _any(parts: Sequence[Condition]) -> Condition:
    return _joined("any", parts, absorbing=True)


def _all(parts: Sequence[Condition]) -> Condition:
    return _joined("all", parts, absorbing=False)


def _joined(word: str, parts: Sequence[Condition], *, absorbing: bool) -> Condition:
    if absorbing in parts:
        return absorbing
    kept: list[Condition] = []
    for part in parts:
        if part is not (not absorbing) and part not in kept:
            kept.append(part)
    if not kept:
        return not absorbing
    return kept[0] if len(kept) == 1 else [word, *kept]
