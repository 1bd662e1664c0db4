"""GPU-busy time before, inside, between and after the loops of a process: how much of its work they stand for."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import numpy as np

from gpudiag.loops.iteration_bounds import NEVER, Bounds, Settings, operations_in_parts

Connection = duckdb.DuckDBPyConnection

_PLACES = ["before", "inside", "between", "after"]


def write(con: Connection, settings: Settings) -> None:
    """Fill `loop_coverage` from the iterations in the store; replaces what was there."""
    con.execute("delete from loop_coverage")
    reported = [
        loop
        for (loop,) in con.execute(
            "select id from loop where share_of_span >= ?", [settings["min_loop_share"]]
        ).fetchall()
    ]
    if not reported:
        return
    everywhere = _extent(con, reported)
    parts = {
        process: (start, end)
        for process, start, end in con.execute('select process, start, "end" from part').fetchall()
    }
    for process, device in con.execute("select distinct process, device from gpu_op order by all").fetchall():
        places = np.zeros(len(_PLACES), dtype=np.int64)
        held = _stretches(con, process, reported)
        within = (int(held[0, 0]), int(held[-1, 1])) if len(held) else everywhere
        for busy in _busy(con, process, device):
            if process in parts:  # operations that a selection cuts are kept as a whole
                np.clip(busy, *parts[process], out=busy)
            inside, before, later = _overlap(busy, held), _until(busy, within[0]), _until(busy, within[1])
            total = int((busy[:, 1] - busy[:, 0]).sum())
            places += np.array([before, inside, later - before - inside, total - later])
        con.execute(
            "insert into loop_coverage select ?, ?, unnest(?), unnest(?::bigint[])",
            [process, device, _PLACES, places.tolist()],
        )


def _extent(con: Connection, loops: list[int]) -> tuple[int, int]:
    """Return when the first iteration of all loops began and the last one ended: for processes without a loop (ns)."""
    query = 'select min(start), max("end") from iteration where list_contains(?, loop)'
    first, last = con.execute(query, [loops]).fetchall()[0]
    return int(first), int(last)


def _stretches(con: Connection, process: int, loops: list[int]) -> Bounds:
    """The time that the iterations of a process cover, without overlaps, ascending: a row each."""
    rows = con.execute(
        'select start, "end" from iteration where process = ? and list_contains(?, loop) and "end" > start',
        [process, loops],
    ).fetchnumpy()
    return _joined(np.asarray(rows["start"], dtype=np.int64), np.asarray(rows["end"], dtype=np.int64))[0]


def _busy(con: Connection, process: int, device: int | None) -> Iterator[Bounds]:
    """The time in which a process kept a GPU busy, by whatever stream, without overlaps and ascending, in parts."""
    reached = NEVER
    for begun, done in operations_in_parts(con, "process = ? and device is not distinct from ?", [process, device]):
        part, reached = _joined(begun, done, reached)
        yield part


def _joined(start: Bounds, end: Bounds, reached: int = NEVER) -> tuple[Bounds, int]:
    """Intervals joined where they touch, less what lies before `reached`; and until when they reach together."""
    order = np.argsort(start, kind="stable")
    since = np.maximum(start[order], reached)
    until = np.maximum.accumulate(np.maximum(end[order], reached))
    if not len(since):
        return np.empty((0, 2), dtype=np.int64), reached
    opens = np.append(0, 1 + np.flatnonzero(since[1:] > until[:-1]))
    joined = np.column_stack([since[opens], until[np.append(opens[1:] - 1, len(since) - 1)]])
    return joined[joined[:, 1] > joined[:, 0]], int(until[-1])


def _until(busy: Bounds, moment: int) -> int:
    """The busy time before a moment (ns)."""
    return int(np.maximum(0, np.minimum(busy[:, 1], moment) - busy[:, 0]).sum())


def _overlap(busy: Bounds, held: Bounds) -> int:
    """The busy time inside these stretches (ns)."""
    if not len(busy) or not len(held):
        return 0
    lengths = np.append(0, np.cumsum(busy[:, 1] - busy[:, 0]))

    def before(moments: Bounds) -> Bounds:
        at = np.searchsorted(busy[:, 0], moments, "right") - 1
        known = np.maximum(at, 0)
        partly = np.clip(moments - busy[known, 0], 0, busy[known, 1] - busy[known, 0])
        return np.where(at < 0, 0, lengths[known] + partly)

    return int((before(held[:, 1]) - before(held[:, 0])).sum())
