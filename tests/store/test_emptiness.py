"""Which SELECTs certainly give no rows, against what DuckDB makes of them."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from gpudiag.store.emptiness import aggregates_in, condition_of, holds

EMPTY = {"gone", "nil"}
# From tables of which `things` has a row; `gone` and `nil` have gone.
CERTAIN = (
    "from gone",
    "from gone, things",
    "from things join gone on true",
    "select * from things semi join gone using (a)",
    "from gone left join things using (a)",
    "from things right join gone using (a)",
    "from gone full join nil using (a)",
    "from things where exists (from gone)",
    "from things where a > 0 and a in (select a from gone)",
    "from gone union all from nil",
    "from gone union all by name from nil",
    "from gone except from things",
    "from things intersect from gone",
    "with seen as (from gone), again as (from seen) select a from again",
    "with things as (from gone) from things",
    "with recursive r as (select a from gone union all select a + 1 from r where a < 5) from r",
    "from (from things, gone) a join things b on true",
    "select a, count(*) from gone group by a",
    "select a, count(*) from gone group by all",
    "select count(*) from gone group by a having count(*) >= 0",
    "select sum(a) over () from gone",
    "select (select count(*) from things) from gone",
    "select plus(a) from gone",
)
NOT_CERTAIN = (
    "from things",
    "select count(*) from gone",
    "select count(*) from gone group by all",
    "select 1, max(a) from gone group by all",
    "select coalesce(max(a), 0) + 1 from gone",
    "select most(a) from gone",
    "select 1 from gone having true",
    "select a, count(*) from gone group by grouping sets ((a), ())",
    "from things left join gone using (a)",
    "from gone right join things using (a)",
    "from things full join gone using (a)",
    "from things anti join gone using (a)",
    "from things where not exists (from gone)",
    "from things where a not in (select a from gone)",
    "from things where a > 0 or exists (from gone)",
    "from gone union all from things",
    "from gone union all by name from things",
    "from things except from gone",
    "with gone as (from things) from gone",
    "with recursive r as (select a from things union all select a + 1 from r where a < 5) from r",
    "from unnest([1]) x(a)",
    "from things positional join gone",
    "values (1)",
    "select 1",
)


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        con.execute("create table things (a int); create table gone (a int); create table nil (a int)")
        con.execute("insert into things values (1)")
        con.execute("create macro plus(x) as x + 1; create macro most(x) as max(x); create macro far(x) as most(x)")
        yield con


@pytest.mark.parametrize("select", CERTAIN)
def test_what_is_certain_is_so(con: duckdb.DuckDBPyConnection, select: str) -> None:
    assert holds(condition_of(con, select, aggregates_in(con)), EMPTY)
    assert con.execute(select).fetchall() == []


@pytest.mark.parametrize("select", NOT_CERTAIN)
def test_what_gives_a_row_is_never_certain(con: duckdb.DuckDBPyConnection, select: str) -> None:
    assert not holds(condition_of(con, select, aggregates_in(con)), EMPTY)
    assert con.execute(select).fetchall() != []


def test_macros_that_aggregate_count_as_aggregates(con: duckdb.DuckDBPyConnection) -> None:
    found = aggregates_in(con)
    assert {"most", "far", "count_star", "max"} <= found
    assert not {"plus", "coalesce", "abs"} & found


def test_what_is_no_select_is_never_certain(con: duckdb.DuckDBPyConnection) -> None:
    assert condition_of(con, "drop table things", aggregates_in(con)) is False
