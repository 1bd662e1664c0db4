"""Rules and views that a stranger wrote, run in a child process that can do nothing but read one store.

DuckDB's own limits are not enough: `repeat('x', 2e9)` ignores its memory limit, and an interrupt can take seconds. So
the child limits itself before DuckDB opens the file, DuckDB is locked before any of the stranger's SQL is seen, and the
parent kills the child when its time is up. One child a rule: what one rule breaks, no other notices. `rules check` runs
what it has to run in such children, too.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from gpudiag import query
from gpudiag.model import Row, Rule
from gpudiag.sqlcheck import SqlProblem, canonical_names, check_query, check_view_file, first_line

Connection = duckdb.DuckDBPyConnection
ViewFiles = Sequence[tuple[str, str]]

MAX_ROWS = 1_000  # a row is a place in a program; no program has this many worth telling of
MAX_BYTES = 8 << 20  # of JSON that the parent would read


@dataclass(frozen=True, slots=True)
class Limits:
    """Safety constants, not thresholds: no rule of ours comes near them, so nobody needs to tune them."""

    seconds: float = 10.0  # wall clock; packaged rules take well below one second on eight million rows
    database_mb: int = 1024  # what DuckDB may hold by its own count
    process_mb: int = 3072  # address space of the whole child: DuckDB's arenas, and what escapes its count


def evaluate_untrusted(
    rules: Sequence[Rule], store: Path, views: ViewFiles, known: AbstractSet[str], limits: Limits | None = None
) -> list[tuple[Row, ...] | str]:
    """For each rule its rows, or the reason why it was refused or stopped.

    `store` must be open nowhere for writing; `views` are the user's own (file, SQL); `known` are the names of all
    views, the user's included.
    """
    limits = limits or Limits()
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda rule: _in_child(rule, store, views, known, limits), rules))


def _in_child(
    rule: Rule, store: Path, views: ViewFiles, known: AbstractSet[str], limits: Limits
) -> tuple[Row, ...] | str:
    job = {
        "store": str(store.resolve()),
        "views": views,
        "known": sorted(known),
        "query": rule.query,
        "params": {name: param.value for name, param in rule.params.items()},
        "database_mb": limits.database_mb,
    }  # fmt: skip
    answer = run_child("gpudiag.sandbox", job, limits)
    if isinstance(answer, str):
        return answer
    return str(answer["refused"]) if "refused" in answer else tuple(answer["rows"])


def run_child(module: str, job: Mapping[str, Any], limits: Limits, folder: str = "/") -> dict[str, Any] | str:
    """What `module` makes of a job in a process of its own (see `serve`), or the reason why there is no answer.

    `folder` is where relative paths of the job begin.
    """
    # Nothing of the user's environment reaches the child (no credentials, no start-up hooks) but what Python may need
    # to start at all: clusters install it where the loader does not look by itself.
    env = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PYTHONHOME") if name in os.environ}
    env |= {"PYTHONPATH": str(Path(__file__).resolve().parents[1]), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-s", "-m", module], env=env, cwd=folder,
            input=json.dumps({**job, "seconds": limits.seconds, "process_mb": limits.process_mb}),
            capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=limits.seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"was stopped after {limits.seconds:g} s, the most that a rule of yours may take"
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return f"was stopped: it took more than {limits.process_mb} MB, or crashed (status {done.returncode})"
    return answer


def open_store(path: str, memory_mb: int) -> Connection:
    """The store, read-only and locked: no files, network, extensions or settings from here on."""
    con = duckdb.connect(path, read_only=True, config={
        "enable_external_access": "false", "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false", "allow_community_extensions": "false",
        "python_enable_replacements": "false", "memory_limit": f"{memory_mb}MB", "threads": "1",
        "temp_directory": "",
    })  # fmt: skip
    con.execute("set enable_progress_bar = false")  # it would write into our answer
    con.execute("set lock_configuration = true")
    return con


def create_views(con: Connection, files: ViewFiles, known: frozenset[str]) -> None:
    """Create the user's views, temporary, in the order their references need. Raises SqlProblem.

    `known` are the names of all views, packaged and the user's own.
    """
    relations = known | canonical_names()
    pending: list[tuple[str, str]] = []
    for file, sql in files:
        try:
            pending += [(f"{file}: {name}", text) for name, text in check_view_file(con, sql, relations)]
        except SqlProblem as problem:
            raise SqlProblem(f"{file}: {problem}") from None
    while pending:
        left: list[tuple[str, str]] = []
        first = ""
        for name, text in pending:
            try:
                con.execute(re.sub(r"^create", "create temp", text, flags=re.I))
            except duckdb.Error as error:
                first = first or f"{name} cannot be created: {first_line(error)}"
                left.append((name, text))
        if len(left) == len(pending):
            raise SqlProblem(first)
        pending = left


def serve(work: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Child: limit this process, then one job on stdin, one answer on stdout."""
    job = json.load(sys.stdin)
    _limit_self(job["process_mb"], job["seconds"])
    try:
        answer = work(job)
    except MemoryError:
        answer = {"refused": f"was stopped: it needed more than {job['process_mb']} MB of memory"}
    text = json.dumps(answer)
    if len(text) > MAX_BYTES:
        text = json.dumps({"refused": f"gives more than {MAX_BYTES >> 20} MB; select fewer columns or rows"})
    sys.stdout.write(text)


def _answer(job: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"rows": _rows(job)}
    except SqlProblem as problem:
        return {"refused": str(problem)}
    except duckdb.OutOfMemoryException:
        return {"refused": f"was stopped: it needed more than {job['database_mb']} MB of memory"}
    except duckdb.Error as error:
        return {"refused": f"failed: {first_line(error)}"}


def _rows(job: dict[str, Any]) -> list[Row]:
    con = open_store(job["store"], job["database_mb"])
    known = frozenset(job["known"])
    create_views(con, job["views"], known)
    check_query(con, job["query"], known, frozenset(job["params"]))
    rows = query.run(con, job["query"], job["params"], limit=MAX_ROWS + 1)
    if len(rows) > MAX_ROWS:
        raise SqlProblem(f"gives more than {MAX_ROWS} rows; a rule gives one row a place")
    return list(rows)


def _limit_self(megabytes: int, seconds: float) -> None:
    import resource  # only POSIX has it, and only the child needs it

    size = megabytes << 20
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    cpu = int(seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    serve(_answer)
