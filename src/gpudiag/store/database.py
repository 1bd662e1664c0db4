"""The DuckDB store: canonical tables, settings and views of one analysis, then locked.

The order matters for safety: readers fill the tables, views are created, and `lock` takes away every way out of the
database before any untrusted rule or view is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress

import duckdb

from gpudiag.errors import GpudiagError
from gpudiag.schema import TABLES
from gpudiag.store.shapes import NONE, Shapes, without_rows

Connection = duckdb.DuckDBPyConnection

_VIEW = re.compile(r"((?:^[ \t]*--[^\n]*\n)*)^create\s+(?:or\s+replace\s+)?(view|macro)\s+(\w+)", re.I | re.M)
_NO_NAMES = re.compile(r"--[^\n]*|'[^']*'")  # comments and texts name no view
_WORD = re.compile(r"\w+")
_MATERIALISED = re.compile(r"^[ \t]*--[ \t]*materialised:", re.M)
_FIRST_FAULT = re.compile(r'Original error: "([^"\n]*)')
_SETTING = re.compile(r"\bsetting\('(\w+)'\)")


# Optimizer passes that weigh alternatives by size: on a small store they cost more than they can save.
_FOR_LARGE = (
    "join_order",
    "statistics_propagation",
    "common_subplan",
    "late_materialization",
    "compressed_materialization",
    "common_aggregate",
    "aggregate_function_rewriter",
    "join_elimination",
    "window_self_join",
    "projection_pullup",
    "outer_join_simplification",
    "window_rewriter",
    "partitioned_execution",
    "partial_aggregate_pushdown",
    "remote_pushdown",
    "grouping_sets",
    "type_pushdown",
    "scalar_fn_pushdown",
    "distinct_aggregate_rewrite",
    "aggregate_reuse",
    "projection_placement",
    "redundant_order_keys",
)


def create(
    path: str = ":memory:", *, memory: int | None = None, small: bool = False, threads: int | None = None
) -> Connection:
    """A new store with all canonical tables, empty. `path` is a file that does not exist yet, or `:memory:`.

    memory: bytes that the database may hold; what is more goes to files beside `path`.
    small: planning will take longer than computing, so use one thread a query and skip what only pays on much data.
    threads: of a query, where the process shares its cores with others that do the same; all cores by default.
    """
    con = _connected(path, memory=memory, threads=1 if small else threads)
    # Most stores are thrown away: the one that is kept is written to its file once, by whoever keeps it.
    con.execute("set checkpoint_threshold = '1TB'; pragma disable_checkpoint_on_shutdown")
    if small:
        known = {name for (name,) in con.execute("select name from duckdb_optimizers()").fetchall()}
        con.execute(f"set disabled_optimizers = '{','.join(name for name in _FOR_LARGE if name in known)}'")
        # Without them every join is taken for one of few rows, for which the plan may be one that compares all pairs.
        con.execute("set asof_loop_join_threshold = 0; set nested_loop_join_threshold = 0")
    con.execute(";".join(table.ddl for table in TABLES))
    return con


def _connected(
    path: str, *, read_only: bool = False, memory: int | None = None, threads: int | None = None
) -> Connection:
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "preserve_insertion_order": "false",
    }
    if memory:
        config["memory_limit"] = f"{memory}B"
    if threads:
        config["threads"] = str(threads)
    con = duckdb.connect(path, read_only=read_only, config=config)
    con.execute("set enable_progress_bar = false")  # it would write into our output
    with suppress(duckdb.CatalogException):  # older ones always wait for the disk
        con.execute("set fsync_mode = 'none'")  # what a crash of the computer damages is made anew
    return con


def load_settings(con: Connection, settings: Mapping[str, float]) -> None:
    """Fill the `setting` table, and define the macro `setting(name)` that views read it through.

    The macro holds the values as constants, so that the planner sees numbers. A view that names a setting nobody
    defined fails to run: it must not compare with NULL and stay silent. Views and macros that are loaded afterwards
    have their settings written into them.
    """
    con.execute("delete from setting")
    con.execute("insert into setting select unnest(?), unnest(?)", [list(settings), list(settings.values())])
    cases = " ".join(f"when '{name}' then {value!r}" for name, value in settings.items())
    known = f"case wanted {cases} " if settings else "case when false then 0.0 "
    con.execute(f"create or replace macro setting(wanted) as {known}else error('no such setting: ' || wanted) end")


def load_views(
    con: Connection,
    views: Iterable[tuple[str, str]],
    *,
    side_by_side: bool = True,
    with_macros: bool = True,
    known: Shapes = NONE,
) -> None:
    """Create views and macros from (file name, SQL) pairs, in the order their references need.

    with_macros: false where `load_macros` has made them already.

    A view whose comment block says `-- materialised: why` becomes a table: several rules read it and it is not cheap.
    Tables that do not need one another are filled side by side, unless the store is inside a transaction of `con`,
    which other cursors cannot see. A view of which is `known` that it is empty becomes a table without rows.
    """  # fmt: skip
    literals = setting_literals(con)
    views = [(file, with_settings(sql, literals)) for file, sql in views]
    if with_macros:
        _load_macros(con, views)
    pending = {name: (file, statement) for file, sql in views for name, statement in named_views(sql)}
    references = {
        name: (set(_WORD.findall(_NO_NAMES.sub("", statement))) & pending.keys()) - {name}
        for name, (_, statement) in pending.items()
    }
    empty = set(without_rows(con, known.tables()))
    with ThreadPoolExecutor(2 if side_by_side else 1) as pool:
        running: dict[Future[bool], str] = {}
        while pending or running:
            ready = [name for name in pending if not references[name] & (pending.keys() | set(running.values()))]
            if not ready and not running:
                raise GpudiagError(f"{next(iter(pending.values()))[0]}: views refer to one another in a circle.")
            if nothing := [name for name in ready if known.is_empty(name, empty)]:
                con.execute(";".join(f"create table {name} ({known.views[name].columns})" for name in nothing))
                empty.update(nothing)
            for name in ready:
                file, statement = pending.pop(name)
                if name in empty:
                    continue
                if not side_by_side or not _MATERIALISED.search(statement):
                    if _create(con, file, statement):
                        empty.add(name)
                else:
                    running[pool.submit(_create, con.cursor(), file, statement)] = name
            if running and not nothing:  # what has just been found empty makes others ready
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    name = running.pop(done)
                    if done.result():
                        empty.add(name)


def _calls(statement: str, names: AbstractSet[str]) -> bool:
    """Return whether a statement uses one of these names."""
    return not names.isdisjoint(_WORD.findall(_NO_NAMES.sub("", statement)))


def setting_literals(con: Connection) -> Mapping[str, str]:
    """The value of each setting as SQL writes it, of the type that the macro has."""
    values = con.execute("from setting").fetchall()
    if not values:
        return {}
    ((kind,),) = con.execute(f"select typeof(setting('{values[0][0]}'))").fetchall()
    return {name: f"{value!r}::{kind}" for name, value in values}


def with_settings(sql: str, literals: Mapping[str, str]) -> str:
    """SQL with the value of each known setting in place of `setting('name')`.

    The macro has a branch for each of some hundred settings, which every use of it plans anew: most of the time of
    planning a view with three uses.
    """
    return _SETTING.sub(lambda use: literals.get(use[1], use[0]), sql)


def _create(con: Connection, file: str, statement: str) -> bool:
    """Create a view, or the table that stores it; return whether that table has no rows."""
    try:
        count = con.execute(as_stored(statement)).fetchone()
        return count == (0,)
    except (duckdb.CatalogException, duckdb.BinderException, duckdb.ParserException) as error:
        raise GpudiagError(f"{file}: this view cannot be created: {error}") from error


def named_views(sql: str) -> Iterator[tuple[str, str]]:
    """Name and statement of each view in a view file; macros are left out."""
    for statement in split_views(sql):
        match = _VIEW.search(statement)
        if match and match.group(2).lower() == "view":
            yield match.group(3), statement


def load_macros(con: Connection, views: Iterable[tuple[str, str]]) -> None:
    """Create only the macros, each after those that it calls: finding loops needs them before views show anything."""
    literals = setting_literals(con)
    _load_macros(con, ((file, with_settings(sql, literals)) for file, sql in views))


def _load_macros(con: Connection, views: Iterable[tuple[str, str]]) -> None:
    pending: dict[str, tuple[str, str]] = {}
    for file, sql in views:
        for statement in split_views(sql):
            match = _VIEW.search(statement)
            if match and match.group(2).lower() == "macro":
                pending[match.group(3)] = (file, statement)
    while pending:
        ready = [name for name, (_, statement) in pending.items() if not _calls(statement, pending.keys() - {name})]
        if not ready:
            raise GpudiagError(f"{next(iter(pending.values()))[0]}: macros refer to one another in a circle.")
        for name in ready:
            con.execute(as_stored(pending.pop(name)[1]))


def split_views(sql: str) -> list[str]:
    """The statements of a view file, each with the comment block above it."""
    starts = [match.start() for match in _VIEW.finditer(sql)]
    return [sql[a:b].strip() for a, b in zip(starts, [*starts[1:], len(sql)], strict=True)]


def is_stored(statement: str) -> bool:
    """Tell whether a view's comment block says `-- materialised: why`."""
    return bool(_MATERIALISED.search(statement))


def as_stored(statement: str) -> str:
    """A materialised view's statement as the `create table` that stores its result; a macro may be created again."""
    match = _VIEW.search(statement)
    if match and match.group(2).lower() == "macro":
        return f"create or replace macro {match.group(3)}{statement[match.end() :]}"
    if match and _MATERIALISED.search(match.group(1)):
        return f"create table {match.group(3)}{statement[match.end() :]}"
    return statement


def select_of(statement: str) -> str:
    """The SELECT of a `create view` statement."""
    match = _VIEW.search(statement)
    return statement[match.end() if match else 0 :].strip().removeprefix("as").rstrip("; \n")


def lock(con: Connection) -> None:
    """Take away file, network, extension and configuration access for good."""
    con.execute("set enable_external_access = false")
    con.execute("set lock_configuration = true")


def reopen(path: str, *, memory: int | None = None, spill: str | None = None) -> Connection:
    """The store again, read-only, so that others may open it beside us. Raises duckdb.Error.

    spill: a folder for what does not fit into memory; beside the file if not given.
    """
    con = _connected(path, read_only=True, memory=memory)
    if spill:
        con.execute(f"set temp_directory = '{spill.replace(chr(39), 2 * chr(39))}'")
    return con


def own_fault(error: Exception) -> str:
    """Return what DuckDB says of a fault of its own, after which it answers nothing more; empty for other errors."""
    text = str(error)
    if isinstance(error, duckdb.InternalException):
        return text.partition("\n")[0].removeprefix("INTERNAL Error: ")
    first = _FIRST_FAULT.search(text) if isinstance(error, duckdb.FatalException) else None
    return first[1] if first and "IO Error" not in text and "Could not write" not in text else ""


def unreadable(error: duckdb.Error) -> bool:
    """Return whether the store's file is at fault: damaged, gone, or on a disk that is full."""
    if own_fault(error):
        return False
    # What DuckDB says of a block whose checksum is wrong has no class of its own, and a full disk may fail a commit.
    known = isinstance(error, duckdb.IOException | duckdb.FatalException)
    return known or type(error) is duckdb.Error or "Could not write" in str(error)


def read_all(con: Connection) -> None:
    """Reads every block, of which DuckDB checks what it reads. Raises duckdb.Error where one is damaged."""
    for (name,) in con.execute("select table_name from duckdb_tables() where not temporary").fetchall():
        con.execute(f'select bit_xor(hash(columns(*))) from "{name}"').fetchall()
