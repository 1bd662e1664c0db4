"""Rule × store → outcome: fired with rows, clear, or not evaluated because …; then suppressors have their say.

Packaged rules run here, on the locked store. Rules from a user's folder run in `sandbox`, in a process of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import duckdb
from pydantic import Field

from gpudiag.evaluate import missing_counters, row_check
from gpudiag.evaluate.evidence import Known, flag, state_of
from gpudiag.evaluate.precedence import forbidding, give_way, unless_forbidden
from gpudiag.evaluate.rule_sentences import by_loop, message, title
from gpudiag.evaluate.suppression import suppress
from gpudiag.library.catalogue import Library
from gpudiag.library.packaged import packaged_dir
from gpudiag.library.sql_check import first_line
from gpudiag.model import Clear, Fired, Frozen, Gap, Note, NotEvaluated, Outcome, Row, Rule, Suppressed
from gpudiag.store import query, shapes
from gpudiag.store.query import plain
from gpudiag.text.templating import TemplateProblem

__all__ = ["Evaluation", "conclude", "evaluate", "evaluate_all", "plain"]

Connection = duckdb.DuckDBPyConnection

_CHECK = "gpudiag rules check"
_AT_ONCE = 2  # queries at a time
PLACEHOLDER = "FILL IN"  # what `gpudiag rules new` leaves for the author to write


class Evaluation(Frozen):
    """Outcomes of all rules on one store.

    weakened: code → the reasons why less is certain of it; doubts: why nobody may call the timeline healthy; lost: why
    nothing can be said of it at all.
    """

    outcomes: tuple[Outcome, ...]
    suppressed: tuple[Suppressed, ...] = ()
    notes: tuple[Note, ...] = ()
    weakened: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    doubts: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def fired(self) -> tuple[Fired, ...]:
        """Findings with the rows that no suppressor vetoed, by code."""
        return tuple(o for o in self.outcomes if isinstance(o, Fired) and o.rule.kind == "finding")

    @property
    def clear(self) -> tuple[Clear, ...]:
        """Findings looked for and not there. A rule whose every row was vetoed is suppressed, not clear."""
        vetoed = {item.code for item in self.suppressed}
        found = (o for o in self.outcomes if isinstance(o, Clear) and o.rule.kind == "finding")
        return tuple(o for o in found if o.rule.code not in vetoed and not o.gaps)

    @property
    def failed(self) -> bool:
        """Return whether a rule could not be run for a reason other than missing evidence."""
        return any(outcome.hint == _CHECK for outcome in self.not_evaluated)

    @property
    def not_evaluated(self) -> tuple[NotEvaluated, ...]:
        return tuple(
            left
            for outcome in self.outcomes
            if (left := outcome if isinstance(outcome, NotEvaluated) else _partly(outcome))
        )

    @property
    def gaps(self) -> tuple[tuple[str, Gap], ...]:
        """Launches that a rule could not judge, each with the rule's code."""
        return tuple((o.rule.code, gap) for o in self.outcomes if isinstance(o, Fired | Clear) for gap in o.gaps)


def evaluate_all(
    library: Library, con: Connection, store: Path | None = None, of_job: Sequence[Outcome] = ()
) -> Evaluation:
    """Every rule over the store, suppressors applied. `store` is the same store's file, readable by another
    process (nothing holds it open for writing); it is needed only when the library has rules of the user's.

    of_job: outcomes of the rules about jobs, where the store's capture is one rank of a job.
    """
    views = shapes.read(packaged_dir(), library.capture_views, library.setting_values)
    known = replace(Known.of(library, con), silent=views.silent(con, library.packaged_rules))
    with ThreadPoolExecutor(_AT_ONCE) as pool:  # a query is mostly planned, on one core
        asked = [rule for rule in library.packaged_rules if rule.about != "job"]
        lanes = [(asked[lane::_AT_ONCE], con.cursor()) for lane in range(_AT_ONCE)]
        ran = pool.map(lambda lane: [evaluate(rule, lane[1], library, known) for rule in lane[0]], lanes)
        outcomes = [*of_job, *(outcome for lane in ran for outcome in lane)]
    if library.user_rules:
        outcomes += evaluate_user_rules(known, store)
    return conclude(sorted(outcomes, key=lambda outcome: outcome.rule.code), known)


def evaluate(rule: Rule, con: Connection, library: Library, known: Known | None = None) -> Outcome:
    """One rule over one store; rows as the query orders them, worst first. No suppressor is applied.

    Raises duckdb.InternalException where DuckDB fails by a fault of its own.
    """
    known = known or Known.of(library, con)
    missing = missing_evidence(rule, known)
    if missing:
        return missing
    try:
        values = {name: param.value for name, param in rule.params.items()}
        rows = () if rule.code in known.silent else query.run(con, rule.query, values)
        gaps, launches = missing_counters.gaps(con, rule)
    except duckdb.InternalException:  # the database answers nothing more, no other rule either
        raise
    except duckdb.Error as error:
        return NotEvaluated(rule=rule, reason=f"its query failed: {first_line(error)}", hint=_CHECK)
    if gaps and len(gaps) == launches and not rows:
        return NotEvaluated(rule=rule, reason=missing_counters.of_all(gaps), hint=missing_counters.HINT)
    outcome = outcome_of(rule, rows, known)
    return outcome if isinstance(outcome, NotEvaluated) else outcome.model_copy(update={"gaps": gaps})


def evaluate_user_rules(known: Known, store: Path | None) -> list[Outcome]:
    """The user's rules, each in the sandbox; rows that later stages could not use are refused."""
    from gpudiag.evaluate import sandbox  # only those who bring rules of their own pay for the subprocess machinery

    outcomes: list[Outcome] = []
    runnable: list[Rule] = []
    for rule in known.library.user_rules:
        if missing := missing_evidence(rule, known):
            outcomes.append(missing)
        elif keys := unwritten(rule):
            reason = f"still says {PLACEHOLDER!r} in {', '.join(keys)}"
            outcomes.append(NotEvaluated(rule=rule, reason=reason, hint=_CHECK))
        else:
            runnable.append(rule)
    if store is None:
        return outcomes + [NotEvaluated(rule=rule, reason="no store file for the sandbox to open") for rule in runnable]
    library = known.library
    results = sandbox.evaluate_untrusted(runnable, store, library.user_views, library.view_names)
    for rule, result in zip(runnable, results, strict=True):
        if not isinstance(result, str):
            result = row_check.unfit(rule, result, known.loops.keys(), known.ends) or row_check.without_repeats(result)
        if isinstance(result, str):
            outcomes.append(NotEvaluated(rule=rule, reason=result, hint=_CHECK))
        else:
            outcomes.append(outcome_of(rule, result, known))
    return outcomes


def unwritten(rule: Rule) -> list[str]:
    """Keys of the rule, in its own order, that still hold what `gpudiag rules new` left for the author to write."""
    keys = ("title", "headline", "what", "message", "why", "check", "question", "not_a_problem_when")
    texts = {key: getattr(rule, key) or "" for key in keys}
    texts |= {f"params.{name}.why": param.why for name, param in rule.params.items()}
    return [key for key, text in texts.items() if PLACEHOLDER in text]


def missing_evidence(rule: Rule, known: Known) -> NotEvaluated | None:
    """Explain why the rule cannot be judged when no input recorded something it requires. `a|b`: either will do."""
    for wanted in rule.requires:
        names = wanted.split("|")
        if state_of(names, known) == "not_recorded":
            abouts = [known.library.capability(name) for name in names]
            reasons = [
                about.missing if about else f"{name} was not recorded"
                for about, name in zip(abouts, names, strict=True)
            ]
            return NotEvaluated(rule=rule, reason=", and ".join(reasons), hint=flag(abouts[0], known))
    return None


def outcome_of(rule: Rule, rows: Sequence[Row], known: Known) -> Outcome:
    """Rows into an outcome. None where nobody knows whether the evidence was recorded is not `clear`."""
    try:
        # A suppressor speaks of each of its rows, a finding and a note of all rows of a loop.
        alone = rule.kind == "suppressor"
        rows = query.anyhow(rows) if alone else query.settled(rows)
        groups = [[row] for row in rows] if alone else list(by_loop(rows).values())
        for group in groups:
            message(rule, group, known.loops)
            title(rule, group, known.loops)
    except TemplateProblem as problem:
        return NotEvaluated(rule=rule, reason=f"its sentence cannot be written: {problem}", hint=_CHECK)
    if rows:
        return Fired(rule=rule, rows=tuple(rows))
    for wanted in rule.requires:
        names = wanted.split("|")
        if state_of(names, known) == "unknown":
            about = known.library.capability(names[0])
            reason = (
                f"the file does not say whether it recorded {about.meaning if about else wanted}, and shows nothing"
            )
            return NotEvaluated(rule=rule, reason=reason, hint=flag(about, known))
    return Clear(rule=rule)


def conclude(outcomes: Sequence[Outcome], known: Known) -> Evaluation:
    """Apply precedence and suppressors to findings; hygiene rules become notes and lower the confidence of findings."""
    outcomes = unless_forbidden(outcomes)
    fired = {o.rule.code: o for o in outcomes if isinstance(o, Fired) and o.rule.kind == "finding"}
    vetoes = {o.rule.code: o for o in outcomes if isinstance(o, Fired) and o.rule.kind == "suppressor"}
    suppressed: list[Suppressed] = []
    notes: list[Note] = []
    weakened: dict[str, tuple[str, ...]] = {}
    doubts: list[str] = []
    lost: list[str] = []
    final: list[Outcome] = []
    for outcome in outcomes:
        if isinstance(outcome, Fired) and outcome.rule.kind == "finding":
            outcome = give_way(outcome, [fired[code] for code in outcome.rule.yields_to if code in fired])
            using = [vetoes[code] for code in outcome.rule.suppressed_by if code in vetoes]
            if isinstance(outcome, Fired):
                outcome, entries = suppress(outcome, using, known.loops)
                suppressed += entries
        elif isinstance(outcome, Fired) and outcome.rule.kind == "hygiene":
            summary = _notes(outcome, known.loops)
            notes += summary
            for code in outcome.rule.weakens:
                weakened[code] = (*weakened.get(code, ()), *(note.text for note in summary))
            doubts += [message(outcome.rule, rows, known.loops) for rows in forbidding(outcome, "forbids_healthy")]
            lost += [message(outcome.rule, rows, known.loops) for rows in forbidding(outcome, "forbids_findings")]
        final.append(outcome)
    return Evaluation(
        outcomes=tuple(final), suppressed=tuple(suppressed), notes=tuple(notes), weakened=weakened,
        doubts=tuple(doubts), lost=tuple(lost),
    )  # fmt: skip


def _partly(outcome: Fired | Clear) -> NotEvaluated | None:
    """Name the kernels that a rule could not judge, though it judged others."""
    if not outcome.gaps:
        return None
    names = tuple(dict.fromkeys(gap.kernel for gap in outcome.gaps))
    reason = missing_counters.reason(outcome.gaps)
    return NotEvaluated(rule=outcome.rule, reason=reason, hint=missing_counters.HINT, kernels=names)


def _notes(hygiene: Fired, loops: Mapping[int, Row]) -> list[Note]:
    return [
        Note(
            code=hygiene.rule.code,
            title=title(hygiene.rule, rows, loops),
            text=message(hygiene.rule, rows, loops),
            severity=hygiene.rule.severity,
            share=max((float(row["share"]) for row in rows if isinstance(row.get("share"), int | float)), default=None),
        )
        for rows in by_loop(hygiene.rows).values()
    ]
