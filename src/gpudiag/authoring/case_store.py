"""Store that test cases share: its views are created once, and a case fills only the stored ones its rule reads.

Creating the views takes most of a second and there are hundreds of cases. A case lives in a transaction that is rolled
back, so the views stay and its rows go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

import duckdb

from gpudiag.authoring import case_tables
from gpudiag.authoring.empty_views import EmptyViews, words
from gpudiag.library.catalogue import Library
from gpudiag.library.packaged import packaged_dir
from gpudiag.library.sql_check import relations_of
from gpudiag.loops import detect
from gpudiag.selection import apply
from gpudiag.selection.spec import ALL
from gpudiag.store import database, shapes

Connection = duckdb.DuckDBPyConnection

# Optimizer passes without which a join of the largest cases compares all pairs, or a subquery cannot be planned.
_NEEDED = ("filter_pushdown", "in_clause", "deliminator", "unused_columns")
_NAMED = re.compile(r"^create\s+(?:view|macro)\s+(\w+)", re.I | re.M)
_VIEW = re.compile(r"^create\s+view\s+(\w+)\s+as\b", re.I | re.M)

_LOOP_TABLES = {"loop", "iteration"}
# Most cases of profiled kernels have no timeline at all, and finding nothing in it takes as long as three views.
_LOOPS_FOUND_IN = {"gpu_op", "api_call", "nvtx_range"}


def plain() -> Connection:
    """Return a locked store with the canonical tables alone.

    Its rows are few: a query is planned for ten times as long as it runs, so the planner does the least it may.
    """
    con = database.create(small=True)
    known = [name for (name,) in con.execute("select name from duckdb_optimizers()").fetchall()]
    con.execute(f"set disabled_optimizers = '{','.join(name for name in known if name not in _NEEDED)}'")
    database.lock(con)
    return con


@dataclass(frozen=True, slots=True)
class CaseStore:
    """Locked store that holds a library's settings, macros and packaged views, and what is known of those views.

    bare: the tables without rows where a case fills none.
    held: the rows that nearly every case has (one device, one stream, everything recorded), which stay.
    """

    con: Connection
    memo: EmptyViews
    known: shapes.Shapes
    bare: frozenset[str]
    held: Mapping[str, str]
    _fills: dict[str, str]

    def fill(self, name: str) -> int:
        """Compute a stored view; returns its rows. Hundreds of cases fill the same: it is parsed once."""
        if body := self._fills.pop(name, ""):
            self.con.execute(f"prepare fill_{name} as insert into {name} {body}")
        count = self.con.execute(f"execute fill_{name}").fetchone()
        return int(count[0]) if count else 0


_Views = tuple[tuple[str, str], ...]
_Settings = tuple[tuple[str, float], ...]
_STORES: dict[tuple[_Views, _Settings], CaseStore] = {}


def with_views(library: Library) -> CaseStore:
    """Return the store for cases of a library's rules. Raises GpudiagError."""
    key = (tuple(library.views), tuple(library.setting_values.items()))
    if key not in _STORES:
        _STORES[key] = _with_views(library, *key)
    return _STORES[key]


def _with_views(library: Library, views: _Views, settings: _Settings) -> CaseStore:
    con = plain()
    database.load_settings(con, dict(settings))
    stored: dict[str, str] = {}
    others: dict[str, str] = {}
    fills: dict[str, str] = {}
    for _, sql in views:
        statements = database.split_views(sql)
        for statement in statements:
            if match := _NAMED.search(statement):
                (stored if database.is_stored(statement) else others)[match[1].lower()] = statement
        fills |= _stored(statements)
    known = shapes.read(packaged_dir(), [view for view in views if not view[0].startswith("jobs/")], dict(settings))
    # The others stay views, through which a case sees its rows.
    database.load_views(con, views, known=known.of(stored))
    con.execute(";".join(f"delete from {name}" for name in fills))  # an aggregate of no rows is a row
    literals = database.setting_literals(con)
    fills = {name: database.with_settings(body, literals) for name, body in fills.items()}
    bare = shapes.without_rows(con, known.tables())
    return CaseStore(con, EmptyViews(stored, others), known, bare, case_tables.fill(con, {}, library), fills)


@cache
def needed_views(query: str, views: tuple[tuple[str, str], ...], more: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return `views_for` of the same, which a rule's cases ask for once each."""
    return views_for(query, views, more)


def views_for(query: str, files: Iterable[tuple[str, str]], more: Iterable[str] = ()) -> tuple[tuple[str, str], ...]:
    """Return the macros, and the views that `query` and `more` queries need, each after those that it needs itself.

    Creating all views takes a tenth of a second, mostly for materialised ones, and there are hundreds of cases.
    """
    views: dict[str, tuple[str, str, str]] = {}
    macros: list[tuple[str, str]] = []
    for file, sql in files:
        for name, text, body in _statements(sql):
            if name:
                views[name] = (file, text, body)
            else:
                macros.append((file, text))
    ordered: list[tuple[str, str]] = []

    def visit(names: Iterable[str]) -> None:
        for name in sorted(names):
            if name in views:
                file, text, body = views.pop(name)
                visit(relations_of(body))
                ordered.append((file, text))

    for select in (query, *more):
        visit(relations_of(select))
    for _, text in macros:
        visit(words(text) if " table " in text.lower() else ())
    return (*macros, *ordered)


@cache
def _statements(sql: str) -> tuple[tuple[str, str, str], ...]:
    """Name, text and SELECT of each statement of a view file; a macro has its text alone."""
    texts = [(text, _VIEW.search(text)) for text in database.split_views(sql)]
    return tuple(
        (match[1].lower(), text, text[match.end() :].strip().rstrip(";")) if match else ("", text, "")
        for text, match in texts
    )


def fill_views(store: CaseStore, needed: tuple[tuple[str, str], ...], content: Mapping[str, str]) -> None:
    """Compute what the filled tables imply: loops where the case gives none, then the stored views among `needed`.

    content: the rows of each table that has some, as text.
    """
    con, memo = store.con, store.memo
    found = not content.keys() & _LOOP_TABLES and bool(content.keys() & _LOOPS_FOUND_IN)
    if found:
        detect.detect(con, apply.apply(con, ALL))  # which changes the tables
    held = {name: hash(text) for name, text in content.items()}
    empty = set() if found else {*store.bare} - content.keys()
    for name, stored in _names(needed):
        if store.known.is_empty(name, empty):
            empty.add(name)
        elif stored:
            key = memo.key(name, held)
            if memo.is_empty(key) and not found:
                empty.add(name)
                continue
            if store.fill(name):
                held[name] = key
            else:
                empty.add(name)
                if not found:
                    memo.note_empty(key)


@cache
def _names(needed: tuple[tuple[str, str], ...]) -> tuple[tuple[str, bool], ...]:
    """Names of the views in their order, and whether each is stored."""
    views = ((match[1].lower(), sql) for _, sql in needed if (match := _VIEW.search(sql)))
    return tuple((name, database.is_stored(sql)) for name, sql in views)


def _stored(statements: Iterable[str]) -> dict[str, str]:
    """Names and SELECTs of the views that a store keeps as tables."""
    found = ((_VIEW.search(statement), statement) for statement in statements if database.is_stored(statement))
    return {match[1]: statement[match.end() :].strip().rstrip(";") for match, statement in found if match}
