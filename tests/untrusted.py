"""Rules, views and folders as a hostile author would write them. All of it is made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from gpudiag.evaluate.sandbox import Limits, evaluate_untrusted
from gpudiag.library.catalogue import Library
from gpudiag.model import Rule
from gpudiag.store import database

_SQL = """\
-- A device.
create view gpu as select id, name from device;
create view _private as select id from device;
create macro gpu_at(which) as table select id, name from device where id = which;
"""
VIEWS = (("packaged.sql", _SQL),)
PACKAGED = Library(views=VIEWS).view_names
ENDLESS = "with recursive r as (select 1 as a union all select a + 1 from r) select count(*) as n from r"


def make_store(path: Path) -> Path:
    """A store of five devices, closed."""
    con = database.create(str(path))
    con.execute("insert into device (id, name) select range, 'H200' from range(5)")
    database.load_views(con, VIEWS)
    con.close()
    return path


def rule(query: str, code: str = "U01", params: Mapping[str, float] | None = None, **more: Any) -> Rule:
    named = {name: {"value": value, "unit": "x", "why": "y"} for name, value in (params or {}).items()}
    return Rule.model_validate(data(code=code, query=query, params=named, **more))


def data(**more: Any) -> dict[str, Any]:
    """A rule as its file would hold it."""
    plain = {"code": "U01", "kind": "hygiene", "id": "smell", "title": "t", "query": "select 1 as a", "message": "m.",
             "why": "w.", "what": "x.", "not_a_problem_when": "n."}  # fmt: skip
    return plain | more


def answers(file: Path, queries: Sequence[str], views: str = "", limits: Limits | None = None) -> list[Any]:
    """What becomes of each query: its rows, or why it was refused. `$big` is a thousand million in all of them."""
    rules = [rule(query, params={"big": 1e9} if "$big" in query else {}) for query in queries]
    own = (("own.sql", views),) if views else ()
    return evaluate_untrusted(rules, file, own, PACKAGED, limits or Limits(seconds=8.0, seconds_in_all=60.0))


def write(folder: Path, name: str, text: str | bytes | Mapping[str, Any]) -> Path:
    """A file of a rules folder; a mapping is written as YAML."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(text, Mapping):
        text = yaml.safe_dump(dict(text), width=10**9, allow_unicode=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path
