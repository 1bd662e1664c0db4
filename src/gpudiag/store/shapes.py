"""Columns of every view and when it is empty, worked out beforehand: what is certainly empty need not be planned.

`rules/views/shapes.json` is generated from the views and rules. It holds digests of what it was made of: where those
differ, as with another threshold in the views or while somebody edits them, everything is planned and run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb

from gpudiag.model import Rule
from gpudiag.schema import TABLES
from gpudiag.store.emptiness import Condition, aggregates_in, condition_of, holds

Connection = duckdb.DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class Shape:
    """A view's columns as `create table` wants them, and when it is empty."""

    columns: str
    empty: Condition


@dataclass(frozen=True, slots=True)
class Shapes:
    """Knowledge of a set of views before they are run, and of the queries over them, by digest."""

    views: Mapping[str, Shape] = field(default_factory=dict)
    queries: Mapping[str, Condition] = field(default_factory=dict)

    def is_empty(self, view: str, empty: AbstractSet[str]) -> bool:
        """Tell whether a view certainly has no rows where the relations named in `empty` have none."""
        shape = self.views.get(view)
        return bool(shape and holds(shape.empty, empty))

    def of(self, names: Iterable[str]) -> Shapes:
        """Return what is known of these views alone."""
        return Shapes({name: self.views[name] for name in names if name in self.views})

    def silent(self, con: Connection, rules: Iterable[Rule]) -> frozenset[str]:
        """Return the codes of the rules whose query certainly gives no rows on a committed store."""
        if not self.queries:
            return frozenset()
        rows = con.execute("select table_name from duckdb_tables() where estimated_size = 0").fetchall()
        empty = {str(name) for (name,) in rows}
        return frozenset(one.code for one in rules if holds(self.queries.get(_digest([one.query]), False), empty))

    def tables(self) -> frozenset[str]:
        """Return the canonical tables that decide."""
        known = {name for shape in self.views.values() for name in _names(shape.empty)}
        return frozenset(table.name for table in TABLES if table.name in known)


NONE = Shapes()
FILE = Path("views", "shapes.json")
"""Where the packaged rules keep it."""


def read(rules: Path, views: Iterable[tuple[str, str]], settings: Mapping[str, float]) -> Shapes:
    """Return what the file among the packaged rules knows of exactly these views with these settings; nothing where it
    was made of others.
    """
    kept = _content(rules / FILE)
    if not kept or kept["made_of"] != made_of(views, settings):
        return NONE
    shapes = {name: Shape(shape["columns"], shape["empty"]) for name, shape in kept["views"].items()}
    return Shapes(shapes, kept["queries"])


def made_of(views: Iterable[tuple[str, str]], settings: Mapping[str, float]) -> str:
    """Return a digest of all that a view's columns depend on."""
    return _digest([*(table.ddl for table in TABLES), *(part for view in views for part in view), repr(dict(settings))])


def content(
    con: Connection,
    views: Iterable[tuple[str, str]],
    settings: Mapping[str, float],
    bodies: Mapping[str, str],
    queries: Iterable[str],
) -> str:
    """Return the text of such a file, from a store in which the views exist; `bodies` are their SELECTs."""
    aggregates = aggregates_in(con)
    shapes = {
        name: {"columns": _columns(con, name), "empty": condition_of(con, body, aggregates)}
        for name, body in sorted(bodies.items())
    }
    known = {_digest([query]): condition_of(con, query, aggregates) for query in queries}
    lines = [
        f'"made_of": {json.dumps(made_of(views, settings))}',
        *(f'"{key}": {{\n{_lines(value)}\n}}' for key, value in (("views", shapes), ("queries", known))),
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def without_rows(con: Connection, names: Iterable[str]) -> frozenset[str]:
    """Return which of these tables have no rows."""
    asked = " union all ".join(f"select '{name}' where not exists (from \"{name}\")" for name in sorted(names))
    return frozenset(name for (name,) in con.execute(asked).fetchall()) if asked else frozenset()


@lru_cache(maxsize=2)
def _content(file: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(file.read_bytes())
        return found
    except (OSError, ValueError):
        return {}


def _columns(con: Connection, name: str) -> str:
    rows = con.execute(f'describe "{name}"').fetchall()
    return ", ".join(f'"{column}" {kind}' for column, kind, *_ in rows)


def _lines(values: Mapping[str, Any]) -> str:
    return ",\n".join(f"{json.dumps(key)}: {json.dumps(values[key])}" for key in sorted(values))


def _names(condition: Condition) -> Iterator[str]:
    if isinstance(condition, str):
        yield condition
    elif isinstance(condition, list):
        for part in condition[1:]:
            yield from _names(part)


def _digest(texts: Iterable[str]) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for text in texts:
        digest.update(f"{len(text)}:{text}".encode())
    return digest.hexdigest()
