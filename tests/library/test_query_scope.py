"""Queries of views and rules name only columns of the tables that they select from: where a column is missing, SQL
silently takes it from a table to the left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from gpudiag.store import database
from timelines import library


@pytest.fixture(scope="module")
def store() -> Iterator[duckdb.DuckDBPyConnection]:
    """Every view, without rows."""
    con = database.create()
    database.load_settings(con, library().setting_values)
    database.load_views(con, library().views)
    yield con
    con.close()


def parts(node: Any, above: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """The queries that a syntax tree selects from, each with the common table expressions that it may name."""
    if isinstance(node, list):
        for item in node:
            yield from parts(item, above)
        return
    if not isinstance(node, dict):
        return
    for named in (node.get("cte_map") or {}).get("map", []):
        yield from parts(named["value"], above)
        above = [*above, named]
    if node.get("type") == "SUBQUERY" and "sample" in node:
        yield node["subquery"], above
    for key, value in node.items():
        if key != "cte_map":
            yield from parts(value, above)


def borrowed(con: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    """Return what the parts of a query take from tables beside them, as DuckDB says when each is run by itself."""
    ((text,),) = con.execute("select json_serialize_sql(?)", [query]).fetchall()
    tree, said = json.loads(text), []
    assert not tree["error"], query
    for part, named in parts(tree["statements"], []):
        node = part["node"]
        with_named = {**node, "cte_map": {"map": [*named, *node["cte_map"]["map"]]}}
        alone = json.dumps({"error": False, "statements": [{**part, "node": with_named}]})
        ((sql,),) = con.execute("select json_deserialize_sql(?)", [alone]).fetchall()
        try:
            con.execute(f"explain {sql}")
        except duckdb.BinderException as error:
            said.append(str(error).partition("\n")[0])
    return said


def test_a_column_of_the_table_beside_is_noticed(store: duckdb.DuckDBPyConnection) -> None:
    query = 'select * from api_call c join (select distinct thread, "end" from py_sample) p on c.thread = p.thread'
    assert borrowed(store, query) == ['Binder Error: Referenced column "end" not found in FROM clause!']


def test_views_and_rules_name_columns_of_their_own(store: duckdb.DuckDBPyConnection) -> None:
    literals = database.setting_literals(store)
    queries = {name: database.select_of(sql) for _, file in library().views for name, sql in database.named_views(file)}
    for rule in library().rules:
        values = {name: repr(param.value) for name, param in rule.params.items()}
        queries[rule.code] = re.sub(r"\$(\w+)", lambda used, values=values: values[used[1]], rule.query or "select 1")
    found = {name: borrowed(store, database.with_settings(sql, literals)) for name, sql in queries.items()}
    assert {name: said for name, said in found.items() if said} == {}
