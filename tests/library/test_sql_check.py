"""What a query may say: refused before anything runs."""

from __future__ import annotations

import duckdb
import pytest

from gpudiag.library.sql_check import SqlProblem, check_output, check_query, check_views, read_views, relations_of
from gpudiag.library.view_docs import check_view_doc, view_docs

RELATIONS = frozenset({"op", "op_at"})


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    """A canonical table, a view over it, a table macro and a private view."""
    con = duckdb.connect()
    con.execute("create table gpu_op (id integer, ns bigint, name varchar)")
    con.execute("create view op as select id, ns, name from gpu_op")
    con.execute("create macro op_at(i) as table select * from op where id = i")
    con.execute("create view _op as select id from gpu_op")
    return con


def check_view_file(con: duckdb.DuckDBPyConnection, sql: str, relations: frozenset[str]) -> list[str]:
    """The names that a user's view file creates. Raises SqlProblem."""
    views = read_views(con, sql)
    names = [view.name for view in views]
    check_views(con, views, relations | set(names))
    return names


@pytest.mark.parametrize(
    "query",
    [
        "select id as loop from op where ns > $p",
        "from op where ns > $p",
        "with big as (select * from op where ns > $p * 1e3) select * from big union all select * from op",
        "with recursive r as (select 1 as a union all select a + 1 from r) select a from r where a < $p",
        "select * from op, op_at(1), unnest([1, 0]), range(100) where op.ns > $p",
        "select * from op a asof join op b on a.id = b.id and a.ns >= b.ns where a.ns * 0.5 > -1 * $p * 1000000",
        "select exists (from op where ns > $p) as any_op",
    ],
)
def test_selects_over_views_are_fine(con: duckdb.DuckDBPyConnection, query: str) -> None:
    check_query(con, query, RELATIONS, {"p"})


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select 1; select 2", "holds 2 statements"),
        ("copy op to 'x.csv'", "COPY statement"),
        ("attach 'x.db'", "ATTACH statement"),
        ("install httpfs", "LOAD statement"),
        ("load httpfs", "LOAD statement"),
        ("set threads = 1", "SET statement"),
        ("drop view op", "DROP statement"),
        ("create table x as select 1", "CREATE statement"),
        ("pragma database_list", ""),
        ("pivot op on id", ""),
        ("explain select 1", "EXPLAIN statement"),
        ("with x as (delete from gpu_op returning id) select * from x", ""),
        ("describe op", "show_ref"),
        ("selec id from op", "is not SQL"),
        ("select * from read_csv('/etc/passwd') where $p > 0", "table function read_csv"),
        ("select * from read_text('/etc/passwd') where $p > 0", "table function read_text"),
        ("select * from glob('/*') where $p > 0", "table function glob"),
        ("select * from '/etc/passwd' where $p > 0", "selects from /etc/passwd"),
        ("select * from query('select 1') where $p > 0", "table function query"),
        ("select * from duckdb_settings() where $p > 0", "table function duckdb_settings"),
        ("select * from information_schema.tables where $p > 0", "selects from information_schema.tables"),
        ("select * from gpu_op where ns > $p", "selects from gpu_op"),
        ("select * from _op where id > $p", "selects from _op"),
        ("select id from op where ns > $p and id in (select id from gpu_op)", "selects from gpu_op"),
        ("select getenv('HOME') as home from op where ns > $p", "calls getenv"),
        ("select current_setting('home_directory') as a from op where ns > $p", "calls current_setting"),
        ("select random() as a from op where ns > $p", "calls random"),
        ("select now() as a from op where ns > $p", "calls now"),
        ("select id from op where ns > $p and ns < $q", "uses $q, which params does not declare"),
        ("select id from op", "never uses $p"),
        ("select id from op where ns > $p and ns > 5000", "holds the number 5000"),
        ("select id from op where ns > $p * 0.3", "holds the number 0.3"),
        ("select id from op where ns > $p limit 5", "holds the number 5"),
        ("select id" + ", ns as a" * 2000 + " from op where ns > $p", "more than 10,000"),
    ],
)
def test_everything_else_is_refused(con: duckdb.DuckDBPyConnection, query: str, words: str) -> None:
    with pytest.raises(SqlProblem) as caught:
        check_query(con, query, RELATIONS, {"p"})
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("query", "wanted", "words"),
    [
        ("select name as loop from op", None, "gives loop as VARCHAR; it must be BIGINT or INTEGER"),
        ("select id as nvtx_path from op", None, "gives nvtx_path as INTEGER"),
        ("select list(name) as gpu_ops from op", "gpu_ops", "gives gpu_ops as VARCHAR[]"),
        ("select list(id) as gpu_ops from op", "api_calls", "gives no column api_calls"),
        ("select 1 as share from op", None, "gives share as INTEGER"),
        ("select nme from op", None, 'does not bind: Binder Error: Referenced column "nme" not found'),
    ],
)
def test_columns_with_a_meaning_have_their_type(
    con: duckdb.DuckDBPyConnection, query: str, wanted: str | None, words: str
) -> None:
    with pytest.raises(SqlProblem) as caught:
        check_output(con, query, {}, wanted)
    assert words in str(caught.value)


def test_output_columns_are_found(con: duckdb.DuckDBPyConnection) -> None:
    columns = check_output(
        con, "select id as loop, list(id) as gpu_ops from op where ns > $p group by id", {"p": 1.0}, "gpu_ops"
    )
    assert columns == {"loop": "INTEGER", "gpu_ops": "INTEGER[]"}


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("create table x as select 1", "holds `create table x …`"),
        ("create or replace view op as select 1 as a", "holds `create or replace …`"),
        ("create temp view x as select 1 as a", "holds `create temp view …`"),
        ("drop view op", "holds `drop view op …`"),
        ("create view x as select 1 as a; copy op to 'x'", "holds `copy op to …`"),
        ("create view x as select * from read_csv('y')", "x calls the table function read_csv"),
        ("create view x as select * from sqlite_master", "x selects from sqlite_master"),
        ("create macro x(a) as getenv(a)", "x calls getenv"),
        ("create macro x(a) as table select * from read_text(a)", "x calls the table function read_text"),
        ("create macro x(a) as a, (a, b) as getenv(a)", "x is not SQL"),
    ],
)
def test_view_files_only_create_views_over_what_there_is(con: duckdb.DuckDBPyConnection, sql: str, words: str) -> None:
    with pytest.raises(SqlProblem) as caught:
        check_view_file(con, sql, RELATIONS)
    assert words in str(caught.value)


def test_views_may_name_each_other_in_any_order(con: duckdb.DuckDBPyConnection) -> None:
    sql = "-- first; it's\ncreate view a as select '--' as c from b; /* x; */ create view b as select id from op;"
    assert check_view_file(con, sql, RELATIONS) == ["a", "b"]


def test_relations_of_a_query_are_found_in_all_its_parts() -> None:
    text = (
        "with c as (from a) select * from c asof join b on c.t >= b.t where exists (from d) and x in (select y from e)"
    )
    assert relations_of(text) - {"c"} == {"a", "b", "d", "e"}


def test_undocumented_columns_are_noticed(con: duckdb.DuckDBPyConnection) -> None:
    def verdict(block: str) -> str:
        [doc] = view_docs([("a.sql", f"{block}\ncreate view op as select id, ns, name from gpu_op;")])
        return check_view_doc(con, doc)

    assert verdict("-- An operation.\n--   id: which\n--   ns: how long (ns)\n--   name: its name") == ""
    assert "what name means" in verdict("-- An operation.\n--   id: which\n--   ns: how long (ns)")
    assert "documents bytes" in verdict("-- An op.\n--   id: a\n--   ns: b\n--   name: c\n--   bytes: gone")
    assert "has no comment" in verdict("--   id: a\n--   ns: b\n--   name: c")


@pytest.mark.parametrize(
    "query",
    [
        "with gpu_op as (select * from gpu_op) select id from gpu_op where id < $p",
        "with Gpu_Op as (select * from gpu_op) select id from gpu_op where id < $p",
        "with _op as (select * from _op) select id from _op where id < $p",
        "with sqlite_master as (select * from sqlite_master) select name from sqlite_master where $p > 0",
        'with "x.csv" as (select * from "x.csv") select * from "x.csv" where $p > 0',
        "select * from _op where id < $p and exists (with _op as (select 1 as a) select a from _op)",
    ],
)
def test_a_with_query_may_not_hide_what_it_reads(con: duckdb.DuckDBPyConnection, query: str) -> None:
    with pytest.raises(SqlProblem, match="names a WITH query"):
        check_query(con, query, RELATIONS, {"p"})


@pytest.mark.parametrize(
    "sql",
    [
        "create macro op_at(i) as table select * from op",
        "create macro sum(x) as 0",
        "create view op as select 1 as id",
        "create view _op as select 1 as id",
        "create view x as with gpu_op as (select * from gpu_op) select * from gpu_op",
    ],
)
def test_a_view_file_replaces_nothing(con: duckdb.DuckDBPyConnection, sql: str) -> None:
    with pytest.raises(SqlProblem, match="something that exists"):
        check_view_file(con, sql, RELATIONS | {"gpu_op"})


def test_a_view_may_be_called_like_a_function(con: duckdb.DuckDBPyConnection) -> None:
    assert check_view_file(con, "create view second as select id from op", RELATIONS) == ["second"]
