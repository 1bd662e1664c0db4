"""A generated job, explained, beside what was planted in it."""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluation.jobs.generate import written
from evaluation.jobs.plants import Plant, host_size, plant
from evaluation.jobs.template import templates
from gpudiag import pipeline
from gpudiag.model import Finding, Job
from gpudiag.options import Options

LISTED = 0.05
"""What is planted counts from here on: more is to be named, less is only shown."""


@dataclass(frozen=True, slots=True)
class JobScore:
    """The answer about a job. named: all that was planted is named; first: as the first finding about ranks; false: a
    finding about ranks that nothing was planted for; share: what the report says it costs; cpu_s: seconds of all
    processes, for everything and for all but reading.
    """

    kind: str
    ranks: int
    strength: float
    named: bool
    first: bool
    false: tuple[str, ...]
    share: float | None
    cpu_s: float
    rank_mb: float


_ABOUT_RANKS = {
    "slow-ranks-of-job", "slow-host-of-job", "slow-link-of-job", "rank-degrades", "pauses-of-one-rank",
    "unequal-work-of-ranks",
}  # fmt: skip


def scored(kind: str, ranks: int, seed: int, *, repeats: int, workers: int | None = None) -> JobScore:
    """Make a job, explain it, and compare."""
    with tempfile.TemporaryDirectory(prefix="gpudiag-job-") as name:
        folder = Path(name)
        random = np.random.default_rng([seed, ranks, *kind.encode()])
        cause = plant(kind, ranks, random)
        (folder / "job").mkdir()
        files = list(written(folder / "job", templates(folder, repeats), cause, ranks, random))
        size = sum(file.stat().st_size for file in files) / len(files) / 1e6
        began = _cpu()
        report = pipeline.explain(files, Options(cached=False, workers=workers))
        spent = _cpu() - began
    about = [one for one in (*report.findings, *report.minor) if one.id in _ABOUT_RANKS]
    hits = [one for one in about if one.id == cause.code_words]
    named = any(_names(one, cause, ranks, report.job) for one in hits)
    return JobScore(
        kind, ranks, cause.strength, named, bool(about) and named and about[0] in hits,
        tuple(one.id for one in about if one.id != cause.code_words), hits[0].gain.share if hits else None, spent, size,
    )  # fmt: skip


def _cpu() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _names(finding: Finding, cause: Plant, ranks: int, job: Job | None) -> bool:
    """Return whether a finding says where the cause is: the ranks, the host, or the ranks on both sides of a link."""
    if cause.kind == "slow host":
        return f"node{cause.host}`" in finding.message
    if cause.kind == "slow link":
        size = host_size(ranks)
        return f"rank {(cause.host or 0) * size}" in re.split(r"[`,]", finding.message)
    each = cause.strengths or (cause.strength,)
    wanted = {rank for rank, strength in zip(cause.ranks, each, strict=True) if strength >= LISTED}
    slow = {one.rank for one in job.members if one.slow} if job else set()
    said = {int(number) for number in re.findall(r"rank (\d+)`", finding.message)}
    return wanted <= said and (cause.kind == "pauses" or said <= {*cause.ranks}) and slow <= {*cause.ranks}
