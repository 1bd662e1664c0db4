"""Several ranks of one job replayed together: they synchronise at collectives.

A collective's kernel runs from when its rank is ready until the last rank is done. The rank that joined last waited
for nobody, so its time is what the transfer takes; on the others the rest is waiting, which the replay finds anew: no
rank's part begins before all have joined. All ranks are replayed again and again until no rendezvous moves; a pass can
only delay rendezvous, so that the earliest common solution is reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import duckdb
import numpy as np

from gpudiag.replay import simulate
from gpudiag.replay.graph import Graph
from gpudiag.replay.trace import Floats, Ints

Connection = duckdb.DuckDBPyConnection
CLOSE = 1.0  # ns: a rendezvous that moves by less stands


@dataclass(frozen=True, slots=True, eq=False)
class Rendezvous:
    """The collectives that all graphs have in common, in order. One entry a graph; times are ns of its window."""

    node: tuple[Ints, ...]
    offset: Floats  # how much later the graph's clock reads than the first one's
    transfer: Floats  # of each rendezvous, what it takes once all have joined
    arrived: tuple[Floats, ...]  # when this rank joined, as recorded
    joined: tuple[Floats, ...]  # when the last one had


def rendezvous(con: Connection, graphs: Sequence[Graph]) -> Rendezvous | None:
    """Return the collectives at which these processes synchronise; none unless they are ranks of one job that share
    some.
    """
    if len(graphs) < 2:
        return None
    known = [_collectives(con, graph) for graph in graphs]
    jobs = {key[0] for one in known for key in one}
    common = set.intersection(*(set(one) for one in known))
    if len(jobs) != 1 or not common or len({graph.record.window.process for graph in graphs}) < len(graphs):
        return None
    keys = sorted(common, key=lambda key: graphs[0].record.ops.start[known[0][key]])
    ops = [np.array([one[key] for key in keys], dtype=np.int64) for one in known]
    starts = [graph.record.ops.start[op] for graph, op in zip(graphs, ops, strict=True)]
    ends = [graph.record.ops.end[op] for graph, op in zip(graphs, ops, strict=True)]
    transfer = np.min([end - start for start, end in zip(starts, ends, strict=True)], axis=0)
    return Rendezvous(
        node=tuple(graph.op[op] for graph, op in zip(graphs, ops, strict=True)),
        offset=np.array([np.median(end - ends[0]) for end in ends]),
        transfer=transfer,
        arrived=tuple(starts),
        joined=tuple(end - transfer for end in ends),
    )


def _collectives(con: Connection, graph: Graph) -> dict[tuple[int, int, int], int]:
    """(job, channel, number in it) → position of the operation in the graph's record."""
    rows = con.execute(
        """
        select r.job, n.channel, n.sequence, n.gpu_op from numbered_collectives() n
        join rank_process r on r.process = n.process where n.process = ?
        """,
        [graph.record.window.process],
    ).fetchall()
    place = {int(op): at for at, op in enumerate(graph.record.ops.id)}
    return {(job, channel, number): place[op] for job, channel, number, op in rows if op in place}


def without_waiting(graphs: Sequence[Graph], meet: Rendezvous) -> list[Graph]:
    """The graphs whose collectives take only their transfer: for whom they wait, the replay has to find."""
    found = []
    for graph, node in zip(graphs, meet.node, strict=True):
        duration = graph.duration.copy()
        duration[node] = meet.transfer
        found.append(replace(graph, duration=duration))
    return found


def ends(
    graphs: Sequence[Graph],
    durations: Sequence[Floats],
    lags: Sequence[Floats],
    releases: Sequence[Floats],
    meet: Rendezvous,
) -> list[Floats]:
    """The end of each node of each graph (ns), all ranks together."""
    begins = [release.copy() for release in releases]
    found: list[Floats] = []
    for _ in range(len(meet.transfer) + 1):
        found = [simulate.replay(graph, durations[rank], lags[rank], begins[rank]) for rank, graph in enumerate(graphs)]
        starts = np.array([
            end[node] - duration[node] - offset
            for end, node, duration, offset in zip(found, meet.node, durations, meet.offset, strict=True)
        ])  # fmt: skip
        joined = starts.max(axis=0)
        if float((joined - starts).max()) <= CLOSE:
            break
        for begin, node, offset in zip(begins, meet.node, meet.offset, strict=True):
            begin[node] = np.maximum(begin[node], joined + offset)
    return found


def as_recorded(graphs: Sequence[Graph], meet: Rendezvous) -> list[Floats]:
    """The ends of an unedited replay (ns)."""
    own = [[getattr(graph, name) for graph in graphs] for name in ("duration", "lag", "release")]
    return ends(graphs, own[0], own[1], own[2], meet)


def balanced(
    graphs: Sequence[Graph], durations: Sequence[Floats], meet: Rendezvous, *, shared: bool = False
) -> list[Floats]:
    """Durations (ns) with which no rank needs longer, from rendezvous to rendezvous, than the fastest one does.

    shared: nor than all ranks do on average, as if work could only be moved from one to another.
    """
    spans = np.array([_since(arrived, joined) for arrived, joined in zip(meet.arrived, meet.joined, strict=True)])
    wanted = spans.mean(axis=0) if shared else spans.min(axis=0)
    found: list[Floats] = []
    for rank, graph in enumerate(graphs):
        joined, arrived = meet.joined[rank], meet.arrived[rank]
        work = _since(arrived, joined + meet.transfer)  # what follows the transfer; nothing where it runs beside it
        work = np.where(work > 0, work, spans[rank])
        spare = np.divide(spans[rank] - wanted, work, out=np.zeros_like(work), where=work > 0)
        factor = np.append(1 - np.clip(spare, 0.0, 1.0), 1.0)[np.searchsorted(joined, graph.recorded, side="right")]
        factor[meet.node[rank]] = 1.0
        found.append(np.asarray(durations[rank] * factor, dtype=np.float64))
    return found


def _since(arrived: Floats, done: Floats) -> Floats:
    """From the end of one thing in each rendezvous, or the window's start, until this rank joins the next (ns)."""
    return np.asarray(arrived - np.concatenate([[0.0], done[:-1]]), dtype=np.float64)
