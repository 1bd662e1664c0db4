"""The files that are the ranks of a job, and those that go with the one that is shown in full."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gpudiag import remote
from gpudiag.ingest.duplicates import refuse_twice
from gpudiag.ingest.file_kind import COMPRESSIONS, detect
from gpudiag.ingest.folder import is_timeline_by_name
from gpudiag.options import Options
from gpudiag.prepare import load_library

_TIMELINES = {"nsys_sqlite", "nsys_parquet", "nsys_rep", "torch"}
_OTHER_NAMES = {".csv", ".log", ".txt", ".pstats", ".ncu-rep"}
"""Endings of packed files that hold no timeline: what is in them is seen only once they are unpacked."""


class JobFiles(NamedTuple):
    """Files of a job: one or more ranks each, and what else was recorded."""

    ranks: tuple[Path, ...]
    others: tuple[Path, ...]


def job_of(paths: Sequence[Path], options: Options) -> JobFiles | None:
    """The ranks among these files, if there are so many that they are read one by one; else None.

    A part of the recording is selected in all of them together, in one store. Raises GpudiagError for a file that
    cannot be read, or is given twice.
    """
    if len(paths) < 2 or options.selection:
        return None
    least = load_library(options).setting_values["job_files"]
    if len(paths) < least:
        return None
    refuse_twice(paths)
    ranks = [path for path in paths if _is_timeline(path)]
    if len(ranks) < least:
        return None
    return JobFiles(tuple(ranks), tuple(path for path in paths if path not in set(ranks)))


def _is_timeline(path: Path) -> bool:
    if remote.address(path):
        return is_timeline_by_name(path)
    kind = detect(path)
    packed = kind in COMPRESSIONS.values() and not _OTHER_NAMES & set(path.suffixes)
    return packed or kind in _TIMELINES
