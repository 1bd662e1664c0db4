"""The waits of each rank in each collective, and its own work in between: arrays over ranks × collectives.

A collective's kernel runs on every rank from when that rank joined until the last one is done. So a rank waited for as
long as its kernel ran longer than the shortest one, whatever the clocks say.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpudiag.jobs.matching import Channel, Matched
from gpudiag.jobs.rank_summary import Ints


@dataclass(frozen=True, slots=True)
class RankWaits:
    """A row for each rank and collective of a communicator that several ranks share. Times in ns.

    end: by the first rank's clock, of the rank that joined last; at: which of the rank's collectives it is.
    """

    member: Ints
    group: Ints
    sequence: Ints
    at: Ints
    end: Ints
    wait: Ints
    exposed: Ints
    exposed_wait: Ints


@dataclass(frozen=True, slots=True)
class JobCollectives:
    """A row for each collective of a communicator: how long it took once the last rank had joined (ns)."""

    group: Ints
    sequence: Ints
    end: Ints
    ranks: Ints
    transfer: Ints
    last: Ints
    operation: tuple[str, ...]
    bytes: Ints


def waits(job: Matched) -> tuple[RankWaits, JobCollectives]:
    """Every rank's waits, and the collectives they were in."""
    rows = [_of_group(job, number, group) for number, group in enumerate(job.groups)]
    joined = [np.concatenate(columns) for columns in zip(*(row[0] for row in rows), strict=True)]
    met = [np.concatenate(columns) for columns in zip(*(row[1] for row in rows), strict=True)]
    names = tuple(name for row in rows for name in row[2])
    group, sequence, end, ranks, transfer, last, bytes_ = met
    return RankWaits(*joined), JobCollectives(group, sequence, end, ranks, transfer, last, names, bytes_)


def _of_group(job: Matched, number: int, group: tuple[Channel, ...]) -> tuple[list[Ints], list[Ints], list[str]]:
    member = np.concatenate([np.full(len(c.at), c.member) for c in group])
    sequence = np.concatenate([c.sequence for c in group])
    at = np.concatenate([c.at for c in group])
    taken = {
        name: np.concatenate([job.ranks[c.member].collectives[name][c.at] for c in group])
        for name in ("start", "end", "exposed", "bytes", "operation")
    }
    order = np.lexsort((member, sequence))
    member, sequence, at = member[order], sequence[order], at[order]
    start, end, exposed, size, operation = (taken[name][order] for name in taken)
    duration = end - start
    first = np.flatnonzero(np.concatenate([[True], sequence[1:] != sequence[:-1]]))
    count = np.diff(np.concatenate([first, [len(sequence)]]))
    which = np.repeat(np.arange(len(first)), count)
    transfer = np.minimum.reduceat(duration, first)
    # Of equals the first one; the row of each collective where the shortest kernel ran.
    shortest = np.lexsort((member, duration, sequence))[first]
    wait = duration - transfer[which]
    # What computes beside a collective does so at its beginning: its input is what came before.
    exposed_wait = np.clip(wait - (duration - exposed), 0, exposed)
    both = count[which] > 1
    aligned = end[shortest] + job.offsets[member[shortest]]
    names = [job.ranks[m].operations[o] for m, o in zip(member[shortest], operation[shortest], strict=True)]
    kept = count > 1
    rows = [member, np.full(len(member), number), sequence, at, aligned[which], wait, exposed, exposed_wait]
    met = [np.full(len(first), number), sequence[first], aligned, count, transfer, member[shortest], size[shortest]]
    return (
        [row[both].astype(np.int64) for row in rows],
        [row[kept].astype(np.int64) for row in met],
        [name for name, more in zip(names, kept, strict=True) if more],
    )


def pace(found: RankWaits, ranks: int, warm_share: float) -> int:
    """The rank that the others wait for: the one that waits least itself, once all are warm.

    warm_share: part of the job's collectives before that.
    """
    since = np.quantile(found.end, warm_share, method="lower") if len(found.end) else 0
    late = found.end >= since
    waited = np.bincount(found.member[late], weights=found.exposed_wait[late], minlength=ranks)
    return int(np.argmin(waited))
