"""The stages in order: ingest → store → window → evaluate → rank → report. Only this module knows the order."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from gpudiag import __version__, store
from gpudiag.errors import GpudiagError
from gpudiag.ingest import ingest
from gpudiag.options import Options
from gpudiag.stages import stage

if TYPE_CHECKING:
    from gpudiag.library import Library
    from gpudiag.model import Report
    from gpudiag.picture.model import Picture
    from gpudiag.replay.worth import Ledger

Connection = duckdb.DuckDBPyConnection
DEFAULT = Options()

# Below this many bytes of input the store stays in memory; above it goes to a temporary file, which DuckDB compresses.
_IN_MEMORY = 50_000_000
_PACKED = 10  # exports shrink about tenfold under xz and gzip


def explain(paths: Sequence[Path], options: Options = DEFAULT) -> Report:
    """Read the captures, look for every smell the library knows, and rank what was found.

    Raises GpudiagError with one sentence when a file cannot be read or an option names nothing that exists.
    """
    with opened(paths, options) as (con, library, file):
        options.progress("looking for causes")
        with stage("evaluate"):
            return build_report(con, library, options.iteration_times, file)


def report(paths: Sequence[Path], options: Options = DEFAULT) -> Report:
    """As `explain`, or where the one file is a report saved as JSON, that report. Raises GpudiagError."""
    from gpudiag import savedreport

    if saved := _saved(paths):
        if options.judging:
            raise GpudiagError(f"{saved} is a saved report: rules, thresholds and times apply to captures only.")
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

    with opened(paths, options) as (con, library, file):
        options.progress("looking for causes")
        with stage("evaluate"):
            made, ledger = priced_report(con, library, options.iteration_times, file)
        options.progress("drawing the timeline")
        with stage("draw"):
            return made, draw(con, made.run, made.findings, ledger)


@contextmanager
def opened(paths: Sequence[Path], options: Options = DEFAULT) -> Iterator[tuple[Connection, Library, Path | None]]:
    """The captures as a prepared, locked store, the library, and the store's file where a sandbox has to open it."""
    # A sandbox has to open the store, so that must be a file when there are rules of the user's.
    in_memory = not options.rule_dirs and sum(map(_size, paths)) < _IN_MEMORY
    with tempfile.TemporaryDirectory(prefix="gpudiag-") as folder, ThreadPoolExecutor(1) as helper:
        # Its imports take as long as reading a small file.
        loading = helper.submit(_library, options)
        file = Path(folder) / "store.duckdb"
        con = store.create(small=True) if in_memory else store.create(str(file))
        try:
            for path in paths:
                options.progress(f"reading {path.name}")
                with stage("ingest"):
                    ingest(path, con, Path(folder))
            library = loading.result()
            options.progress("finding loops")
            with stage("prepare"):
                prepare(con, library)
            if library.user_rules:
                con.close()
                con = store.reopen(str(file))
            store.lock(con)
            yield con, library, file if library.user_rules else None
        finally:
            con.close()


def _library(options: Options) -> Library:
    from gpudiag.library import load

    return load(tuple(options.rule_dirs)).with_overrides(options.overrides)


def _size(path: Path) -> int:
    """Bytes to read; files that do not exist count nothing here, reading them says so."""
    try:
        if path.is_dir():
            return sum(file.stat().st_size for file in path.iterdir() if file.is_file())
        return path.stat().st_size * (_PACKED if path.suffix in (".xz", ".gz", ".zst") else 1)
    except OSError:
        return 0


def prepare(con: Connection, library: Library, *, side_by_side: bool = True) -> None:
    """From filled canonical tables to views that rules can query: settings, macros, loops, views."""
    from gpudiag import window

    store.load_settings(con, library.setting_values)
    store.load_macros(con, library.views)
    row = con.execute("select (select count(*) from loop) + (select count(*) from iteration)").fetchone()
    if row and not row[0]:
        window.detect(con)
    store.load_views(con, library.views, side_by_side=side_by_side)


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
    from gpudiag.evaluate import evaluate_all
    from gpudiag.model import Report, Tool, Unevaluated
    from gpudiag.rank import rank
    from gpudiag.replay.worth import Ledger

    evaluation = evaluate_all(library, con, file)
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
        if o.rule.kind == "finding" and o.rule.severity != "info"  # advice that could not be given is no gap
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
        ),
        titles={code: library.by_code[code].id.replace("-", " ") for code in sorted(named)},
    )
    return report, ledger
