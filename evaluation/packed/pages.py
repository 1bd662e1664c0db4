"""Pack pages of Nsight Compute: `<variant>.raw.csv.page` holds the text of `<variant>.raw.csv.xz`, less what all share.

A raw page has a column for each of two thousand metrics: name, unit, and a value for each launch. Most names and units,
and the values that describe the device, are those of every other page. fixtures/metrics.xz lists the metrics in their
order with the unit and the value that most pages have; a packed page has only what differs from the list, and for each
launch what differs from the launch before. A page names a metric by its place: metrics may be added at the end of the
list, none may go, move or change.
"""

from __future__ import annotations

import csv
import io
import json
import lzma
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from evaluation.packed.columns import squeeze, unsqueeze
from evaluation.packed.fileformat import LITERAL, DamagedError

FILE = Path(__file__).resolve().parents[2] / "fixtures" / "metrics.xz"
MAGIC = b"gpudiag page 1\n"
HEAD = struct.Struct("<IIII")  # checksum of the rest, size of the cells, columns, rows
END, OTHER = "\0", "="  # of a cell; before one that is not as expected (which is empty)
ABOUT = 2  # rows before the first launch: names and units

Metric = tuple[str, str, str]
"""Name, unit and value of a metric as most pages have them."""


class CannotPackPageError(Exception):
    """A page that this format does not hold."""


@cache
def metrics() -> tuple[Metric, ...]:
    """Return the metrics that pages have in common."""
    listed = json.loads(lzma.decompress(FILE.read_bytes())) if FILE.exists() else []
    return tuple((name, unit, value) for name, unit, value in listed)


def add(pages: Iterable[str]) -> int:
    """Add the metrics of these pages to the list; returns how many were new."""
    known = {name for name, *_ in metrics()}
    seen: dict[str, tuple[Counter[str], Counter[str]]] = {}
    for page in pages:
        for name, unit, *values in zip(*_cells(page), strict=True):
            units, launches = seen.setdefault(name, (Counter(), Counter()))
            units[unit] += 1
            launches.update(set(values))
    new = [(name, *(_most(one) for one in counts)) for name, counts in seen.items() if name not in known]
    text = json.dumps([*metrics(), *new], ensure_ascii=False, separators=(",", ":"))
    FILE.write_bytes(lzma.compress(text.encode(), check=lzma.CHECK_CRC32, preset=9 | lzma.PRESET_EXTREME))
    metrics.cache_clear()
    return len(new)


def dump(page: str) -> bytes:
    """Return a page as the content of a packed file. Raises CannotPackPageError."""
    rows = _cells(page)
    listed = metrics()
    places = {name: place for place, (name, *_) in enumerate(listed)}
    names, units, values = [], [], list[str]()
    expected = 0
    for name, unit, *launches in zip(*rows, strict=True):
        place = places.get(name)
        if place is None:
            raise CannotPackPageError(f"{name} is not in the list of metrics, {FILE.name}; add it with `texts`")
        names.append("" if place == expected else f"{OTHER}{place}")
        units.append(_other(unit, listed[place][1]))
        for value, before in zip(launches, [listed[place][2], *launches], strict=False):
            values.append(_other(value, before))
        expected = place + 1
    raw = END.join([*names, *units, *values]).encode()
    packed = squeeze(raw, LITERAL)
    return MAGIC + HEAD.pack(zlib.crc32(packed), len(raw), len(names), len(rows)) + packed


def load(data: bytes) -> str:
    """Return the page of a packed file. Raises DamagedError."""
    if not data.startswith(MAGIC):
        raise DamagedError("this is no packed page")
    check, size, width, height = HEAD.unpack_from(data, len(MAGIC))
    packed = data[len(MAGIC) + HEAD.size :]
    if zlib.crc32(packed) != check:
        raise DamagedError("the checksum is not that of the content")
    cells = unsqueeze(packed, size, LITERAL).decode().split(END)
    names, units, values = cells[:width], cells[width : ABOUT * width], iter(cells[ABOUT * width :])
    columns: list[list[str]] = []
    expected = 0
    for place, unit in zip(names, units, strict=True):
        name, usual, value = metrics()[int(place[1:]) if place else expected]
        columns.append([name, unit[1:] if unit else usual])
        for _ in range(height - ABOUT):
            cell = next(values)
            value = cell[1:] if cell else value
            columns[-1].append(value)
        expected = (int(place[1:]) if place else expected) + 1
    return _written(zip(*columns, strict=True))


def _cells(page: str) -> list[list[str]]:
    """Return the rows of a page. Raises CannotPackPageError where that is not all it holds."""
    rows = list(csv.reader(io.StringIO(page)))
    if len(rows) < ABOUT or {len(row) for row in rows} != {len(rows[0])} or END in page or _written(rows) != page:
        raise CannotPackPageError("this is no raw page as ncu writes it")
    return rows


def _written(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _most(found: Counter[str]) -> str:
    """Return what most have; nothing where no two have the same."""
    value, count = found.most_common(1)[0]
    return value if count > 1 else ""


def _other(cell: str, expected: str) -> str:
    return "" if cell == expected else f"{OTHER}{cell}"
