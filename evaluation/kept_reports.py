"""Reports of captures that nothing changes, made once for all programs and workers that are given one folder.

The scorecard, the tutorial and the tests explain the same captures. Where `GPUDIAG_KEPT_REPORTS` names a folder they
share them; it must not outlive the version that filled it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from evaluation import packed
from gpudiag.model import Report
from gpudiag.options import Options
from gpudiag.pipeline import explain

VARIABLE = "GPUDIAG_KEPT_REPORTS"


@contextmanager
def shared() -> Iterator[None]:
    """Let this program's workers share reports while it runs, where no folder for them is named."""
    if VARIABLE in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ[VARIABLE] = folder
        try:
            yield
        finally:
            del os.environ[VARIABLE]


@cache
def report_of(*paths: Path, iteration_ms: float | None = None) -> Report:
    """The report of captures, made once; `iteration_ms`: given the unprofiled time of an iteration."""
    if (place := _place(paths, iteration_ms)) and place.exists():
        return Report.model_validate_json(place.read_bytes())
    times = {} if iteration_ms is None else {"": iteration_ms * 1e6}
    report = explain([packed.opened(path) for path in paths], Options(iteration_times=times))
    keep(paths, report, iteration_ms)
    return report


def keep(paths: Iterable[Path], report: Report, iteration_ms: float | None = None) -> None:
    """Leave a report for the others; nothing happens where there is no folder for it."""
    if place := _place(paths, iteration_ms):
        unfinished = place.with_suffix(f".{os.getpid()}")
        unfinished.write_text(report.model_dump_json(), "utf-8")
        unfinished.replace(place)


def _place(paths: Iterable[Path], iteration_ms: float | None) -> Path | None:
    if not (folder := os.environ.get(VARIABLE)):
        return None
    files = (str(packed.opened(path)) for path in paths)  # packed or not, it is the same capture
    named = [*files, *([] if iteration_ms is None else [f"{iteration_ms!r} ms"])]
    return Path(folder, hashlib.sha256("\n".join(named).encode()).hexdigest())
