"""A file read by itself and summarised. Nothing of another rank is needed, so files are read anywhere, in any order."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np

from gpudiag.ingest import ingest
from gpudiag.jobs.rank_summary import ARRAYS, Ints, RankSummary, packed, unpacked
from gpudiag.library.catalogue import Library
from gpudiag.memory import database_bytes
from gpudiag.options import Options
from gpudiag.prepare import in_a_sentence, load_library, size_of
from gpudiag.store import database
from gpudiag.tempdir import work_folder

if TYPE_CHECKING:
    from gpudiag.cache import Memo

Connection = duckdb.DuckDBPyConnection
PART = "rank"
"""Name of the cached summary, and of its memo's one part."""


def summarise(path: Path, options: Options) -> tuple[RankSummary, ...]:
    """The ranks in a file, as an earlier run kept them or read anew: a process that ran collectives is one.

    None where no process ran any. Raises GpudiagError where the file cannot be read.
    """
    memo = _memo(path, options)
    if memo and (kept := memo.read(PART)):
        try:
            return unpacked(kept[0])
        except (ValueError, KeyError, TypeError):  # of another version
            memo.discard()
    with in_a_sentence([path], options):
        found = _read(path, options)
    if memo:
        _keep(memo, found)
    return found


def _memo(path: Path, options: Options) -> Memo | None:
    if not options.cached:
        return None
    from gpudiag import cache

    try:
        return cache.memo([path], options, PART)
    except cache.Unkept:  # whoever asks for the whole report says so once
        return None


def _keep(memo: Memo, found: tuple[RankSummary, ...]) -> None:
    from gpudiag.cache import Unkept

    with contextlib.suppress(Unkept):
        memo.keep({PART: packed(found)})


def _read(path: Path, options: Options) -> tuple[RankSummary, ...]:
    size = size_of(path)
    library = load_library(options)
    with work_folder() as folder:
        # Workers read many ranks side by side: more threads for each would only wait for one another.
        memory = database_bytes(options.memory_limit, size)
        con = database.create(str(folder / "rank.duckdb"), memory=memory, threads=1)
        try:
            ingest(path, con, folder, lambda _: None)
            return of_store(con, library)
        finally:
            con.close()


def of_store(con: Connection, library: Library) -> tuple[RankSummary, ...]:
    """The ranks in a store whose canonical tables are filled; no view is needed."""
    database.load_settings(con, library.setting_values)
    database.load_macros(con, library.views)
    settings = library.setting_values
    return tuple(_rank(con, process, settings) for (process,) in con.execute(_PROCESSES).fetchall())


_PROCESSES = "select distinct o.process from collective c join gpu_op o on o.id = c.gpu_op order by 1"
_ABOUT = """
select i.file, coalesce(p.pid, 0), p.rank, i.host from process p join input i on i.id = p.input where p.id = ?
"""
_OWN = """
with own as (from numbered_collectives() where process = $process)
select n.channel, n.sequence, c.op as operation, coalesce(c.bytes, -1) as bytes, coalesce(c.ranks, -1) as ranks,
       n.start, n."end", c."group" as name, o.device
from own n join collective c on c.gpu_op = n.gpu_op join gpu_op o on o.id = n.gpu_op
order by n.start, n.channel, n.sequence
"""
_WORK = """
select o.start, o."end", op_class(o.kind, n.short) as class, coalesce(n.short, o.kind) as name
from gpu_op o left join name n on n.id = o.name where o.process = ? and o.device = ? order by o.start, o.id
"""


def _rank(con: Connection, process: int, settings: Mapping[str, float]) -> RankSummary:
    about = con.execute(_ABOUT, [process]).fetchall()[0]
    own = con.execute(_OWN, {"process": process}).fetchnumpy()
    operations = tuple(sorted(set(own["operation"].tolist())))
    (device,) = _most_used(own["device"])
    gpu = con.execute("select ordinal, name from device where id = ?", [device]).fetchone() or (None, None)
    work = con.execute(_WORK, [process, device]).fetchnumpy()
    start, end = own["start"].astype(np.int64), own["end"].astype(np.int64)
    columns: dict[str, Ints] = {name: np.asarray(own[name], dtype=np.int64) for name in ("channel", "sequence")}
    columns |= {name: np.asarray(own[name], dtype=np.int64) for name in ("bytes", "ranks")}
    columns |= {"start": start, "end": end}
    columns["operation"] = np.searchsorted(np.array(operations, dtype=object), own["operation"]).astype(np.int64)
    columns |= _own_work(start, end, work)
    named: dict[int, str] = {}
    for channel, name in zip(columns["channel"].tolist(), np.ma.filled(own["name"], "").tolist(), strict=True):
        if name and isinstance(name, str):
            named.setdefault(channel, name)
    warm = int(len(start) * settings["job_warm_share"])
    return RankSummary(
        file=about[0], pid=about[1], rank=about[2], host=about[3], device=gpu[0], gpu=gpu[1], began=_began(con),
        content=_content(start, end), groups=named, operations=operations,
        kernels=_kernels(work, int(start[warm]), int(end[-1]), int(settings["job_kernels"])), kernels_from=warm,
        collectives={name: columns[name] for name in ARRAYS},
    )  # fmt: skip


def _most_used(devices: Any) -> tuple[int]:
    values, counts = np.unique(np.asarray(devices), return_counts=True)
    return (int(values[np.argmax(counts)]),)


def _began(con: Connection) -> int | None:
    """The moment that the capture's clock counts from, in ns since 1970, where its reader found one."""
    try:
        row = con.execute("select began from clock_start where input = 0").fetchone()
    except duckdb.CatalogException:
        return None
    return None if row is None else row[0]


def _content(start: Ints, end: Ints) -> str:
    return hashlib.blake2b(start.tobytes() + end.tobytes(), digest_size=16).hexdigest()


def _own_work(start: Ints, end: Ints, work: dict[str, Any]) -> dict[str, Ints]:
    """The GPU's work between the starts of collectives: compute hides communication, which hides copies."""
    begins, ends = work["start"].astype(np.int64), work["end"].astype(np.int64)
    kinds = np.asarray(work["class"])
    compute = _Cover(begins, ends, kinds == "compute")
    busy = _Cover(begins, ends, (kinds == "compute") | (kinds == "communication"))
    every = _Cover(begins, ends, np.ones(len(kinds), dtype=bool))
    first = int(min(begins[0], start[0])) if len(begins) else int(start[0])
    since = np.concatenate([[first], start[:-1]]).astype(np.int64)
    computed, used, all_ = (cover.between(since, start) for cover in (compute, busy, every))
    return {
        "exposed": (end - start) - compute.between(start, end),
        "compute": computed,
        "copy": all_ - used,
        "idle": (start - since) - all_,
    }


class _Cover:
    """The time that some intervals cover together."""

    def __init__(self, start: Ints, end: Ints, chosen: np.ndarray[Any, Any]) -> None:
        start, end = start[chosen], end[chosen]
        reach = np.maximum.accumulate(end) if len(end) else end
        opens = np.concatenate([[True], start[1:] > reach[:-1]]) if len(start) else np.zeros(0, dtype=bool)
        self.starts = start[opens]
        self.ends = reach[np.concatenate([opens[1:], [True]])] if len(start) else end
        self.before = np.concatenate([[0], np.cumsum(self.ends - self.starts)]).astype(np.int64)

    def _until(self, time: Ints) -> Ints:
        at = np.searchsorted(self.starts, time, side="right")
        if not len(self.starts):
            return np.zeros(len(time), dtype=np.int64)
        last = np.maximum(at - 1, 0)
        part = np.where(at > 0, np.minimum(time, self.ends[last]) - self.starts[last], 0)
        return np.asarray(self.before[last] + part, dtype=np.int64)

    def between(self, start: Ints, end: Ints) -> Ints:
        return self._until(end) - self._until(start)


def _kernels(work: dict[str, Any], since: int, until: int, most: int) -> dict[str, int]:
    """Time of the longest kernels from one moment to another, by short name, at most so many (ns)."""
    chosen = (work["start"] >= since) & (work["start"] < until) & (np.asarray(work["class"]) == "compute")
    names: Sequence[str] = np.asarray(work["name"])[chosen].tolist()
    spent: dict[str, int] = {}
    for name, ns in zip(names, (work["end"] - work["start"])[chosen].tolist(), strict=True):
        spent[name] = spent.get(name, 0) + int(ns)
    return dict(sorted(spent.items(), key=lambda item: (-item[1], item[0]))[:most])
