"""A loop that can be replayed with edits, for each guess of what the profiler cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import duckdb
import numpy as np

from gpudiag.model import Edit, Row, Rule
from gpudiag.replay import bounds, collectives, graph, overhead, simulate, trace
from gpudiag.replay.edited_graph import EditedGraph, EditTargets, with_edges
from gpudiag.replay.edits import registry
from gpudiag.replay.edits.targets import targets_of
from gpudiag.replay.trace import Floats

Connection = duckdb.DuckDBPyConnection


@dataclass(slots=True)
class _Part:
    """One process of the loop under one profiler overhead: the unedited length and what the fixes so far made of it."""

    base_ns: float
    edited: EditedGraph


class LoopModel:
    """A loop that can be replayed."""

    def __init__(
        self,
        con: Connection,
        graphs: Sequence[graph.Graph],
        settings: Mapping[str, float],
        unprofiled_ns: float | None,
        meet: collectives.Rendezvous | None = None,
        computing: float = 0.0,
        *,
        stretch: bool = False,
        missed: Sequence[float] = (),
    ) -> None:
        """computing: the part of the recorded loop in which it computes; stretch: whether the graphs hold only a
        stretch of it; missed: what the replay of each graph leaves out of its recorded time, and no fix removes (ns).
        """
        self.con, self.settings, self.meet, self.computing, self.stretch = con, settings, meet, computing, stretch
        self.missed = missed or [0.0] * len(graphs)
        self.graphs = collectives.without_waiting(graphs, meet) if meet else list(graphs)
        slowed = overhead.with_stacks(con) if unprofiled_ns is None else frozenset()
        self.slowed = any(one.record.window.process in slowed for one in graphs)
        if unprofiled_ns is None:
            guesses = overhead.guesses(con, [one.record.window.process for one in graphs], settings)
        else:
            guesses = [tuple(overhead.solve(g, unprofiled_ns * g.iterations, settings) for g in graphs)]
        self.guesses = guesses
        self.start = [self._parts(guess) for guess in guesses]
        reached = self.base(0)
        wanted = (unprofiled_ns or 0.0) * sum(one.iterations for one in graphs)
        self.unexplained = reached / wanted - 1 if wanted else 0.0  # by which part the given time is missed

    def _parts(self, guess: Sequence[overhead.Calibration]) -> list[_Part]:
        pairs = zip(self.graphs, guess, strict=True)
        edited_graphs = [EditedGraph.of(one, calibration.durations(one), self.settings) for one, calibration in pairs]
        return [_Part(*part) for part in zip(self._lengths(edited_graphs), edited_graphs, strict=True)]

    def base(self, number: int) -> float:
        """Return how long the unedited loop takes under a guess of what the profiler cost (ns)."""
        return sum(part.base_ns for part in self.start[number])

    def _lengths(self, edited_graphs: Sequence[EditedGraph]) -> list[float]:
        """Return how long each process takes (ns)."""
        lengths = [max(simulate.length(edited.graph, end), edited.at_least) for edited, end in self.ends(edited_graphs)]
        return [length + missed for length, missed in zip(lengths, self.missed, strict=True)]

    def ends(self, edited_graphs: Sequence[EditedGraph]) -> list[tuple[EditedGraph, Floats]]:
        """Each process's edited graph, with the edges that its edits added, and the end of each of its nodes (ns);
        ranks of one job wait for one another.
        """
        ready = [with_edges(edited) if edited.added else (edited.graph, edited) for edited in edited_graphs]
        graphs = [one for one, _ in ready]
        if self.meet:
            times = [[getattr(d, name) for _, d in ready] for name in ("duration", "lag", "release")]
            found = collectives.ends(graphs, times[0], times[1], times[2], self.meet)
        else:
            found = [simulate.replay(one, d.duration, d.lag, d.release) for one, d in ready]
        return [(edited, end) for (_, edited), end in zip(ready, found, strict=True)]

    def _edited(
        self,
        edited_graphs: list[EditedGraph],
        variant: Sequence[Edit],
        chosen: Sequence[EditTargets],
        *,
        shared: bool = False,
    ) -> list[EditedGraph]:
        """Change the graphs as the fix would. shared: ranks are balanced by moving work, not by removing it."""
        for edited, selection in zip(edited_graphs, chosen, strict=True):
            registry.apply(edited, variant, selection)
        for edit in registry.of(variant):
            if edit.across_ranks and self.meet:
                edit.across_ranks(edited_graphs, self.meet, shared)
        return edited_graphs

    def select(self, rule: Rule, rows: Sequence[Row]) -> list[EditTargets] | None:
        """Return the finding's targets in each process; None when the replay cannot price it."""
        price = rule.price
        if price is None or price.on is None or price.on == "ranges":
            return None
        edits = registry.of(price.best)
        if not all(edit.priced for edit in edits):
            return None
        chosen = [targets_of(self.con, price, rows, one.record) for one in self.graphs]
        if any(edit.across_ranks for edit in edits):
            return chosen if self.meet else None
        return chosen if any(len(c.calls) + len(c.ops) + len(c.segments) for c in chosen) else None

    def fixed(
        self, rule: Rule, chosen: Sequence[EditTargets], before: Sequence[EditedGraph] | None
    ) -> list[EditedGraph]:
        """The graphs after this fix, on top of the fixes before it."""
        assert rule.price is not None
        edited_graphs = [edited.copy() for edited in (before or [part.edited for part in self.start[0]])]
        return self._edited(edited_graphs, rule.price.expected or rule.price.best, chosen)

    def settled(self, rule: Rule, chosen: Sequence[EditTargets]) -> float:
        """The loop with the usual fix, over its length now, both after their first iterations."""
        before = self._unedited_settled
        return min(1.0, self._after_first(self.fixed(rule, chosen, None)) / before) if before > 0 else 1.0

    @cached_property
    def _unedited_settled(self) -> float:
        return self._after_first([part.edited for part in self.start[0]])

    def _after_first(self, edited_graphs: Sequence[EditedGraph]) -> float:
        ends = self.ends(edited_graphs)
        return sum(simulate.after_first(edited.graph, end, edited.at_least) for edited, end in ends)

    def remaining(self, edited_graphs: Sequence[EditedGraph], *, moved: bool = False) -> float:
        """The length of edited graphs over the unedited one. moved: kernels may run beside those they followed."""
        left = self._of_loop(0, sum(self._lengths(edited_graphs)))
        return left if moved else max(left, self.least(edited_graphs))

    def _of_loop(self, number: int, after: float) -> float:
        """The length of the loop over its length now, where what was replayed takes so long after a fix (ns).

        A stretch may be idle for longer than the loop: what a fix saves of that is taken as a part of the loop's.
        """
        total = self.base(number)
        if total <= 0:
            return 1.0
        idle = total - sum(self._busy(part.edited) for part in self.start[number])
        if not self.stretch or not 0 < total - after <= idle:
            return after / total
        return 1 - (total - after) / idle * max(0.0, 1 - self._computing_ns / total)

    @property
    def _computing_ns(self) -> float:
        """The time for which the loop computes while its graphs run, as its own line says (ns)."""
        return self.computing * sum(one.length for one in self.graphs)

    def least(self, edited_graphs: Sequence[EditedGraph]) -> float:
        """Return what the busiest engine of the edited graphs needs, or the loop computes for, over the unedited
        length.
        """
        total = self.base(0)
        if total <= 0:
            return 0.0
        return min(1.0, max(sum(map(self._busy, edited_graphs)), self._computed(edited_graphs)) / total)

    def _computed(self, edited_graphs: Sequence[EditedGraph]) -> float:
        """The time for which the loop computes at least once its kernels take what the edits leave of them (ns).

        It is more than its kernels take where other stretches than the replayed one compute for longer, and where gaps
        that are too short to matter count as computing.
        """
        before = sum(_kernel_ns(part.edited) for part in self.start[0])
        return self._computing_ns - max(0.0, before - sum(map(_kernel_ns, edited_graphs)))

    def _busy(self, edited: EditedGraph) -> float:
        """The work of the busiest engine (ns): a GPU's kernels, where they overlapped as they did, or one direction's
        copies.
        """
        ops = edited.graph.record.ops
        needed = edited.duration[edited.graph.op]
        most = 0.0
        for device in np.unique(ops.device):
            kernels = (ops.device == device) & (ops.kind == 0)
            together = simulate.union(ops.start[kernels], ops.end[kernels]) / max(
                float((ops.end - ops.start)[kernels].sum()), 1.0
            )
            engines = [needed[(ops.device == device) & (ops.direction == direction)].sum() for direction in (1, 2)]
            most = max(most, float(needed[kernels].sum()) * min(1.0, together), *map(float, engines))
        return most

    def shortest(self, number: int, variant: Sequence[Edit], chosen: Sequence[EditTargets]) -> float:
        """The length that no way to make these edits goes below, over the unedited one."""
        parts = self.start[number]
        before = self.ends([part.edited for part in parts])
        after = self._edited([part.edited.copy() for part in parts], variant, chosen)
        found = [bounds.removable(graph, end, one) for (graph, end), one in zip(before, after, strict=True)]
        if self.meet:  # what one rank saves, all that wait for it may
            found = [(start - late, end - late) for (start, end), late in zip(found, self.meet.offset, strict=True)]
            saved = len(parts) * bounds.covered(found)
        else:
            saved = sum(bounds.covered([one]) for one in found)
        return max(0.0, self._of_loop(number, self.base(number) - saved))

    def ratio(
        self, number: int, variant: Sequence[Edit], chosen: Sequence[EditTargets], *, shared: bool = False
    ) -> tuple[float, float]:
        """The edited length over the unedited one, and what the busiest engine alone would need."""
        parts = self.start[number]
        edited_graphs = self._edited([part.edited.copy() for part in parts], variant, chosen, shared=shared)
        after, least = self._of_loop(number, sum(self._lengths(edited_graphs))), 0.0
        if not registry.rewrites(variant):  # what a rewritten kernel takes is a guess
            least = self._of_loop(number, sum(map(self._busy, edited_graphs)))
        # Kernels that fill the GPU do not run side by side because nothing keeps them apart any more.
        return min(1.0, after if registry.moves(variant) else max(after, least)), min(1.0, least)


def _kernel_ns(edited: EditedGraph) -> float:
    """The time of all kernels of a graph together (ns)."""
    ops = edited.graph.record.ops
    return float(edited.duration[edited.graph.op[ops.kind == 0]].sum())


def model(
    con: Connection, loop: int, settings: Mapping[str, float], unprofiled_ns: float | None
) -> tuple[LoopModel | None, simulate.Doubt | None]:
    """Return the loop's replay, or why it is not believed; neither where there is nothing to replay."""
    graphs = []
    for window in trace.windows(con, loop, settings["replay_min_cover"]):
        found = trace.read(con, window)
        if len(found.calls) and len(found.ops):
            graphs.append(graph.build(found, settings))
    if not graphs:
        return None, None
    recorded = sum(one.length for one in graphs)
    meet = collectives.rendezvous(con, graphs)
    alone = collectives.without_waiting(graphs, meet) if meet else graphs
    ends = collectives.as_recorded(alone, meet) if meet else [simulate.replay(one) for one in graphs]
    lengths = [simulate.length(one, end) for one, end in zip(alone, ends, strict=True)]
    off = sum(lengths) / recorded - 1
    if abs(off) > settings["replay_abstain"]:
        return None, simulate.Doubt("missed", off)
    if doubt := simulate.held(graphs, settings):
        return None, doubt
    iterations, computing, repeats = _facts(con, loop)
    stretch = sum(one.iterations for one in graphs) < iterations
    missed = [max(0.0, one.length - length) for one, length in zip(graphs, lengths, strict=True)]
    if repeats or unprofiled_ns is not None:  # a part of what was replayed is the same part of each iteration
        missed = []
    fitted = LoopModel(con, graphs, settings, unprofiled_ns, meet, computing, stretch=stretch, missed=missed)
    if abs(fitted.unexplained) > settings["replay_abstain"]:
        return None, simulate.Doubt("missed", fitted.unexplained)
    return fitted, None


def _facts(con: Connection, loop: int) -> tuple[int, float, bool]:
    """Return how many iterations a loop has, the part of its time in which it computes, and whether it repeats."""
    row = con.execute(
        """
        select f.iterations, coalesce(b.share, 0), l.period_source <> 'unknown' from loop_facts f
        join loop l on l.id = f.loop
        left join loop_budget b on b.loop = f.loop and b.category = 'compute' where f.loop = ?
        """,
        [loop],
    ).fetchone()
    return (int(row[0]), float(row[1]), bool(row[2])) if row else (0, 0.0, True)
