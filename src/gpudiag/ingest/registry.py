"""The readers: how a file of each kind begins, and what adds it to the store. A new reader is a folder and a line here.

Databases and folders begin alike, whoever wrote them: `file_kind` distinguishes those by their tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpudiag.ingest import unsupported
from gpudiag.ingest.cprofile import stats
from gpudiag.ingest.smi import layout
from gpudiag.ingest.torch import document

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file to read, decompressed where it was not, and the store that its rows go to."""

    file: Path
    shown: Path
    """The user's own file, which sentences name."""
    con: duckdb.DuckDBPyConnection
    workdir: Path
    say: Callable[[str], None]

    @property
    def name(self) -> str:
        """The name of the user's file as text."""
        return name_of(self.shown)


class Reader(NamedTuple):
    """A kind of file. begins: whether the first bytes are those of such a file; read: adds it to the store."""

    kind: str
    begins: Callable[[bytes], bool]
    read: Callable[[InputFile], None]


def name_of(path: Path) -> str:
    """The file's name as text: on disk it may be any bytes."""
    return os.fsencode(path.name).decode("utf-8", "replace")


def decoded(head: bytes) -> str | None:
    """The text of a text file; None for binary data. PowerShell writes UTF-16 when it redirects."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head[: len(head) // 2 * 2].decode("utf-16", "replace")
    if b"\x00" in head[:1024]:
        return None
    return head.decode("utf-8", "replace")


def ncu_header(text: str) -> bool:
    """Return whether a text holds the header of Nsight Compute's CSV, before which ncu prints messages (==PROF==)."""
    lines = (line.strip().lstrip("\ufeff") for line in text.lstrip("\ufeff \t\r\n").splitlines()[:400])
    return any(line.startswith(('"ID",', "ID,")) and "Kernel Name" in line for line in lines)


def _begins_with(magic: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(magic)


def _by_its_tables(_: bytes) -> bool:
    return False


def _is_ncu_csv(head: bytes) -> bool:
    text = decoded(head)
    return text is not None and not unsupported.of_bytes(head) and ncu_header(text)


# Each reader is imported when a file of its kind is read.


def _read_nsys(given: InputFile) -> None:
    from gpudiag.ingest.nsys import reader
    from gpudiag.ingest.sources.parquet import ParquetSource
    from gpudiag.ingest.sources.sqlite import SqliteSource

    is_folder = given.file.is_dir()
    source = (
        ParquetSource(given.file, given.con)
        if is_folder
        else SqliteSource(given.file, given.con, given.say, f"reading {given.name}", reader.TABLES)
    )
    try:
        reader.read(source, given.con, given.name)
    finally:
        source.close()


def _read_nsys_report(given: InputFile) -> None:
    from gpudiag.ingest.nsys.export import export

    _read_nsys(replace(given, file=export(given.file, given.workdir, given.shown)))


def _read_ncu_csv(given: InputFile) -> None:
    from gpudiag.ingest.ncu import reader

    reader.read(given.file, given.con, given.shown)


def _read_ncu_report(given: InputFile) -> None:
    from gpudiag.ingest.ncu import report

    report.read(given.file, given.con, given.workdir, given.shown)


def _read_torch(given: InputFile) -> None:
    from gpudiag.ingest.torch import reader

    reader.read(given.file, given.con, given.workdir, given.shown, given.name, given.say)


def _read_smi(given: InputFile) -> None:
    from gpudiag.ingest.smi import reader

    reader.read(given.file, given.con, given.shown, given.name)


def _read_cprofile(given: InputFile) -> None:
    from gpudiag.ingest.cprofile import reader

    reader.read(given.file, given.con, given.shown, given.name)


READERS: tuple[Reader, ...] = (
    Reader("nsys_sqlite", _by_its_tables, _read_nsys),
    Reader("nsys_parquet", _by_its_tables, _read_nsys),
    # The same header since 2018: .nsys-rep files, and .qdrep files as they were called until 2021.
    Reader("nsys_rep", _begins_with(b"NVIDIA Tegra Profiler Report"), _read_nsys_report),
    Reader("ncu_rep", _begins_with(b"NVR\x00"), _read_ncu_report),
    Reader("ncu_csv", _is_ncu_csv, _read_ncu_csv),
    Reader("torch", document.begins, _read_torch),
    Reader("smi", layout.begins, _read_smi),
    Reader("cprofile", stats.begins, _read_cprofile),
)


def kind_of(head: bytes) -> str | None:
    """The kind of a file that begins so, if a reader knows it."""
    return next((reader.kind for reader in READERS if reader.begins(head)), None)


def read(kind: str, given: InputFile) -> None:
    """Add a file of that kind to the store. Raises what the reader raises."""
    next(reader for reader in READERS if reader.kind == kind).read(given)
