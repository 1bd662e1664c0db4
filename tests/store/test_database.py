"""The store: settings that views read, the order views are made in, and the lock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from gpudiag.errors import GpudiagError
from gpudiag.schema import TABLES
from gpudiag.store import database


@pytest.fixture
def con() -> Iterator[database.Connection]:
    con = database.create(small=True)
    yield con
    con.close()


def test_a_new_store_has_every_table_empty(con: database.Connection) -> None:
    for table in TABLES:
        cursor = con.execute(f'select * from "{table.name}"')
        assert tuple(column[0] for column in cursor.description or ()) == table.column_names
        assert cursor.fetchall() == []


def test_views_see_settings_as_numbers(con: database.Connection) -> None:
    database.load_settings(con, {"least": 2.5, "most": 7})
    database.load_views(con, [("v.sql", "create view v as select setting('least') + setting('most') as n;")])
    assert con.execute("select n from v").fetchall() == [(9.5,)]
    database.load_settings(con, {"least": 1, "most": 7})
    assert con.execute("select setting('least')").fetchall() == [(1,)]


@pytest.mark.parametrize("settings", [{}, {"least": 1.0}])
def test_a_setting_nobody_defined_fails_loudly(con: database.Connection, settings: dict[str, float]) -> None:
    database.load_settings(con, settings)
    with pytest.raises(duckdb.Error, match="no such setting: lest"):
        con.execute("select * from range(3) where range > setting('lest')").fetchall()


@pytest.mark.parametrize("kept", ["", "-- materialised: read often\n"])
def test_views_are_made_after_those_they_read(con: database.Connection, kept: str) -> None:
    first = f"-- A.\n{kept}create view a as select n + 1 as n from b; create view c as select 1 as n;\n"
    second = f"-- B.\n{kept}create view b as select n from c; -- not a\n"
    database.load_views(con, [("first.sql", first.replace("; create", ";\ncreate")), ("second.sql", second)])
    assert con.execute("select n from a").fetchall() == [(2,)]


def test_a_materialised_view_keeps_what_it_held(con: database.Connection) -> None:
    con.execute("insert into device (id) values (0)")
    live = "create view live as select id from device;"
    database.load_views(con, [("v.sql", f"-- materialised: read often\n{live.replace('live', 'kept')}\n{live}\n")])
    con.execute("insert into device (id) values (1)")
    assert con.execute("select count(*) from kept").fetchall() == [(1,)]
    assert con.execute("select count(*) from live").fetchall() == [(2,)]


def test_views_in_a_circle_are_refused_in_one_sentence(con: database.Connection) -> None:
    circle = "create view a as select * from b;\ncreate view b as select * from a;\n"
    with pytest.raises(GpudiagError, match=r"^circle\.sql: views refer to one another in a circle\.$"):
        database.load_views(con, [("circle.sql", circle)])


@pytest.mark.parametrize("sql", ["create view v as select nope from device;", "create view v as select * from nope;"])
def test_a_view_that_cannot_be_made_names_its_file(con: database.Connection, sql: str) -> None:
    with pytest.raises(GpudiagError, match=r"mine\.sql: .*nope"):
        database.load_views(con, [("mine.sql", sql)])


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_csv('{file}')",
        "select * from read_text('{file}')",
        "select * from '{file}'",
        "copy device to '{file}.out'",
        "copy device from '{file}'",
        "attach '{file}.duckdb' as other",
        "export database '{file}.d'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set lock_configuration = false",
        "set memory_limit = '1TB'",
        "set threads = 64",
        "reset lock_configuration",
    ],
)
def test_a_locked_store_has_no_way_out(con: database.Connection, tmp_path: Path, sql: str) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("id\n1\n")
    database.lock(con)
    with pytest.raises(duckdb.Error):
        con.execute(sql.format(file=file)).fetchall()
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


def test_a_locked_store_still_answers(con: database.Connection) -> None:
    con.execute("insert into device (id) values (3)")
    database.lock(con)
    assert con.execute("select id from device").fetchall() == [(3,)]


def test_a_reopened_store_cannot_be_changed(tmp_path: Path) -> None:
    file = str(tmp_path / "store.duckdb")
    con = database.create(file)
    con.execute("insert into device (id) values (3)")
    con.close()
    again = database.reopen(file)
    assert again.execute("select id from device").fetchall() == [(3,)]
    with pytest.raises(duckdb.Error, match="read-only"):
        again.execute("delete from device")
    again.close()


def test_macros_are_created_after_those_that_they_call() -> None:
    con = database.create(small=True)
    database.load_views(
        con, [("a.sql", "create macro outer_one(x) as inner_one(x) + 1;\ncreate macro inner_one(x) as 2 * x;")]
    )
    assert con.execute("select outer_one(3)").fetchone() == (7,)
    circle = "create macro one(x) as two(x);\ncreate macro two(x) as one(x);"
    with pytest.raises(GpudiagError, match=r"^circle\.sql: macros refer to one another in a circle\.$"):
        database.load_views(con, [("circle.sql", circle)])


@pytest.mark.parametrize(
    ("error", "fault", "of_file"),
    [
        (
            duckdb.InternalException("INTERNAL Error: a dictionary changed\nThis error …\n\nStack Trace:\n"),
            "a dictionary changed",
            False,
        ),
        (
            duckdb.FatalException('FATAL Error: Failed: invalidated.\nOriginal error: "a dictionary changed\n\nStack"'),
            "a dictionary changed",
            False,
        ),
        (
            duckdb.FatalException('FATAL Error: Failed: invalidated.\nOriginal error: "IO Error: No space left"'),
            "",
            True,
        ),
        (duckdb.IOException("IO Error: No space left"), "", True),
        (duckdb.BinderException("Binder Error: no such column"), "", False),
    ],
)
def test_a_fault_of_the_database_is_not_the_disks(error: duckdb.Error, fault: str, of_file: bool) -> None:
    assert (database.own_fault(error), database.unreadable(error)) == (fault, of_file)
