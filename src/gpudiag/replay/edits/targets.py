"""The targets of a fix in one window: what the rows of a finding name, by position in the trace."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np

from gpudiag.model import Price, Row
from gpudiag.replay.edited_graph import EditTargets
from gpudiag.replay.trace import Ints, LoopTrace

Connection = duckdb.DuckDBPyConnection


def targets_of(con: Connection, price: Price, rows: Sequence[Row], one: LoopTrace) -> EditTargets:
    """Positions of what the rows name, in one window."""
    nothing = np.zeros(0, dtype=np.int64)
    ids: list[int] = []
    parts: list[tuple[float, float, float]] = []
    for row in rows:
        listed = price.ids_of(row)
        if listed is not None:
            ids += listed
            parts += [_parts_of(row)] * len(listed)
    wanted = np.array(ids, dtype=np.int64)
    if price.on in ("gpu_ops", "profiles"):
        place, found = _positions(one.ops.id, wanted)
        ops, first = np.unique(place[found], return_index=True)
        calls = np.unique(one.ops.call[ops])
        calls = calls[calls >= 0]
        least, likely, most = np.array(parts, dtype=float).reshape(-1, 3)[found][first].T
        return EditTargets(calls, calls, ops, likely, nothing, least, most)
    if price.on == "idle_intervals":
        calls, segments = _of_intervals(con, wanted, one)
    else:
        place, found = _positions(one.calls.id, wanted)
        calls = segments = np.unique(place[found])
    ops = np.flatnonzero(np.isin(one.ops.call, calls))
    return EditTargets(calls, segments, ops, np.ones(len(ops)), _block(con, one, calls))


def _parts_of(row: Row) -> tuple[float, float, float]:
    """The part of its operations' time that a row's fix saves: at least, likely, at most."""
    given = row.get("recoverable")
    likely = min(1.0, max(0.0, float(given))) if isinstance(given, int | float) else 1.0
    ends = (row.get("recoverable_low"), row.get("recoverable_high"))
    low, high = (float(end) if isinstance(end, int | float) else likely for end in ends)
    return max(0.0, min(low, likely)), likely, min(1.0, max(high, likely))


def _of_intervals(con: Connection, intervals: Ints, one: LoopTrace) -> tuple[Ints, Ints]:
    """The calls, and the calls whose host segments, in which the GPU idled during those intervals."""
    rows = con.execute(
        """
        select distinct p.doing = 'segment' as segment, p.api_call, p.cause_call
        from idle_interval p where p.loop = ? and p.idle_interval in (select unnest(?::integer[]))
        """,
        [one.window.loop, intervals.tolist()],
    ).fetchall()
    calls = [c for segment, call, cause in rows for c in ((cause,) if segment else (call, cause)) if c is not None]
    segments = [call for segment, call, _ in rows if segment and call is not None]
    return tuple(  # type: ignore[return-value]
        np.unique(place[found])
        for place, found in (_positions(one.calls.id, np.array(ids, dtype=np.int64)) for ids in (calls, segments))
    )


def _block(con: Connection, one: LoopTrace, calls: Ints) -> Ints:
    """Calls of the ranges that exist only to read back what these calls read."""
    rows = con.execute(
        """
        select api_call from readback_range where (loop, path) in (
            select loop, path from readback_range where loop = ? and api_call in (select unnest(?::integer[])))
        """,
        [one.window.loop, one.calls.id[calls].tolist()],
    ).fetchall()
    place, found = _positions(one.calls.id, np.array([row[0] for row in rows], dtype=np.int64))
    return np.unique(place[found])


def _positions(known: Ints, wanted: Ints) -> tuple[Ints, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return the positions of the wanted ids among the known ones, and which of them exist."""
    if not len(known):
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=bool)
    order = np.argsort(known, kind="stable")
    place = np.minimum(np.searchsorted(known[order], wanted), len(known) - 1)
    return order[place], known[order[place]] == wanted
