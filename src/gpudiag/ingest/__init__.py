"""Readers: one input file into the canonical tables. Differences between tools and their versions end here."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import duckdb

from gpudiag.errors import GpudiagError


def ingest(path: Path, con: duckdb.DuckDBPyConnection, workdir: Path) -> None:
    """Detect what `path` is and add it to the store behind `con`, whose canonical tables exist.

    Intermediate files go to `workdir`, nothing is written beside the input. Raises GpudiagError with one sentence when
    the input cannot be read; the store is then incomplete.
    """
    # The drivers cost 100 ms to import: only reading pays for them.
    import adbc_driver_manager

    from gpudiag.ingest.detect import COMPRESSIONS, detect, most_bytes

    file, kind = path, detect(path)
    if kind in COMPRESSIONS.values():
        from gpudiag.ingest.unpack import unpack

        file = unpack(path, kind, workdir, judge=lambda head: most_bytes(head, path))
        kind = detect(file, shown=path)
    try:
        _read(file, kind, con, workdir, path)
    except (duckdb.Error, sqlite3.Error, adbc_driver_manager.Error) as error:
        reason = " ".join(str(error).split("\n\n")[0].split())[:200]
        raise GpudiagError(f"{path}: cannot be read, it may be damaged ({reason}); export the report again.") from error


def _name(path: Path) -> str:
    """The file's name as text: on disk it may be any bytes."""
    return os.fsencode(path.name).decode("utf-8", "replace")


def _read(file: Path, kind: str, con: duckdb.DuckDBPyConnection, workdir: Path, path: Path) -> None:
    if kind == "ncu_csv":
        from gpudiag.ingest import ncu

        ncu.read(file, con)
        con.execute('update "input" set file = ? where id = (select max(id) from "input")', [_name(path)])
        return
    if kind == "ncu_rep":
        from gpudiag.ingest import ncu_rep

        ncu_rep.read(file, con, workdir, path)
        return
    from gpudiag.ingest import nsys
    from gpudiag.ingest.parquet import ParquetSource
    from gpudiag.ingest.sqlite import SqliteSource

    if kind == "nsys_rep":
        from gpudiag.ingest.nsys_rep import export

        file = export(file, workdir)
    source = ParquetSource(file, con) if file.is_dir() else SqliteSource(file, con)
    try:
        nsys.read(source, con, _name(path))
    finally:
        source.close()
