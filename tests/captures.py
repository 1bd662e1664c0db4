"""The labelled captures: what each program is expected to show, and a report of each, made once a session."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import corpus
from gpudiag.model import Report
from gpudiag.pipeline import explain


def labelled(role: str) -> list[corpus.Case]:
    """Every captured variant with that role (slow, fixed, healthy)."""
    return [
        case
        for case in corpus.cases()
        if case.role == role and case.taken and case.suffix in ("", "/kernels" if role == "healthy" else "")
    ]


@cache
def report_of(*paths: Path) -> Report:
    return explain(list(paths))
