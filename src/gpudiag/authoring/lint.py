"""Everything that can be wrong with a rule, found before anybody runs it: names, SQL, sentences, prose and tests.

Packaged rules are checked in this process. Rules and views from a user's folder are untrusted code, whose views and
cases the check has to run: that happens in a child with the sandbox's limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from gpudiag import pipeline
from gpudiag.authoring import cases
from gpudiag.errors import GpudiagError
from gpudiag.evaluate import sandbox, sandbox_worker
from gpudiag.evaluate.engine import PLACEHOLDER, unwritten
from gpudiag.evaluate.row_check import ID_LISTS
from gpudiag.library import former_names, sql_check, yaml_file
from gpudiag.library import view_docs as viewdoc
from gpudiag.library.catalogue import Library
from gpudiag.library.folder import leads_out
from gpudiag.library.load import Problem, is_packaged, packaged_dir, scan
from gpudiag.library.rule_file import near
from gpudiag.model import Param, Rule
from gpudiag.replay.edits import registry
from gpudiag.store import database
from gpudiag.text.templating import TemplateProblem, render

__all__ = ["PLACEHOLDER", "check"]

# A rule is bound once and run once a case, each on a handful of rows; a hundred rules take half a minute.
LIMITS = sandbox_worker.Limits(seconds=10.0, seconds_in_all=90.0)
_MAX_TEXT = 2_000  # characters of one problem: it may quote values of any length
_Test = yaml_file.YamlFile | GpudiagError | None


def check(library_dirs: Iterable[Path] = (), only: str | None = None) -> list[Problem]:
    """Every problem of the rules in these folders, or of the packaged ones when there are none.

    `only`: a code or id; views and remedies are then left out. Raises GpudiagError when there is no such rule.
    """
    folders = [Path(folder) for folder in library_dirs if not is_packaged(Path(folder))]
    library, problems = scan(folders, edits=frozenset(registry.known()))
    former_names.warn(folders, library.former_used, library.former)
    rules = library.user_rules if folders else library.packaged_rules
    if only:
        wanted = rule if (rule := library.named(only)) in rules else None
        if wanted is None and not problems:
            raise GpudiagError(f"There is no rule {only!r} here{near(only, [r.code for r in rules])}.")
        rules = (wanted,) if wanted else ()
        problems = [problem for problem in problems if not wanted or problem.path.stem == wanted.id]
    if folders:
        return problems + _check_apart(library, folders, rules, views=not only)
    try:
        con = empty_store(library)
    except GpudiagError as error:
        return [*problems, Problem(packaged_dir() / "views", 1, str(error))]
    try:
        if not only:
            problems += _view_problems(library, con, user=False)
            problems += _unsourced(yaml_file.read(packaged_dir() / "settings.yaml"), (), library.settings)
        for rule in rules:
            test = _test_of(library.sources[rule.code].path, [packaged_dir()])
            problems += list(_rule_problems(rule, library, con, library.view_names, test))
    finally:
        con.close()
    return problems


def _check_apart(library: Library, folders: Sequence[Path], rules: Sequence[Rule], *, views: bool) -> list[Problem]:
    """The problems of a user's views and rules, found in a child."""
    job = {"folders": [str(folder) for folder in folders]}
    if views and library.user_views:
        path = Path(library.user_views[0][0])
        [answer] = sandbox_worker.ask("gpudiag.authoring.lint", job, [None], LIMITS, folder=".")
        problems = _summary(answer, path, "creating the views")
        if problems and (isinstance(answer, str) or not answer.get("sound")):
            return problems  # no rule can be bound where the views cannot be created
    else:
        problems = []
    answers = sandbox_worker.ask("gpudiag.authoring.lint", job, [rule.code for rule in rules], LIMITS, folder=".")
    for rule, answer in zip(rules, answers, strict=True):
        problems += _summary(answer, library.sources[rule.code].path, "the rule")
    return problems


def _summary(answer: sandbox_worker.Answer | str, path: Path, subject: str) -> list[Problem]:
    if isinstance(answer, str) or "refused" in answer:
        return [Problem(path, 1, f"{subject} {answer if isinstance(answer, str) else answer['refused']}")]
    return [Problem(Path(file), line, text) for file, line, text in answer["problems"]]


def _prepare(job: sandbox_worker.Job) -> sandbox_worker.Work:
    """Child: all files are read now, none of them later; then the problems of each rule, or of the views (null)."""
    folders = [Path(folder) for folder in job["folders"]]
    library, _ = scan(folders)
    tests = {rule.code: _test_of(library.sources[rule.code].path, folders) for rule in library.user_rules}
    wrong = ""
    names = library.view_names
    con = empty_store(library)
    try:
        names = sandbox.create_views(con, library.user_views, names)
    except sql_check.SqlProblem as problem:
        wrong = str(problem)

    def problems(code: str | None) -> sandbox_worker.Answer:
        if wrong:
            found = [Problem(folders[0], 1, wrong)]
        elif code is None:
            found = _view_problems(library, con, user=True)
        else:
            found = list(_rule_problems(library.by_code[code], library, con, names, tests[code]))
        return {"problems": [(str(p.path), p.line, p.text[:_MAX_TEXT]) for p in found], "sound": not wrong}

    return lambda code: sandbox.answer(LIMITS.database_mb, lambda: problems(code))


def _test_of(rule_file: Path, folders: Iterable[Path]) -> _Test:
    """The cases beside a rule, or why they cannot be read; nothing if there are none, or only elsewhere."""
    path = cases.test_path(rule_file)
    if not path.exists() or all(leads_out(path, folder) for folder in folders):
        return None
    try:
        return yaml_file.read(path)
    except GpudiagError as error:
        return error


def empty_store(library: Library) -> duckdb.DuckDBPyConnection:
    """A locked store without rows and with the packaged views, to bind queries to. Raises GpudiagError."""
    con = database.create(small=True)
    database.lock(con)
    pipeline.prepare(con, library)
    return con


def _view_problems(library: Library, con: duckdb.DuckDBPyConnection, *, user: bool) -> list[Problem]:
    docs = viewdoc.view_docs(library.user_views if user else library.views)
    return [
        Problem(Path(doc.file) if user else packaged_dir() / "views" / doc.file, doc.line, text)
        for doc in docs
        if (text := viewdoc.check_view_doc(con, doc))
    ]


def _rule_problems(
    rule: Rule, library: Library, con: duckdb.DuckDBPyConnection, views: frozenset[str], test: _Test
) -> Iterator[Problem]:
    file = library.sources[rule.code]

    def problem(key: str, text: str) -> Problem:
        return Problem(file.path, file.line((key,)), f"{key}: {text}")

    try:
        sql_check.check_query(con, rule.query, views, frozenset(rule.params))
        values = {name: param.value for name, param in rule.params.items()}
        columns = sql_check.check_output(con, rule.query, values, rule.price.on if rule.price else None)
        if rule.kind == "suppressor" and not {"loop", *ID_LISTS} & columns.keys():
            yield problem(
                "query", "says neither which loop (loop) nor which things (gpu_ops, profiles …) it speaks for"
            )
        yield from (problem(key, text) for key, text in _sentences(rule, columns, con))
        refused = False
    except sql_check.SqlProblem as error:
        yield problem("query", str(error))
        refused = True
    yield from (problem(key, text) for key, text in _references(rule, library))
    yield from (problem(key, text) for key, text in _prose(rule))
    yield from (problem("needs", text) for text in _needs(rule, con))
    if rule.code not in library.user_codes:
        yield from _unsourced(file, ("params",), rule.params, rule.references)
    if not refused:  # what may not be run is not run here either
        yield from _cases(rule, file, library, test)


def _references(rule: Rule, library: Library) -> Iterator[tuple[str, str]]:
    """Names that lead nowhere."""
    for name in (name for wanted in rule.requires for name in wanted.split("|")):
        if library.capability(name) is None:
            yield "requires", f"{name} is no capability{near(name, library.capabilities)}"
    for key, codes, kind in (("suppressed_by", rule.suppressed_by, "suppressor"), ("weakens", rule.weakens, "finding")):
        for code in codes:
            if code not in library.by_code or library.by_code[code].kind != kind:
                yield key, f"there is no {kind} {code}"
    for name in rule.remedies:
        if name not in library.remedies:
            yield "remedies", f"there is no remedies/{name}.md{near(name, library.remedies)}"
    for name in rule.price.remedies if rule.price else ():
        if name not in rule.remedies:
            yield "price", f"`remedies` prices {name}, which the rule does not name{near(name, rule.remedies)}"
    if rule.kind == "finding" and not rule.remedies:
        yield "remedies", "a finding names at least one remedy"


def _needs(rule: Rule, con: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Columns of profiled kernels that there are not."""
    wanted = [name for need in rule.needs for name in need.split("|")]
    if not wanted:
        return
    known = [str(row[0]) for row in con.execute("describe kernel_facts").fetchall()]
    yield from (f"kernel_facts has no column {name}{near(name, known)}" for name in wanted if name not in known)


def _sentences(rule: Rule, columns: dict[str, str], con: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str]]:
    """Templates that name what the query does not give, tried on one made-up row."""
    row = {name: _example(kind) for name, kind in columns.items()}
    loop = {str(r[0]): _example(str(r[1])) for r in con.execute("describe loop").fetchall()}
    for key, text in (("headline", rule.headline or rule.title), ("message", rule.message)):
        try:
            render(text, rule, [row], loop if row.get("loop") is not None else None)
        except TemplateProblem as error:
            yield key, str(error)


def _example(kind: str) -> Any:
    if kind.endswith("[]"):
        return [_example(kind[:-2])]
    if kind in ("VARCHAR", "BOOLEAN"):
        return "x" if kind == "VARCHAR" else True
    return 1.0 if kind in ("DOUBLE", "FLOAT") or kind.startswith("DECIMAL") else 1


def _prose(rule: Rule) -> Iterator[tuple[str, str]]:
    for key in unwritten(rule):
        yield key.split(".")[0], f"still says {PLACEHOLDER!r}; write it"
    if rule.title.endswith("."):
        yield "title", "is a headline; drop the full stop"
    if "{" in rule.title:
        yield "title", "is printed where no figure of a run is known; put templates into headline"
    for key in ("what", "message", "why", "not_a_problem_when"):
        text = getattr(rule, key)
        if text is not None and not re.search(r"[.!?)`}]$", text.strip()):
            yield key, "is not a whole sentence; end it with a full stop"
    for link in rule.references:
        if not link.startswith("https://"):
            yield "references", f"{link} is not an https:// address"


def _unsourced(
    file: yaml_file.YamlFile, at: tuple[str, ...], thresholds: Mapping[str, Param], references: Sequence[str] = ()
) -> Iterator[Problem]:
    """Thresholds of packaged files whose value comes from nowhere, or from a document without an address."""
    for name, param in thresholds.items():
        loc = (*at, name)
        if param.source is None:
            text = "says no `source`; write measured, ncu, docs or judgement"
        elif param.source == "docs" and "https://" not in param.why and not references:
            text = "has the source docs and no address; name it in `why` or `references`"
        else:
            continue
        yield Problem(file.path, file.line(loc), f"{'.'.join(loc)}: {text}")


def _cases(rule: Rule, file: yaml_file.YamlFile, library: Library, test: _Test) -> Iterator[Problem]:
    path = cases.test_path(file.path)
    if test is None:
        yield Problem(file.path, 1, f"has no test; write {path.name} with a case that fires and a near miss")
        return
    try:
        if isinstance(test, GpudiagError):
            raise test
        results = cases.run_cases(file.path, library, test)
    except GpudiagError as error:
        yield Problem(path, 1, str(error).removeprefix(f"{path}:1: "))
        return
    for result in results:
        if result.problem:
            yield Problem(path, result.line, f"{result.name}: {result.problem}")
    if not any(result.positive for result in results):
        yield Problem(path, 1, "no case expects rows; show the smell once")
    if rule.kind == "finding" and not any(result.silent for result in results):
        yield Problem(path, 1, "no case expects silence (expect: []); show a near miss")


if __name__ == "__main__":
    sandbox_worker.serve(
        _prepare, closed=False
    )  # a check imports, as it goes, what it needs; the stores themselves are locked
