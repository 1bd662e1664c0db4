"""Recordings kept as packed columns: `<variant>.columns` holds what `<variant>.sqlite.xz` held, in a third of its size.

For fixtures alone; gpudiag does not read it. A packed file gives back a SQLite database with the same tables, rows in
the same order, and values of the same types. `python -m evaluation.packed` packs and unpacks. How it is coded:

* each column by itself, as 64-bit integers, less what the rest of the row, the row before or the call of the same
  correlation id predicts of them (`columns.py`); `end` as the time since `start`; then byte by byte, the lowest first;
* texts by their place in the file's list, and that list by places in fixtures/texts.xz, which all files share.

`<variant>.pt.trace.columns` holds a trace of torch.profiler in the same way (`traces.py`): it gives back JSON with the
same events in the same order, each with its keys in their order. `<variant>.raw.csv.page` holds a page of Nsight
Compute (`pages.py`). A folder, `<variant>.parquetdir`, is kept as `.tar.xz`. `opened` unpacks a file once in a
checkout, into build/recordings.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import tarfile
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from evaluation.packed import database, fileformat, pages, traces

PACKED, EXPORT = ".columns", ".sqlite.xz"
TRACE, TRACE_EXPORT = ".pt.trace", ".json.xz"  # before PACKED, and what a trace as it was recorded has instead
UNPACKED = Path(__file__).resolve().parents[2] / "build" / "recordings"

PAGE, PAGE_EXPORT = ".page", ".xz"  # after `<variant>.raw.csv`
FOLDER = ".tar.xz"  # after the name of a folder, such as `slow.parquetdir`


def stem(recording: Path) -> str:
    """Return a recording's name without its ending."""
    return recording.name.removesuffix(PACKED).removesuffix(EXPORT).removesuffix(TRACE_EXPORT)


def is_trace(recording: Path) -> bool:
    """Return whether a recording is a trace of torch.profiler, packed or not."""
    return stem(recording).endswith(TRACE)


def stored(place: Path) -> Path:
    """Return the file that is kept of a recording, which is named without an ending: packed, or as exported.

    A trace is named `<variant>.pt.trace`.
    """
    packed = place.with_name(place.name + PACKED)
    export = TRACE_EXPORT if place.name.endswith(TRACE) else EXPORT
    return packed if packed.exists() else place.with_name(place.name + export)


def is_page(recording: Path) -> bool:
    """Return whether a file is a page of Nsight Compute, packed or not."""
    return recording.name.removesuffix(PAGE).removesuffix(PAGE_EXPORT).endswith(".csv")


def page(place: Path) -> Path:
    """Return the file that is kept of a page of Nsight Compute, which is named `<variant>.raw.csv`."""
    packed = place.with_name(place.name + PAGE)
    return packed if packed.exists() else place.with_name(place.name + PAGE_EXPORT)


def recordings(folder: Path) -> list[Path]:
    """Return the files kept of all timelines of nsys in a folder and below, packed or as exported, by name."""
    found = [*folder.rglob(f"*{PACKED}"), *folder.rglob(f"*{EXPORT}")]
    timelines = [file for file in found if not is_trace(file)]
    return sorted(timelines, key=lambda file: file.with_name(f"{stem(file)}{EXPORT}"))


def traces_of(folder: Path) -> list[Path]:
    """Return the files kept of all traces of torch.profiler in a folder and below, packed or as recorded, by name."""
    return sorted([*folder.rglob(f"*{TRACE}{PACKED}"), *folder.rglob(f"*{TRACE}{TRACE_EXPORT}")], key=_named)


def _named(recording: Path) -> Path:
    """Return a recording's path without its ending."""
    return recording.with_name(stem(recording))


def opened(file: Path) -> Path:
    """Return a file that gpudiag reads: what a packed recording holds; any other file is returned as it is."""
    return plain(file) if file.name.endswith((PACKED, PAGE, FOLDER)) else file


@cache
def plain(file: Path) -> Path:
    """Return the database, trace, page or folder of a recording, packed or not, for those who read it themselves."""
    data = file.read_bytes()
    place = UNPACKED / hashlib.sha256(data).hexdigest()[:16]
    if file.name.endswith(FOLDER):
        return _folder(file, place / file.name.removesuffix(FOLDER))
    unpacked = place / (
        file.stem if is_page(file) else f"{stem(file)}.json" if is_trace(file) else f"{stem(file)}.sqlite"
    )
    if not unpacked.exists():
        unpacked.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=unpacked.parent) as scratch:
            unfinished = Path(scratch, unpacked.name)
            if file.name.endswith(PAGE):
                unfinished.write_text(pages.load(data), "utf-8", newline="")
            elif not file.name.endswith(PACKED):
                unfinished.write_bytes(lzma.decompress(data))
            elif is_trace(file):
                unfinished.write_text(json.dumps(traces.load(data)), "utf-8")
            else:
                database.write(fileformat.load(data), unfinished)
            with suppress(FileExistsError):  # another process was faster, and its file may be being read
                os.link(unfinished, unpacked)
    return unpacked


def _folder(file: Path, unpacked: Path) -> Path:
    """Unpack a folder, unless that was done."""
    if not unpacked.exists():
        unpacked.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=unpacked.parent) as scratch:
            with tarfile.open(file) as archive:
                archive.extractall(scratch, filter="data")
            try:
                Path(scratch, unpacked.name).rename(unpacked)
            except OSError:  # another process was faster, and its files may be being read
                if not unpacked.exists():
                    raise
    return unpacked


def recording(place: Path) -> Path:
    """Return a file that gpudiag reads of a recording, which is named without an ending."""
    return opened(stored(place))
