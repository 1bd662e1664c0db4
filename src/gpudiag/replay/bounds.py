"""Upper bounds by interval arithmetic: the recorded time that an edit could at most remove.

A claim maps pieces of the loop's time to the nanoseconds of each that would go. Claims of several findings are merged
piece by piece, so that no microsecond is promised twice. Nothing is simulated: what the rest of the program would do
with the time freed is not known here, hence *upper* bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import duckdb

from gpudiag.model import Edit, Row, Rule

Connection = duckdb.DuckDBPyConnection
Claim = dict[str, float]  # "piece:7" or "op:12" or WHOLE → ns
WHOLE = "loop"
"""Of a part of the loop that no piece or operation stands for."""

# Idle pieces by what an edit takes away. `wanted` holds the selected call ids.
_OF_CALL = "p.doing = 'call' and p.api_call in (select id from wanted)"
_AFTER = "p.cause_call in (select id from wanted)"
_LAUNCHING = "p.category = 'idle_launch' and p.api_call in (select id from wanted)"
_BEFORE = "p.doing = 'segment' and p.api_call in (select id from wanted)"

_IDLE_OF: Mapping[Edit, str] = {
    Edit.DROP_SYNC: f"({_OF_CALL}) or ({_AFTER})",
    Edit.DROP_CALL: f"({_OF_CALL}) or ({_AFTER})",
    Edit.POOL_ALLOCATION: f"({_OF_CALL}) or ({_AFTER})",
    Edit.RUN_ASYNC: f"({_OF_CALL}) or ({_AFTER})",
    Edit.DROP_COPY: f"({_OF_CALL}) or ({_AFTER}) or ({_BEFORE})",
    Edit.PIN: f"({_OF_CALL}) or ({_AFTER})",
    Edit.BATCH_COPIES: f"({_OF_CALL}) or ({_AFTER}) or ({_LAUNCHING})",
    Edit.OVERLAP_COPY: f"({_OF_CALL}) or ({_AFTER})",
    Edit.GRAPH_REGION: _LAUNCHING,
    Edit.FUSE_KERNELS: _LAUNCHING,
    Edit.TO_WORKERS: _BEFORE,
    Edit.DROP_RANGE: f"({_BEFORE}) or ({_OF_CALL}) or ({_AFTER}) or ({_LAUNCHING})",
}
_COPY_EDITS = {Edit.DROP_COPY, Edit.PIN, Edit.BATCH_COPIES, Edit.OVERLAP_COPY}
_KERNEL_EDITS = {Edit.SHRINK_KERNEL, Edit.LOWER_PRECISION}


def claim(con: Connection, rule: Rule, rows: Sequence[Row], loop: int, total_ns: float) -> Claim:
    """The time of `loop` that the best fix named by `rule.price` could remove for these rows.

    rows: the rule's rows for this loop; ids in the column `rule.price.on`, else a `share` of the loop.
    total_ns: the loop's analysed time over all its devices.
    """
    price = rule.price
    if price is None or price.kind == "test_needed" or price.on is None:
        return {}
    edits = price.best
    result: Claim = {}
    chosen: dict[float, list[int]] = {}
    for row in rows:
        ids = price.ids_of(row)
        if ids is not None:
            recoverable = row.get("recoverable")
            part = float(recoverable) if isinstance(recoverable, int | float) else 1.0
            chosen.setdefault(part, []).extend(ids)
            continue
        share = row.get("share")
        if isinstance(share, int | float) and share > 0:
            result[WHOLE] = min(total_ns, result.get(WHOLE, 0.0) + float(share) * total_ns)
    for part, ids in chosen.items():
        on = "gpu_ops" if price.on == "profiles" else price.on
        merge(result, _claim_ids(con, on, ids, edits, loop, part))
    if Edit.BALANCE_RANKS in edits:  # the rest of its share is what the other ranks wait meanwhile
        shares = [row.get("share") for row in rows if isinstance(row.get(price.on), list)]
        whole = sum(float(share) for share in shares if isinstance(share, int | float)) * total_ns
        rest = min(whole, total_ns) - math.fsum(result.values())
        if rest > 0:
            result[WHOLE] = result.get(WHOLE, 0.0) + rest
    return result


def _claim_ids(con: Connection, on: str, ids: Iterable[int], edits: Iterable[Edit], loop: int, part: float) -> Claim:
    chosen = set(edits)
    con.execute("create or replace temp table wanted as select unnest(?::integer[]) as id", [list(ids)])
    result: Claim = {}
    if on == "pieces":
        rows = con.execute(
            'select piece, "end" - start from idle_piece where loop = ? and piece in (select id from wanted)', [loop]
        ).fetchall()
        return {f"piece:{piece}": float(ns) for piece, ns in rows}
    if on == "gpu_ops":
        if chosen & _KERNEL_EDITS:
            merge(result, _kernels(con, loop, part))
        if chosen & _COPY_EDITS:
            merge(result, _copies(con, loop, chosen))
        con.execute(
            "create or replace temp table wanted as select distinct api_call as id from gpu_op"
            " where id in (select id from wanted) and api_call is not null"
        )
    elif chosen & _COPY_EDITS:
        con.execute(
            "create or replace temp table wanted_ops as select id from gpu_op where api_call in (select id from wanted)"
        )
        merge(result, _copies(con, loop, chosen, "wanted_ops"))
    if Edit.DROP_RANGE in chosen:  # the whole block goes: what it launches to compute the value is not needed either
        con.execute(
            "insert into wanted select api_call from read_block where (loop, path) in"
            " (select loop, path from read_block where loop = ? and api_call in (select id from wanted))",
            [loop],
        )
    conditions = [f"({_IDLE_OF[edit]})" for edit in chosen if edit in _IDLE_OF]
    if conditions:
        rows = con.execute(
            f'select p.piece, p."end" - p.start from idle_piece p where p.loop = ? and ({" or ".join(conditions)})',
            [loop],
        ).fetchall()
        merge(result, {f"piece:{piece}": float(ns) for piece, ns in rows})
    return result


def _kernels(con: Connection, loop: int, part: float) -> Claim:
    """Kernel time, each kernel's as a part of the compute time that the device really showed (kernels may overlap)."""
    rows = con.execute(
        """
        with kernels as (select op, device, duration_ns from work where loop = ? and class = 'compute'),
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
    return {f"op:{op}": float(ns) * part for op, ns in rows}


def _copies(con: Connection, loop: int, edits: set[Edit], table: str = "wanted") -> Claim:
    """Exposed copy time; pinning keeps what the link needs, batching what the bytes need."""
    rows = con.execute(
        f"""
        select op, exposed_ns, duration_ns, 1e9 * bytes / setting('pinned_bytes_per_s')
        from transfer where loop = ? and op in (select id from {table})
        """,
        [loop],
    ).fetchall()
    keep_engines = _engine_cap(con, loop) if Edit.OVERLAP_COPY in edits else None
    keeps = bool(edits & {Edit.PIN, Edit.BATCH_COPIES}) and not edits & {Edit.DROP_COPY, Edit.OVERLAP_COPY}
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
    """What perfect overlap could remove (ns): the loop's time less its busiest engine (SMs, upload, download)."""
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
    """Add a claim: of each piece the larger part is taken, never both."""
    for key, ns in other.items():
        if ns > into.get(key, 0.0):
            into[key] = ns


def measure(a: Claim, total_ns: float) -> float:
    """The part of the loop that a claim removes, 0 to 1."""
    return min(1.0, math.fsum(a.values()) / total_ns) if total_ns > 0 else 0.0
