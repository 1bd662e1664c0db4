"""The stages in order: ingest → store → window → evaluate → rank → report. Only this module knows the order."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import duckdb

from gpudiag import __version__, store, summary, window
from gpudiag.evaluate import evaluate_all
from gpudiag.ingest import ingest
from gpudiag.library import Library, load
from gpudiag.model import GpudiagError, Report, Tool, Unevaluated
from gpudiag.rank import rank

Connection = duckdb.DuckDBPyConnection
Progress = Callable[[str], None]


def explain(
    paths: Sequence[Path],
    *,
    rule_dirs: Iterable[Path] = (),
    overrides: Mapping[str, float] | None = None,
    iteration_times: Mapping[str, float] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Read the captures, look for every smell the library knows, and rank what was found.

    iteration_times: loop name (or "" for the longest loop) → unprofiled time of one turn in ns.
    Raises GpudiagError with one sentence when a file cannot be read or an argument names nothing that exists.
    """
    say = progress or (lambda _: None)
    library = load(rule_dirs).with_overrides(overrides or {})
    with tempfile.TemporaryDirectory(prefix="gpudiag-") as folder:
        file = Path(folder) / "store.duckdb"
        con = store.create(str(file))
        try:
            for path in paths:
                say(f"reading {path.name}")
                ingest(path, con, Path(folder))
            say("finding loops")
            prepare(con, library)
            say("looking for causes")
            if library.user_rules:
                con.close()
                con = store.reopen(str(file))
            store.lock(con)
            return build_report(con, library, iteration_times or {}, file if library.user_rules else None)
        finally:
            con.close()


def prepare(con: Connection, library: Library) -> None:
    """From filled canonical tables to views that rules can query: settings, macros, loops, views."""
    store.load_settings(con, library.setting_values)
    store.load_macros(con, library.views)
    row = con.execute("select (select count(*) from loop) + (select count(*) from iteration)").fetchone()
    if row and not row[0]:
        window.detect(con)
    store.load_views(con, library.views)


def build_report(
    con: Connection, library: Library, iteration_times: Mapping[str, float], file: Path | None = None
) -> Report:
    """The report of a prepared, locked store."""
    evaluation = evaluate_all(library, con, file)
    run = summary.run(con, library.setting_values, iteration_times)
    findings, minor = rank(con, evaluation, library, run.loops, run.frameworks)
    return Report(
        tool=Tool(version=__version__),
        inputs=summary.inputs(con),
        verdict=summary.verdict(con, run, findings),
        run=run,
        findings=tuple(findings),
        minor=tuple(minor),
        clear=tuple(outcome.rule.code for outcome in evaluation.clear),
        not_evaluated=tuple(
            Unevaluated(code=o.rule.code, title=o.rule.title, reason=o.reason, hint=o.hint)
            for o in evaluation.not_evaluated
            if o.rule.kind == "finding"
        ),
        suppressed=evaluation.suppressed,
        notes=evaluation.notes,
    )


__all__ = ["GpudiagError", "build_report", "explain", "prepare"]
