"""Untrusted rules and views, run in a child process that can do nothing but read one store.

DuckDB is locked before it sees any untrusted SQL, and each statement is checked before it is run; the child's own
limits (see `sandbox_worker`) hold where both should fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from gpudiag.evaluate import sandbox_worker
from gpudiag.evaluate.sandbox_worker import Limits
from gpudiag.library.sql_check import (
    OwnView,
    SqlProblem,
    canonical_names,
    check_query,
    check_views,
    first_line,
    read_views,
)
from gpudiag.model import Row, Rule
from gpudiag.store import query

__all__ = ["Limits", "create_views", "evaluate_untrusted", "open_store"]

Connection = duckdb.DuckDBPyConnection
ViewFiles = Sequence[tuple[str, str]]

MAX_ROWS = 1_000  # a row is a place in a program; no program has this many worth telling of
MAX_COLUMNS = 200  # and no sentence tells this much of one
MAX_DEPTH = 4  # lists and structures inside one another: whoever reads rows does so recursively
_NESTED = frozenset({"list", "array", "struct", "tuple", "map"})
_PLAIN = frozenset(
    {"null", "boolean", "varchar", "enum", "uuid", "date", "time", "interval", "decimal", "float", "double",
     "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "tinyint", "smallint", "integer", "bigint", "hugeint",
     "utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"}
)  # fmt: skip
_EVERY_KIND = (
    "select 1.5, [{'a': date '2000-01-01'}], map([1], [time '00:00']), interval 1 day, uuid(), now()::timestamp"
)
_LOCKED = {
    "enable_external_access": "false", "autoinstall_known_extensions": "false", "autoload_known_extensions": "false",
    "allow_community_extensions": "false", "python_enable_replacements": "false", "temp_directory": "",
}  # fmt: skip


def evaluate_untrusted(
    rules: Sequence[Rule], store: Path, views: ViewFiles, packaged: AbstractSet[str], limits: Limits | None = None
) -> list[tuple[Row, ...] | str]:
    """For each rule its rows, or the reason why it was refused or stopped.

    `store` must be open nowhere for writing; `views` are the user's own (file, SQL); `packaged` are the names of
    all other views.
    """
    limits = limits or Limits()
    job = {
        "store": str(store.resolve()), "views": views, "packaged": sorted(packaged), "database_mb": limits.database_mb,
    }  # fmt: skip
    questions = [[rule.query, {name: param.value for name, param in rule.params.items()}] for rule in rules]
    answers = sandbox_worker.ask("gpudiag.evaluate.sandbox", job, questions, limits)
    return [_rows_of(answer) for answer in answers]


def _rows_of(answer: sandbox_worker.Answer | str) -> tuple[Row, ...] | str:
    if isinstance(answer, str):
        return answer
    return str(answer["refused"]) if "refused" in answer else tuple(answer["rows"])


def open_store(path: str, memory_mb: int) -> Connection:
    """The store, read-only and locked: no files, network, extensions or settings from here on."""
    config: dict[str, str | bool | int | float | list[str]] = {
        **_LOCKED, "memory_limit": f"{memory_mb}MB", "threads": "1"
    }  # fmt: skip
    con = duckdb.connect(path, read_only=True, config=config)
    con.execute("set enable_progress_bar = false")  # it would write into our answer
    con.execute("set lock_configuration = true")
    return con


def create_views(con: Connection, files: ViewFiles, packaged: frozenset[str]) -> frozenset[str]:
    """Create the user's views, temporary, in the order their references need; the names that rules may use now.

    `packaged` are the names of the packaged views. What is created are the statements as DuckDB's own parser took the
    file apart, never a text that was taken apart in another way. Raises SqlProblem.
    """
    read: dict[str, list[OwnView]] = {}
    for file, sql in files:
        with _named(file):
            read[file] = read_views(con, sql)
    names = frozenset(view.name for views in read.values() for view in views)
    for file, views in read.items():
        with _named(file):
            check_views(con, views, packaged | canonical_names() | names)
    pending = [(file, view) for file, views in read.items() for view in views]
    while pending:
        left: list[tuple[str, OwnView]] = []
        first = ""
        for file, view in pending:
            try:
                con.execute(re.sub(r"^create", "create temp", view.statement, flags=re.I))
            except duckdb.Error as error:
                first = first or f"{file}: {view.name} cannot be created: {first_line(error)}"
                left.append((file, view))
        if len(left) == len(pending):
            raise SqlProblem(first)
        pending = left
    return packaged | {name for name in names if not name.startswith("_")}


@contextmanager
def _named(file: str) -> Iterator[None]:
    try:
        yield
    except SqlProblem as problem:
        raise SqlProblem(f"{file}: {problem}") from None


# --- in the child ---------------------------------------------------------------------------------------------------


def _prepare(job: sandbox_worker.Job) -> sandbox_worker.Work:
    """The store opened and the user's views created, once for all rules."""
    con = open_store(job["store"], job["database_mb"])
    refused, known = "", frozenset[str]()
    try:
        known = create_views(con, job["views"], frozenset(job["packaged"]))
    except SqlProblem as problem:
        refused = str(problem)
    con.execute(_EVERY_KIND).fetchall()  # what Python imports to read values, it has to import now

    def work(question: Any) -> sandbox_worker.Answer:
        if refused:
            return {"refused": refused}
        return answer(job["database_mb"], lambda: {"rows": _rows(con, question[0], question[1], known)})

    return work


def answer(megabytes: int, work: Callable[[], sandbox_worker.Answer]) -> sandbox_worker.Answer:
    """Return the answer of `work`, or DuckDB's error in words for the rule's author."""
    try:
        return work()
    except SqlProblem as problem:
        return {"refused": str(problem)}
    except duckdb.OutOfMemoryException:
        return {"refused": f"was stopped: it needed more than {megabytes} MB of memory", "spent": True}
    except (duckdb.FatalException, duckdb.InternalException) as error:
        return {"refused": f"failed: {first_line(error)}", "spent": True}
    except (duckdb.Error, ArithmeticError, ValueError) as error:  # Python knows no year 294247
        return {"refused": f"failed: {first_line(error)}"}


def _rows(con: Connection, sql: str, params: Mapping[str, float], known: frozenset[str]) -> list[Row]:
    check_query(con, sql, known, frozenset(params))
    cursor = con.execute(sql, dict(params))
    _check_shape(cursor.description or [])
    rows = query.rows(cursor, limit=MAX_ROWS + 1)
    if len(rows) > MAX_ROWS:
        raise SqlProblem(f"gives more than {MAX_ROWS} rows; a rule gives one row a place")
    return list(rows)


def _check_shape(columns: Sequence[Any]) -> None:
    """Refuse what those who read rows are not made for: very wide, very deep, or of a type that is no plain value."""
    if len(columns) > MAX_COLUMNS:
        raise SqlProblem(f"gives {len(columns)} columns, more than {MAX_COLUMNS}")
    for name, kind, *_ in columns:
        if not _is_plain(kind, MAX_DEPTH):
            raise SqlProblem(f"gives {name:.40} as {kind!s:.40}; cast it to numbers, texts, or lists of them")


def _is_plain(kind: Any, depth: int) -> bool:
    if kind.id not in _NESTED:
        return kind.id in _PLAIN
    parts = [part for _, part in kind.children if not isinstance(part, int)]  # an array has its length beside its type
    return depth > 0 and all(_is_plain(part, depth - 1) for part in parts)


if __name__ == "__main__":
    sandbox_worker.serve(_prepare)
