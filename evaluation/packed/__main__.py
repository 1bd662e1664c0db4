"""Pack recordings, or unpack them:

    python -m evaluation.packed pack FILE.sqlite.xz…         # each becomes FILE.columns
    python -m evaluation.packed pack FILE.pt.trace.json.xz…  # each becomes FILE.pt.trace.columns
    python -m evaluation.packed pack FILE.raw.csv.xz…        # each becomes FILE.raw.csv.page
    python -m evaluation.packed pack FOLDER.parquetdir…      # each becomes FOLDER.parquetdir.tar.xz
    python -m evaluation.packed unpack FILE.columns… [--to FOLDER]
    python -m evaluation.packed texts FILE…                  # before the first packing: what they have in common

A packed file is read back and compared with the export, value by value and type by type, before the export goes: a
trace with its events and keys in their order, each value as JSON writes it; a page of Nsight Compute byte by byte.
Recordings that the documentation names, and those that readers are tested on as profilers write them, stay as they are.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import shutil
import sys
import tarfile
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from evaluation.packed import (
    EXPORT,
    FOLDER,
    PACKED,
    PAGE,
    PAGE_EXPORT,
    TRACE_EXPORT,
    database,
    fileformat,
    is_page,
    is_trace,
    opened,
    pages,
    stem,
    tables,
    texts,
    traces,
)  # fmt: skip
from evaluation.packed.database import Database
from evaluation.packed.fileformat import DamagedError

KEPT = {
    # whole, as the profilers write them (fixtures/kit/shrink.py)
    "alloc_free_per_step/slow", "rollout_eager/fixed.pt.trace",
    # in README.md, the tutorial and the release
    "item_every_stage/slow", *(f"training_curve/stage-{stage}" for stage in range(6)),
    # small ones that tests and benchmarks read as a user would
    "dependent_gather/slow", "healthy_low_occupancy_gemm/healthy", "histogram/fixed",
    "histogram/slow", "transpose/fixed", "transpose/slow-naive",
    "dependent_gather/slow.raw.csv", "dependent_gather/fixed.raw.csv", "transpose/slow-naive.raw.csv",
}  # fmt: skip


def kept(file: Path) -> bool:
    """Return whether a recording stays as it was exported."""
    return f"{file.parent.name}/{_named(file)}" in KEPT and file.parent.parent.name == "captures"


def _named(file: Path) -> str:
    """Return a file's name as in KEPT."""
    return file.stem if is_page(file) else stem(file)


def typed(read: Database) -> list[object]:
    """Return all that a database holds, each value with its type and its exact digits."""
    values = [[[(type(v), repr(v)) for v in column] for column in table.columns.values()] for table in read.tables]
    return [read, values]


def pack(file: Path) -> tuple[Path, int, int]:
    """Replace an export by its columns; returns the new file, and the bytes before and after."""
    if file.is_dir():
        return _archive(file)
    if is_page(file):
        target, data = file.with_name(f"{_named(file)}{PAGE}"), _packed_page(file)
    else:
        target = file.with_name(f"{stem(file)}{PACKED}")
        data = _columns_of_trace(file) if is_trace(file) else _columns_of_export(file)
    target.write_bytes(data)
    size = file.stat().st_size
    file.unlink()
    return target, size, len(data)


def _archive(folder: Path) -> tuple[Path, int, int]:
    """Replace a folder by an archive of its files, which says nothing of who packed them and when."""
    target = folder.with_name(f"{folder.name}{FOLDER}")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    with tarfile.open(target, "w:xz", preset=9) as archive:
        for path in files:
            about = tarfile.TarInfo(path.relative_to(folder.parent).as_posix())
            about.size = path.stat().st_size
            with path.open("rb") as content:
                archive.addfile(about, content)
    again = opened(target)
    if any((again / path.relative_to(folder)).read_bytes() != path.read_bytes() for path in files):
        raise SystemExit(f"{folder}: the archive differs; the folder stays.")
    size = sum(path.stat().st_size for path in files)
    shutil.rmtree(folder)
    return target, size, target.stat().st_size


def _packed_page(file: Path) -> bytes:
    before = lzma.decompress(file.read_bytes())
    data = pages.dump(before.decode())
    if pages.load(data).encode() != before:
        raise SystemExit(f"{file}: the packed page differs; the page stays.")
    return data


def _columns_of_trace(file: Path) -> bytes:
    before = json.loads(lzma.decompress(file.read_bytes()))
    data = traces.dump(before)
    if json.dumps(traces.load(data)) != json.dumps(before):
        raise SystemExit(f"{file}: the packed file differs; the trace stays.")
    return data


def _columns_of_export(file: Path) -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        export, again = Path(scratch, "export.sqlite"), Path(scratch, "again.sqlite")
        export.write_bytes(lzma.decompress(file.read_bytes()))
        before = database.read(export)
        data = fileformat.dump(before)
        database.write(fileformat.load(data), again)
        if typed(database.read(again)) != typed(before):
            raise SystemExit(f"{file}: the packed file differs; the export stays.")
    return data


def unpack(file: Path, folder: Path | None) -> Path:
    """Write a packed recording as an export again, or as a trace or a page, in xz."""
    ending = PAGE_EXPORT if is_page(file) else TRACE_EXPORT if is_trace(file) else EXPORT
    target = (folder or file.parent) / f"{_named(file)}{ending}"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(lzma.compress(opened(file).read_bytes(), preset=6))
    return target


def texts_of(file: Path) -> list[str]:
    """Return the texts of an export or a trace."""
    if is_trace(file):
        return traces.texts_of(json.loads(lzma.decompress(file.read_bytes())))
    listed: tables.Listed = {}
    with tempfile.TemporaryDirectory() as scratch:
        export = Path(scratch, "export.sqlite")
        export.write_bytes(lzma.decompress(file.read_bytes()))
        for table in database.read(export).tables:
            tables.lay_out(table, listed)
    return [value for value in listed if isinstance(value, str)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("action", choices=("pack", "unpack", "texts"))
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="where unpacked files go; else beside the packed")
    args = parser.parse_args()
    if args.action == "unpack":
        for file in args.files:
            try:
                print(unpack(file, args.to))
            except (OSError, DamagedError) as error:
                print(f"{file}: {error}; give a packed recording.", file=sys.stderr)
                return 2
        return 0
    exports = [file for file in args.files if not kept(file)]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        if args.action == "texts":
            others = [file for file in exports if not is_page(file)]
            print(f"{texts.add(pool.map(texts_of, others))} texts more in {texts.FILE}")
            found = (lzma.decompress(file.read_bytes()).decode() for file in exports if is_page(file))
            print(f"{pages.add(found)} metrics more in {pages.FILE}")
            return 0
        sizes = []
        for target, before, after in pool.map(pack, exports):
            print(f"{target}: {before:,} → {after:,} bytes")
            sizes.append((before, after))
    print(f"{len(sizes)} recordings: {sum(b for b, _ in sizes):,} → {sum(a for _, a in sizes):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
