"""The labelled captures: what each program is expected to show, and a report of each, made once a session."""

from __future__ import annotations

import hashlib
import os
import pickle
from functools import cache
from pathlib import Path
from typing import cast

from evaluation import corpus
from gpudiag.model import Report
from gpudiag.pipeline import explain


def labelled(role: str) -> list[corpus.Case]:
    """Every captured variant with that role (slow, fixed, healthy)."""
    return [
        case
        for case in corpus.cases()
        if case.role == role and case.taken and case.suffix in ("", "/kernels" if role == "healthy" else "")
    ]


_kept_in: list[Path] = []


def keep_reports_in(folder: Path) -> None:
    """Share reports with the other workers of this test run, which read and write the same folder."""
    folder.mkdir(exist_ok=True)
    _kept_in[:] = [folder]


@cache
def report_of(*paths: Path) -> Report:
    """The report of captures that no test changes, made once in a test run."""
    if not _kept_in:
        return explain(list(paths))
    kept = _kept_in[0] / hashlib.sha256("\n".join(map(str, paths)).encode()).hexdigest()
    if kept.exists():
        return cast(Report, pickle.loads(kept.read_bytes()))
    report = explain(list(paths))
    unfinished = kept.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(pickle.dumps(report))
    unfinished.replace(kept)
    return report
