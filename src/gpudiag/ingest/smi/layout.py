"""Header of an nvidia-smi log, and how the lines after it are read by it."""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from gpudiag.ingest.smi import fields
from gpudiag.ingest.smi.lines import text_of

HEADER_WITHIN = 400
"""Lines before the header: error messages, the prompt of a shell."""

_NAME = re.compile(r"([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*)(?: \[[^\]]{1,12}\])?")
_OURS = re.compile(
    r"(utilization|memory|power|temperature|clocks|clocks_throttle_reasons|clocks_event_reasons|pcie\.link|fan|ecc"
    r"|encoder\.stats|enforced\.power)\.\w|pstate$"
)
_STAMP = re.compile(r"(\d{4}/\d\d/\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?", re.ASCII)
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?", re.ASCII)
_DAY_NS = 86_400_000_000_000


@dataclass(frozen=True, slots=True)
class Reading:
    """State of one GPU at one moment. key: what tells the GPU from others; time: local, in ns since 1970."""

    key: str
    index: int | None
    name: str | None
    time: int | None
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns of a log, by its header."""

    header: str
    width: int
    separator: str | None
    columns: tuple[tuple[int, str], ...]
    """Position and field of each column that rules use."""
    places: Mapping[str, int] = field(default_factory=dict)
    """Positions of what is no measure: `timestamp`, `date`, `time`, `name`, and what tells GPUs apart."""

    identity: int | None = None
    """Position of what says which GPU a line is of."""

    @property
    def dated(self) -> bool:
        """Return whether times are whole: those of `nvidia-smi dmon -o T` begin anew each day."""
        return "timestamp" in self.places or "date" in self.places

    def reading(self, line: str) -> Reading | None:
        """Return what a line says; None where it is no line of this log."""
        cells = _cells(line, self.separator)
        if len(cells) != self.width:
            return None
        values: dict[str, float] = {}
        for at, what in self.columns:
            if what == fields.REASONS:
                values |= fields.reasons(cells[at])
            elif (measured := fields.value(what, cells[at])) is not None:
                values.setdefault(what, measured)
            elif not fields.is_cell(cells[at]):
                return None
        time = self._time(cells)
        if time is None and ("timestamp" in self.places or "time" in self.places):
            return None
        key = "" if self.identity is None else cells[self.identity]
        name = cells[self.places["name"]] if "name" in self.places else ""
        number = cells[self.places["index"]] if "index" in self.places else ""
        if self.identity is not None and fields.is_absent(key):
            return None
        index = int(number) if number.isascii() and number.isdigit() and len(number) < 5 else None
        return Reading(key or name, index, name or None, time, values)

    def _time(self, cells: Sequence[str]) -> int | None:
        if "timestamp" in self.places:
            match = _STAMP.fullmatch(cells[self.places["timestamp"]])
            return None if match is None else _moment(match[1].replace("/", ""), *match.groups()[1:])
        match = _CLOCK.fullmatch(cells[self.places["time"]]) if "time" in self.places else None
        if match is None:
            return None
        return _moment(cells[self.places["date"]] if "date" in self.places else "19700101", *match.groups())


def _cells(line: str, separator: str | None) -> list[str]:
    """Return the cells of a line; spreadsheets put each in quotes."""
    return [cell.strip(' \t"') for cell in line.strip(' \t"').split(separator)]


def _moment(date: str, hour: str, minute: str, second: str, fraction: str | None) -> int | None:
    day = _day(date)
    if day is None:
        return None
    seconds = int(hour) * 3600 + int(minute) * 60 + int(second)
    return day * _DAY_NS + seconds * 1_000_000_000 + int((fraction or "0").ljust(9, "0"))


@lru_cache(maxsize=64)
def _day(date: str) -> int | None:
    """Return the day since 1970 of `20260103`; None for none."""
    if not re.fullmatch(r"(19|20)\d{6}", date, re.ASCII):
        return None
    year, month, day = int(date[:4]), int(date[4:6]), int(date[6:])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return timegm((year, month, day, 0, 0, 0)) // 86_400


def of_header(line: str) -> Layout | None:
    """Return the layout that a line states; None where it is no header of an nvidia-smi log."""
    return _of_dmon(line) if line.lstrip(' \t"').startswith("#") else _of_query(line)


def _of_query(line: str) -> Layout | None:
    """Return the layout by the header of `nvidia-smi --query-gpu=… --format=csv`."""
    if "," not in line and not _OURS.match(line.strip('" \t')):
        return None
    names = [_NAME.fullmatch(cell) for cell in _cells(line, ",")]
    known = [fields.canonical(match[1]) if match else "" for match in names]
    if 2 * known.count("") > len(known) or not any(_OURS.match(match[1]) for match in names if match):
        return None
    return _layout(line, known, ",")


def _of_dmon(line: str) -> Layout | None:
    """Return the layout by the first line of the header of `nvidia-smi dmon`."""
    separator = "," if "," in line else None
    names = [cell.strip() for cell in line.strip(' \t"').lstrip("# ").split(separator)]
    lower = [name.lower() for name in names]
    if "gpu" not in lower or "pid" in lower or len(names) < 2:
        return None
    known = ["index" if name == "gpu" else name if name in ("date", "time") else fields.OF_DMON.get(name, "")
             for name in lower]  # fmt: skip
    return _layout(line, known, separator)


def _layout(line: str, known: Sequence[str], separator: str | None) -> Layout:
    columns: list[tuple[int, str]] = []
    places: dict[str, int] = {}
    for at, name in enumerate(known):
        if name in fields.FIELDS or name == fields.REASONS:
            columns.append((at, name))
        elif name:
            places.setdefault(name, at)
    identity = next((places[name] for name in fields.IDENTITIES if name in places), None)
    return Layout(line.strip(), len(known), separator, tuple(columns), places, identity)


def begins(head: bytes) -> bool:
    """Return whether a file begins as a log of nvidia-smi does, after some lines of messages."""
    text = text_of(head)
    if text is None or not ("," in text or "#" in text or "." in text):
        return False
    return any(of_header(line) for line in text.splitlines()[:HEADER_WITHIN] if len(line) < len(head))
