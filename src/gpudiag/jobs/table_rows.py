"""The job's tables, written into the store that rules of jobs are asked on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np

from gpudiag.jobs.matching import Matched
from gpudiag.jobs.rank_summary import Ints, RankSummary
from gpudiag.jobs.rank_waits import JobCollectives, RankWaits
from gpudiag.schema import BY_NAME

Connection = duckdb.DuckDBPyConnection


def write(
    con: Connection, job: Matched, found: RankWaits, met: JobCollectives, reference: int, loop: int, bounds: Ints
) -> None:
    """Fill the job's tables, of the reference rank's analysed iterations of a loop.

    bounds: their starts and ends by the reference rank's clock, a row each (ns).
    """
    bounds = bounds + job.offsets[reference]
    _write_ranks(con, job, reference)
    _write_iterations(con, job, found, loop, bounds)
    own, iteration = _inside(met.end, bounds)
    _insert(
        con, "job_collective",
        group=met.group[own], sequence=met.sequence[own], step=iteration, bytes=met.bytes[own],
        operation=np.array(met.operation, dtype=object)[own], ranks=met.ranks[own], transfer_ns=met.transfer[own],
        last=met.last[own],
    )  # fmt: skip
    con.execute("update job_collective set bytes = null where bytes < 0")
    own, iteration = _inside(found.end, bounds)
    _insert(
        con, "job_wait",
        member=found.member[own], group=found.group[own], sequence=found.sequence[own], step=iteration,
        wait_ns=found.wait[own], exposed_ns=found.exposed[own], exposed_wait_ns=found.exposed_wait[own],
    )  # fmt: skip
    pairs = np.unique(np.stack([found.group, found.member]), axis=1) if len(found.group) else np.zeros((2, 0))
    _insert(con, "job_group", group=pairs[0].astype(np.int64), member=pairs[1].astype(np.int64))
    _write_kernels(con, job, bounds)


def _write_ranks(con: Connection, job: Matched, reference: int) -> None:
    hosts = _hosts(job.ranks)
    rows = [
        (number, one.rank, label(one), one.file, host, number == reference, int(offset))
        for number, (one, host, offset) in enumerate(zip(job.ranks, hosts, job.offsets.tolist(), strict=True))
    ]
    columns = ("id", "rank", "label", "file", "host", "reference", "clock_offset_ns")
    values = dict(zip(columns, zip(*rows, strict=True), strict=True))
    types = {column.name: column.type for column in BY_NAME["job_rank"].columns}
    listed = ", ".join(f"unnest(${name}::{types[name]}[])" for name in columns)
    con.execute(f"insert into job_rank ({', '.join(columns)}) select {listed}", {k: list(v) for k, v in values.items()})


def label(one: RankSummary) -> str:
    """The name of a rank in the report."""
    return f"rank {one.rank}" if one.rank is not None else f"process {one.pid} ({one.file})"


def _hosts(ranks: Sequence[RankSummary]) -> list[str | None]:
    """The host of each rank: by name; else by the numbers of its GPUs, where these run from 0 up again and again."""
    if all(one.host for one in ranks):
        return [one.host for one in ranks]
    devices = [one.device for one in ranks]
    known = [device for device in devices if device is not None]
    if len(known) < len(ranks) or any(one.rank is None for one in ranks):
        return [None] * len(ranks)
    each = max(known) + 1
    regular = all(one.device == (one.rank or 0) % each for one in ranks)
    return [f"host {(one.rank or 0) // each}" if regular and each > 1 else None for one in ranks]


def _write_iterations(con: Connection, job: Matched, found: RankWaits, loop: int, bounds: Ints) -> None:
    """Each rank's own work: what it did before each collective of an iteration."""
    own, iteration = _inside(found.end, bounds)
    ranks, n = len(job.ranks), len(bounds)
    cell = found.member[own] * n + iteration
    sums = {"wait_ns": np.bincount(cell, weights=found.exposed_wait[own], minlength=ranks * n)}
    for name in ("compute", "copy", "idle"):
        values = _taken(job, name, found.member[own], found.at[own])
        sums[f"{name}_ns"] = np.bincount(cell, weights=values, minlength=ranks * n)
    filled = np.bincount(cell, minlength=ranks * n) > 0
    member, number = np.divmod(np.arange(ranks * n), max(n, 1))
    _insert(
        con, "job_iteration",
        member=member[filled], loop=np.full(int(filled.sum()), loop), step=number[filled],
        start=bounds[number[filled], 0], end=bounds[number[filled], 1],
        **{name: values[filled].astype(np.int64) for name, values in sums.items()},
    )  # fmt: skip


def _taken(job: Matched, name: str, member: Ints, at: Ints) -> Ints:
    """A column of each rank's collectives, at these of its collectives."""
    columns = [one.collectives[name] for one in job.ranks]
    first = np.concatenate([[0], np.cumsum([len(column) for column in columns])[:-1]]).astype(np.int64)
    return np.asarray(np.concatenate(columns)[first[member] + at], dtype=np.int64)


def _inside(time: Ints, bounds: Ints) -> tuple[Ints, Ints]:
    """The moments that lie in an iteration, and its number."""
    at = np.searchsorted(bounds[:, 0], time, side="right") - 1
    inside = (at >= 0) & (time < bounds[np.maximum(at, 0), 1]) if len(bounds) else np.zeros(len(time), dtype=bool)
    chosen = np.flatnonzero(inside)
    return chosen, np.asarray(at[chosen], dtype=np.int64)


def _write_kernels(con: Connection, job: Matched, bounds: Ints) -> None:
    """Kernel time in an iteration, taken over the later part of each capture."""
    each = float(np.mean(bounds[:, 1] - bounds[:, 0])) if len(bounds) else 1.0
    rows: list[tuple[int, str, float]] = []
    for member, one in enumerate(job.ranks):
        ends = one.collectives["end"]
        length = float(ends[-1] - one.collectives["start"][one.kernels_from])
        rows += [(member, name, ns * each / length) for name, ns in one.kernels.items() if length > 0]
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    member_, name_, ns_ = (list(column) for column in columns)
    con.execute(
        "insert into job_kernel select unnest(?::integer[]), unnest(?::varchar[]), unnest(?::double[])",
        [member_, name_, ns_],
    )


def _insert(con: Connection, table: str, **columns: np.ndarray[Any, Any]) -> None:
    part: Mapping[str, Any] = {name: np.ascontiguousarray(values) for name, values in columns.items()}
    con.register("handed_over", part)
    try:
        con.execute(f'insert into "{table}" by name from handed_over')
    finally:
        con.unregister("handed_over")
