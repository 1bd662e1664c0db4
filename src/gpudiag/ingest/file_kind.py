"""The tool that wrote a file, recognised by the content and never by the name."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

from gpudiag.errors import GpudiagError
from gpudiag.ingest import registry, unsupported
from gpudiag.ingest.sources.sqlite import schema, tables

HEAD = 65_536
"""Bytes looked at: enough for every header, and for the first keys of a trace."""

COMPRESSIONS = {b"\x1f\x8b": "gz", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}

_DATABASE = "sqlite"
_JOURNAL = bytes.fromhex("d9d505f920a163d7")
"""How a rollback journal begins that is needed to read its database (SQLite file format, 3)."""


def detect(path: Path, shown: Path | None = None) -> str:
    """The kind of a file or folder: one of the registry, or gz, xz, zstd for a compressed file. Pipes are not opened.

    Raises GpudiagError with one sentence for anything that cannot be read; it names `shown`, the user's file, when
    `path` is what was unpacked from it.
    """
    name = shown or path
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return _folder(path)
        if not stat.S_ISREG(mode):
            raise GpudiagError(f"{name}: this is a pipe or a device, not a file; save its content to a file first.")
        # Some files of the kernel have nothing to give until something happens: they must not be waited for.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            head, size = file.read(HEAD), os.fstat(file.fileno()).st_size
        if head is None:
            raise GpudiagError(f"{name}: this is a pipe or a device, not a file; save its content to a file first.")
    except FileNotFoundError:
        raise GpudiagError(f"{name}: {_absent(name)}.") from None
    except PermissionError:
        raise GpudiagError(f"{name}: cannot be read (Permission denied); check its permissions.") from None
    except (OSError, ValueError) as error:  # a name may hold what no file's name can
        reason = getattr(error, "strerror", None) or error
        raise GpudiagError(f"{name}: cannot be read ({reason}); check the path.") from None
    kind = _of(head, name, unpacked=shown is not None)
    return _sqlite(path, head, size, name) if kind == _DATABASE else kind


def most_bytes(head: bytes, packed: int, name: Path) -> int:
    """Return how many bytes content that begins so may unfold to. Raises GpudiagError for content that is not read."""
    from gpudiag.ingest import decompress
    from gpudiag.ingest.ncu import csv_page

    if _of(head[:HEAD], name, unpacked=True) == "ncu_csv":
        return csv_page.LIMIT
    return min(decompress.LIMIT, max(decompress.SMALL, decompress.MOST_TIMES * packed))


def _of(head: bytes, name: Path, *, unpacked: bool) -> str:
    """Return the kind that the first bytes show: a supported one, a compression, or _DATABASE."""
    if not head:
        raise GpudiagError(f"{name}: the file is empty; was the profiler still writing it?")
    for magic, compression in COMPRESSIONS.items():
        if head.startswith(magic):
            if unpacked:
                raise GpudiagError(f"{name}: the file is compressed twice; decompress it once and give the result.")
            return compression
    if head.startswith(b"SQLite format 3\x00"):
        return _DATABASE
    if kind := registry.kind_of(head):
        return kind
    text = registry.decoded(head)
    said = unsupported.of_bytes(head)
    if text is not None and not said:
        semicolons = registry.ncu_header(text.replace(";", ","))
        said = unsupported.SEMICOLONS if semicolons else unsupported.of_text(text)
    raise GpudiagError(f"{name}: {said or unsupported.UNKNOWN}.")


def _absent(name: Path) -> str:
    if str(name) == "-":
        return "standard input is not read; save it to a file first and give that"
    if re.match(r"\w{2,}:/", str(name)):
        return "this is an address, and nothing is downloaded here; download the file first"
    return "there is no such file; check the path"


def _folder(path: Path) -> str:
    files = [file for file in path.iterdir() if file.suffix == ".parquet"]
    for file in files:
        if not file.is_file():
            raise GpudiagError(f"{path}: {file.name} in it is not a file; export the report again.")
        if not os.access(file, os.R_OK):
            raise GpudiagError(f"{path}: {file.name} in it cannot be read; check its permissions.")
    if any("StringIds" in file.name for file in files):
        return "nsys_parquet"
    raise GpudiagError(
        f"{path}: this folder holds no Nsight Systems tables and no traces of torch.profiler (.json, .json.gz); give a"
        " report, or a folder written by `nsys export --type=parquetdir`."
    )


def _sqlite(path: Path, head: bytes, size: int, name: Path) -> str:
    page = int.from_bytes(head[16:18], "big")
    pages = int.from_bytes(head[28:32], "big")
    # The page count is valid only when both change counters agree (SQLite file format, 1.3.7).
    if head[24:28] == head[92:96] and pages * (65_536 if page == 1 else page) > size:
        raise GpudiagError(f"{name}: the database is cut short; copy it again or export the report again.")
    _whole(path, head, name)
    try:
        con, trees = schema(path)
        with closing(con), closing(trees):
            names = tables(con)
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the second where SQLite quotes what is not UTF-8
        reason = " ".join(str(error).split())[:200]  # a damaged schema is quoted in it
        if "malformed" in reason:  # of which SQLite says now this, now that about the same file
            reason = "its list of tables is malformed"
        raise GpudiagError(f"{name}: the database is damaged ({reason}); export the report again.") from None
    marks = (
        "CUPTI_ACTIVITY_KIND_",
        "TARGET_INFO_",
        "NVTX_EVENTS",
        "META_DATA_",
        "EXPORT_META_DATA",
        "ProcessStreams",
    )
    if "StringIds" in names and any(name.startswith(marks) for name in names):
        return "nsys_sqlite"
    raise GpudiagError(f"{name}: {unsupported.DATABASE}.")


def _whole(path: Path, head: bytes, name: Path) -> None:
    """Refuse a database of which a part lies beside it still. Reading that would write there, or lock the file."""
    file = os.fspath(path.resolve())
    if _begins(f"{file}-journal", _JOURNAL):
        raise GpudiagError(
            f"{name}: it was being written when its writer stopped ({path.name}-journal is beside it); export the"
            " report again."
        )
    if head[18:20] == b"\x02\x02" and _begins(f"{file}-wal", b"\x37\x7f\x06"):
        raise GpudiagError(
            f"{name}: a part of it is in {path.name}-wal still; close what has it open, or run"
            f" `sqlite3 FILE 'pragma wal_checkpoint(truncate)'`."
        )


def _begins(file: str, beginning: bytes) -> bool:
    try:
        if not stat.S_ISREG(os.stat(file).st_mode):
            return False
        with open(file, "rb") as beside:
            return beside.read(len(beginning)) == beginning
    except OSError:
        return False
