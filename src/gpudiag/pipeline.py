"""The stages in order: ingest → store → window → evaluate → rank → report. Only this module knows the order.

The first three, which give a prepared store, are chained in `opening`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from gpudiag import __version__, store
from gpudiag.errors import GpudiagError
from gpudiag.opening import DEFAULT, analysed, opened, prepare
from gpudiag.options import Options
from gpudiag.stages import stage

if TYPE_CHECKING:
    from gpudiag.evaluate import Evaluation
    from gpudiag.library import Library
    from gpudiag.model import Report
    from gpudiag.picture.model import Picture
    from gpudiag.replay.worth import Ledger

__all__ = [
    "DEFAULT", "Connection", "analysed", "build_report", "evaluated", "explain", "opened", "pictured", "prepare",
    "priced_report", "report",
]  # fmt: skip

Connection = duckdb.DuckDBPyConnection


def explain(paths: Sequence[Path], options: Options = DEFAULT) -> Report:
    """Read the captures, look for every smell the library knows, and rank what was found.

    Raises GpudiagError with one sentence when a file cannot be read or an option names nothing that exists.
    """

    def work(con: Connection, library: Library, file: Path | None) -> Report:
        options.progress("looking for causes")
        with stage("evaluate"):
            return build_report(con, library, options.iteration_times, file)

    return analysed(paths, options, work)


def report(paths: Sequence[Path], options: Options = DEFAULT) -> Report:
    """As `explain`, or where the one file is a report saved as JSON, that report. Raises GpudiagError."""
    from gpudiag import savedreport

    if saved := _saved(paths):
        if options.judging:
            asked = "rules, thresholds, times and selections"
            raise GpudiagError(f"{saved} is a saved report: {asked} apply to captures only.")
        return savedreport.read(saved)
    return explain(paths, options)


def _saved(paths: Sequence[Path]) -> Path | None:
    """The saved report, if that is what is given. Several captures are one run; a saved report is one already."""
    from gpudiag import savedreport

    found = next(filter(savedreport.is_one, paths), None)
    if found and len(paths) > 1:
        raise GpudiagError(f"{found} is a saved report, which is read alone: give it without the other files.")
    return found


def pictured(paths: Sequence[Path], options: Options = DEFAULT) -> tuple[Report, Picture | None]:
    """As `report`, with what a page draws of the captures; a saved report holds no timeline to draw. Raises
    GpudiagError.
    """
    if _saved(paths):
        return report(paths, options), None
    from gpudiag.picture.draw import draw

    def work(con: Connection, library: Library, file: Path | None) -> tuple[Report, Picture]:
        options.progress("looking for causes")
        with stage("evaluate"):
            made, ledger = priced_report(con, library, options.iteration_times, file)
        options.progress("drawing the timeline")
        with stage("draw"):
            return made, draw(con, made.run, made.findings, ledger)

    return analysed(paths, options, work)


def evaluated(con: Connection, library: Library, file: Path | None = None) -> Evaluation:
    """What all rules say of a prepared, locked store. Raises duckdb.Error where that cannot be read."""
    from gpudiag.evaluate import evaluate_all

    evaluation = evaluate_all(library, con, file)
    if evaluation.failed:  # by a fault of its own, or of the store's?
        store.read_all(con)
    return evaluation


def build_report(
    con: Connection, library: Library, iteration_times: Mapping[str, float], file: Path | None = None
) -> Report:
    """The report of a prepared, locked store."""
    return priced_report(con, library, iteration_times, file)[0]


def priced_report(
    con: Connection, library: Library, iteration_times: Mapping[str, float], file: Path | None = None
) -> tuple[Report, Ledger]:
    """The report, and the ledger that priced its findings and knows what each points at."""
    from gpudiag import summary
    from gpudiag.model import Report, Tool, Unevaluated
    from gpudiag.rank import rank
    from gpudiag.replay.worth import Ledger

    with stage("ask rules"):
        evaluation = evaluated(con, library, file)
    run = summary.run(con, library.setting_values, iteration_times)
    ledger = Ledger(con, library.setting_values, run.loops)
    findings, minor, missed = rank(con, evaluation, library, run.loops, run.frameworks, ledger)
    verdict = summary.verdict(con, run, findings, library.setting_values, minor)
    if verdict.state == "healthy" and run.kernels and not run.loops:
        verdict = summary.unless_blind(verdict, evaluation.not_evaluated, library.rules)
    clear = tuple(outcome.rule for outcome in evaluation.clear)
    not_evaluated = [
        Unevaluated(code=o.rule.code, title=o.rule.title, reason=o.reason, hint=o.hint)
        for o in evaluation.not_evaluated
        # Advice that could not be given is no gap; a rule of the user's own that could not be run always is one.
        if (o.rule.kind == "finding" and o.rule.severity != "info") or o.rule.code in library.user_codes
    ]
    if verdict.state == "cannot_tell" and not run.kernels:  # a rule that saw nothing to judge has not found it healthy
        too_little = "too little GPU work was recorded"
        not_evaluated += [Unevaluated(code=rule.code, title=rule.title, reason=too_little) for rule in clear]
        clear = ()
    named = {rule.code for rule in clear} | {item.code for item in evaluation.suppressed}
    report = Report(
        tool=Tool(version=__version__),
        inputs=summary.inputs(con),
        verdict=verdict,
        run=run,
        findings=tuple(findings),
        minor=tuple(minor),
        clear=tuple(rule.code for rule in clear),
        not_evaluated=tuple(sorted(not_evaluated, key=lambda item: item.code)),
        suppressed=evaluation.suppressed,
        # The advice to give the unprofiled time is of no use to somebody who did.
        notes=(
            *(note for note in evaluation.notes if not (iteration_times and note.code == "Q02")),
            *summary.unreplayed(run, missed),
            *summary.uneven(con, library),
        ),
        titles={code: library.by_code[code].id.replace("-", " ") for code in sorted(named)},
    )
    return report, ledger
