"""Costs of jobs of large ranks by their number, and with workers: measured on balanced generated jobs."""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.jobs.cost import explained
from evaluation.jobs.generate import written
from evaluation.jobs.plants import Plant
from evaluation.jobs.template import templates

LARGE = 42
"""Times that the steady iterations are repeated, for ranks of about 10 MB."""

LARGE_RANKS = (8, 12, 16)
SIDE_BY_SIDE = 16
RUNS = 3


def measured() -> dict[str, Any]:
    """Costs of large ranks by their number, and with one and two workers."""
    return {"large": [_grown(LARGE, ranks) for ranks in LARGE_RANKS], "workers": _workers()}


@contextmanager
def _job(repeats: int, ranks: int) -> Iterator[list[Path]]:
    with tempfile.TemporaryDirectory(prefix="gpudiag-job-") as name:
        folder = Path(name)
        (folder / "job").mkdir()
        random = np.random.default_rng([0, ranks])
        yield written(folder / "job", templates(folder, repeats), Plant("balanced"), ranks, random)


def _size(files: Sequence[Path]) -> float:
    return sum(file.stat().st_size for file in files) / len(files) / 1e6


def _grown(repeats: int, ranks: int) -> dict[str, Any]:
    with _job(repeats, ranks) as files:
        _, cost = explained(files, None)
        print(f"{ranks} ranks of {_size(files):.1f} MB: {cost}", flush=True)
        return {"ranks": ranks, "rank_mb": _size(files), **asdict(cost)}


def _workers() -> dict[str, Any]:
    """Seconds with one and two workers, of the large ranks; one after the other, since others use the machine, too."""
    found: dict[int, list[dict[str, Any]]] = {1: [], 2: []}
    with _job(LARGE, SIDE_BY_SIDE) as files:
        for _ in range(RUNS):
            for workers, costs in found.items():
                _, cost = explained(files, workers)
                print(f"{workers} workers: {cost}, load {os.getloadavg()[0]:.1f}", flush=True)
                costs.append(asdict(cost))
    return {
        "ranks": SIDE_BY_SIDE,
        "load": os.getloadavg()[0],
        **{
            name: {key: statistics.median(one[key] for one in costs) for key in costs[0]}
            for name, costs in (("one", found[1]), ("two", found[2]))
        },
    }
