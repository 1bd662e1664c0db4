"""Which tool wrote a file: told by its content, never by its name."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from pathlib import Path

from gpudiag.errors import GpudiagError
from gpudiag.ingest.sqlite import tables, uri

HEAD = 65_536
"""Bytes looked at: enough for every header, and for the first keys of a trace."""

SUPPORTED = ("nsys_sqlite", "nsys_parquet", "nsys_rep", "ncu_csv", "ncu_rep")
COMPRESSIONS = {b"\x1f\x8b": "gz", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}

_DATABASE = "sqlite"
_READS = (
    "gpudiag reads Nsight Systems exports (.sqlite, .nsys-rep), and Nsight Compute reports (.ncu-rep) and their CSV"
    " (`ncu --csv --page raw`)"
)
_UNSUPPORTED = {
    "trace_json": "this is a PyTorch or Chrome trace, which is not read yet; capture the program with `nsys profile`",
    "nvidia_smi_csv": "this is an nvidia-smi log, which is not read yet; it has no timeline to explain: capture the"
    " program with `nsys profile`",
    "nvidia_smi_table": "this is a dump of nvidia-smi's table, which is not read; capture the program with"
    " `nsys profile`",
    "pstats": "this is a cProfile file, which is not read yet; capture the program with"
    " `nsys profile --python-sampling=true`",
    "ncu_semicolons": "this Nsight Compute page is separated by semicolons, as spreadsheets save it; give the CSV as"
    " `ncu --csv --page raw` wrote it, separated by commas",
    "nsys_stats": "this is the text of `nsys stats`, whose sums hold no timeline; give the report it was made from",
    "sqlite": "this is an SQLite database, but not an Nsight Systems export; " + _READS,
    "hdf5": "this is an HDF5 file; export the report again with `nsys export --type=sqlite --include-json=true`",
    "parquet": "this is a single Parquet table; give the folder that `nsys export --type=parquetdir` wrote",
}


def detect(path: Path, shown: Path | None = None) -> str:
    """The kind of a file or folder: one of SUPPORTED, or gz, xz, zstd for a compressed file. Pipes are not opened.

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
        with path.open("rb") as file:
            head, size = file.read(HEAD), os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise GpudiagError(f"{name}: there is no such file; check the path.") from None
    except OSError as error:
        raise GpudiagError(f"{name}: cannot be read ({error.strerror}); check its permissions.") from None
    kind = _of(head, name, unpacked=shown is not None)
    return _sqlite(path, head, size, name) if kind == _DATABASE else kind


def most_bytes(head: bytes, name: Path) -> int:
    """How many bytes the content of a compressed file that begins so may unfold to; GpudiagError if it is not read."""
    from gpudiag.ingest import ncu_page, unpack

    return ncu_page.LIMIT if _of(head[:HEAD], name, unpacked=True) == "ncu_csv" else unpack.LIMIT


def _of(head: bytes, name: Path, *, unpacked: bool) -> str:
    """What the first bytes tell: a supported kind, a compression, or _DATABASE."""
    if not head:
        raise GpudiagError(f"{name}: the file is empty; was the profiler still writing it?")
    for magic, compression in COMPRESSIONS.items():
        if head.startswith(magic):
            if unpacked:
                raise GpudiagError(f"{name}: the file is compressed twice; decompress it once and give the result.")
            return compression
    kind = _binary(head) or _text(head) or ""
    if kind in (*SUPPORTED, _DATABASE):
        return kind
    if kind in _UNSUPPORTED:
        raise GpudiagError(f"{name}: {_UNSUPPORTED[kind]}.")
    raise GpudiagError(f"{name}: this is not a profile that gpudiag knows; {_READS}.")


def _folder(path: Path) -> str:
    files = [file for file in path.iterdir() if file.suffix == ".parquet"]
    for file in files:
        if not file.is_file():
            raise GpudiagError(f"{path}: {file.name} in it is not a file; export the report again.")
    if any("StringIds" in file.name for file in files):
        return "nsys_parquet"
    raise GpudiagError(
        f"{path}: this folder holds no Nsight Systems tables; give a report, or a folder written by"
        " `nsys export --type=parquetdir`."
    )


def _binary(head: bytes) -> str | None:
    if head.startswith(b"SQLite format 3\x00"):
        return _DATABASE
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        return "hdf5"
    if head.startswith(b"NVR\x00"):
        return "ncu_rep"
    # The same header since 2018: .nsys-rep files, and .qdrep files as they were called until 2021.
    if head.startswith(b"NVIDIA Tegra Profiler Report"):
        return "nsys_rep"
    # A marshalled dict, whose first key is a tuple of three: (file, line, function). The top bit marks a reference.
    if len(head) > 2 and head[0] & 0x7F == 0x7B and head[1] & 0x7F in (0x28, 0x29) and head[2] == 3:
        return "pstats"
    return None


def _sqlite(path: Path, head: bytes, size: int, name: Path) -> str:
    page = int.from_bytes(head[16:18], "big")
    pages = int.from_bytes(head[28:32], "big")
    # The page count is valid only when both change counters agree (SQLite file format, 1.3.7).
    if head[24:28] == head[92:96] and pages * (65_536 if page == 1 else page) > size:
        raise GpudiagError(f"{name}: the database is cut short; copy it again or export the report again.")
    try:
        con = sqlite3.connect(uri(path), uri=True)
        names = tables(con)
        con.close()
    except sqlite3.Error as error:
        reason = " ".join(str(error).split())[:200]  # a damaged schema is quoted in it
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
    raise GpudiagError(f"{name}: {_UNSUPPORTED['sqlite']}.")


def _text(head: bytes) -> str | None:
    text = _decoded(head)
    if text is None:
        return None
    start = text.lstrip("\ufeff \t\r\n")
    if start[:1] in "{[" and re.search(r'"(traceEvents|schemaVersion|deviceProperties|ph)"', start):
        return "trace_json"
    lines = start.splitlines()[:400]
    if re.search(r"\| NVIDIA-SMI\s+[\d.]+", start):
        return "nvidia_smi_table"
    first = lines[0].lower() if lines else ""
    if any(field in first for field in ("utilization.gpu", "memory.used", "power.draw", "temperature.gpu")):
        return "nvidia_smi_csv"
    if first.startswith("# gpu") and any(word in first for word in ("sm", "pwr", "mem")):
        return "nvidia_smi_csv"
    # ncu prints its own messages (==PROF==) before the header.
    if any(_is_ncu_header(line) for line in lines):
        return "ncu_csv"
    if any(_is_ncu_header(line.replace(";", ",")) for line in lines):
        return "ncu_semicolons"
    if "** CUDA API Summary" in text or "** CUDA GPU Kernel Summary" in text or "Processing [" in text[:2000]:
        return "nsys_stats"
    if re.search(r"\*\* .* Summary \(\w+\):", text):
        return "nsys_stats"
    return None


def _is_ncu_header(line: str) -> bool:
    header = line.strip().lstrip("\ufeff")
    return header.startswith(('"ID",', "ID,")) and "Kernel Name" in header


def _decoded(head: bytes) -> str | None:
    """The text of a text file; None for binary data. PowerShell writes UTF-16 when it redirects."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head[: len(head) // 2 * 2].decode("utf-16", "replace")
    if b"\x00" in head[:1024]:
        return None
    return head.decode("utf-8", "replace")
