"""The stages in order: ingest → store → loops → evaluate → rank → report. Only this module knows the order.

The first three, which give a prepared store, are chained in `prepare`. Nothing heavy is loaded before a capture has to
be read: an answer that is known already (`answer`) is printed without the database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpudiag import __version__
from gpudiag.errors import GpudiagError
from gpudiag.options import Options
from gpudiag.tracing import stage

if TYPE_CHECKING:
    import duckdb

    from gpudiag.answer import Explained
    from gpudiag.evaluate.engine import Evaluation
    from gpudiag.jobs.explain import MatchedJob
    from gpudiag.library.catalogue import Library
    from gpudiag.model import NotEvaluated, Outcome, Report, Rule, Run, Unevaluated
    from gpudiag.next_steps.proposals import NextSteps
    from gpudiag.replay.gains import GainCalculator
    from gpudiag.timeline.model import Picture

    Connection = duckdb.DuckDBPyConnection

DEFAULT = Options()


class Priced(NamedTuple):
    """A report, the ledger that priced its findings and knows what each points at, and whether every rule was run."""

    report: Report
    ledger: GainCalculator
    sure: bool


def explain(paths: Sequence[Path], options: Options = DEFAULT) -> Report:
    """Read the captures, look for every smell the library knows, and rank what was found.

    Raises GpudiagError with one sentence when a file cannot be read or an option names nothing that exists.
    """
    return _answer(paths, options, drawn=False).report


def report(paths: Sequence[Path], options: Options = DEFAULT) -> Report:
    """As `explain`, or where the one file is a report saved as JSON, that report. Raises GpudiagError."""
    if saved := _saved(paths):
        from gpudiag.report import saved as load

        if options.judging:
            asked = "rules, thresholds, times and selections"
            raise GpudiagError(f"{saved} is a saved report: {asked} apply to captures only.")
        return load.read(saved)
    return explain(paths, options)


def _saved(paths: Sequence[Path]) -> Path | None:
    """The saved report, if that is what is given. Several captures are one run; a saved report is one already."""
    if not any(path.suffix.lower() == ".json" for path in paths):
        return None
    from gpudiag.report import saved as load

    found = next(filter(load.is_one, paths), None)
    if found and len(paths) > 1:
        load.read(found)  # which says what other JSON is
        raise GpudiagError(f"{found} is a saved report, which is read alone: give it without the other files.")
    return found


def pictured(paths: Sequence[Path], options: Options = DEFAULT) -> tuple[Report, Picture | None]:
    """As `report`, with what a page draws of the captures; a saved report holds no timeline to draw. Raises
    GpudiagError.
    """
    if _saved(paths):
        return report(paths, options), None
    return _answer(paths, options, drawn=True)[:2]


def _answer(paths: Sequence[Path], options: Options, *, drawn: bool) -> Explained:
    """As an earlier run kept it, or made anew."""
    from gpudiag.answer import Explained, answered

    job: MatchedJob | None = None

    def work(con: Connection, library: Library, file: Path | None) -> Explained:
        options.progress("looking for causes")
        with stage("evaluate"):
            made, ledger, sure = priced_report(con, library, options.iteration_times, file, job)
        if not drawn:
            return Explained(made, sure=sure)
        from gpudiag.timeline.draw import draw

        options.progress("drawing the timeline")
        with stage("draw"):
            return Explained(made, draw(con, made.run, made.findings, ledger), sure)

    def make() -> Explained:
        from gpudiag.prepare import analysed

        nonlocal job
        files, job = _one_rank(paths, options)
        return analysed(files, options, work)

    return answered(paths, options, make, drawn=drawn)


def _one_rank(paths: Sequence[Path], options: Options) -> tuple[Sequence[Path], MatchedJob | None]:
    """Of the many ranks of a job the files to read in full, and the job; of fewer files, or of others, all of them."""
    from gpudiag.ingest.folder import expanded

    if len(paths := expanded(paths)) < 2:
        return paths, None
    from gpudiag.jobs import explain as jobs
    from gpudiag.jobs import given

    files = given.job_of(paths, options)
    job = jobs.matched(files, options) if files else None
    return ([job.file, *files.others], job) if job and files else (paths, None)


def evaluated(
    con: Connection, library: Library, file: Path | None = None, of_job: Sequence[Outcome] = ()
) -> Evaluation:
    """Evaluate all rules on a prepared, locked store. Raises duckdb.Error where that cannot be read."""
    from gpudiag.evaluate.engine import evaluate_all
    from gpudiag.store import database

    with stage("ask rules"):
        evaluation = evaluate_all(library, con, file, of_job)
    if evaluation.failed:  # by a fault of its own, or of the store's?
        database.read_all(con)
    return evaluation


def build_report(
    con: Connection,
    library: Library,
    iteration_times: Mapping[str, float],
    file: Path | None = None,
    evaluation: Evaluation | None = None,
) -> Report:
    """The report of a prepared, locked store. evaluation: what its rules found, where they have been evaluated."""
    return priced_report(con, library, iteration_times, file, evaluation=evaluation).report


def priced_report(
    con: Connection,
    library: Library,
    iteration_times: Mapping[str, float],
    file: Path | None = None,
    job: MatchedJob | None = None,
    evaluation: Evaluation | None = None,
) -> Priced:
    """The report of a prepared, locked store, with what it rests on. job: the one that its capture is a rank of."""
    from gpudiag.diagnosis import iteration_time_check, loop_share, run_summary, time_tree
    from gpudiag.diagnosis import verdict as verdicts
    from gpudiag.diagnosis.kernel_causes import with_causes
    from gpudiag.diagnosis.rank import rank
    from gpudiag.model import Report, Tool
    from gpudiag.replay.gains import GainCalculator

    of_job, shown_job = job.judged(con, library) if job else ([], None)
    evaluation = evaluation or evaluated(con, library, file, of_job)
    run = run_summary.run(con, library.setting_values, iteration_times)
    ledger = GainCalculator(con, library.setting_values, run.loops)
    findings, minor = rank(con, evaluation, library, run.loops, run.frameworks, ledger)
    trees = time_tree.with_trees(
        con, run.loops, ledger.items.values(), library.setting_values, time_tree.explained(evaluation.outcomes)
    )
    run = run.model_copy(update={"loops": ledger.with_guesses(trees)})
    findings = time_tree.placed(con, findings, ledger.items, trees, library.setting_values["more_than_leaf"])
    kernels = with_causes(con, run.kernels, evaluation, (*findings, *minor), library.setting_values)
    run = run.model_copy(update={"kernels": kernels})
    doubts = verdicts.doubts(run, ledger, findings)
    verdict = verdicts.verdict(con, run, findings, library.setting_values, minor, doubts)
    if verdict.state == "healthy" and run.kernels and not run.loops:
        verdict = verdicts.unless_blind(verdict, run, evaluation.not_evaluated, library.rules, library.setting_values)
    clear, not_evaluated = _found_nothing(con, library, evaluation, run)
    apart = run_summary.apart(con)
    verdict = verdicts.unless_doubted(verdict, evaluation.doubts, evaluation.lost, apart)
    verdict = loop_share.qualified(verdict, run, library.setting_values)
    named = {rule.code for rule in clear} | {item.code for item in evaluation.suppressed}
    report = Report(
        tool=Tool(version=__version__),
        inputs=run_summary.inputs(con),
        verdict=verdict,
        run=run,
        job=shown_job,
        findings=tuple(findings),
        minor=tuple(minor),
        clear=tuple(rule.code for rule in clear),
        not_evaluated=tuple(sorted(not_evaluated, key=lambda item: item.code)),
        suppressed=evaluation.suppressed,
        # The advice to give the unprofiled time is of no use to somebody who did.
        notes=(
            *(note for note in evaluation.notes if not (iteration_times and _is_overhead(library, note.code))),
            *verdicts.unreplayed(run, doubts),
            *iteration_time_check.notes(run.loops),
            *run_summary.uneven(con, library),
            *apart,
            *run_summary.other_gpu(con),
        ),
        titles={code: library.by_code[code].id.replace("-", " ") for code in sorted(named)},
    )
    return Priced(report, ledger, not evaluation.failed)


def _found_nothing(
    con: Connection, library: Library, evaluation: Evaluation, run: Run
) -> tuple[tuple[Rule, ...], list[Unevaluated]]:
    """The rules whose cause is absent, and those of which that is not known; with too little work none is absent."""
    from gpudiag.diagnosis import time_tree
    from gpudiag.diagnosis import verdict as verdicts
    from gpudiag.evaluate.evidence import LOG
    from gpudiag.model import Unevaluated

    clear = tuple(outcome.rule for outcome in evaluation.clear)
    native = run.without_python

    def why(outcome: NotEvaluated) -> str:
        return library.but_python(outcome.rule, outcome.reason) if native else outcome.reason

    not_evaluated = [
        Unevaluated(code=o.rule.code, title=o.rule.title, reason=why(o), hint=o.hint, kernels=o.kernels)
        for o in evaluation.not_evaluated
        # Advice that could not be given is no gap, nor is what the program has not; a rule of the user's own that
        # could not be run always is one.
        if (o.rule.kind == "finding" and o.rule.severity != "info" and not (native and library.about_python(o.rule)))
        or o.rule.code in library.user_codes
    ]
    # Nothing was seen that could be clear.
    if not run.kernels and verdicts.too_little(con, run, library.setting_values):
        too_little = "too little GPU work was recorded"
        by_log = tuple(rule for rule in clear if LOG in rule.requires)
        not_evaluated += [
            Unevaluated(code=rule.code, title=rule.title, reason=too_little) for rule in clear if rule not in by_log
        ]
        return by_log, not_evaluated
    least = library.setting_values["min_share_bound"]
    shares = {loop.id: time_tree.graph_share(con, loop) for loop in run.loops}
    graphs = {loop: share for loop, share in shares.items() if share >= least}
    undecided = {rule.code: reason for rule in clear if (reason := time_tree.undecided(rule, run.loops, graphs))}
    not_evaluated += [
        Unevaluated(code=rule.code, title=rule.title, reason=undecided[rule.code], undecided=True)
        for rule in clear
        if rule.code in undecided
    ]
    return tuple(rule for rule in clear if rule.code not in undecided), not_evaluated


def next_steps(paths: Sequence[Path], options: Options = DEFAULT) -> NextSteps:
    """Read the captures and say which kernels are worth a profile. Raises GpudiagError as `explain` does."""
    from gpudiag.diagnosis import iteration_time_check, run_summary, time_tree
    from gpudiag.diagnosis import verdict as verdicts
    from gpudiag.diagnosis.rank import rank
    from gpudiag.next_steps import candidates, proposals
    from gpudiag.prepare import analysed
    from gpudiag.replay.gains import GainCalculator
    from gpudiag.report import saved

    if saved_one := next(filter(saved.is_one, paths), None):
        raise GpudiagError(f"{saved_one} is a saved report: kernels are weighed in the capture, so give that.")
    paths, job = _one_rank(paths, options)

    def work(con: Connection, library: Library, _file: Path | None) -> NextSteps:
        settings = library.setting_values
        options.progress("looking for causes")
        evaluation = evaluated(con, library, None, job.judged(con, library)[0] if job else ())
        run = run_summary.run(con, settings, options.iteration_times)
        ledger = GainCalculator(con, settings, run.loops)
        findings, minor = rank(con, evaluation, library, run.loops, run.frameworks, ledger)
        trees = time_tree.with_trees(
            con, run.loops, ledger.items.values(), settings, time_tree.explained(evaluation.outcomes)
        )
        run = run.model_copy(update={"loops": trees})
        verdict = verdicts.verdict(con, run, findings, settings, minor, verdicts.doubts(run, ledger, findings))
        options.progress("weighing kernels")
        loops = candidates.views(con, library, evaluation, run, findings, ledger)
        files, part = [str(path) for path in paths], options.selection.options
        steps = proposals.next_steps(con, settings, loops, run, findings, verdict, files, part)
        # What the profiler cost the host may be all that keeps the kernels from setting the pace.
        slowed = [note.text for note in evaluation.notes if _is_overhead(library, note.code)]
        notes = slowed[:1] if not (steps.kernels or options.iteration_times) else []
        notes += [note.text for note in iteration_time_check.notes(run.loops)]
        read = tuple(item.file for item in run_summary.inputs(con))
        return steps.model_copy(update={"inputs": read, "notes": (*steps.notes, *notes), "selection": run.selection})

    return analysed(paths, options, work)


def _is_overhead(library: Library, code: str) -> bool:
    """Return whether a rule speaks of the time that profiling itself costs."""
    return library.by_code[code].role == "profiler_overhead"
