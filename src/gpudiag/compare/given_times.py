"""Times measured without the profiler, as `--base-time` and `--head-time` give them, for loops of both sides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from gpudiag.compare.loop_matching import Pair
from gpudiag.diagnosis import iteration_time_check, loop_names
from gpudiag.errors import GpudiagError
from gpudiag.model import Loop, Report

Times = Mapping[str, Sequence[float]]
"""Loop name, or "" for the longest loop → unprofiled times of an iteration in ms."""
OPTIONS = ("--base-time", "--head-time")


class Given(NamedTuple):
    """times: of an iteration as it was found, by the id of its loop. notes: where others were given."""

    times: dict[int, list[float]]
    notes: list[str]


def of(times: Times, report: Report, pairs: Sequence[Pair], side: int, settings: Mapping[str, float]) -> Given:
    """The times of one side. Raises GpudiagError for a loop that is not there, or a time that cannot be its own."""
    option = OPTIONS[side]
    found: dict[int, list[float]] = {}
    loops: dict[int, Loop] = {}
    for name, values in times.items():
        called = loop_names.called(name, report.run.loops, option) if name else [(pairs[0].base, pairs[0].head)[side]]
        loop = next(iter(called), None)
        if loop is None:
            names = ", ".join(sorted({loop.name for loop in report.run.loops})[:5])
            raise GpudiagError(f"{option} names {name!r}, but no loop is called so; there are: {names}.")
        if not values or not all(math.isfinite(value) and value > 0 for value in values):
            raise GpudiagError(f"{option} wants times above zero.")
        loops[loop.id] = loop
        found[loop.id] = [*found.get(loop.id, []), *values]
    notes = []
    for number, values in found.items():
        loop, usual = loops[number], math.exp(fmean(map(math.log, values)))
        fit = iteration_time_check.fit(loop, usual, settings, option)
        found[number] = [value / fit.iterations for value in values]
        if note := iteration_time_check.multiple(loop.name, loop.iteration_ms, usual, fit.iterations, option):
            notes.append(note)
    return Given(found, notes)
