"""Clean an SQLite export of Nsight Systems of the machine, its user, the environment and what the program printed.

Events, times, kernel names, NVTX texts and the names of files below a home folder stay, so that the report is the same.
The result is written anew, so that free pages hold nothing, and is searched for what was removed.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from gpudiag.capture.redact_places import (
    ANY_HOME,
    GPU_TABLES,
    HOME,
    OPTION_TABLES,
    PROGRAM_OUTPUT,
    REMOVED,
    SYSTEM_TABLE,
    WHOLE_COLUMNS,
    Identities,
    keeps_fact,
    keeps_option,
)
from gpudiag.errors import GpudiagError

_MAGIC = b"SQLite format 3\0"
_NULL_UUID = "00000000-0000-0000-0000-000000000000"
_CHUNK = 1 << 22
Removed = Counter[str]
"""What was removed → how many."""


def redact(source: Path, target: Path) -> Removed:
    """Write a cleaned copy of an export to a new file, and return what was removed. The original is only read.

    Raises GpudiagError where the source is no such export, or the target is there already or cannot be written.
    """
    _check(source, target)
    try:
        with tempfile.TemporaryDirectory(prefix=".gpudiag-redact-", dir=target.parent) as folder:
            copy, result = Path(folder) / "copy", Path(folder) / "result"
            shutil.copyfile(source, copy)
            if (log := Path(f"{source}-wal")).exists():
                shutil.copyfile(log, f"{copy}-wal")
            removed, known = _clean(source, copy, result)
            _search(source, result, known)
            os.link(result, target)  # unlike a rename, this never replaces what is there
    except FileExistsError:
        raise _taken(target) from None
    except OSError as error:
        raise GpudiagError(f"{target} cannot be written ({error.strerror or error}): give another place.") from None
    return +removed


def _check(source: Path, target: Path) -> None:
    try:
        with source.open("rb") as file:
            is_database = file.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise GpudiagError(f"{source} cannot be read ({error.strerror or error}).") from None
    if not is_database:
        raise GpudiagError(
            f"{source} is no SQLite export: write one with `nsys export --type=sqlite`, or unpack it, and clean that."
        )
    if target.exists() and target.samefile(source):
        raise GpudiagError(f"{source} is the original, which is never written: give another place with -o.")
    if os.path.lexists(target):
        raise _taken(target)


def _taken(target: Path) -> GpudiagError:
    return GpudiagError(f"{target} is there already and is not replaced: give another place with -o, or remove it.")


def _clean(source: Path, copy: Path, result: Path) -> tuple[Removed, Identities]:
    removed, known = Removed(), Identities()
    try:
        with closing(_opened(copy)) as db:
            columns = _columns(db)
            if not {"StringIds", *OPTION_TABLES} & columns.keys():
                raise GpudiagError(f"{source} is a database, but no export of Nsight Systems.")
            _options(db, columns, removed, known)
            _system(db, columns, removed, known)
            _whole_tables(db, columns, removed)
            _program_output(db, columns, removed)
            _processes(db, columns, removed)
            _texts(db, columns, removed, known)
            db.commit()
            db.execute("vacuum into ?", (str(result),))
    except sqlite3.Error as error:
        raise GpudiagError(f"{source} cannot be cleaned ({error}): is it damaged? Export it again.") from None
    return removed, known


def _opened(copy: Path) -> sqlite3.Connection:
    db = sqlite3.connect(copy)
    db.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    db.execute("pragma trusted_schema = off")
    db.execute("pragma journal_mode = delete")  # a log that was copied with it is taken in
    # An export has no triggers; one that does is not to run them. Nor may a view or a generated column compute.
    for (name,) in db.execute("select name from sqlite_master where type = 'trigger'").fetchall():
        db.execute(f'drop trigger "{name}"')
    return db


def _columns(db: sqlite3.Connection) -> dict[str, dict[str, str]]:
    """Return table → column → declared type."""
    tables = db.execute("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'").fetchall()
    return {name: {row[1]: row[2].upper() for row in db.execute(f'pragma table_info("{name}")')} for (name,) in tables}


def _set(db: sqlite3.Connection, table: str, column: str, row: int, text: str) -> None:
    # Bytes, because a text that was no UTF-8 cannot be given as one.
    raw = text.encode("utf-8", "surrogateescape")
    db.execute(f'update "{table}" set "{column}" = cast(? as text) where rowid = ?', (raw, row))


def _options(db: sqlite3.Connection, columns: dict[str, dict[str, str]], removed: Removed, known: Identities) -> None:
    for table in OPTION_TABLES:
        if not {"name", "value"} <= columns.get(table, {}).keys():
            continue
        for row, name, value in db.execute(f"select rowid, name, value from {table}").fetchall():
            if not isinstance(name, str) or not isinstance(value, str) or value == REMOVED:
                continue
            known.learn(name, value)
            if not keeps_option(name, value):
                _set(db, table, "value", row, REMOVED)
                removed[_kind(name)] += 1


def _kind(option: str) -> str:
    for part, kind in (
        ("ENVIRONMENT", "environment variables"), ("ARGUMENT", "command-line arguments"), ("COMMAND", "commands"),
        ("HOST", "host names"), ("DISPLAY_NAME", "host names"), ("USER", "user names"), ("DIR", "paths of files"),
        ("PATH", "paths of files"), ("FILE", "paths of files"),
    ):  # fmt: skip
        if part in option:
            return kind
    return "other options of the recording"


def _system(db: sqlite3.Connection, columns: dict[str, dict[str, str]], removed: Removed, known: Identities) -> None:
    if not {"name", "value"} <= columns.get(SYSTEM_TABLE, {}).keys():
        return
    for row, name, value in db.execute(f"select rowid, name, value from {SYSTEM_TABLE}").fetchall():
        if not isinstance(name, str) or keeps_fact(name) or value in ("", REMOVED):
            continue
        known.learn(name, str(value))
        if name == "DeviceEnvironment":
            for assignment in re.split(r"[;\0]", str(value)):
                known.learn_variable(assignment)
        _set(db, SYSTEM_TABLE, "value", row, REMOVED)
        removed["host names" if name == "Hostname" else "facts of the system"] += 1


def _whole_tables(db: sqlite3.Connection, columns: dict[str, dict[str, str]], removed: Removed) -> None:
    for table, kind in WHOLE_COLUMNS.items():
        for column, declared in columns.get(table, {}).items():
            if declared == "TEXT":
                condition = f'"{column}" is not null and "{column}" <> ?'
                done = db.execute(f'update "{table}" set "{column}" = ? where {condition}', (REMOVED, REMOVED))
                removed[kind] += done.rowcount
    for table in GPU_TABLES:
        if "uuid" in columns.get(table, {}):
            done = db.execute(f"update {table} set uuid = ? where uuid <> ?", (_NULL_UUID, _NULL_UUID))
            removed["GPU identifiers"] += done.rowcount


def _program_output(db: sqlite3.Connection, columns: dict[str, dict[str, str]], removed: Removed) -> None:
    table, column = PROGRAM_OUTPUT
    if column in columns.get(table, {}) and "value" in columns.get("StringIds", {}):
        condition = f"id in (select {column} from {table}) and value not in ('', ?)"
        done = db.execute(f"update StringIds set value = ? where {condition}", (REMOVED, REMOVED))
        removed["outputs of the program"] += done.rowcount


def _processes(db: sqlite3.Connection, columns: dict[str, dict[str, str]], removed: Removed) -> None:
    """Hide the names of processes without a single event: nsys lists all of the machine."""
    if not {"globalPid", "name"} <= columns.get("PROCESSES", {}).keys():
        return
    traced: set[int] = set()
    for table, found in columns.items():
        if "start" in found or "timestamp" in found:  # a table of events
            for column in {"globalPid", "globalTid"} & found.keys():
                query = f'select distinct "{column}" >> 24 from "{table}" where typeof("{column}") = \'integer\''
                traced.update(pid for (pid,) in db.execute(query))
    rows = db.execute("select rowid, globalPid >> 24, name from PROCESSES where typeof(name) = 'text'").fetchall()
    for row, pid, name in rows:
        if pid not in traced and name != REMOVED:
            _set(db, "PROCESSES", "name", row, REMOVED)
            removed["names of other processes"] += 1


def _texts(db: sqlite3.Connection, columns: dict[str, dict[str, str]], removed: Removed, known: Identities) -> None:
    """Clean every text of every table: environments by their zero bytes, home folders and names by themselves.

    The first walk learns what the environments say, since nsys also keeps those of other processes.
    """
    for _, _, _, text in _walk(db, {"StringIds": columns.get("StringIds", {})}):
        if "\0" in text:
            for assignment in text.split("\0"):
                known.learn_variable(assignment)
    clean = _cleaner(known, removed)
    # Rows are read one by one, since an export may be larger than the memory, and changed once all are read.
    changes = [
        (table, column, row, cleaned)
        for table, column, row, text in _walk(db, columns)
        if (cleaned := clean(text)) != text
    ]
    for change in changes:
        _set(db, *change)


def _walk(db: sqlite3.Connection, columns: dict[str, dict[str, str]]) -> Iterator[tuple[str, str, int, str]]:
    for table, found in columns.items():
        for column, declared in found.items():
            if declared not in ("INTEGER", "REAL"):
                query = f'select rowid, "{column}" from "{table}" where typeof("{column}") = \'text\''
                for row, text in db.execute(query):
                    yield table, column, row, text


def _cleaner(known: Identities, removed: Removed) -> Callable[[str], str]:
    names = known.pattern()

    def named(match: re.Match[str]) -> str:
        removed[f"{known.words.get(match[0], 'home folder')}s in texts"] += 1
        return ANY_HOME if match[0] in known.homes else REMOVED

    def clean(text: str) -> str:
        if "\0" in text:
            removed["environments and command lines of processes"] += 1
            return REMOVED
        text, homes = HOME.subn(ANY_HOME, names.sub(named, text) if names else text)
        removed["home folders in texts"] += homes
        return text

    return clean


def _search(source: Path, result: Path, known: Identities) -> None:
    """Search the bytes of the result for what was removed. Raises GpudiagError where something of it is left."""
    pattern = known.search()
    if pattern is None:
        return
    overlap = max(map(len, (*known.words, *known.homes))) * 4  # a character is at most four bytes
    before = b""
    with result.open("rb") as file:
        while part := file.read(_CHUNK):
            if pattern.search(before + part):
                raise GpudiagError(
                    f"{source} could not be cleaned as a whole, so nothing was written: some of it is no text."
                )
            before = part[-overlap:]
