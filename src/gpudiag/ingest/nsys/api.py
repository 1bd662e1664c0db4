"""CUDA API calls of an Nsight Systems file."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from gpudiag.ingest.nsys.ids import (
    Capture,
    api_function,
    discover_api_names,
    discover_threads,
    extent,
    numbered,
    settle,
    strings,
    thread_map,
)
from gpudiag.ingest.nsys.lookup import listed, relation
from gpudiag.ingest.nsys.owners import owned
from gpudiag.ingest.sources.base import ints

TABLE = "CUPTI_ACTIVITY_KIND_RUNTIME"
TEMPORARY = ("nsys_nested",)

_COLUMNS = ints("start", "end", "globalTid", "correlationId", "nameId", "returnValue")

SANE = 'start >= 0 and "end" >= start and "end" < 4000000000000000000'
"""A row whose times are usable; an end at the far end of the number range is an event that never ended."""

_ARTEFACT = "cuKernelGetName"
"""One call a launch to this function is made by the collection itself."""

_SORTED = 5_000_000
"""Calls that are sorted at a time."""

_COMPARED = 1_000
"""Calls inside one call whose nesting is looked into, which compares all pairs; of more, each has the outermost for its
parent."""


def read_api_calls(capture: Capture) -> None:
    """Fill `api_call`."""
    artefacts: set[int] = set()
    sorts: dict[int, set[bool]] = {}
    for batch in capture.source.batches(TABLE, _COLUMNS):
        _read(capture, owned(capture.alone, capture.source, TABLE, batch, "globalTid"), artefacts, sorts)
    # Only a runtime function (cuda…) calls another traced one (cu…): a thread with one sort has no nested calls.
    mixed = sorted(capture.threads[tid][1] for tid, found in sorts.items() if len(found) > 1)
    if mixed:
        _nest(capture, mixed)


def _read(capture: Capture, batch: str, artefacts: set[int], sorts: dict[int, set[bool]]) -> None:
    """Add a batch; notes the string ids of artefacts, and which sorts of functions each thread called."""
    con = capture.con
    groups = con.execute(
        f"select globalTid, nameId, coalesce(globalTid is not null and {SANE}, false), count(*), min(rid), max(rid)"
        f" from {batch} group by all"
    ).fetchall()
    unseen = {name for _, name, *_ in groups if name not in capture.api_names and name not in artefacts}
    text = strings(capture, unseen)
    functions = {name: api_function(text[name]) if name in text else "unknown" for name in unseen}
    artefacts.update(name for name, function in functions.items() if function == _ARTEFACT and name is not None)
    kept = [group for group in groups if group[1] not in artefacts]
    valid = [group for group in kept if group[2]]
    capture.dropped += sum(group[3] for group in kept if not group[2])
    if not valid:
        return
    discover_threads(capture, {group[0] for group in valid})
    discover_api_names(capture, {name: functions[name] for _, name, *_ in valid if name in functions})
    for tid, name, *_ in valid:
        sorts.setdefault(tid, set()).add(capture.api_names[name][1].startswith("cuda"))
    skipped = f" and coalesce(nameId, -1) not in ({', '.join(map(str, sorted(artefacts)))})" if artefacts else ""
    rows = batch if valid == groups else f"(from {batch} where {SANE} and globalTid is not null{skipped})"
    names = relation(con, "a", "string, id", [(string, id_) for string, (id_, _) in capture.api_names.items()])
    con.execute(
        'insert into api_call by name select n.id, start, "end", t.process, t.thread, a.id as name,'
        " correlationId as correlation, try_cast(returnValue as integer) as return_code"
        f" from {numbered(capture, 'api_call', rows, extent(group[3:] for group in valid))} n"
        f" join {thread_map(capture)} on t.tid = globalTid"
        f" left join {names} on a.string is not distinct from nameId"
    )
    settle(capture, sum(group[3] for group in valid))


def _nest(capture: Capture, threads: list[int]) -> None:
    """Give calls made inside another call of their thread its id."""
    con, first = capture.con, capture.first["api_call"]
    inner = sorted(id_ for id_, function in capture.api_names.values() if not function.startswith("cuda"))
    drivers, mixed = listed(con, "driver", inner), listed(con, "mixed", threads)
    con.execute("create or replace temp table nsys_nested (id integer, outermost integer)")
    # By stretches of time: all calls of a long capture at once would not fit into memory.
    cuts = con.execute(
        f"select distinct start from api_call where id > {first} and (id - {first}) % {_SORTED} = 0 order by 1"
    ).fetchall()
    before = None  # each thread's last runtime call
    for begin, end in pairwise([None, *(time for (time,) in cuts), None]):
        calls = con.execute(
            f'select thread, start, "end", id, name not in ({drivers}) as outer from api_call'
            f" where id >= {first} and thread in ({mixed})"
            f"{'' if begin is None else f' and start >= {begin}'}{'' if end is None else f' and start < {end}'}"
        ).fetchnumpy()
        columns = {name: np.asarray(values) for name, values in calls.items()}
        if before is not None:
            columns = {name: np.append(before[name], values) for name, values in columns.items()}
        before = _nest_within(con, columns)
    capture.nested = bool(con.execute("select 1 from nsys_nested limit 1").fetchall())
    if not capture.nested:
        return
    con.execute(
        "update api_call set parent = coalesce(("
        " select max_by(n.id, a.start) from nsys_nested n join api_call a on a.id = n.id"
        " where n.outermost = nested.outermost and n.id <> nested.id and a.thread = api_call.thread"
        f" and n.outermost not in (select outermost from nsys_nested group by all having count(*) > {_COMPARED})"
        ' and a.start <= api_call.start and a."end" >= api_call."end"'
        ' and (a.start, -a."end", a.id) < (api_call.start, -api_call."end", api_call.id)), nested.outermost)'
        " from nsys_nested nested where nested.id = api_call.id"
    )


def _nest_within(con: duckdb.DuckDBPyConnection, calls: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Add to `nsys_nested` from a stretch of calls; return each thread's last runtime call in it."""
    order = _by_thread_and_start(calls)
    thread, end, outer = calls["thread"][order], calls["end"][order], calls["outer"][order].astype(bool)
    last = np.maximum.accumulate(np.where(outer, np.arange(len(order)), -1))
    # Clocks jitter: a driver call that ends after the runtime call it began in is not nested, and neither is a runtime
    # call that seems to run inside another.
    nested = ~outer & (last >= 0) & (thread[last] == thread) & (end[last] >= end)
    if nested.any():
        ids = calls["id"][order]
        con.register("found_nested", {"id": ids[nested], "outermost": ids[last[nested]]})
        try:
            con.execute("insert into nsys_nested from found_nested")
        finally:
            con.unregister("found_nested")
    ends = np.append(np.flatnonzero(thread[1:] != thread[:-1]), len(order) - 1) if len(order) else order
    kept = last[ends]
    kept = order[kept[(kept >= 0) & (thread[kept] == thread[ends])]]
    return {name: values[kept] for name, values in calls.items()}


def _by_thread_and_start(calls: Mapping[str, NDArray[Any]]) -> NDArray[np.intp]:
    """The order of calls by thread and start; of those that begin together runtime calls come first, as they end."""
    start, threads = calls["start"], calls["thread"]
    order = np.argsort(start, kind="stable")  # fast, as nsys writes them nearly in order
    together = np.append(False, np.diff(start[order]) == 0)
    together[:-1] |= together[1:]
    if together.any():
        tied = order[together]
        keys = (calls["id"], calls["end"], ~calls["outer"].astype(bool), start)
        order[together] = tied[np.lexsort([key[tied] for key in keys])]
    return order if (threads == threads[:1]).all() else order[np.argsort(threads[order], kind="stable")]
