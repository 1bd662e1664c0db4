"""Dense identifiers for what an Nsight Systems file numbers in its own ways: texts, processes, threads, GPUs, streams.

Rows arrive in batches. Of each, one query asks what it names; what is new gets the next identifiers, in an order that
depends on the file alone; and small relations map the file's numbers to the store's when the rows are inserted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import duckdb

from gpudiag.ingest import numba
from gpudiag.ingest.nsys import devices as nsys_gpus
from gpudiag.ingest.nsys.devices import Gpus, StreamKey
from gpudiag.ingest.nsys.enums import Enums
from gpudiag.ingest.nsys.lookup import relation
from gpudiag.ingest.nsys.owners import only_process
from gpudiag.ingest.rows import Rows, append
from gpudiag.ingest.sources.base import Source, ints, texts

_IDENTIFIED = (
    "input", "name", "process", "thread", "device", "stream", "api_call", "gpu_op", "nvtx_range", "py_sample",
    "os_call",
)  # fmt: skip
_AT_ONCE = 5_000
"""Identifiers in one condition."""

LONGEST = 16_384
"""Characters of a name that are kept; the longest known, of kernels made of templates, have some ten thousand."""

KERNELS, PROCESSES = 250_000, 100_000
"""Limits on a file's distinct kernels and processes: programs that compile new kernels as they run reach some ten
thousand.
"""
USERS, DEVICES = 1_000, 64
"""Processes with GPU work in one file, and GPUs of one process, that are analysed: each with each is compared."""
_SHORTER = "more than are distinguished; record a shorter time."

_SETTLED_FROM = 100_000
"""Rows of a batch that is committed at once."""


class Beyond(Exception):
    """There is more of something than is read; says of what, and what to do."""


@dataclass
class Capture:
    """One Nsight Systems file on its way into the store."""

    con: duckdb.DuckDBPyConnection
    source: Source
    enums: Enums
    gpus: Gpus
    first: Mapping[str, int]
    """The identifiers this input begins with, by table."""
    next: dict[str, int]
    """The first identifiers not used yet, by table."""
    dropped: int = 0
    """Rows left out because their times make no sense."""
    processes: dict[int, int] = field(default_factory=dict)
    """A process key is a global id without its lowest 24 bits, which hold the thread; the next 24 are the pid."""
    threads: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Global thread id → process, thread."""
    names: dict[tuple[str, str], int] = field(default_factory=dict)
    names_in_store: bool = False
    """Whether the store may hold names that `names` does not."""
    api_names: dict[int | None, tuple[int, str]] = field(default_factory=dict)
    """String id → name, function; of API calls."""
    kernel_names: dict[tuple[int | None, int | None], tuple[int, str]] = field(default_factory=dict)
    """String ids of full and short text → name, short text."""
    unsaved: dict[str, Rows] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    nested: bool = False
    """Whether any call was made inside another, so that `nsys_nested` has rows."""
    ambiguous: bool = False
    """Whether two calls of a process share a correlation id."""
    graph_nodes: bool = False
    alone: int = 0
    """The process key of rows in tables that name no process."""

    @property
    def input(self) -> int:
        return self.first["input"]

    def found(self, table: str) -> int:
        """Rows this input added to a table with identifiers."""
        return self.next[table] - self.first[table]

    def add(self, table: str, rows: Rows) -> None:
        """Rows to be saved; the first value is the identifier."""
        self.unsaved.setdefault(table, []).extend(rows)
        self.next[table] += len(rows)


def start(con: duckdb.DuckDBPyConnection, source: Source, enums: Enums) -> Capture:
    """A capture whose rows go after those the store has."""
    next_ids = dict.fromkeys(_IDENTIFIED, 0)
    if con.execute("select 1 from input limit 1").fetchall():
        counted = ", ".join(f'(select coalesce(max(id) + 1, 0) from "{table}")' for table in _IDENTIFIED)
        next_ids.update(zip(_IDENTIFIED, con.execute(f"select {counted}").fetchall()[0], strict=True))
    known = nsys_gpus.read(source, enums)
    capture = Capture(con, source, enums, known, dict(next_ids), next_ids, names_in_store=next_ids["name"] > 0)
    capture.alone = only_process(con, source)
    return capture


_SAVED = {
    "name": ("id", "text", "short"),
    "process": ("id", "input", "pid", "name"),
    "thread": ("id", "process", "tid", "name"),
    "device": nsys_gpus.DEVICE,
    "stream": nsys_gpus.STREAM,
}


def save(capture: Capture, *tables: str) -> None:
    """Write what was discovered; all tables unless some are named."""
    for table in tables or tuple(_SAVED):
        rows = capture.unsaved.pop(table, [])
        if table == "process":
            rows = _with_process_names(capture, rows)
        elif table == "thread":
            rows = _with_thread_names(capture, rows)
        append(capture.con, table, _SAVED[table], rows)


def _with_process_names(capture: Capture, rows: Rows) -> Rows:
    found: dict[int, str] = {}
    if rows:
        keys = {row[-1] for row in rows}
        columns = ints("globalPid") | texts("name")
        for global_pid, name in capture.source.rows("PROCESSES", columns, _among("globalPid >> 24", keys)):
            if name is not None and global_pid is not None:
                found.setdefault(global_pid >> 24, re.split(r"[/\\]", name)[-1])
    return [(*row[:-1], found.get(row[-1]) or None) for row in rows]


def _with_thread_names(capture: Capture, rows: Rows) -> Rows:
    best: dict[int, tuple[int, str]] = {}
    if rows:
        tids = {row[-1] for row in rows}
        columns = ints("nameId", "priority", "globalTid")
        named = capture.source.rows("ThreadNames", columns, _among("globalTid", tids))
        text = strings(capture, {name for name, _, tid in named if tid in tids})
        for name, priority, tid in named:
            if text.get(name) is not None and (tid not in best or (priority or 0) > best[tid][0]):
                best[tid] = (priority or 0, text[name])
    return [(*row[:-1], best[row[-1]][1] if row[-1] in best else None) for row in rows]


def _among(column: str, values: Collection[int]) -> str:
    """A condition that holds for all of these values; where they are many, for others too."""
    return f"{column} in ({', '.join(map(str, sorted(values)))})" if len(values) <= _AT_ONCE else "true"


def strings(capture: Capture, ids: Collection[int | None]) -> dict[int, str]:
    """Texts by string id; an id without one is left out."""
    wanted = sorted(id_ for id_ in set(ids) if id_ is not None)
    found: dict[int, str] = {}
    for at in range(0, len(wanted), _AT_ONCE):
        part = wanted[at : at + _AT_ONCE]
        for id_, text in capture.source.rows("StringIds", ints("id") | texts("value"), _among("id", part)):
            if text is not None:
                found.setdefault(id_, text[:LONGEST])
    return found


def numbered(capture: Capture, table: str, valid: str, extent: tuple[int, int, int]) -> str:
    """The rows of a relation with the next ids of a table, in file order; `extent` is their number and range of rid."""
    rows, low, high = extent
    # Sorting a million row numbers costs as much as inserting them, and most batches have no gap.
    place = f"rid - {low}" if high - low + 1 == rows else "row_number() over (order by rid) - 1"
    first = capture.next[table]
    capture.next[table] += rows
    return f"(select *, ({first} + {place})::integer as id from {valid})"


def settle(capture: Capture, rows: int) -> None:
    """Commit after a large batch: rows that are not committed stay in memory."""
    if rows >= _SETTLED_FROM:
        capture.con.execute("commit")
        capture.con.execute("begin")


def extent(groups: Iterable[tuple[int, int, int]]) -> tuple[int, int, int]:
    """Number of rows and range of rid over groups of a batch."""
    counts, lows, highs = zip(*groups, strict=True)
    return sum(counts), min(lows), max(highs)


def intern(capture: Capture, pairs: Iterable[tuple[str, str]]) -> None:
    """Give (text, short) pairs their ids in `name`."""
    new = sorted(set(pairs) - capture.names.keys())
    if new and capture.names_in_store:
        query = "select text, short, id from name where text in (select unnest(?::varchar[]))"
        found = capture.con.execute(query, [[text for text, _ in new]]).fetchall()
        capture.names.update(((text, short), id_) for text, short, id_ in found)
        new = [pair for pair in new if pair not in capture.names]
    first = capture.next["name"]
    capture.names.update((pair, id_) for id_, pair in enumerate(new, first))
    capture.add("name", [(id_, *pair) for id_, pair in enumerate(new, first)])


def api_function(text: str) -> str:
    """A function without the suffixes that tell its ABI version and its default stream."""
    return re.sub(r"(_v[0-9]+)?(_ptsz|_ptds)?(_v[0-9]+)?\Z", "", text, count=1)


def discover_api_names(capture: Capture, functions: Mapping[int | None, str]) -> None:
    """Intern API functions by string id."""
    new = {id_: function for id_, function in functions.items() if id_ not in capture.api_names}
    intern(capture, ((function, function) for function in new.values()))
    capture.api_names.update((id_, (capture.names[function, function], function)) for id_, function in new.items())


def discover_kernel_names(capture: Capture, keys: Collection[tuple[int | None, int | None]]) -> None:
    """Intern kernels by the string ids of their full text and short form. Raises Beyond."""
    new = [key for key in keys if key not in capture.kernel_names]
    if len(capture.kernel_names) + len(new) > KERNELS:
        raise Beyond(f"it names more than {KERNELS:,} different kernels, {_SHORTER}")
    text = strings(capture, {id_ for key in new for id_ in key})
    unnamed = "(unnamed kernel)"
    pairs = {}
    for full, short in new:
        of_full, of_short = (text.get(id_) if id_ is not None else None for id_ in (full, short))
        whole, base = of_full or of_short or unnamed, of_short or of_full or unnamed
        pairs[full, short] = (numba.as_first_compiled(whole), numba.untagged(base))
    intern(capture, pairs.values())
    capture.kernel_names.update((key, (capture.names[pair], pair[1])) for key, pair in pairs.items())


def discover_processes(capture: Capture, keys: Collection[int]) -> None:
    """Add the processes of some keys (`globalPid >> 24`). Raises Beyond."""
    new = sorted(set(keys) - capture.processes.keys())
    if len(capture.processes) + len(new) > PROCESSES:
        raise Beyond(f"it is of more than {PROCESSES:,} processes, {_SHORTER}")
    first = capture.next["process"]
    capture.processes.update((key, id_) for id_, key in enumerate(new, first))
    capture.add("process", [(id_, capture.input, key & 0xFFFFFF, key) for id_, key in enumerate(new, first)])


def discover_threads(capture: Capture, tids: Collection[int]) -> None:
    """Add threads by global id, and their processes."""
    discover_processes(capture, {tid >> 24 for tid in tids})
    new = sorted(set(tids) - capture.threads.keys())
    rows = []
    for id_, tid in enumerate(new, capture.next["thread"]):
        process = capture.processes[tid >> 24]
        capture.threads[tid] = (process, id_)
        rows.append((id_, process, tid & 0xFFFFFF, tid))
    capture.add("thread", rows)


def discover_streams(capture: Capture, wanted: Mapping[StreamKey, int | None]) -> None:
    """Add streams by process key, context and number, each with its CUDA device number, and their devices."""
    discover_processes(capture, {key for key, _, _ in wanted})
    known = capture.gpus
    pairs = {(key, cuda or 0) for (key, _, _), cuda in wanted.items()}
    _refuse_impossible(Counter(key for key, _ in pairs | known.devices.keys()))
    capture.add("device", nsys_gpus.discover_devices(known, pairs, capture.input, capture.next["device"]))
    capture.add("stream", nsys_gpus.discover_streams(known, wanted, capture.processes, capture.next["stream"]))


def _refuse_impossible(gpus: Mapping[int, int]) -> None:
    """gpus: process → how many it used. Raises Beyond."""
    if len(gpus) > USERS:
        raise Beyond(
            f"{len(gpus):,} of its processes used a GPU, and at most {USERS:,} are read; record one process, or a"
            " shorter time."
        )
    if gpus and max(gpus.values()) > DEVICES:
        raise Beyond(
            f"one process used {max(gpus.values()):,} GPUs in it, more than a machine has; it may be damaged: export"
            " the report again."
        )


def process_map(capture: Capture) -> str:
    """Relation `p`: key, process."""
    return relation(capture.con, "p", "key, process", list(capture.processes.items()))


def thread_map(capture: Capture) -> str:
    """Relation `t`: tid, process, thread."""
    return relation(capture.con, "t", "tid, process, thread", [(tid, *ids) for tid, ids in capture.threads.items()])


def stream_map(capture: Capture) -> str:
    """Relation `s`: key, context, number, device, process, stream."""
    rows = [(*key, *ids) for key, ids in capture.gpus.streams.items()]
    return relation(capture.con, "s", "key, context, number, device, process, stream", rows)
