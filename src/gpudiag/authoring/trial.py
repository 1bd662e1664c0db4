"""One rule tried on a capture: its rows, what it needed of the capture, what stopped it, and the report's sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from gpudiag import prepare
from gpudiag.errors import GpudiagError
from gpudiag.evaluate import engine, rule_sentences, sandbox
from gpudiag.evaluate.engine import Evaluation
from gpudiag.evaluate.evidence import Known, state_of
from gpudiag.evaluate.precedence import give_way
from gpudiag.library.catalogue import Library
from gpudiag.library.packaged import packaged_dir
from gpudiag.library.sql_check import first_line
from gpudiag.model import Clear, Fired, NotEvaluated, Outcome, Row, Rule
from gpudiag.options import Options
from gpudiag.report import saved
from gpudiag.store import query
from gpudiag.text.templating import TemplateProblem

Connection = duckdb.DuckDBPyConnection

_ASIDE = {"recorded": "recorded", "unknown": "the file does not say", "not_recorded": "not recorded"}


@dataclass(frozen=True, slots=True)
class Trial:
    """A rule's rows on a capture, its conditions (what it is, how it stands), its outcome, and its sentence there."""

    rule: Rule
    rows: tuple[Row, ...]
    conditions: tuple[tuple[str, str], ...]
    outcome: str
    headline: str
    message: str


def run(rule: str, paths: Sequence[Path], options: Options) -> Trial:
    """Try a rule, given by its code, its id or its file. Raises GpudiagError."""
    if report := next(filter(saved.is_one, paths), None):
        raise GpudiagError(f"{report} is a saved report: a rule is tried on the capture, so give that.")
    file = _file(rule)
    if file and not any(file.is_relative_to(folder.resolve()) for folder in (packaged_dir(), *options.rule_dirs)):
        options = replace(options, rule_dirs=(*options.rule_dirs, file))

    def work(con: Connection, library: Library, store: Path | None) -> Trial:
        options.progress("trying the rule")
        return _tried(_named(rule, file, library), con, library, store)

    return prepare.analysed(paths, options, work)


def _file(rule: str) -> Path | None:
    """The rule's file, where one is named. Raises GpudiagError when it is not there."""
    if not (rule.endswith((".yaml", ".yml")) or "/" in rule):
        return None
    path = Path(rule)
    if not path.is_file():
        raise GpudiagError(f"{rule}: is no file; give a rule's YAML file, or its code (`gpudiag rules list`).")
    return path.resolve()


def _named(rule: str, file: Path | None, library: Library) -> Rule:
    if file is None:
        return library.find(rule)
    code = next((code for code, source in library.sources.items() if source.path.resolve() == file), None)
    if code is None:
        raise GpudiagError(f"{rule}: is no rule; `gpudiag rules new` writes one to start from.")
    return library.by_code[code]


def _tried(rule: Rule, con: Connection, library: Library, store: Path | None) -> Trial:
    """Run the rule with those that can veto or weaken it or come first, and no others."""
    first = {code: library.by_code[code] for code in rule.yields_to if code in library.by_code}
    near = [other for other in library.rules if other.code in rule.suppressed_by or rule.code in other.weakens]
    # Whether those that come first are vetoed themselves does not matter: see `precedence`.
    near += [other.model_copy(update={"suppressed_by": (), "yields_to": ()}) for other in first.values()]
    alone = replace(library, rules=(rule, *(other for other in near if other.code != rule.code)))
    rows = _rows(rule, con, library, store)
    evaluation = engine.evaluate_all(alone, con, store)
    outcome = next(one for one in evaluation.outcomes if one.rule.code == rule.code)
    known = Known.of(alone, con)
    headline, message = _sentence(rule, outcome.rows if isinstance(outcome, Fired) else rows, known)
    conditions = (
        *_evidence(rule, outcome, known),
        *((f"param {name}", f"{param.value:g} {param.unit}") for name, param in rule.params.items()),
        *_others(rule, rows, near, evaluation),
    )
    return Trial(rule, rows, conditions, _outcome(rule, outcome, rows, evaluation), headline, message)


def _rows(rule: Rule, con: Connection, library: Library, store: Path | None) -> tuple[Row, ...]:
    """The rows of the rule's query, whatever the capture lacks; a user's rule runs in the sandbox. Raises
    GpudiagError.
    """
    if rule.code not in library.user_codes:
        try:
            return query.run(con, rule.query, {name: param.value for name, param in rule.params.items()})
        except duckdb.Error as error:
            problem = f"failed: {first_line(error)}"
    else:
        assert store is not None
        [found] = sandbox.evaluate_untrusted([rule], store, library.user_views, library.view_names)
        if not isinstance(found, str):
            return found
        problem = found
    raise GpudiagError(f"{library.sources[rule.code].where(('query',))}: query: {problem}")


def _evidence(rule: Rule, outcome: Outcome, known: Known) -> list[tuple[str, str]]:
    """State what the rule requires of the capture, and which profiled kernels lack what it needs."""
    found = [
        (f"requires {' or '.join(names)}", _ASIDE[state_of(names, known)])
        for names in (wanted.split("|") for wanted in rule.requires)
    ]
    if not rule.needs:
        return found
    gaps = outcome.gaps if isinstance(outcome, Fired | Clear) else ()
    state = "known of every profiled kernel"
    if gaps:
        lacking = ", ".join(dict.fromkeys(name for gap in gaps for name in gap.lacks))
        state = f"{len(gaps)} profiled {'launch lacks' if len(gaps) == 1 else 'launches lack'} {lacking}"
    elif isinstance(outcome, NotEvaluated):
        state = "see the outcome"
    return [*found, (f"needs {', '.join(rule.needs)}", state)]


def _others(rule: Rule, rows: Sequence[Row], near: Sequence[Rule], evaluation: Evaluation) -> list[tuple[str, str]]:
    """State what the rules that can veto or weaken this one, or come first, say."""
    states = {outcome.rule.code: outcome for outcome in evaluation.outcomes}
    vetoes = {entry.by: entry.reason for entry in evaluation.suppressed}
    found = []
    for other in near:
        state = states[other.code]
        if isinstance(state, NotEvaluated):
            said = f"not evaluated: {state.reason}"
        elif isinstance(state, Clear):
            said = "does not apply"
        elif other.code in rule.yields_to:
            said = "speaks of these rows" if _taken(rule, rows, state) else "fires, but on none of these rows"
        elif rule.code in other.weakens:
            said = f"applies: {_sentence(other, state.rows, None)[0] or other.title}"
        else:
            said = f"vetoes rows: {vetoes[other.code]}" if other.code in vetoes else "fires, but on none of these rows"
        role = "yields to" if other.code in rule.yields_to else "vetoed by"
        role = "weakened by" if rule.code in other.weakens else role
        found.append((f"{role} {other.code} ({other.id})", said))
    return found


def _outcome(rule: Rule, outcome: Outcome, rows: Sequence[Row], evaluation: Evaluation) -> str:
    """Say whether the rule fires, and if not, what stopped it."""
    if isinstance(outcome, NotEvaluated):
        hint = f" ({outcome.hint})" if outcome.hint else ""
        return f"not evaluated: {outcome.reason}{hint}"
    first = [one for one in evaluation.outcomes if isinstance(one, Fired) and _taken(rule, rows, one)]
    left = _left(rule, rows, first)
    if isinstance(outcome, Fired):
        gone = ((len(rows) - len(left), "left to others"), (len(left) - len(outcome.rows), "vetoed"))
        less = "".join(f"; {_counted(number)} {how}" for number, how in gone if number > 0)
        weaker = "; confidence is lowered" if evaluation.weakened.get(rule.code) else ""
        return f"fires with {_counted(len(outcome.rows))}{less}{weaker}"
    if rows:
        whole = "its row" if len(rows) == 1 else f"all {len(rows)} rows"
        if not left:
            codes = " and ".join(one.rule.code for one in first)
            return f"quiet: {codes} {'speaks' if len(first) == 1 else 'speak'} of {whole}"
        by = ", ".join(dict.fromkeys(entry.by for entry in evaluation.suppressed))
        return f"quiet: {by} vetoes {whole if len(left) == len(rows) else 'the rows that are left'}"
    return "quiet: the query gives no rows"


def _left(rule: Rule, rows: Sequence[Row], first: Sequence[Fired]) -> tuple[Row, ...]:
    """The rows of which none of the findings speaks that the rule yields to."""
    outcome = give_way(Fired(rule=rule, rows=tuple(rows)), [one for one in first if one.rule.code in rule.yields_to])
    return outcome.rows if isinstance(outcome, Fired) else ()


def _taken(rule: Rule, rows: Sequence[Row], other: Fired) -> bool:
    return _left(rule, rows, [other]) != tuple(rows)


def _counted(rows: int) -> str:
    return f"{rows} row" if rows == 1 else f"{rows} rows"


def _sentence(rule: Rule, rows: Sequence[Row], known: Known | None) -> tuple[str, str]:
    """The headline and message of the rows that share the first one's loop: a finding is one loop's."""
    if not rows:
        return "", ""
    group = [rows[0]] if rule.kind == "suppressor" else next(iter(rule_sentences.by_loop(rows).values()))
    loops = known.loops if known else {}
    try:
        return rule_sentences.title(rule, group, loops), rule_sentences.message(rule, group, loops)
    except TemplateProblem as problem:
        return "", f"(cannot be written: {problem})"
