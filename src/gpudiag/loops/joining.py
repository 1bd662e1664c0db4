"""Loops of several processes that are one: ranks of a job, or processes that do the same side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import duckdb

from gpudiag.loops.iteration_bounds import Found, Iterations, Settings

Connection = duckdb.DuckDBPyConnection


def add(
    con: Connection, loops: list[Found], found: Found, owners: Mapping[int, tuple[str, int]], settings: Settings
) -> None:
    """Add a loop of one process, found without annotations; to one of other processes where these do the same."""
    (process,) = {run.process for run in found.runs}
    for loop in loops:
        others = [run for run in loop.runs if owners[run.process] == owners[process]]
        known = (loop.name, loop.source) == (found.name, found.source) and process not in [r.process for r in loop.runs]
        if not known or not others:
            continue
        if owners[process][0] == "job" or _side_by_side(con, others[0], found.runs[0], found.source, settings):
            loop.runs += found.runs
            return
    loops.append(found)


def _side_by_side(con: Connection, one: Iterations, other: Iterations, source: str, settings: Settings) -> bool:
    """Return whether two processes do the same at the same time, each on a GPU of its own: as ranks do, of whose
    exchanges nothing is recorded.
    """
    if source == "unknown":  # nothing repeats, by which they could be compared
        return False
    counts = sorted(len(run.bounds) for run in (one, other))
    if counts[0] < settings["period_match"] * counts[1]:
        return False
    starts, ends = zip(*((int(run.bounds[0, 0]), int(run.bounds[-1, 1])) for run in (one, other)), strict=True)
    if min(ends) - max(starts) <= settings["most_share"] * (max(ends) - min(starts)):
        return False
    (first, devices), (second, more) = (_work(con, run) for run in (one, other))
    return not devices & more and (first & second).total() >= settings["period_match"] * (first | second).total()


def _work(con: Connection, run: Iterations) -> tuple[Counter[int], set[int]]:
    """Return how often each kernel runs in the iterations of a process, and on which GPUs."""
    rows = con.execute(
        "select name, device, count(*) from gpu_op where process = ? and kind in ('kernel', 'graph')"
        " and start >= ? and start < ? group by name, device",
        [run.process, int(run.bounds[0, 0]), int(run.bounds[-1, 1])],
    ).fetchall()
    kernels: Counter[int] = Counter()
    for name, _, count in rows:
        kernels[name] += count
    return kernels, {device for _, device, _ in rows}
