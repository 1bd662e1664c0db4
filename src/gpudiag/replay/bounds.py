"""Upper bounds by interval arithmetic: on the recorded time, and on the unedited replay.

A claim maps intervals of the loop's time to the nanoseconds of each that would go. Claims of several findings are
merged interval by interval, so that no microsecond is promised twice. Nothing is simulated: what the rest of the
program would do with the time freed is not known here, hence *upper* bounds.

How much earlier can an edited loop end at most? For each node that an edit shortens, or frees of an edge, take the
interval from the time that its other edges and its new duration allow to its unedited end. No node then ends earlier by
more than these intervals cover before it. Proof, node by node in replay order: an unchanged node keeps the edge that
set its start, so it moves no further than that edge's source. A changed node starts no earlier than its other edges
allow, their sources have moved by at most what is covered before them, and what it gains beyond that lies in its own
interval. Added edges and longer durations only delay. Ranks that wait for one another are one graph on one clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

import duckdb
import numpy as np

from gpudiag.model import Row, Rule
from gpudiag.replay.edited_graph import EditedGraph
from gpudiag.replay.edits import registry
from gpudiag.replay.edits.edit_spec import CopyBound, EditSpec
from gpudiag.replay.simulate import union
from gpudiag.replay.trace import Floats
from gpudiag.store import query

Connection = duckdb.DuckDBPyConnection
Claim = dict[str, float]  # "interval:7" or "op:12" or WHOLE → ns
WHOLE = "loop"
"""Of a part of the loop that no interval or operation stands for."""
NUMBERED = "select split_part(key, ':', 1) as of, try_cast(split_part(key, ':', 2) as integer) as id, ns from claim"
"""Rows of a claim (key, ns) as SQL, with numbers to join by: texts of all intervals would be made for each claim."""


def claim(con: Connection, rule: Rule, rows: Sequence[Row], loop: int, total_ns: float) -> Claim:
    """The time of `loop` that the best fix named by `rule.price` could remove for these rows.

    rows: the rule's rows for this loop; ids in the column `rule.price.on`, else a `share` of the loop. Copies in
        `gpu_ops` of a row about calls are those that the calls kept from running beside kernels.
    total_ns: the loop's analysed time over all its devices.
    """
    price = rule.price
    if price is None or price.kind == "test_needed" or price.on is None:
        return {}
    edits = registry.of(price.best)
    result: Claim = {}
    chosen: dict[float, list[int]] = {}
    for row in rows:
        ids = price.ids_of(row)
        if ids is not None:
            recoverable = row.get("recoverable")
            part = float(recoverable) if isinstance(recoverable, int | float) else 1.0
            chosen.setdefault(part, []).extend(ids)
            if price.on == "api_calls" and row.get("gpu_ops"):
                _want(con, row["gpu_ops"])
                merge(result, _copies(con, loop, set()))
            continue
        share = row.get("share")
        if isinstance(share, int | float) and share > 0:
            result[WHOLE] = min(total_ns, result.get(WHOLE, 0.0) + float(share) * total_ns)
    on = "gpu_ops" if price.on == "profiles" else price.on
    if chosen and on == "gpu_ops" and any(edit.rewrites_kernel or edit.moves_kernels for edit in edits):
        shown = _kernels(con, loop, {id_ for ids in chosen.values() for id_ in ids})
        for part, ids in chosen.items():
            merge(result, {f"op:{op}": shown[op] * part for op in ids if op in shown})
    if on == "idle_intervals" or any(edit.idle_bound or edit.copy_bound for edit in edits):
        for ids in chosen.values():
            merge(result, _claim_ids(con, on, ids, edits, loop))
    if any(edit.across_ranks for edit in edits):  # the rest of its share is what the other ranks wait meanwhile
        shares = [row.get("share") for row in rows if isinstance(row.get(price.on), list)]
        whole = sum(float(share) for share in shares if isinstance(share, int | float)) * total_ns
        rest = min(whole, total_ns) - math.fsum(result.values())
        if rest > 0:
            result[WHOLE] = result.get(WHOLE, 0.0) + rest
    return result


def keep(con: Connection, claim: Claim) -> None:
    """Make table `claim` (key, ns) of a claim, for `NUMBERED`."""
    keys = np.array(list(claim), dtype=object) if claim else np.zeros(0, dtype=np.str_)
    ns = np.fromiter(claim.values(), dtype=np.float64, count=len(claim))
    query.keep(con, "claim", {"key": keys, "ns": ns})


def _want(con: Connection, ids: Iterable[int]) -> None:
    """Make table `wanted` (id)."""
    query.keep(con, "wanted", {"id": np.fromiter(ids, dtype=np.int32)})


def _claim_ids(con: Connection, on: str, ids: Iterable[int], edits: Sequence[EditSpec], loop: int) -> Claim:
    copies = {edit.copy_bound for edit in edits} - {None}
    _want(con, ids)
    result: Claim = {}
    if on == "idle_intervals":
        rows = con.execute(
            'select idle_interval, "end" - start from idle_interval'
            " where loop = ? and idle_interval in (select id from wanted)",
            [loop],
        ).fetchall()
        return {f"interval:{interval}": float(ns) for interval, ns in rows}
    if on == "gpu_ops":
        if copies:
            merge(result, _copies(con, loop, copies))
        con.execute(
            "create or replace temp table wanted as select distinct api_call as id from gpu_op"
            " where id in (select id from wanted) and api_call is not null"
        )
    elif copies:
        con.execute(
            "create or replace temp table wanted_ops as select id from gpu_op where api_call in (select id from wanted)"
        )
        merge(result, _copies(con, loop, copies, "wanted_ops"))
    if any(
        edit.whole_block for edit in edits
    ):  # the whole block goes: what it launches to compute the value is not needed either
        con.execute(
            "insert into wanted select api_call from readback_range where (loop, path) in"
            " (select loop, path from readback_range where loop = ? and api_call in (select id from wanted))",
            [loop],
        )
    conditions = dict.fromkeys(f"({condition})" for edit in edits for condition in edit.idle_bound)
    if conditions:
        rows = con.execute(
            'select p.idle_interval, p."end" - p.start from idle_interval p'
            f" where p.loop = ? and ({' or '.join(conditions)})",
            [loop],
        ).fetchall()
        merge(result, {f"interval:{interval}": float(ns) for interval, ns in rows})
    return result


def _kernels(con: Connection, loop: int, ids: Iterable[int]) -> dict[int, float]:
    """Kernel time (ns), each kernel's as a part of the compute time that the device showed (kernels may overlap)."""
    _want(con, ids)
    rows = con.execute(
        """
        with kernels as (select op, device, duration_ns from loop_gpu_op where loop = ? and class = 'compute'),
        summed as (select device, sum(duration_ns) as ns from kernels group by device),
        shown as (
            select device, sum("end" - start) as ns from device_state where loop = ? and state = 'compute'
            group by device
        )
        select k.op, k.duration_ns * least(1, h.ns / s.ns) from kernels k
        join summed s using (device) join shown h using (device)
        where k.op in (select id from wanted)
        """,
        [loop, loop],
    ).fetchall()
    return {op: float(ns) for op, ns in rows}


def _copies(con: Connection, loop: int, bounds: AbstractSet[CopyBound | None], table: str = "wanted") -> Claim:
    """Exposed copy time of operations; pinning keeps what the link needs, batching what the bytes need."""
    rows = con.execute(
        f"""
        select t.op, t.exposed_ns, t.duration_ns,
               1e9 * t.bytes / coalesce(l.bytes_per_s, setting('pinned_bytes_per_s'))
        from transfer t join loop_gpu_op w on w.op = t.op left join device_link l on l.device = w.device
        where t.loop = ? and t.op in (select id from {table})
        """,
        [loop],
    ).fetchall()
    keep_engines = _engine_cap(con, loop) if "but_engines" in bounds else None
    keeps = bounds == {"but_bytes"}
    result: Claim = {}
    for op, exposed, duration, needed in rows:
        part = max(0.0, 1 - (needed or 0) / duration) if keeps and duration else 1.0
        if exposed:
            result[f"op:{op}"] = float(exposed) * part
    # Two copies may be exposed at the same time, and overlap cannot make a loop shorter than its busiest engine.
    row = con.execute("select sum(ns) from loop_budget where loop = ? and category = 'exposed_copy'", [loop]).fetchone()
    most = float(row[0]) if row and row[0] else 0.0
    if keep_engines is not None:
        most = min(most, keep_engines)
    total = math.fsum(result.values())
    return {key: ns * most / total for key, ns in result.items()} if total > most else result


def _engine_cap(con: Connection, loop: int) -> float:
    """Return what perfect overlap could remove (ns): the loop's time less its busiest engine (SMs, copy engines)."""
    row = con.execute(
        """
        with engine as (
            select sum(duration_ns) as ns from transfer where loop = ? group by direction
            union all
            select ns from loop_budget where loop = ? and category = 'compute'
        )
        select f.total_ns - (select max(ns) from engine) from loop_facts f where f.loop = ?
        """,
        [loop, loop, loop],
    ).fetchone()
    return max(0.0, float(row[0])) if row and row[0] is not None else 0.0


def merge(into: Claim, other: Claim) -> None:
    """Add a claim: of each interval the larger part is taken, never both."""
    for key, ns in other.items():
        if ns > into.get(key, 0.0):
            into[key] = ns


def measure(a: Claim, total_ns: float) -> float:
    """The part of the loop that a claim removes, 0 to 1."""
    return min(1.0, math.fsum(a.values()) / total_ns) if total_ns > 0 else 0.0


def removable(before: EditedGraph, ends: Floats, after: EditedGraph) -> tuple[Floats, Floats]:
    """Return the starts and ends of what the edit can remove (ns); see `covered`.

    before: the unedited graph; ends: when each of its nodes ends (ns); after: the same graph, edited.
    """
    graph = before.graph
    changed = after.duration < before.duration
    changed[graph.target[after.lag < before.lag]] = True
    allowed = after.release.copy()
    held = np.flatnonzero(np.diff(graph.first))  # edges stand in the order of their targets
    if len(held):
        latest = np.maximum.reduceat(ends[graph.source] + after.lag, graph.first[held])
        allowed[held] = np.maximum(allowed[held], latest)
    if after.added:
        source, target = np.array(after.added, dtype=np.int64).T
        earlier = ends[source] <= ends[target]
        np.maximum.at(allowed, target[earlier], ends[source[earlier]])
    return (allowed + after.duration)[changed], ends[changed]


def covered(intervals: Sequence[tuple[Floats, Floats]]) -> float:
    """Return the time that all intervals cover together, on one clock (ns): no end comes earlier by more."""
    start, end = (np.concatenate(each) for each in zip(*intervals, strict=True))
    order = np.argsort(start)
    return union(start[order], end[order])
