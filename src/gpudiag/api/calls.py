"""The functions of `import gpudiag`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from gpudiag.api.arguments import AnyPath, Times, each, path_of, selection, thresholds, times
from gpudiag.api.difference import Diff
from gpudiag.api.report import Report
from gpudiag.errors import GpudiagError

OneSide = Report | AnyPath | Iterable[Report | AnyPath]
"""One side of a comparison, or repeats of it."""


def explain(
    *paths: AnyPath,
    iteration_time: Times | None = None,
    rules: AnyPath | Iterable[AnyPath] = (),
    overrides: Mapping[str, float] | None = None,
    range: str | None = None,  # noqa: A002 - the name that the command line gives it
    nvtx: str | Iterable[str] = (),
    device: int | Iterable[int] = (),
    process: str | int | Iterable[str | int] = (),
    rank: int | Iterable[int] = (),
    memory_limit: str | None = None,
    cache: bool = True,
) -> Report:
    """Explain what Nsight Systems or Nsight Compute recorded, as `gpudiag explain` does.

    paths: captures in any form that the command line reads, given together as there; or one saved report.
    iteration_time: how long one iteration takes without the profiler: "3.57ms" or a timedelta, for the longest loop;
    or a mapping from loop name to time. rules: folders of your own rules. overrides: other thresholds, such as
    {"H01.min_share": 0.3}.

    Only a part: range, such as "2s:5s", "250ms:" or ":5s" since the capture began; nvtx, messages of ranges; device,
    CUDA device numbers; process, ids or names of executables; rank. What is given must all hold.
    memory_limit: about how much memory to take, such as "2GB"; what does not fit goes to temporary files.
    cache: whether what was read of large captures is looked for in the user's cache, and kept there.

    Raises GpudiagError with one sentence when a file cannot be read or an argument names nothing that exists.
    """
    from gpudiag import memory, pipeline
    from gpudiag.options import Options

    if not paths:
        raise GpudiagError("There is nothing to explain: give at least one file, such as report.nsys-rep.")
    return Report(
        *pipeline.pictured(
            [path_of(path) for path in paths],
            Options(
                [path_of(folder) for folder in each(rules)],
                thresholds(overrides or {}),
                times(iteration_time),
                cached=cache,
                selection=selection(range, nvtx, device, process, rank),
                memory_limit=None if memory_limit is None else memory.limit(memory_limit),
            ),
        )
    )


def read(path: AnyPath) -> Report:
    """A report that was saved as JSON, by `save` or by the command line. Raises GpudiagError."""
    from gpudiag.report import saved as savedreport

    return Report(savedreport.read(path_of(path)))


def diff(base: OneSide, head: OneSide, *, cache: bool = True) -> Diff:
    """Compare head with base, as `gpudiag diff` does, and say whether the change is more than noise.

    A side is a report, or a file that `explain` takes; several are repeats of one program, which make the comparison
    sharper. cache: as in `explain`. Raises GpudiagError.
    """
    from gpudiag import compare as comparison
    from gpudiag.library import load as library

    sides = [
        [one if isinstance(one, Report) else explain(one, cache=cache) for one in _side(given)]
        for given in (base, head)
    ]
    if not all(sides):
        raise GpudiagError("There is nothing to compare: give each side a report or a file, such as report.json.")
    before, now = ([one.data for one in side] for side in sides)
    rules = library.load()
    return Diff(comparison.compare(before, now, rules.setting_values, rules.budget_parts))


def _side(given: OneSide) -> Iterable[Report | AnyPath]:
    return [given] if isinstance(given, Report | str | os.PathLike) else given
