"""Recordings kept as packed columns: `<variant>.columns` holds what `<variant>.sqlite.xz` held, in a third of its size.

For fixtures alone; gpudiag does not read it. A packed file gives back a SQLite database with the same tables, rows in
the same order, and values of the same types. `python -m evaluation.packed` packs and unpacks. How it is coded:

* each column by itself, as 64-bit integers, less what the rest of the row, the row before or the call of the same
  correlation id predicts of them (`columns.py`); `end` as the time since `start`; then byte by byte, the lowest first;
* texts by their place in the file's list, and that list by places in fixtures/texts.xz, which all files share.

`opened` unpacks a file once in a checkout, into build/recordings.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from evaluation.packed import database, fileformat

PACKED, EXPORT = ".columns", ".sqlite.xz"
UNPACKED = Path(__file__).resolve().parents[2] / "build" / "recordings"


def stem(recording: Path) -> str:
    """Return a recording's name without its ending."""
    return recording.name.removesuffix(PACKED).removesuffix(EXPORT)


def stored(place: Path) -> Path:
    """Return the file that is kept of a recording, which is named without an ending: packed, or as exported."""
    packed = place.with_name(place.name + PACKED)
    return packed if packed.exists() else place.with_name(place.name + EXPORT)


def recordings(folder: Path) -> list[Path]:
    """Return the files kept of all recordings in a folder and below, packed or as exported, by name."""
    found = [*folder.rglob(f"*{PACKED}"), *folder.rglob(f"*{EXPORT}")]
    return sorted(found, key=lambda file: file.with_name(f"{stem(file)}{EXPORT}"))


def opened(file: Path) -> Path:
    """Return a file that gpudiag reads: the database of a packed recording; any other file is returned as it is."""
    return plain(file) if file.name.endswith(PACKED) else file


@cache
def plain(file: Path) -> Path:
    """Return the database of a recording, packed or as exported, for those who read its tables themselves."""
    data = file.read_bytes()
    unpacked = UNPACKED / hashlib.sha256(data).hexdigest()[:16] / f"{stem(file)}.sqlite"
    if not unpacked.exists():
        unpacked.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=unpacked.parent) as scratch:
            unfinished = Path(scratch, unpacked.name)
            if file.name.endswith(PACKED):
                database.write(fileformat.load(data), unfinished)
            else:
                unfinished.write_bytes(lzma.decompress(data))
            with suppress(FileExistsError):  # another process was faster, and its file may be being read
                os.link(unfinished, unpacked)
    return unpacked


def recording(place: Path) -> Path:
    """Return a file that gpudiag reads of a recording, which is named without an ending."""
    return opened(stored(place))
