"""An untrusted author's rule can read the store and nothing else, for a while and with some memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from gpudiag.evaluate.engine import evaluate_all, evaluate_user_rules
from gpudiag.evaluate.evidence import Known
from gpudiag.evaluate.sandbox import Limits, evaluate_untrusted, open_store
from gpudiag.library.catalogue import Library
from gpudiag.model import Fired, NotEvaluated, Rule
from gpudiag.store import database

VIEWS = (("packaged.sql", "-- A device.\ncreate view gpu as select id, name from device;\n"),)
SECONDS = 1  # for what never ends; all else has the usual time, which a busy machine may need


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of five devices, closed."""
    path = tmp_path_factory.mktemp("store") / "store.duckdb"
    con = database.create(str(path))
    con.execute("insert into device (id, name) select range, 'H200' from range(5)")
    database.load_views(con, VIEWS)
    con.close()
    return path


def rule(query: str, code: str = "U01", params: Mapping[str, float] | None = None) -> Rule:
    return Rule.model_validate({
        "code": code, "kind": "hygiene", "id": code.lower(), "title": "t", "query": query, "message": "m.", "why": "w",
        "what": "x",
        "not_a_problem_when": "n",
        "params": {name: {"value": value, "unit": "x", "why": "y"} for name, value in (params or {}).items()},
    })  # fmt: skip


def run(file: Path, query: str, views: str = "", limits: Limits | None = None, **params: float) -> Any:
    """The rows, or the refusal."""
    own = (("own.sql", views),) if views else ()
    known = Library(views=VIEWS, user_views=own).view_names
    return evaluate_untrusted([rule(query, params=params)], file, own, known, limits or Limits())[0]


def test_an_honest_rule_gets_its_rows(file: Path) -> None:
    assert run(file, "select id from gpu where id < $most order by id", most=2) == ({"id": 0}, {"id": 1})


def test_views_of_the_user_s_own_work_in_any_order(file: Path) -> None:
    views = "create view third as select * from second; create view second as select id from gpu where id > 2;"
    assert run(file, "select id from third order by id", views) == ({"id": 3}, {"id": 4})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select * from read_text('/etc/hostname')", "table function read_text"),
        ("select * from '/etc/hostname'", "selects from /etc/hostname"),
        ("copy gpu to '/tmp/stolen.csv'", "COPY statement"),
        ("create table x as select 1", "CREATE statement"),
        ("attach '/tmp/other.db'", "ATTACH statement"),
        ("install httpfs", "LOAD statement"),
        ("load httpfs", "LOAD statement"),
        ("set memory_limit = '1TB'", "SET statement"),
        ("select 1; drop view gpu", "holds 2 statements"),
        ("select id from gpu where id < $nope", "uses $nope, which params does not declare"),
        ("select nope from gpu", 'Referenced column "nope" not found'),
        ("select * from nope", "selects from nope, which is not a view"),
        ("select * from gpu a, gpu b, gpu c, gpu d, gpu e, gpu f", "more than 1000 rows"),
    ],
)
def test_what_a_rule_may_not_do_is_refused_by_name(file: Path, query: str, words: str) -> None:
    refusal = run(file, query)
    assert isinstance(refusal, str)
    assert words in refusal


@pytest.mark.slow
@pytest.mark.parametrize(
    ("views", "words"),
    [
        ("create view x as select * from read_csv('/etc/passwd')", "own.sql: x calls the table function read_csv"),
        ("copy gpu to '/tmp/stolen.csv'", "own.sql: holds `copy gpu to …`"),
        ("create view x as select nope from gpu", "own.sql: x cannot be created"),
    ],
)
def test_a_bad_view_is_refused_by_file_and_name(file: Path, views: str, words: str) -> None:
    refusal = run(file, "select id from gpu", views)
    assert isinstance(refusal, str)
    assert words in refusal


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        "with recursive r as (select 1 as a union all select a + 1 from r) select count(*) as n from r",
        "select count(*) as n from range((1e9 * 1e9)::bigint) a",
    ],
)
def test_a_rule_that_never_ends_is_stopped(file: Path, query: str) -> None:
    refusal = run(file, query, limits=Limits(seconds=SECONDS))
    assert isinstance(refusal, str)
    assert "was stopped" in refusal


def test_a_rule_that_eats_memory_is_stopped(file: Path) -> None:
    refusal = run(file, "select len(repeat(name, (1e9 * $gigabytes)::bigint)) as n from gpu", gigabytes=0.9)
    assert isinstance(refusal, str)
    assert "was stopped" in refusal


@pytest.mark.slow
def test_an_answer_that_is_too_long_is_refused(file: Path) -> None:
    refusal = run(file, "select repeat(name, (1e6 * $megabytes)::bigint) as text from gpu", megabytes=2)
    assert isinstance(refusal, str)
    assert "more than 8 MB" in refusal


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_text('/etc/hostname')",
        "copy device to '/tmp/gpudiag-stolen.csv'",
        "attach '/tmp/gpudiag-other.db' as other",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set lock_configuration = false",
        "insert into device (id) values (9)",
        "drop view gpu",
        "export database '/tmp/gpudiag-export'",
        "create secret s (type s3, key_id 'a', secret 'b')",
    ],
)
def test_the_open_store_refuses_what_the_parser_catches_too(file: Path, sql: str) -> None:
    con = open_store(str(file), 256)
    with pytest.raises(duckdb.Error):
        con.execute(sql).fetchall()


def test_python_variables_are_no_tables(file: Path) -> None:
    secret = duckdb.connect().sql("select 42 as answer")
    con = open_store(str(file), 256)
    with pytest.raises(duckdb.Error):
        con.execute("select * from secret").fetchall()
    assert secret.fetchall() == [(42,)]


def test_one_rule_s_fall_leaves_the_others_standing(file: Path) -> None:
    good, bad, own = (
        rule("select id from gpu", "U01"),
        rule("select * from nope", "U02"),
        rule("select id from gpu", "P01"),
    )
    library = Library(rules=(own, good, bad), views=VIEWS, user_codes=frozenset({"U01", "U02"}))
    con = duckdb.connect(str(file), read_only=True)
    outcomes = {outcome.rule.code: outcome for outcome in evaluate_all(library, con, file).outcomes}
    assert isinstance(outcomes["P01"], Fired)
    assert isinstance(outcomes["U01"], Fired)
    assert isinstance(outcomes["U02"], NotEvaluated)
    assert "not a view" in outcomes["U02"].reason


def judged(file: Path, **changes: Any) -> Any:
    """What becomes of a user's rule on a store with loop 0."""
    data = rule("select id as loop from gpu where id = 0").model_dump() | {"requires": ()} | changes
    own = Rule.model_validate(data)
    library = Library(rules=(own,), views=VIEWS, user_codes=frozenset({own.code}))
    known = Known(library, {}, {0: {"id": 0}})
    return evaluate_user_rules(known, file)[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select 'x' as loop from gpu", "gives 'x' as loop"),
        ("select 1 as loop from gpu", "gives 1 as loop"),
        ("select 0.5 as loop from gpu", "gives 0.5 as loop"),
        ("select 0 as loop, [[[1]]] as gpu_ops from gpu", "gives [[[1]]] as gpu_ops; it must be a list of ids"),
        ("select 0 as loop, 'abc' as gpu_ops from gpu", "gives 'abc' as gpu_ops"),
        ("select 0 as loop, [null] as ranges from gpu", "gives [None] as ranges"),
        ("select 0 as loop, 'much' as share from gpu", "gives 'much' as share"),
        ("select 0 as loop, [1] as recoverable from gpu", "gives [1] as recoverable"),
        ("select 0 as loop, 1 as nvtx_path from gpu", "gives 1 as nvtx_path"),
    ],
)
def test_columns_that_later_stages_read_hold_what_they_should(file: Path, query: str, words: str) -> None:
    outcome = judged(file, query=query)
    assert isinstance(outcome, NotEvaluated)
    assert words in outcome.reason


def test_an_honest_user_rule_fires(file: Path) -> None:
    query = "select 0 as loop, [1] as gpu_ops, 0.5 as share, 'a' as nvtx_path from gpu where id = 0"
    assert isinstance(judged(file, query=query), Fired)


def test_a_message_that_would_never_end_is_refused(file: Path) -> None:
    message = "{% for p in places %}{{ p.n }} {{ p.n }}{% endfor %}."
    outcome = judged(file, query="select 0 as loop, a.id, range(100) as n from gpu a, gpu b, gpu c", message=message)
    assert isinstance(outcome, NotEvaluated)
    assert "writes more than" in outcome.reason


def test_a_suppressor_gives_few_rows(file: Path) -> None:
    outcome = judged(file, kind="suppressor", query="select 0 as loop from gpu a, gpu b, gpu c, gpu d")
    assert isinstance(outcome, NotEvaluated)
    assert "at most 200" in outcome.reason


def test_a_rule_that_nobody_has_written_yet_is_not_evaluated(file: Path) -> None:
    outcome = judged(file, title="FILL IN the smell")
    assert isinstance(outcome, NotEvaluated)
    assert outcome.reason == "still says 'FILL IN' in title"
