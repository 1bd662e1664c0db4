"""The part of the time that was selected, for finding loops: where it lies in a process, which iterations are whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import duckdb
import numpy as np
from numpy.typing import NDArray

from gpudiag.loops.iteration_bounds import Bounds, Found, Ints, Iterations, iteration_bounds

Connection = duckdb.DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class TimeFilter:
    """The selected part of a process, in ns.

    A host that runs ahead of the GPU launched long before what the GPU does in the part, so that its calls have limits
    of their own.
    """

    start: int
    end: int
    after: int
    """All that was launched after it is in the part, or behind it."""
    before: int
    """All that was launched before it is in the part, or ahead of it."""
    begun: bool
    """Whether the process did anything before."""
    opened: bool
    """Whether a time was given that cuts off what the process did before."""
    closed: bool
    """Whether it cuts off what the process did later."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The selected ranges of one message on one thread, in order, none inside another."""

    process: int
    thread: int
    label: str
    path: str
    bounds: Bounds
    """From where each began on the host to where the GPU was done with it."""
    iterations: Bounds
    """The same from where the GPU could begin with it."""

    @property
    def own(self) -> Iterations:
        """The ranges as iterations of a loop."""
        return Iterations(self.process, self.thread, self.iterations.copy(), moves=False)

    def among(self, starts: Ints) -> Chosen:
        """Those that began at one of these moments."""
        kept = np.isin(self.bounds[:, 0], starts)
        return replace(self, bounds=self.bounds[kept], iterations=self.iterations[kept])


@dataclass(frozen=True, slots=True)
class SelectedRanges:
    """The selected parts of all processes; of a process without limits all is selected."""

    limits: Mapping[int, TimeFilter] = field(default_factory=dict)
    chosen: tuple[Chosen, ...] = ()
    steps: tuple[Chosen, ...] = ()
    """Ranges that repeat in the whole run, where a time was selected: too few may lie in it to be known by that."""
    cut_iterations: float = 0.0
    """Iterations from a cut to the nearest whole one, of a loop that was running there: the setting."""

    def found(self, owners: Mapping[int, tuple[str, int]]) -> list[Found]:
        """The selected ranges as loops; the same path in processes of one capture or job is one."""
        loops: dict[tuple[tuple[str, int], str], Found] = {}
        for item in self.chosen:
            key = (owners.get(item.process, ("input", 0)), item.path)
            loop = loops.setdefault(key, Found(item.label, item.path, "nvtx"))
            loop.runs.append(self._marked(item.own))
        return list(loops.values())

    def around(self, con: Connection, chosen: Iterable[Chosen]) -> SelectedRanges:
        """The same limits, with those of the ranges that lie in them as a whole."""
        runs = (
            (item, self._whole(con, Iterations(item.process, item.thread, item.bounds), marked=True)) for item in chosen
        )
        return replace(self, chosen=tuple(item.among(run.bounds[:, 0]) for item, run in runs if len(run.bounds)))

    def repeats(self, least: float) -> bool:
        """Return whether the selected ranges repeat often enough to be the loop that is meant."""
        return any(len(item.bounds) >= least for item in self.chosen)

    def of_process(self, process: int) -> Found | None:
        """The selected ranges of a process where nothing repeats in them: they are the iterations, few as they are."""
        own = [item for item in self.chosen if item.process == process]
        if not own:
            return None
        longest = max(own, key=lambda item: int((item.iterations[:, 1] - item.iterations[:, 0]).sum()))
        return Found(longest.label, longest.path, "nvtx", [longest.own])

    def few_steps(self, process: int) -> Found | None:
        """The steps of a process that lie in the part, of the message that fills most of it."""
        found = SelectedRanges(chosen=self.steps).of_process(process)
        for run in found.runs if found else ():
            self._marked(run)
        return found

    def clipped(self, con: Connection, found: Found | None) -> Found | None:
        """The whole run as one iteration: as far as operations of the part last, which are never cut."""
        for run in found.runs if found else ():
            if run.process in self.limits:
                (first,) = con.execute("select min(start) from gpu_op where process = ?", [run.process]).fetchall()
                run.bounds, run.moves = np.maximum(run.bounds, first[0]), False
        return found

    def whole_iterations(self, con: Connection, loops: list[Found]) -> list[Found]:
        """The loops with those iterations only that lie in the part as a whole."""
        if not self.limits:
            return loops
        for loop in loops:
            loop.runs = [run for run in (self._whole(con, run) for run in loop.runs) if len(run.bounds)]
        return [loop for loop in loops if loop.runs]

    def _whole(self, con: Connection, run: Iterations, *, marked: bool = False) -> Iterations:
        """marked: the bounds are those of ranges, and need no next iteration to end them."""
        limits = self.limits.get(run.process)
        if limits is None:
            return run
        begin, end = run.bounds[:, 0], run.bounds[:, 1]
        keep = begin > limits.after if limits.opened else np.ones(len(begin), bool)
        keep &= (end <= limits.before) | (not limits.closed)
        # The iteration after the last one was cut off, and says its end.
        if limits.closed and not marked and keep[:-1].any():
            keep[-1] = False
        own = [item.bounds for item in self.chosen if item.process == run.process]
        if own:
            keep &= inside(begin, np.concatenate(own))
        bounds = run.bounds[keep]
        if limits.opened and len(bounds) and bounds[0, 0] < limits.start:  # when it began on the GPU was cut off
            bounds = bounds[1:]
        # The iteration after the last one is cut off, and with it the moment when the GPU got there.
        if limits.closed and len(bounds) and not marked:
            last, ends = bounds[-1:, 0], bounds[-1:, 1]
            bounds[-1:] = iteration_bounds(con, last, ends.__getitem__, run.process, {"break_factor": 0.0})
        return self._marked(Iterations(run.process, run.thread, bounds))

    def _marked(self, run: Iterations) -> Iterations:
        """Says whether the loop was running where the part begins and where it ends."""
        limits = self.limits.get(run.process)
        if limits is not None and len(run.bounds):
            step = self.cut_iterations * float(np.median(run.bounds[:, 1] - run.bounds[:, 0]))
            run.begun = limits.opened and run.bounds[0, 0] - max(limits.after, limits.start) <= step
            run.goes_on = limits.closed and min(limits.before, limits.end) - run.bounds[-1, 1] <= step
        return run


def inside(times: Ints, stretches: Bounds) -> NDArray[np.bool_]:
    """Mark the times that are in any of the stretches, which may overlap: from their begin up to their end."""
    stretches = stretches[np.argsort(stretches[:, 0], kind="stable")]
    reached = np.maximum.accumulate(stretches[:, 1])
    last = np.searchsorted(stretches[:, 0], times, "right") - 1
    return (last >= 0) & (times < reached[np.maximum(last, 0)])


def covered(stretches: Bounds) -> int:
    """Return how long they are together, each moment counted once (ns)."""
    stretches = stretches[np.argsort(stretches[:, 0], kind="stable")]
    before = np.append(stretches[:1, 0], np.maximum.accumulate(stretches[:, 1])[:-1])
    return int(np.maximum(0, stretches[:, 1] - np.maximum(stretches[:, 0], before)).sum())


WHOLE = SelectedRanges()
