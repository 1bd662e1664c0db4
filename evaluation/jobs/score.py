"""A generated job, explained, beside what was planted in it."""

from __future__ import annotations

import copy
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluation.jobs.cost import Cost, explained
from evaluation.jobs.generate import simulate, written
from evaluation.jobs.plants import PER_HOST, Plant, host_size, plant
from evaluation.jobs.template import Template, templates
from gpudiag.model import Finding, Job, Report

LISTED = 0.05
"""What is planted counts from here on: more is to be named, less is only shown."""

SHOWN = PER_HOST
"""Ranks that the report's table has: those that do more than the others, the most first."""


@dataclass(frozen=True, slots=True)
class JobScore:
    """The answer about a job.

    named: what was planted is named, by its kind and where it is; first: as the first finding about ranks; place: some
    finding about ranks says where it is, whatever it takes it for; shown: one of its ranks is in the report's table;
    false: findings about ranks of which nothing was planted in any; share: what the report says that the fix saves, of
    an iteration; worth: what it saves in the simulation.
    """

    kind: str
    ranks: int
    seed: int
    strength: float
    named: bool
    first: bool
    place: bool
    shown: bool
    false: tuple[str, ...]
    share: float | None
    worth: float
    rank_mb: float
    cost: Cost


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
        real = templates(folder, repeats)
        worth = _worth(real, cause, ranks, random)
        (folder / "job").mkdir()
        files = written(folder / "job", real, cause, ranks, random, workers or 1)
        size = sum(file.stat().st_size for file in files) / len(files) / 1e6
        report, cost = explained(files, workers)
    about = [one for one in (*report.findings, *report.minor) if one.id in _ABOUT_RANKS]
    places = [one for one in about if _names(one, cause, ranks, report.job)]
    hits = [one for one in places if one.id == cause.code_words]
    false = tuple(one.id for one in about if one not in places and not _inside(one, cause, ranks))
    return JobScore(
        kind, ranks, seed, cause.strength, bool(hits), bool(hits) and about[0] in hits, bool(places),
        _shown(report, cause, ranks), false, hits[0].gain.share if hits else None, worth, size, cost,
    )  # fmt: skip


def _worth(real: list[Template], cause: Plant, ranks: int, random: np.random.Generator) -> float:
    """The part of the simulated job's time that goes with its cause, over the later two thirds of it."""
    if cause.kind == "balanced":
        return 0.0
    ends = []
    for one in (cause, Plant("balanced")):
        left = simulate(real, one, ranks, copy.deepcopy(random)).leaves.max(axis=0)
        ends.append(float(left[-1] - left[len(left) // 3]))
    return max(0.0, 1 - ends[1] / ends[0])


def _names(finding: Finding, cause: Plant, ranks: int, job: Job | None) -> bool:
    """Return whether a finding says where the cause is: the ranks, the host, or the ranks on both sides of a link."""
    if cause.kind == "balanced":
        return False
    if cause.kind == "slow host":
        return f"node{cause.host}`" in finding.message
    if cause.kind == "slow link":
        first = (cause.host or 0) * host_size(ranks)
        return f"rank {first}" in re.split(r"[`,]", finding.message)
    each = cause.strengths or (cause.strength,)
    wanted = {rank for rank, strength in zip(cause.ranks, each, strict=True) if strength >= LISTED}
    slow = {one.rank for one in job.members if one.slow} if job else set()
    said = _said(finding)
    inside = cause.kind == "pauses" or said <= {*cause.ranks}
    return bool(said & {*cause.ranks}) and wanted <= said and inside and slow <= {*cause.ranks}


def _said(finding: Finding) -> set[int]:
    return {int(number) for number in re.findall(r"rank (\d+)`", finding.message)}


def _inside(finding: Finding, cause: Plant, ranks: int) -> bool:
    """Return whether all ranks that a finding names are slow ones, though it may not name all of them."""
    return bool(said := _said(finding)) and said <= _planted(cause, ranks)


def _planted(cause: Plant, ranks: int) -> set[int]:
    if cause.host is None:
        return {*cause.ranks}
    size = host_size(ranks)
    return {*range(cause.host * size, (cause.host + 1) * size)}


def _shown(report: Report, cause: Plant, ranks: int) -> bool:
    """Return whether the table of ranks has one of those slowed: only ranks do more work, not those at a slow link."""
    members = report.job.members if report.job else ()
    listed = sorted(members, key=lambda one: -one.more)[:SHOWN]
    return cause.kind != "slow link" and bool({one.rank for one in listed} & _planted(cause, ranks))
