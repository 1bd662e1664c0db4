"""A job of many ranks out of two real ones: their work varied, a cause planted, each rank's capture written anew.

The job is simulated collective by collective: every rank works, joins, and all leave when the last one has joined and
the message has travelled. Each rank's events then move with it: between two collectives time is stretched, so that the
order of all events stays as it was recorded.
"""

from __future__ import annotations

import shutil
import sqlite3
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.jobs.plants import Plant, extra, host_size
from evaluation.jobs.template import Template, timed_tables

Floats = NDArray[np.float64]
RANK_SPREAD, STEP_SPREAD = 0.005, 0.01
"""How far equal ranks differ in their work, always and from iteration to iteration: as the two real ones do."""

_END_SPREAD_NS = 1_500.0
_CLOCK_NS = 300_000.0
_GROUP_STREAM = 9_000
"""Stream of the communicator inside a host, which jobs with a slow link have."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """Moments when each rank joins and leaves each collective, and its part in the host: ranks × collectives (ns)."""

    joins: Floats
    middle: Floats
    leaves: Floats


def simulate(real: list[Template], cause: Plant, ranks: int, random: np.random.Generator) -> Simulated:
    """The job's collectives on one clock. Warm-up steps, before the repeated ones, are as recorded."""
    steps = min(len(one.start) for one in real)
    which = np.arange(ranks) % len(real)
    start, end = (np.stack([column[:steps] for column in columns]) for columns in _columns(real))
    before = np.concatenate([np.zeros((len(real), 1)), end[:, :-1]], axis=1)
    work = (start - before)[which]
    transfer = (end - start).min(axis=0)
    iteration = float(np.median(np.diff(end[0])[-8:]))
    always = 1 + RANK_SPREAD * random.standard_normal((ranks, 1))
    work = work * always * (1 + STEP_SPREAD * random.standard_normal((ranks, steps)))
    main = transfer > iteration / 20
    more = np.zeros((ranks, steps))
    more[:, main] = extra(cause, ranks, int(main.sum()), iteration, random)
    work = work + more
    size = host_size(ranks)
    inside = transfer * 0.4 if cause.kind == "slow link" else np.zeros(steps)
    slower = np.ones((ranks, 1))
    if cause.kind == "slow link" and cause.host is not None:
        slower[cause.host * size : (cause.host + 1) * size] += (
            cause.strength * iteration / (0.4 * transfer[main].mean())
        )
    joins, middle, leaves = (np.zeros((ranks, steps)) for _ in range(3))
    now = np.zeros(ranks)
    host = np.arange(ranks) // size
    for step in range(steps):
        joins[:, step] = now + work[:, step]
        last = np.maximum.reduceat(joins[:, step], np.flatnonzero(np.diff(host, prepend=-1)))[host]
        middle[:, step] = last + inside[step] * slower[:, 0] if inside[step] else joins[:, step]
        done = middle[:, step].max() + (transfer[step] - inside[step])
        now = done + np.abs(random.normal(0, _END_SPREAD_NS, ranks))
        leaves[:, step] = now
    return Simulated(joins, middle, leaves)


def _columns(real: list[Template]) -> tuple[list[Floats], list[Floats]]:
    return [one.start for one in real], [one.end for one in real]


def written(
    folder: Path, real: list[Template], cause: Plant, ranks: int, random: np.random.Generator, workers: int = 1
) -> list[Path]:
    """The captures of the job's ranks, written by so many processes."""
    job = simulate(real, cause, ranks, random)
    clocks = random.normal(0, _CLOCK_NS, ranks // host_size(ranks) + 1)
    own = [float(clocks[rank // host_size(ranks)] + random.normal(0, _CLOCK_NS / 30)) for rank in range(ranks)]
    write = partial(_written, folder, real, cause, job)
    if workers < 2:
        return [write(rank, clock) for rank, clock in enumerate(own)]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(write, range(ranks), own, chunksize=8))


def _written(folder: Path, real: list[Template], cause: Plant, job: Simulated, rank: int, clock: float) -> Path:
    one, host = real[rank % len(real)], rank // host_size(len(job.joins))
    file = folder / f"job.rank{rank}.sqlite"
    shutil.copyfile(one.file, file)
    with closing(sqlite3.connect(file)) as db:
        db.execute("pragma journal_mode = off")
        db.execute("pragma synchronous = off")
        points = _moved(one, job, rank, held=cause.kind == "busy host process" and rank in cause.ranks)
        _move(db, *points, clock)
        if cause.kind == "slow link":
            _split(db, job.middle[rank] + clock)
        _name_host(db, host)
        db.commit()
    return file


def _moved(one: Template, job: Simulated, rank: int, *, held: bool) -> tuple[Floats, Floats]:
    """Moments of the real rank, and when they are in the generated one.

    held: whether what is added is time in which the GPU has nothing to do, rather than slower kernels.
    """
    steps = job.joins.shape[1]
    real, made = [], []
    before_real = before_made = 0.0
    for step in range(steps):
        start, end, gap = one.start[step], one.end[step], one.gap[step]
        joins = job.joins[rank, step]
        if held and gap[1] > gap[0] > before_real:
            added = (joins - before_made) - (start - before_real)
            if added > -(gap[1] - gap[0]):
                real += [gap[0], gap[1]]
                made += [before_made + gap[0] - before_real, before_made + gap[1] - before_real + added]
        real += [start, end]
        made += [joins, job.leaves[rank, step]]
        before_real, before_made = end, job.leaves[rank, step]
    return np.array(real), np.array(made)


def _move(db: sqlite3.Connection, real: Floats, made: Floats, clock: float) -> None:
    """Every event of a capture to its new time; what is before or after all of them keeps its distance."""
    for table, times in timed_tables(db).items():
        listed = ", ".join(f'"{name}"' for name in times)
        rows = db.execute(f'select rowid, {listed} from "{table}" order by rowid').fetchall()
        if not rows:
            continue
        columns = []
        for number in range(1, 1 + len(times)):
            old = np.array([row[number] if row[number] is not None else np.nan for row in rows], dtype=float)
            new = np.interp(old, real, made)
            new = np.where(old < real[0], old + made[0] - real[0], new)
            new = np.where(old > real[-1], old + made[-1] - real[-1], new) + clock
            columns.append([None if np.isnan(value) else max(0, round(value)) for value in new])
        values = zip(*columns, [row[0] for row in rows], strict=True)
        db.executemany(f'update "{table}" set ' + ", ".join(f'"{n}" = ?' for n in times) + " where rowid = ?", values)


def _split(db: sqlite3.Connection, middle: Floats) -> None:
    """Of each long collective a first part, inside the host, on a stream of its own."""
    columns = [row[1] for row in db.execute("pragma table_info(CUPTI_ACTIVITY_KIND_KERNEL)")]
    rows = db.execute(
        "select k.rowid, k.start, k.end from CUPTI_ACTIVITY_KIND_KERNEL k join StringIds s on s.id = k.shortName"
        " where s.value like 'nccl%' order by k.start"
    ).fetchall()
    listed = ", ".join(
        "?" if name == "end" else str(_GROUP_STREAM) if name == "streamId" else f'"{name}"' for name in columns
    )
    for (rowid, start, end), at in zip(rows, middle.round().astype(int).tolist(), strict=False):
        if start < at < end - 1000:
            db.execute(
                f"insert into CUPTI_ACTIVITY_KIND_KERNEL select {listed} from CUPTI_ACTIVITY_KIND_KERNEL"
                " where rowid = ?",
                [at, rowid],
            )
            db.execute("update CUPTI_ACTIVITY_KIND_KERNEL set start = ? where rowid = ?", [at, rowid])


def _name_host(db: sqlite3.Connection, host: int) -> None:
    db.execute(
        "create table TARGET_INFO_SYSTEM_ENV"
        " (globalVid integer, devStateName text, name text, nameEnum integer, value text)"
    )
    db.execute("insert into TARGET_INFO_SYSTEM_ENV values (1, 'dev', 'Hostname', 0, ?)", [f"node{host}"])
