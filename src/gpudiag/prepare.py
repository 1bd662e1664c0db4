"""From captures to a prepared, locked store: read anew, or as an earlier run kept it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import duckdb

from gpudiag.errors import GpudiagError
from gpudiag.ingest import ingest
from gpudiag.ingest.duplicates import refuse_twice, settle
from gpudiag.ingest.folder import expanded
from gpudiag.library.packaged import packaged_dir
from gpudiag.memory import database_bytes, too_little
from gpudiag.options import Options
from gpudiag.selection.spec import ALL, Selection
from gpudiag.store import database, shapes
from gpudiag.tempdir import unusable, work_folder
from gpudiag.tracing import stage

if TYPE_CHECKING:
    from gpudiag.cache import Slot
    from gpudiag.library.catalogue import Library

Connection = duckdb.DuckDBPyConnection
T = TypeVar("T")
Work = Callable[[Connection, "Library", Path | None], T]
"""What is made of a prepared, locked store, the library, and the store's file where a sandbox has to open it."""
DEFAULT = Options()

# Below this many bytes of input the store stays in memory and is made anew each time; above it goes to a file, which
# DuckDB compresses, and which is kept: to find that takes as long as reading a few megabytes.
IN_MEMORY = 10_000_000
LONG_REPLAY = 100_000_000  # bytes of input whose loops are replayed by compiled code, which is loaded meanwhile
_PACKED = 10  # exports shrink about tenfold under xz and gzip, and are about ten times as large as their reports
_SHRUNK = (".xz", ".gz", ".zst", ".nsys-rep", ".qdrep")
_CONVERTED = (".nsys-rep", ".qdrep", ".ncu-rep")
"""Reports that other programs have to open, which takes seconds whatever their size."""


def analysed(paths: Sequence[Path], options: Options, work: Work[T]) -> T:
    """Return what `work` makes of the captures' store: the one that an earlier run kept, or else one that this run
    keeps.
    """
    paths = expanded(paths)
    with in_a_sentence(paths, options), ThreadPoolExecutor(1) as helper:
        loading = helper.submit(load_library, options)  # its imports take as long as reading a small file
        if sum(map(size_of, paths)) >= LONG_REPLAY:
            helper.submit(_ready_to_replay)
        slot = _slot(paths, options)
        if slot and slot.filled():
            from gpudiag import cache

            try:
                with _kept(slot, loading, options) as found:
                    return work(*found)
            except cache.Damaged:
                slot.discard()
        with _made(paths, options, loading, slot) as made:
            return work(*made)


@contextmanager
def opened(paths: Sequence[Path], options: Options = DEFAULT) -> Iterator[tuple[Connection, Library, Path | None]]:
    """The captures, read anew, as a prepared, locked store; with the library, and the store's file for a sandbox."""
    paths = expanded(paths)
    with (
        in_a_sentence(paths, options),
        ThreadPoolExecutor(1) as helper,
        _made(paths, options, helper.submit(load_library, options), None) as made,
    ):
        yield made


@contextmanager
def in_a_sentence(paths: Sequence[Path], options: Options) -> Iterator[None]:
    """Says in a sentence that memory or disk did not suffice, that figures cannot be, or that DuckDB has a fault."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise GpudiagError(too_little(paths[0], options.memory_limit)) from error
    except duckdb.DataError as error:  # sums of times or sizes that are beyond 64 bits
        names = ", ".join(path.name for path in paths)
        reason = " ".join(str(error).split("\n")[0].split())[:150]
        raise GpudiagError(
            f"{names}: holds times or sizes that cannot be, it may be damaged ({reason}); export the report again."
        ) from error
    except duckdb.Error as error:
        if fault := database.own_fault(error):
            raise GpudiagError(
                f"{paths[0]}: DuckDB {duckdb.__version__} fails by a fault of its own ({fault}): install another"
                " version (`pip install --upgrade duckdb`), and report this to gpudiag."
            ) from error
        if database.unreadable(error):
            reason = str(error).partition("\n")[0].rpartition(": ")[2]  # before that it names its own file
            raise unusable(reason) from error
        raise


@contextmanager
def _made(
    paths: Sequence[Path], options: Options, loading: Future[Library], slot: Slot | None
) -> Iterator[tuple[Connection, Library, Path | None]]:
    # A sandbox has to open the store, so that must be a file when there are rules of the user's.
    size = sum(map(size_of, paths))
    in_memory = not options.rule_dirs and not slot and size < IN_MEMORY
    memory = database_bytes(options.memory_limit, size)
    began = time.time_ns()
    with work_folder() as folder:
        file = folder / "store.duckdb"
        con = database.create(small=True) if in_memory else database.create(str(file), memory=memory)
        ready = False
        try:
            refuse_twice(paths)
            for path in paths:
                options.progress(f"reading {path.name}")
                with stage("ingest"):
                    ingest(path, con, folder, options.progress)
            if len(paths) > 1:
                settle(con, paths)
            library = loading.result()
            options.progress("finding loops")
            with stage("prepare"):
                prepare(con, library, selection=options.selection)
            if slot or library.user_rules:
                with stage("keep"):
                    if slot:
                        slot.sign(con)
                    con.execute("checkpoint")  # whoever opens the file later finds all of it there
            if library.user_rules:
                con.close()
                con = database.reopen(str(file), memory=memory)
            database.lock(con)
            try:
                yield con, library, file if library.user_rules else None
            except GpudiagError:
                ready = True  # such as a loop of the name that was given: it is asked for again, and better
                raise
            ready = True
        finally:
            con.close()
            if slot and ready:
                _keep(slot, file, began, options)


@contextmanager
def _kept(slot: Slot, loading: Future[Library], options: Options) -> Iterator[tuple[Connection, Library, Path | None]]:
    """As `_made`, from the cache. Raises cache.Damaged, at any time, where that cannot be read."""
    from gpudiag import cache

    options.progress(f"reading {', '.join(path.name for path in slot.paths)} from the cache")
    library = loading.result()
    with work_folder() as folder:
        try:
            memory = database_bytes(options.memory_limit, sum(map(size_of, slot.paths)))
            con = database.reopen(str(slot.file), memory=memory, spill=str(folder / "spill"))
        except duckdb.Error as error:
            raise cache.Damaged from error
        try:
            if not slot.signed(con):
                raise cache.Damaged
            database.lock(con)
            yield con, library, slot.file if library.user_rules else None
            if library.user_rules and not slot.file.exists():  # thrown away before the sandbox opened it?
                raise cache.Damaged
        except duckdb.Error as error:
            if database.unreadable(error) or isinstance(error, duckdb.CatalogException):
                raise cache.Damaged from error
            raise
        finally:
            con.close()


def _slot(paths: Sequence[Path], options: Options) -> Slot | None:
    """Return the captures' place in the cache; None where reading them costs less than that."""
    worth = sum(map(size_of, paths)) >= IN_MEMORY or any(path.suffix in _CONVERTED for path in paths)
    if not (options.cached and worth):
        return None
    from gpudiag import cache

    try:
        return cache.slot(paths, options)
    except cache.Unkept as reason:
        options.progress(f"the cache is not used: {reason}")
        return None


def _keep(slot: Slot, file: Path, began: int, options: Options) -> None:
    from gpudiag import cache

    try:
        cache.keep(slot, file, began)
    except cache.Unkept as reason:
        options.progress(f"this capture is not kept for the next time: {reason}")


def _ready_to_replay() -> None:
    from gpudiag.replay import simulate

    simulate.ready()


def load_library(options: Options) -> Library:
    """The rules that these options ask for, with their thresholds. Raises GpudiagError."""
    from gpudiag.library.load import load

    edits = None  # those of the packaged rules are checked before a release
    if options.rule_dirs:
        from gpudiag.replay.edits import registry

        edits = frozenset(registry.known())
    return load(tuple(options.rule_dirs), edits=edits).with_overrides(options.overrides)


def size_of(path: Path) -> int:
    """Bytes to read; files that do not exist count nothing here, reading them says so."""
    try:
        if path.is_dir():
            return sum(file.stat().st_size for file in path.iterdir() if file.is_file())
        return path.stat().st_size * (_PACKED if path.suffix in _SHRUNK else 1)
    except OSError:
        return 0


def prepare(con: Connection, library: Library, *, selection: Selection = ALL, side_by_side: bool = True) -> None:
    """From filled canonical tables to views that rules can query: settings, macros, the part selected, loops, views."""
    find_loops(con, library, selection=selection)
    with stage("make views"):
        known = shapes.read(packaged_dir(), library.capture_views, library.setting_values)
        database.load_views(con, library.capture_views, side_by_side=side_by_side, with_macros=False, known=known)


def find_loops(con: Connection, library: Library, *, selection: Selection = ALL) -> None:
    """Load settings and macros, select the part, and fill the tables of loops where no reader did."""
    from gpudiag.loops import detect as window
    from gpudiag.selection import apply

    database.load_settings(con, library.setting_values)
    database.load_macros(con, library.views)
    row = con.execute("select (select count(*) from loop) + (select count(*) from iteration)").fetchone()
    if row and not row[0]:
        with stage("find loops"):
            window.detect(con, apply.apply(con, selection))
