"""The CPU time that explaining a job takes, by stage, and the memory that its workers take."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from gpudiag import pipeline
from gpudiag.model import Report
from gpudiag.options import Options


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds, of this process and its workers together.

    read_s: reading all ranks; reduce_s: matching and comparing them; cpu_s: all of it, one rank in full included.
    wall_s: seconds by the clock; worker_mb: the most memory that a worker took, 0 without workers.
    """

    read_s: float
    reduce_s: float
    cpu_s: float
    wall_s: float
    worker_mb: float


def cpu() -> float:
    """CPU seconds that this process and its finished children have used."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def explained(files: Sequence[Path], workers: int | None) -> tuple[Report, Cost]:
    """The report of a job, nothing taken from the cache, and what it cost."""
    spent: dict[str, float] = {}

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        began = cpu()
        yield
        spent[name] = spent.get(name, 0.0) + cpu() - began

    began, at = cpu(), time.perf_counter()
    with patch("gpudiag.jobs.explain.stage", stage):
        report = pipeline.explain(files, Options(cached=False, workers=workers))
    whole, wall = cpu() - began, time.perf_counter() - at
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000 if workers else 0.0
    reduce_s = spent.get("match ranks", 0.0) + spent.get("compare ranks", 0.0)
    return report, Cost(spent.get("read ranks", 0.0), reduce_s, whole, wall, most)
