"""SQL that would read files, the environment, settings or the clock, write, or reach past the views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from gpudiag.evaluate.sandbox import open_store
from gpudiag.library.sql_check import SqlProblem, check_query, check_views, read_views
from gpudiag.library.sql_functions import FUNCTIONS, SPELT_AS_COLUMNS, TABLE_FUNCTIONS
from untrusted import PACKAGED, VIEWS, answers, make_store

FILE = "/etc/hostname"

# Grouped by what the attacker is after. None of these is run: DuckDB's parser and the lists of what is allowed say no.
READS = [
    f"select * from {function}('{FILE}')"
    for function in (
        "read_text", "read_blob", "read_csv", "read_csv_auto", "read_json", "read_json_auto", "read_json_objects",
        "read_ndjson", "read_parquet", "parquet_scan", "parquet_metadata", "parquet_schema", "parquet_kv_metadata",
        "parquet_file_metadata", "parquet_bloom_probe", "sniff_csv", "glob", "read_duckdb", "read_xlsx", "sqlite_scan",
        "postgres_scan", "mysql_scan", "delta_scan", "iceberg_scan", "st_read", "arrow_scan", "pandas_scan",
        "python_map_function", "seq_scan", "iceberg_metadata", "read_avro", "http_get", "duckdb_logs",
    )
] + [
    f"select * from '{FILE}'", f'select * from "{FILE}"', "select * from 'x.csv'", "select * from 'x.parquet'",
    "select * from 'https://example.org/x.csv'", "select * from 's3://bucket/x.parquet'",
    f"select * from read_text(['{FILE}'])", f"select ('{FILE}').read_text() as a", "select * from (from 'x.csv')",
    f"select * from gpu where id in (select size from read_blob('{FILE}'))",
    f"select (select content from read_text('{FILE}')) as a", "with x as (from 'x.csv') select * from x",
    f"select * from gpu, lateral (select * from read_text('{FILE}')) t",
    f"select id from gpu order by (select count(*) from glob('{FILE}'))",
    f"select id from gpu limit (select count(*) from glob('{FILE}'))",
    f"select exists (from read_text('{FILE}')) as a", f"select array(select content from read_text('{FILE}')) as a",
    f"select id from gpu union all select size from read_blob('{FILE}')",
    f"select * from unnest((select list(content) from read_text('{FILE}')))",
    f"select * from range((select count(*) from glob('{FILE}'))::bigint)",
]  # fmt: skip
ENVIRONMENT = [
    "select getenv('HOME') as a", "select GETENV('HOME') as a", "select \"getenv\"('HOME') as a",
    "select system.main.getenv('HOME') as a", "select 'HOME'.getenv() as a",
    "select [x for x in [getenv('HOME')]] as a",
    "select list_transform(['HOME'], lambda x: getenv(x)) as a", "select try(getenv('HOME')) as a",
    "select count(*) filter (where getenv('HOME') is not null) as n from gpu",
    "select sum(id) over (order by getenv('HOME')) as n from gpu",
    "select * replace (getenv('HOME') as name) from gpu", "select struct_pack(a := getenv('HOME')) as a",
    "select case when getenv('HOME') = '' then 0 end as a", "select distinct on (getenv('HOME')) id from gpu",
    "select id from gpu group by all having getenv('HOME') = ''",
    "select max(id order by getenv('HOME')) as a from gpu",
    "select id from gpu qualify row_number() over (order by getenv('HOME')) = 1",
    "select current_setting('home_directory') as a", "select getvariable('x') as a", "select * from duckdb_settings()",
    "select * from duckdb_settings", "select * from duckdb_secrets()", "select * from duckdb_variables()",
    "select * from which_secret('s3://x', 's3')", "select * from duckdb_extensions()", "select version() as a",
    "select * from pragma_version()", "select * from pragma_user_agent()", "select * from pragma_platform()",
    "select current_database() as a", "select current_user as a", "select user as a", "select user() as a",
    "select session_user as a", "select current_schema as a", "select current_query() as a",
    "select txid_current() as a",
    "select inet_server_addr() as a", "select pg_conf_load_time() as a", "select pg_get_viewdef(0) as a",
    "select has_table_privilege('gpu', 'select') as a", "select get_block_size('s') as a",
]  # fmt: skip
CLOCK = [
    f"select {call} as a"
    for call in ("now()", "today()", "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp",
                 "current_localtimestamp()", "get_current_timestamp()", "random()", "uuid()", "gen_random_uuid()",
                 "uuidv7()", "setseed(0)", "nextval('s')", "age(now()::timestamp)", "pg_postmaster_start_time()",
                 "sleep_ms(1)", "pg_sleep(1)", "write_log('x')", "ago(interval 1 day)")
] + ["select id from gpu tablesample 1", "select * from gpu using sample 3",
"select * from gpu at (version => 1)"]  # fmt: skip
CATALOGUE = [
    f"select * from {name}"
    for name in ("gpu_op", "device d, api_call", "main.gpu_op", "s.main.gpu", "temp.gpu", "_private", "sqlite_master",
                 "pg_catalog.pg_class", "information_schema.tables", "duckdb_tables()", "duckdb_columns",
                 "duckdb_views()",
                 "duckdb_functions()", "pragma_table_info('gpu_op')", "pragma_storage_info('gpu_op')",
                 "pragma_database_size()", "test_all_types()", "summary(gpu)", "nope", "(show tables)",
                 "(describe gpu)",
                 "(summarize gpu)", "(from gpu_op)", "gpu natural join gpu_op", "json_each('{}')", "repeat(1, 1)",
                 "histogram_values(gpu, id)", "histogram(gpu_op, id)")
] + [
    "select id from gpu where id = any(select id from gpu_op)", "with x as materialized (from gpu_op) select * from x",
    "with gpu as (select * from gpu_op) select * from gpu",
    "with device as (select * from device) select * from device", "select * from gpu where exists (from gpu_op)",
    "with recursive r as (select 1 as a union all select id from gpu_op) select * from r",
]  # fmt: skip
DYNAMIC = [
    "select * from query('select 1')", "select * from query_table('gpu_op')", "select * from query_table(['gpu_op'])",
    "select * from json_execute_serialized_sql(json_serialize_sql('select 1'))",
    "select json_serialize_plan('select 1') as a", "select json_deserialize_sql('{}') as a", "execute x",
    "prepare x as select 1", "select json_serialize_sql('select 1') as a", "deallocate x",
]  # fmt: skip
STATEMENTS = [
    f"copy gpu to '{FILE}'", f"copy device from '{FILE}'", "attach 'x.db'", "detach s", "use s", "install httpfs",
    "load httpfs",
    "force install httpfs from 'http://x'", "update extensions", "export database 'x'", "import database 'x'",
    "pragma database_list", "pragma version", "pragma enable_profiling", "set threads = 1", "set variable x = 1",
    "set global lock_configuration = false", "reset threads", "reset variable x", "call pragma_version()", "checkpoint",
    "force checkpoint", "vacuum", "analyze", "begin", "commit", "rollback", "create secret s (type s3)",
    "drop secret s",
    "create sequence x", "create type x as enum ('a')", "create schema x", "create index x on device (id)",
    "create temp table x as select 1", "create macro setting(x) as 1", "create or replace view gpu as select 1",
    "create function getenv(x) as x", "drop view gpu", "drop table device", "alter view gpu rename to x",
    "comment on view gpu is 'x'", "insert into device values (1)", "update device set id = 1", "delete from device",
    "truncate device", "merge into device using gpu on false when not matched then insert values (1)",
    "explain select 1",
    "explain analyze select 1", "describe gpu", "summarize gpu", "show tables", "pivot gpu on name using count(*)",
    "select * from (pivot gpu on name using count(*))", "unpivot gpu on id into name a value b",
    "with x as (insert into device(id) values (1) returning id) select * from x", "select 1 into x", "",
    "select 1; select 2", "select 1; copy gpu to 'x'", "selec 1",
]  # fmt: skip
HIDDEN = [
    f"select * from /* */ read_text /* ' */ ('{FILE}')", f"select * from -- x\n read_text('{FILE}')",
    f"select E'\\'', * from read_text('{FILE}')", f"select $$ ' $$ as a, * from read_text('{FILE}') --",
    f"select $x$ -- $x$ as a, * from read_text('{FILE}')", f"select '--' as a, * from read_text('{FILE}')",
    f"SELECT * FROM Read_Text('{FILE}')", f"from \"read_text\"('{FILE}')", f"table \"{FILE}\"",
    "select getenv\u200b('HOME') as a", "select \uff47etenv('HOME') as a", "select ge\u0074env('HOME') as a",
    f"select * from read\u00a0_text('{FILE}')", f"select\u2003*\u2003from\u2003read_text('{FILE}')",
    f"select 1 as a /* /* */ */ from read_text('{FILE}')", f"select * from main.read_text('{FILE}')",
    f"select * from system.main.read_text('{FILE}')", f"(((select * from read_text('{FILE}'))))",
    f"values ((select content from read_text('{FILE}')))",
]  # fmt: skip
GROUPS = {"reads": READS, "environment": ENVIRONMENT, "clock": CLOCK, "catalogue": CATALOGUE, "dynamic": DYNAMIC,
          "statements": STATEMENTS, "hidden": HIDDEN}  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_store(tmp_path_factory.mktemp("store") / "store.duckdb")


@pytest.fixture(scope="module")
def con(file: Path) -> duckdb.DuckDBPyConnection:
    return open_store(str(file), 256)


@pytest.mark.parametrize(
    "query", [pytest.param(q, id=f"{name}-{i}") for name, g in GROUPS.items() for i, q in enumerate(g)]
)
def test_it_is_refused_by_what_it_says(con: duckdb.DuckDBPyConnection, query: str) -> None:
    with pytest.raises(SqlProblem):
        check_query(con, query, PACKAGED, frozenset())


# What looks alike and is harmless has to work: a sandbox that refuses everything is of no use.
HONEST = [
    "from gpu", "table gpu", "values (1)", "select columns(*) from gpu", "select * from gpu positional join gpu b",
    "select * from gpu, lateral (select gpu.id) t", "select id from gpu order by (select count(*) from device)",
    "select /*+ */ * from gpu -- x\n", "select * from gpu;", "; select 1 as a", "select 1 as a /* ; drop table x */",
    "select E'\\x41' as a", "select $$a;b$$ as a", "select * from gpu_at(1)",
    "select 'read_text' as getenv, id from gpu",
    "with recursive r(a) as (select 1 as a union select a from r where a < 0) select * from r",
    "select * exclude (id) from gpu", "select list_transform([0, 1], lambda x: x + 1) as a",
    "select [x for x in [0, 1] if x > 0] as a", "select {'a': [1, 0]}.a[1] as a",
    "select name collate nocase as a from gpu",
    "select count(*) filter (where id > 0) as n, list(id order by id)[1:1] as ids from gpu group by all",
    "select lag(id) over (order by id rows between 1 preceding and current row) as a from gpu",
    "select regexp_extract(name, '[0-9]+') as a, name similar to 'H.*' as b, name like 'H%' as c from gpu",
    "select extract(year from date '2020-01-01') as a, interval '1' day as b, map(['a'], [1]) as c",
]  # fmt: skip


def test_honest_queries_are_answered(file: Path) -> None:
    found = answers(file, HONEST)
    assert {query: answer for query, answer in zip(HONEST, found, strict=True) if not isinstance(answer, tuple)} == {}


OWN_VIEWS = [
    ("create view query as select 1 as a", "something that exists"),
    ("create view query_table as select 1 as a", "something that exists"),
    ("create view read_text as select 1 as a", "something that exists"),
    ("create view version as select 1 as a", "something that exists"),
    ("create view histogram as select 1 as a", "something that exists"),
    ("create view sqlite_master as select 1 as a", "something that exists"),
    ("create view gpu_op as select 1 as a", "something that exists"),
    ("create view gpu as select 1 as id", "something that exists"),
    ("create macro sum(x) as 0", "something that exists"),
    ("create macro gpu_at(x) as table select 1 as a", "something that exists"),
    ("create macro read_text(x) as table select 1 as a", "something that exists"),
    ("create or replace view gpu as select 1 as id", "holds `create or replace"),
    ("create temp view x as select 1 as a", "holds `create temp view"),
    ("create view s.main.x as select 1 as a", "holds `create view s.main.x"),
    ('create view "x y" as select 1 as a', "holds `create view"),
    ("create view x(a) as select 1", "holds `create view x(a)"),
    ("create view if not exists x as select 1", "holds `create view if"),
    ("create recursive view x(a) as select 1", "holds `create recursive view"),
    ("create function x(a) as getenv(a)", "holds `create function"),
    ("create macro x(a := getenv('HOME')) as a", "holds `create macro"),
    ("create macro x(a) as getenv(a)", "x calls getenv"),
    ("create macro x(a) as table select * from read_text(a)", "table function read_text"),
    ("create macro x(a) as table select * from query(a)", "table function query"),
    ("create macro x(a) as a, (a, b) as getenv(a)", "x is not SQL"),
    ("create macro x(a) as (select content from read_text(a))", "table function read_text"),
    ("create view x as with gpu_op as (select * from gpu_op) select * from gpu_op", "something that exists"),
    ("create view x as from '/etc/passwd'", "selects from /etc/passwd"),
    ("create view x as select 1 as a; install httpfs", "holds `install httpfs"),
    ("create view x as select 1 as a; copy gpu to 'x'", "holds `copy gpu to"),
    ("create view x as pivot gpu on name using count(*)", ""),
    ("create view x as describe gpu", ""),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("sql", "words"), OWN_VIEWS)
def test_a_user_s_view_reaches_no_further(con: duckdb.DuckDBPyConnection, sql: str, words: str) -> None:
    def check() -> None:
        views = read_views(con, sql)
        check_views(con, views, PACKAGED | {"gpu_op", "device"} | {view.name for view in views})

    with pytest.raises(SqlProblem) as caught:
        check()
    assert words in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("views", "query"),
    [
        # Texts and comments that look like views to whoever takes the file apart by its lines.
        ("/*\ncreate view query as\n*/ create view x as select 1 as a", "select * from query('select 1 as a')"),
        ("/*\ncreate view gpu_op as\n*/ create view x as select 1 as a", "select * from gpu_op"),
        ("/*\ncreate view duckdb_settings as\n*/ create view x as select 1 as a", "select * from duckdb_settings"),
        ("create view x as select '\ncreate view query as select 1\n' as a", "select * from query('select 1 as a')"),
        ("create view x as select $$\ncreate view glob as select 1\n$$ as a", "select * from glob('/*')"),
        ("create macro query(a) as 1", "select * from query('select 1 as a')"),
        ("create view _x as select 1 as a", "select * from _x"),
    ],
)
def test_a_name_counts_only_once_the_parser_has_seen_it_created(file: Path, views: str, query: str) -> None:
    [answer] = answers(file, [query], views)
    assert isinstance(answer, str)


# --- what DuckDB itself holds against those who get past all that ---------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [*READS[:24], *STATEMENTS[:12], *STATEMENTS[15:22], "select * from query('from read_text(''/etc/hostname'')')"],
)
def test_the_locked_store_refuses_or_shows_nothing(con: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Without the check of what a query says, as if that had a hole."""
    try:
        rows = con.execute(sql).fetchall()
    except (duckdb.Error, RuntimeError):
        return
    assert Path(FILE).read_text("utf-8").strip() not in str(rows)
    assert not Path("x").exists()


def table_functions(con: duckdb.DuckDBPyConnection) -> set[str]:
    rows = con.execute("select distinct function_name from duckdb_functions() where function_type like 'table%'")
    return {name for (name,) in rows.fetchall()}


def test_only_three_table_functions_of_duckdb_may_be_called(con: duckdb.DuckDBPyConnection) -> None:
    harmless = TABLE_FUNCTIONS | {"gpu_at"}
    allowed = set()
    for name in table_functions(con):
        try:
            check_query(con, f"select * from {name}('x')", PACKAGED, frozenset())
            allowed.add(name)
        except SqlProblem:
            pass
    assert len(table_functions(con)) > 50
    assert allowed <= harmless


def test_no_volatile_scalar_function_may_be_called(con: duckdb.DuckDBPyConnection) -> None:
    """`error` stops a query and says nothing. What DuckDB forgets to mark (1.5: getvariable) is not listed either.

    Of functions that take a time with a zone, 2.0.1 marks that overload: it follows the zone of the session.
    """
    rows = con.execute(
        "select distinct lower(function_name) from duckdb_functions() where stability <> 'CONSISTENT'"
        " and not (stability = 'CONSISTENT_WITHIN_QUERY'"
        " and regexp_matches(array_to_string(parameter_types, ' '), 'TIME ZONE|TIMESTAMPTZ'))"
    )
    changeable = {name for (name,) in rows.fetchall()}
    assert "random" in changeable
    assert changeable & FUNCTIONS <= {"error"}
    assert not {"getenv", "current_setting", "getvariable", "version", "json_serialize_plan"} & FUNCTIONS


def test_what_sql_spells_without_parentheses_is_known(con: duckdb.DuckDBPyConnection) -> None:
    """A column that is none and yet has a value is a function in disguise."""
    rows = con.execute(
        "select distinct function_name from duckdb_functions() where parameters = [] "
        "union select keyword_name from duckdb_keywords()"
    )
    disguised = set()
    for (name,) in rows.fetchall():
        try:
            con.execute(f"select {name}").fetchall()
            disguised.add(name)
        except (duckdb.Error, RuntimeError):
            pass
    assert "current_date" in disguised
    assert disguised - {"true", "false", "null", "default"} <= SPELT_AS_COLUMNS


def test_python_s_variables_are_no_tables(con: duckdb.DuckDBPyConnection) -> None:
    secret = duckdb.connect().sql("select 42 as answer")
    with pytest.raises(duckdb.Error):
        con.execute("select * from secret").fetchall()
    assert secret.fetchall() == [(42,)]


def test_values_that_no_reader_is_made_for_are_refused(file: Path) -> None:
    deep = "[" * 6 + "1" + "]" * 6
    queries = {
        f"select {deep} as a": "cast it to numbers",
        "select {'a': 1}::variant as a": "cast it to numbers",
        "select '1'::bignum as a": "cast it to numbers",
        "select 'x'::blob as a": "cast it to numbers",
        "select make_timestamp(0)::timestamptz as a": "cast it to numbers",
        "select interval '1000000000' year as a": "failed",
        "select regexp_matches('a', repeat('(', (1e6)::bigint)) as a": "missing )",
        "select " + ", ".join(f"1 as c{n}" for n in range(201)): "gives 201 columns",
    }
    found: dict[str, Any] = dict(zip(queries, answers(file, list(queries)), strict=True))
    for query, words in queries.items():
        assert isinstance(found[query], str), query[:60]
        assert words in found[query], found[query]
        assert len(found[query]) <= 600


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (f"select '{'x' * 10_000}' as a", "more than 10,000"),
        ("select * from " + "(select * from " * 400 + "gpu" + ")" * 400, "nested too deeply"),
    ],
)
def test_a_query_is_short_and_flat(con: duckdb.DuckDBPyConnection, query: str, words: str) -> None:
    with pytest.raises(SqlProblem, match=words):
        check_query(con, query, PACKAGED, frozenset())


def test_problems_of_views_name_the_view(file: Path) -> None:
    [answer] = answers(file, ["select id from gpu"], "create view x as select * from read_csv('/etc/passwd')")
    assert "own.sql: x calls the table function read_csv" in answer


def test_packaged_views_of_this_test_are_views() -> None:
    assert {"gpu", "gpu_at"} == PACKAGED, VIEWS
