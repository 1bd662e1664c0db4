"""Traces of torch.profiler as packed columns: the same events in the same order, each with its keys in their order.

Events of one phase and category are a table, and each of their keys and of the keys of `args` is a column of it. A
column of times is whole thousandths of a microsecond, one of whole numbers is what it is, and one of anything else is
places among the texts. What was launched is coded after the call that launched it, and the arrows between both last:
times and ids of the ones predict those of the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.packed import fileformat
from evaluation.packed.columns import Ints
from evaluation.packed.database import CannotPackError
from evaluation.packed.streams import Reader, Writer
from evaluation.packed.tables import Listed

Path = tuple[str, ...]
"""Where a value is in an event: its key, or `args` and the key there; nothing for an event that has no keys."""
Key = tuple[str, str]
"""Phase and category, as JSON."""
Coded = tuple[int, list[int]]
"""What a column holds, and its values as integers."""
Noted = dict[str, dict[Path, Ints]]
"""Who has such keys (`host`, `gpu`) → the columns of those in the file so far."""

MAGIC = b"gpudiag trace columns 1\n"
EVENTS = "traceEvents"
WHOLE, TIMES, TEXTS, JSON = range(4)  # what a column holds; JSON: texts that are JSON
CONSTANT = -1  # in place of the size of a stream: the column has this value alone
SCALE = 1000  # of times
EXACT = 2**53  # below it a float holds every whole number
HOST, GPU = ("cuda_runtime", "cuda_driver"), ("kernel", "gpu_memcpy", "gpu_memset")
START: Path = ("ts",)
LAYOUT: Path = ("layout", "of", "keys")  # no key of an event is at such a place
KEYS: tuple[Path, ...] = (
    ("args", "correlation"),
    ("id",),
)  # what a call shares with what it launched, and with their arrows
PREDICTS: tuple[Path, ...] = (START, ("dur",), ("tid",), ("args", "External id"))  # of those with the same key


@dataclass
class Group:
    """Events of one phase and category: which keys they have, and the values of each key."""

    layouts: dict[tuple[Path, ...], int]
    layout: list[int]  # of each event
    values: dict[Path, list[Any]]  # of the events that have it


def dump(document: Any) -> bytes:
    """Return a trace as the content of a packed file. Raises CannotPackError for JSON that is no trace."""
    events = _events(document)
    groups, places = _grouped(events)
    listed: Listed = {}
    columns = {key: _columns(group, listed) for key, group in groups.items()}
    writer, noted = Writer(), Noted()
    values = fileformat.put_values(list(listed), writer)
    order = sorted(groups, key=_rank)
    put = [_put(key, groups[key], columns[key], writer, noted) for key in order]
    ranks = np.argsort([list(groups).index(key) for key in order])
    sequence = writer.put(ranks[np.array(places, np.int64)], {}, {})
    rest = {**document, EVENTS: None} if isinstance(document, dict) else None
    return fileformat.sealed(MAGIC, [rest, values, put, len(events), sequence], writer)


def load(data: bytes) -> Any:
    """Return the trace of a packed file. Raises DamagedError."""
    (rest, values, put, count, sequence), reader = fileformat.unsealed(MAGIC, data)
    listed, noted = fileformat.take_values(values, reader), Noted()
    groups = [_take(entry, reader, listed, noted) for entry in put]
    events = [next(groups[place]) for place in reader.take(sequence, count, {}, {}).tolist()]
    return events if rest is None else {**rest, EVENTS: events}


def texts_of(document: Any) -> list[str]:
    """Return the texts that a packed trace lists."""
    listed: Listed = {}
    for group in _grouped(_events(document))[0].values():
        _columns(group, listed)
    return [text for text in listed if isinstance(text, str)]


def _events(document: Any) -> list[Any]:
    events = document.get(EVENTS) if isinstance(document, dict) else document
    if not isinstance(events, list):
        raise CannotPackError("this is no trace: it has no list of events")
    return events


def _grouped(events: Sequence[Any]) -> tuple[dict[Key, Group], list[int]]:
    """Return the groups by phase and category, and the place of each event's group among them."""
    groups: dict[Key, Group] = {}
    for event in events:
        _add(event, groups.setdefault(_key(event), Group({}, [], {})))
    numbers = {key: place for place, key in enumerate(groups)}
    return groups, [numbers[_key(event)] for event in events]


def _key(event: Any) -> Key:
    return (json.dumps(event.get("ph")), json.dumps(event.get("cat"))) if isinstance(event, dict) else ("", "")


def _rank(key: Key) -> tuple[int, Key]:
    """Order groups: calls, what they launched, and what follows from both."""
    who = _who(key)
    return (0 if who == "host" else 1 if who == "gpu" else 2), key


def _who(key: Key) -> str | None:
    phase, category = key
    known = {json.dumps(one): who for who, ones in (("host", HOST), ("gpu", GPU)) for one in ones}
    return known.get(category) if phase == '"X"' else None


def _add(event: Any, group: Group) -> None:
    """Add an event to those of its phase and category."""
    held = dict(_flat(event))
    group.layout.append(group.layouts.setdefault(tuple(held), len(group.layouts)))
    for path, value in held.items():
        group.values.setdefault(path, []).append(value)


def _flat(event: Any) -> Iterator[tuple[Path, Any]]:
    if not isinstance(event, dict) or not event:
        yield (), event
        return
    for key, value in event.items():
        if key == "args" and isinstance(value, dict) and value:
            yield from (((key, inner), one) for inner, one in value.items())
        else:
            yield (key,), value


def _event(paths: Sequence[Path], values: Sequence[Any]) -> Any:
    """Return an event from its values: the inverse of `_flat`."""
    event: dict[str, Any] = {}
    for path, value in zip(paths, values, strict=True):
        if not path:
            return value
        if len(path) == 1:
            event[path[0]] = value
        else:
            event.setdefault(path[0], {})[path[1]] = value
    return event


def _columns(group: Group, listed: Listed) -> dict[Path, Coded]:
    return {path: _codes(values, listed) for path, values in group.values.items()}


def _codes(values: Sequence[Any], listed: Listed) -> Coded:
    """Code the values of a column; texts are added to the list."""
    types = {type(value) for value in values}
    if types == {int} and all(-(2**63) <= value < 2**63 for value in values):
        return WHOLE, list(values)
    if types == {float} and all(abs(value) * SCALE < EXACT for value in values):
        whole = [round(value * SCALE) for value in values]
        if all(repr(one / SCALE) == repr(value) for one, value in zip(whole, values, strict=True)):
            return TIMES, whole
    plain = types == {str} and all(value == value.encode("utf-8", "replace").decode() for value in values)
    texts = values if plain else [json.dumps(value) for value in values]
    codes = [listed.setdefault(text, len(listed)) for text in texts]
    return TEXTS if plain else JSON, codes


def _put(key: Key, group: Group, columns: Mapping[Path, Coded], writer: Writer, noted: Noted) -> list[Any]:
    """Write a group; returns its entry in the manifest."""
    layouts, layout = list(group.layouts), np.array(group.layout, np.int64)
    paths, beside = list(columns), _Beside(key, noted)
    first = beside.put(LAYOUT, layout, writer) if len(layouts) > 1 else None
    entries: list[Any] = []
    for path in sorted(paths, key=lambda path: (_stage(path), len(set(columns[path][1])), paths.index(path))):
        kind, codes = columns[path]
        if len(set(codes)) == 1:
            entries.append([paths.index(path), kind, CONSTANT, codes[0]])
            beside.full[path] = np.full(len(layout), codes[0], np.int64)
        else:
            column = _spread(codes, _present(path, layouts, layout))
            entries.append([paths.index(path), kind, *beside.put(path, column, writer)])
    beside.note()
    shown = [[paths.index(path) for path in held] for held in layouts]
    return [key, len(layout), paths, shown, first, entries]


def _take(entry: Sequence[Any], reader: Reader, listed: Sequence[str | bytes], noted: Noted) -> Iterator[Any]:
    """Read a group, of which `_put` returned the entry; returns its events."""
    (phase, category), rows, named, shown, first, entries = entry
    paths = [tuple(path) for path in named]
    layouts = [tuple(paths[place] for place in held) for held in shown]
    beside = _Beside((phase, category), noted)
    layout = beside.take(LAYOUT, first, rows, reader) if first else np.zeros(rows, np.int64)
    values: dict[Path, list[Any]] = {}
    for place, kind, *rest in entries:
        path = paths[place]
        if rest[0] == CONSTANT:
            beside.full[path] = np.full(rows, rest[1], np.int64)
        else:
            beside.take(path, rest, rows, reader)
        values[path] = _restored(kind, beside.full[path].tolist(), listed)
    beside.note()
    return (_event(held, [values[path][row] for path in held])
            for row, held in enumerate(layouts[number] for number in layout.tolist()))  # fmt: skip


def _restored(kind: int, codes: Sequence[int], listed: Sequence[str | bytes]) -> list[Any]:
    """Return the values of a column, of which `_codes` returned the integers."""
    if kind == WHOLE:
        return list(codes)
    if kind == TIMES:
        return [code / SCALE for code in codes]
    return [listed[code] if kind == TEXTS else json.loads(listed[code]) for code in codes]


def _stage(path: Path) -> int:
    """Order columns: what they have in common with other groups first, and the start last."""
    return 0 if path in KEYS else 2 if path == START else 1


def _present(path: Path, layouts: Sequence[tuple[Path, ...]], layout: Ints) -> Ints:
    """Return 1 for the events that have a value there, 0 for the others."""
    present: Ints = np.array([path in held for held in layouts], np.int64)[layout]
    return present


def _spread(codes: Sequence[int], present: Ints) -> Ints:
    """Return a column with a value for every event: where there is none, that of the last event that has one."""
    spread: Ints = np.array(codes, np.int64)[(np.cumsum(present) - 1).clip(min=0)]
    return spread


class _Beside:
    """The columns of a group so far, and what other groups say of its events: what a column is predicted by."""

    def __init__(self, key: Key, noted: Noted) -> None:
        self.who, self.noted = _who(key), noted
        self.full: dict[Path, Ints] = {}
        self.known: dict[str, Ints] = {}
        self.joined: dict[str, Ints] = {}

    def put(self, path: Path, column: Ints, writer: Writer) -> list[Any]:
        """Write a column; returns its entry."""
        entry = writer.put(column, self.known, self.joined, self._carries(path))
        self._add(path, column)
        return entry

    def take(self, path: Path, entry: Sequence[Any], rows: int, reader: Reader) -> Ints:
        """Read a column, of which `put` returned the entry."""
        self._add(path, reader.take(entry, rows, self.known, self.joined))
        return self.full[path]

    def note(self) -> None:
        """Keep what the groups that follow are predicted by."""
        if not self.who or KEYS[0] not in self.full:
            return
        held = self.noted.setdefault(self.who, {})
        for path in (KEYS[0], *PREDICTS):
            column = self.full.get(path, np.zeros(len(self.full[KEYS[0]]), np.int64))
            held[path] = np.concatenate((held[path], column)) if path in held else column

    def _add(self, path: Path, column: Ints) -> None:
        self.full[path] = column
        self.known["/".join(path)] = column
        if path in KEYS:
            for who, held in self.noted.items():
                if who != self.who:
                    self.joined |= _joined(who, column, held)

    def _carries(self, path: Path) -> list[str]:
        return ["dur"] if path == START and "dur" in self.known else []


def _joined(who: str, keys: Ints, held: Mapping[Path, Ints]) -> dict[str, Ints]:
    """Return what calls or work on the GPU with the same keys say; 0 for events without one."""
    order = np.argsort(held[KEYS[0]], kind="stable")
    rows = order[np.searchsorted(held[KEYS[0]][order], keys).clip(max=len(order) - 1)]
    found = held[KEYS[0]][rows] == keys
    joined = {f"{who}/{'/'.join(path)}": np.where(found, held[path][rows], 0) for path in PREDICTS}
    return joined | {f"{who}/end": joined[f"{who}/ts"] + joined[f"{who}/dur"]}
