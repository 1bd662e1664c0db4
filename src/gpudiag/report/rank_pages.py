"""Pages of single ranks beside the page of their job, which links them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from gpudiag.errors import GpudiagError
from gpudiag.model import Job, JobRank, Report

PAGES = 8
"""Slow ranks that get a page: each is read and explained in full."""


class RankPage(NamedTuple):
    """A page to write. capture: the rank's file; alone: the number that tells the rank from others in that file."""

    label: str
    capture: Path
    alone: int | None
    path: Path


def pages(job: Job, output: Path, captures: Iterable[Path]) -> list[RankPage]:
    """Pages of the slow ranks, slowest first, and of the rank that does least, to compare them with.

    The rank that the job's page shows in full needs none. captures: the files of the job. Raises GpudiagError where
    the name of a file does not tell which one it is.
    """
    by_name: dict[str, list[Path]] = {}
    for path in captures:
        by_name.setdefault(path.name, []).append(path)
    shared = Counter(one.file for one in job.members)
    made = []
    for one in _chosen(job):
        files = by_name.get(one.file, [])
        if not files:
            raise GpudiagError(
                f"{one.file}: is not among the files given, so {one.label} has no page; leave out --rank-pages."
            )
        if len(files) > 1 or (shared[one.file] > 1 and one.rank is None):
            raise GpudiagError(f"{one.file}: its name does not tell {one.label} from others; leave out --rank-pages.")
        path = output.with_name(f"{output.stem}.{_slug(one)}{output.suffix}")
        made.append(RankPage(one.label, files[0], one.rank if shared[one.file] > 1 else None, path))
    return made


def _chosen(job: Job) -> list[JobRank]:
    others = [one for one in job.members if one.label != job.reference]
    slow = sorted((one for one in others if one.slow), key=lambda one: -one.more)[:PAGES]
    usual = [one for one in others if not one.slow]
    return [*slow, *sorted(usual, key=lambda one: one.more)[:1]]


def _slug(one: JobRank) -> str:
    if one.rank is not None:
        return f"rank{one.rank}"
    return re.sub(r"[^\w.-]+", "-", one.label, flags=re.ASCII)[:60].strip("-.") or "rank"


def linked(report: Report, made: Sequence[RankPage]) -> Report:
    """The job's report with a link to each of the pages."""
    if report.job is None:
        return report
    by_label = {page.label: quote(page.path.name, safe="") for page in made}
    members = tuple(one.model_copy(update={"page": by_label.get(one.label)}) for one in report.job.members)
    return report.model_copy(update={"job": report.job.model_copy(update={"members": members})})
