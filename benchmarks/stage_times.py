"""Measure the stages of a report:  python -m benchmarks.stage_times CAPTURE

Prints as JSON the seconds of each stage of one report, in the order in which they end, and of the whole process; and
under `needed` the columns of each table that were asked for. The cache is not used.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

BEGAN = time.perf_counter()


def main() -> None:
    """The command line."""
    from gpudiag import pipeline, tracing
    from gpudiag.ingest.sources.base import Columns
    from gpudiag.ingest.sources.sqlite import SqliteSource
    from gpudiag.options import Options
    from gpudiag.report import formats

    seconds: dict[str, float] = {}
    needed: dict[str, list[str]] = {}
    tracing.watch(lambda name, took: seconds.update({name: seconds.get(name, 0.0) + took}))
    batches = SqliteSource.batches

    def noted(source: SqliteSource, table: str, columns: Columns) -> Iterator[str]:
        if source.has(table):
            needed[table] = [name for name in columns if name in source.columns(table)]
        return batches(source, table, columns)

    SqliteSource.batches = noted  # type: ignore[method-assign, assignment]
    ready = time.perf_counter() - BEGAN
    with tracing.stage("report"):
        report = pipeline.report([Path(sys.argv[1])], Options(cached=False))
    with tracing.stage("render"):
        formats.render(report, "markdown", None)
    json.dump({"start": ready, "stages": seconds, "needed": needed}, sys.stdout)


if __name__ == "__main__":
    main()
