"""A job's ranks read and matched, and the rules about jobs asked of them.

One rank, the one that the others wait for, is read in full by whoever asks; its loop says where iterations begin.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpudiag.errors import GpudiagError
from gpudiag.evaluate.engine import evaluate
from gpudiag.evaluate.evidence import Known
from gpudiag.jobs import matching, places, table_rows
from gpudiag.jobs.given import JobFiles
from gpudiag.jobs.overview import overview
from gpudiag.jobs.rank_waits import JobCollectives, RankWaits, pace, waits
from gpudiag.jobs.spread import summaries
from gpudiag.library.catalogue import Library
from gpudiag.model import Job, Outcome
from gpudiag.options import Options
from gpudiag.prepare import load_library
from gpudiag.store import database
from gpudiag.tracing import stage

if TYPE_CHECKING:
    import duckdb

    from gpudiag.jobs.rank_summary import Ints

    Connection = duckdb.DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class MatchedJob:
    """The ranks of a job, matched; `file` is the one that holds the rank to be shown in full."""

    job: matching.Matched
    found: RankWaits
    met: JobCollectives
    reference: int
    file: Path

    def judged(self, con: Connection, library: Library) -> tuple[list[Outcome], Job | None]:
        """The outcomes of all rules about jobs, and the job for the report.

        con: the store of the reference rank's file. No outcome, and no job, where that has no loop with collectives.
        """
        own = self.job.ranks[self.reference]
        loop, bounds = places.iterations(con, own)
        if loop is None or not len(bounds):
            return [], None
        with stage("compare ranks"):
            store = self._store(con, library, loop, bounds)
            try:
                known = Known.of(library, store)
                rules = [rule for rule in library.packaged_rules if rule.about == "job"]
                outcomes = [evaluate(rule, store, library, known) for rule in rules]
                return outcomes, overview(
                    store, matching.missing(self.job.ranks), int(library.setting_values["job_parts"])
                )
            finally:
                store.close()

    def _store(self, con: Connection, library: Library, loop: int, bounds: Ints) -> Connection:
        store = database.create()
        database.load_settings(store, library.setting_values)
        database.load_macros(store, library.views)
        places.copy_loop(con, store, loop)
        table_rows.write(store, self.job, self.found, self.met, self.reference, loop, bounds)
        places.write(con, store, self.reference, loop)
        database.load_views(store, library.job_views, side_by_side=False, with_macros=False)
        database.lock(store)
        return store


def matched(given: JobFiles, options: Options) -> MatchedJob | None:
    """The ranks in these files, matched; None where none of them holds collectives, so that they are no job.

    Raises GpudiagError with one sentence for a file that cannot be read, and for a rank that is given twice or is of
    another job.
    """
    with stage("read ranks"):
        by_file = summaries(given.ranks, options)
    if not any(by_file):
        return None
    for path, held in zip(given.ranks, by_file, strict=True):
        if not held:
            raise GpudiagError(f"{path}: holds no NCCL operation, so it is no rank of this job; leave it out.")
    with stage("match ranks"):
        options.progress("comparing ranks")
        ranks = matching.ordered([one for held in by_file for one in held])
        library = load_library(options)
        job = matching.matched(ranks, _limits(library))
        found, met = waits(job)
    reference = pace(found, len(ranks), library.setting_values["job_warm_share"])
    file = next(path for path, held in zip(given.ranks, by_file, strict=True) if ranks[reference] in held)
    return MatchedJob(job, found, met, reference, file)


def _limits(library: Library) -> matching.MatchLimits:
    """The least that ranks of one job must have in common, as the views have it for the ranks in one store."""
    store = database.create(small=True)
    try:
        database.load_macros(store, [view for view in library.views if view[0].startswith("communication/")])
        row = store.execute("select rank_spread_ns(), rank_end_ns(), rank_clock_ns()").fetchall()[0]
    finally:
        store.close()
    settings = library.setting_values
    return matching.MatchLimits(settings["min_iterations"], settings["period_match"], *map(float, row))
