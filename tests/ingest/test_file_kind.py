"""Every format is distinguished by its content, and what cannot be read is named in one sentence."""

from __future__ import annotations

import errno
import gzip
import json
import lzma
import marshal
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from gpudiag.errors import GpudiagError
from gpudiag.ingest import ingest
from gpudiag.ingest.decompress import unpack
from gpudiag.ingest.file_kind import detect
from gpudiag.ingest.ncu import csv_page
from gpudiag.store.database import create

REPORT = b"NVIDIA Tegra Profiler Report 36398880.\n" + bytes(100)
TRACE = json.dumps({"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "aten::add", "ts": 1, "dur": 2}]}).encode()
SMI = b"timestamp, name, utilization.gpu [%], memory.used [MiB]\n2026/01/01 00:00:00.000, NVIDIA H200, 3 %, 4 MiB\n"
DMON = b"# gpu    pwr  gtemp  mtemp     sm    mem\n    0    70     30     30      1      2\n"
TABLE = b"Mon Jan  5 10:00:00 2026\n+----+\n| NVIDIA-SMI 550.54    Driver Version: 550.54    CUDA Version: 12.4 |\n"
STATS = b"Processing [a.sqlite] with [cuda_api_sum.py]...\n\n ** CUDA API Summary (cuda_api_sum):\n"
PSTATS = marshal.dumps({("a.py", 1, "f"): (1, 1, 0.1, 0.1, {})})
NCU = b'==PROF== Connected\n"ID","Process ID","Process Name","Host Name","Kernel Name"\n"0","1","a","b","k"\n'


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (REPORT, "nsys_rep"),
        (NCU, "ncu_csv"),
        (b"\xef\xbb\xbf" + NCU[19:], "ncu_csv"),
        (b"NVR\x00\x02\x00", "ncu_rep"),
        (TRACE, "torch"),
        (b'[{"cat": "cpu_op", "ph": "X", "ts": 1}]', "torch"),
        (SMI, "smi"),
        (b"\xff\xfe" + SMI.decode().encode("utf-16-le"), "smi"),
        (b"Failed to initialize NVML\n" + SMI, "smi"),
        (DMON, "smi"),
        (PSTATS, "cprofile"),
    ],
    ids=[
        "nsys-rep",
        "ncu-csv",
        "ncu-csv-bom",
        "ncu-rep",
        "torch",
        "torch-list",
        "smi",
        "smi-utf16",
        "smi-after-errors",
        "dmon",
        "pstats",
    ],
)
def test_supported_formats_whatever_the_name(tmp_path: Path, content: bytes, kind: str) -> None:
    file = tmp_path / "data.txt"
    file.write_bytes(content)
    assert detect(file) == kind


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"other": [{"ph": "X"}]}', "a trace for Chrome"), (b'{"a": 1}', "this is JSON"),
        (TABLE, "nvidia-smi's table, which names no clocks and is not read; record `nvidia-smi --query-gpu="),
        (b"==============NVSMI LOG==============\n", "nvidia-smi -q"), (SMI.partition(b"\n")[2], "without its header"),
        (b"# gpu         pid   type     sm\n# Idx           #    C/G      %\n", "nvidia-smi pmon"),
        (b'Field "clocks" is not a valid field to query.\n', "only an error"),
        (STATS, "nsys stats"), (b"PAR1aaaa", "single Parquet"), (b"", "empty"),
        (NCU.replace(b",", b";"), "separated by semicolons"),
        (b"\x89HDF\r\n\x1a\n", "HDF5"), (b"hello\n", "not a profile"), (bytes(range(256)), "not a profile"),
    ],
    ids=["trace", "json", "smi-table", "smi-q", "smi-no-header", "smi-pmon", "smi-error", "stats", "parquet",
         "empty", "semicolons", "hdf5", "text", "binary"],
)  # fmt: skip
def test_what_is_not_read_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "data.sqlite"
    file.write_bytes(content)
    with pytest.raises(GpudiagError, match=words) as error:
        detect(file)
    assert str(file) in str(error.value) and "\n" not in str(error.value)


def test_a_compressed_foreign_file_is_named_by_the_users_path(tmp_path: Path) -> None:
    file = tmp_path / "trace.json.gz"
    file.write_bytes(gzip.compress(TRACE))
    work = tmp_path / "work"
    work.mkdir()
    with pytest.raises(GpudiagError, match="holds no event of torch") as error:
        ingest(file, create(), work)
    assert str(error.value).startswith(f"{file}: ")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gz", "xz"])
def test_foreign_content_is_refused_before_it_is_unpacked(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    file, work = tmp_path / "bomb.sqlite", tmp_path / "work"
    file.write_bytes(pack(bytes(5_000_000))[:-20])  # the missing end is never reached
    work.mkdir()
    with pytest.raises(GpudiagError, match="begins with zeros only"):
        ingest(file, create(), work)
    assert not any(entry.stat().st_size for entry in work.iterdir())


def test_a_page_that_unfolds_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_page, "LIMIT", 3 << 20)
    plain, packed, work = tmp_path / "a.csv", tmp_path / "a.csv.gz", tmp_path / "work"
    work.mkdir()
    plain.write_bytes(NCU + b'"0","1","a","b","k"\n' * 200_000)
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    with pytest.raises(GpudiagError, match=r"a\.csv: .* more than 3 MiB is not read"):
        ingest(plain, create(), work)
    with pytest.raises(GpudiagError, match=r"a\.csv\.gz: unfolds to more than 3 MiB"):
        ingest(packed, create(), work)
    assert list(work.iterdir()) == []


def test_twice_compressed_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "a.gz"
    file.write_bytes(gzip.compress(lzma.compress(REPORT)))
    with pytest.raises(GpudiagError, match=r"a\.gz: the file is compressed twice"):
        ingest(file, create(), tmp_path)


def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    pipe, folder = tmp_path / "pipe", tmp_path / "export"
    os.mkfifo(pipe)
    with pytest.raises(GpudiagError, match="pipe: this is a pipe or a device"):
        detect(pipe)
    with pytest.raises(GpudiagError, match="a pipe or a device"):
        detect(Path(os.devnull))
    folder.mkdir()
    (folder / "StringIds.parquet").write_bytes(b"PAR1")
    os.mkfifo(folder / "NVTX_EVENTS.parquet")
    with pytest.raises(GpudiagError, match=r"NVTX_EVENTS\.parquet in it is not a file"):
        detect(folder)


def test_a_folder_that_may_not_be_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, **_: object) -> os.stat_result:  # root, who may run this, enters every folder
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(GpudiagError, match=r"cannot be read \(Permission denied\)"):
        detect(tmp_path / "a.sqlite")


def test_missing_and_foreign_folders(tmp_path: Path) -> None:
    with pytest.raises(GpudiagError, match="no such file"):
        detect(tmp_path / "absent.sqlite")
    with pytest.raises(GpudiagError, match="holds no Nsight Systems tables"):
        detect(tmp_path)


def database(path: Path, table: str, rows: int = 0) -> None:
    con = sqlite3.connect(path)
    con.execute("create table StringIds (id integer, value text)")
    con.execute(f"create table {table} (a integer)")
    con.executemany(f"insert into {table} values (?)", [(i,) for i in range(rows)])
    con.commit()
    con.close()


def test_databases(tmp_path: Path) -> None:
    good, other, short = tmp_path / "good", tmp_path / "other", tmp_path / "short"
    database(good, "CUPTI_ACTIVITY_KIND_KERNEL", 20000)
    assert detect(good) == "nsys_sqlite"
    database(other, "customers")
    with pytest.raises(GpudiagError, match="not an Nsight Systems export"):
        detect(other)
    damaged = tmp_path / "damaged"
    damaged.write_bytes(good.read_bytes().replace(b"CREATE TABLE StringIds (", b"CREATE\nTABLE\nStringIds\n)"))
    with pytest.raises(GpudiagError, match=r"damaged \([^\n]*\)[^\n]*$"):
        detect(damaged)
    short.write_bytes(good.read_bytes()[:50000])
    with pytest.raises(GpudiagError, match="cut short"):
        detect(short)


@pytest.mark.parametrize(
    ("compression", "data"), [("gz", gzip.compress(b"a" * 9000)), ("xz", lzma.compress(b"a" * 9000))]
)
def test_unpacking_is_bounded_and_notices_damage(tmp_path: Path, compression: str, data: bytes) -> None:
    file = tmp_path / "packed"
    file.write_bytes(data)
    assert unpack(file, compression, tmp_path).stat().st_size == 9000
    with pytest.raises(GpudiagError, match="unfolds to more than"):
        unpack(file, compression, tmp_path, limit=8999)
    file.write_bytes(data[:-8])
    with pytest.raises(GpudiagError, match="damaged or cut short"):
        unpack(file, compression, tmp_path)
