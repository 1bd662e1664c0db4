"""Views known to be empty are tables without rows, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from captures import named
from evaluation import packed, view_shapes
from gpudiag.evaluate import engine
from gpudiag.library import load
from gpudiag.library.packaged import packaged_dir
from gpudiag.options import Options
from gpudiag.prepare import opened
from gpudiag.store import database, query, shapes

VIEWS = [
    ("a.sql", "-- materialised: read often\ncreate view kernel as from gpu_op where kind = 'kernel';"),
    ("b.sql", 'create view long_kernel as from kernel where "end" - start > 5;'),
    ("c.sql", "create view kernels as select count(*) as n from kernel;"),
]
LIBRARY = load.load()


def shapes_file(folder: Path) -> Path:
    with database.create(small=True) as con:
        database.load_views(con, VIEWS)
        bodies = {name: database.select_of(text) for _, sql in VIEWS for name, text in database.named_views(sql)}
        (folder / "views").mkdir()
        (folder / shapes.FILE).write_text(shapes.content(con, VIEWS, {}, bodies, ["from long_kernel"]))
    return folder


def kinds(con: database.Connection) -> dict[str, str]:
    rows = con.execute("select table_name, table_type from information_schema.tables").fetchall()
    return {name: kind for name, kind in rows if name in ("kernel", "long_kernel", "kernels")}


def test_a_view_that_is_empty_is_a_table_of_its_columns(tmp_path: Path) -> None:
    known = shapes.read(shapes_file(tmp_path), VIEWS, {})
    with database.create(small=True) as plain, database.create(small=True) as con:
        database.load_views(plain, VIEWS)
        database.load_views(con, VIEWS, known=known)
        assert kinds(con) == {"kernel": "BASE TABLE", "long_kernel": "BASE TABLE", "kernels": "VIEW"}
        for view in kinds(con):
            assert con.execute(f"describe {view}").fetchall() == plain.execute(f"describe {view}").fetchall()
        assert con.execute("from kernels").fetchall() == [(0,)]


def test_a_view_with_rows_is_made_as_ever(tmp_path: Path) -> None:
    known = shapes.read(shapes_file(tmp_path), VIEWS, {})
    with database.create(small=True) as con:
        con.execute("insert into gpu_op (id, kind, start, \"end\") values (0, 'kernel', 0, 9)")
        database.load_views(con, VIEWS, known=known)
        assert con.execute("select count(*) from long_kernel").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("views", "settings"), [(VIEWS[:2], {}), ([*VIEWS[:2], ("c.sql", VIEWS[2][1] + " ")], {}), (VIEWS, {"least": 1.0})]
)
def test_nothing_is_known_of_other_views(
    tmp_path: Path, views: list[tuple[str, str]], settings: dict[str, float]
) -> None:
    assert shapes.read(shapes_file(tmp_path), views, settings) == shapes.NONE


@pytest.mark.parametrize("content", [None, "", "{"])
def test_without_a_whole_file_nothing_is_known(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "views").mkdir()
        (tmp_path / shapes.FILE).write_text(content)
    assert shapes.read(tmp_path, VIEWS, {}) == shapes.NONE


def test_the_packaged_file_is_of_the_packaged_views() -> None:
    kept = (packaged_dir() / shapes.FILE).read_text("utf-8")
    assert kept == view_shapes.text(LIBRARY), "run python -m evaluation.generate_docs"


@pytest.mark.capture
@pytest.mark.slow
@pytest.mark.parametrize("name", ["histogram/slow.raw.csv", "histogram/slow.sqlite.xz", "rollout_eager/fixed.pt.trace"])
def test_rules_known_to_be_silent_are_silent(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened([packed.opened(named(name))], Options()) as (con, library, _):
        known = shapes.read(packaged_dir(), library.capture_views, library.setting_values)
        silent = known.silent(con, library.packaged_rules)
        assert silent
        for code in silent:
            rule = library.by_code[code]
            assert not query.run(con, rule.query, {name: param.value for name, param in rule.params.items()})
        with_them = engine.evaluate_all(library, con)
        monkeypatch.setattr(engine.shapes, "read", lambda *_: shapes.NONE)
        assert engine.evaluate_all(library, con) == with_them
