"""Everything that can be wrong with a rule, found before anybody runs it: names, SQL, sentences, prose and tests.

Packaged rules are checked in this process. Rules and views from a user's folder are code of a stranger's, whose views
and cases the check has to run: that happens in children with the sandbox's limits, one for the views and one a rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb

from gpudiag import pipeline, rulecheck, sandbox, sqlcheck, store, yamlfile
from gpudiag.errors import GpudiagError
from gpudiag.evaluate import ID_LISTS, PLACEHOLDER, unwritten
from gpudiag.library import Library, Problem, is_packaged, near, packaged_dir, scan
from gpudiag.model import Rule
from gpudiag.templating import TemplateProblem, render

__all__ = ["PLACEHOLDER", "check"]

LIMITS = sandbox.Limits(seconds=20.0)  # a rule is bound once and run once a case, each on a handful of rows
_CHILDREN = 4  # at once
_MAX_TEXT = 2_000  # characters of one problem: it may quote values of any length


def check(library_dirs: Iterable[Path] = (), only: str | None = None) -> list[Problem]:
    """Every problem of the rules in these folders, or of the packaged ones when there are none.

    `only`: a code or id; views and remedies are then left out. Raises GpudiagError when there is no such rule.
    """
    folders = [Path(folder) for folder in library_dirs if not is_packaged(Path(folder))]
    library, problems = scan(folders)
    rules = library.user_rules if folders else library.packaged_rules
    if only:
        wanted = next((r for r in rules if only.upper() == r.code or only.lower() == r.id), None)
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
        for rule in rules:
            problems += list(_rule_problems(rule, library, con))
    finally:
        con.close()
    return problems


def _check_apart(library: Library, folders: Sequence[Path], rules: Sequence[Rule], *, views: bool) -> list[Problem]:
    """The problems of a user's views and rules, each found in a child of its own."""
    problems: list[Problem] = []
    if views and library.user_views:
        problems, sound = _child_problems(folders, None, Path(library.user_views[0][0]))
        if not sound:  # no rule can be bound where the views cannot be created
            return problems
    with ThreadPoolExecutor(_CHILDREN) as pool:
        answers = pool.map(lambda rule: _child_problems(folders, rule.code, library.sources[rule.code].path), rules)
        return problems + [problem for found, _ in answers for problem in found]


def _child_problems(folders: Sequence[Path], code: str | None, path: Path) -> tuple[list[Problem], bool]:
    """The problems of one rule, or of the views, and whether the check went through. `path` is what it is about."""
    job = {"folders": [str(folder) for folder in folders], "rule": code}
    answer = sandbox.run_child("gpudiag.rulelint", job, LIMITS, folder=".")
    if isinstance(answer, str) or "refused" in answer:
        reason = answer if isinstance(answer, str) else answer["refused"]
        return [Problem(path, 1, f"{'the rule' if code else 'creating the views'} {reason}")], False
    return [Problem(Path(file), line, text) for file, line, text in answer["problems"]], answer["sound"]


def _serve(job: dict[str, Any]) -> dict[str, Any]:
    """Child: the problems of one rule, or of the views."""
    folders = [Path(folder) for folder in job["folders"]]
    library, _ = scan(folders)
    sound = False
    try:
        con = empty_store(library)
        sound = True
        if job["rule"]:
            problems = list(_rule_problems(library.by_code[job["rule"]], library, con))
        else:
            problems = _view_problems(library, con, user=True)
    except (GpudiagError, sqlcheck.SqlProblem) as error:
        problems = [Problem(folders[0], 1, str(error))]
    except duckdb.Error as error:
        return {"refused": f"failed: {sqlcheck.first_line(error)}"}
    return {"problems": [(str(p.path), p.line, p.text[:_MAX_TEXT]) for p in problems], "sound": sound}


def empty_store(library: Library) -> duckdb.DuckDBPyConnection:
    """A locked store without rows and with all views, to bind queries to. Raises GpudiagError or duckdb.Error."""
    con = store.create(small=True)
    store.lock(con)
    pipeline.prepare(con, library)
    known = library.view_names | sqlcheck.canonical_names()
    for file, sql in library.user_views:
        try:
            sqlcheck.check_view_file(con, sql, known)
        except sqlcheck.SqlProblem as problem:
            raise GpudiagError(f"{file}: {problem}") from None
    if library.user_views:
        store.load_views(con, library.user_views)
    return con


def _view_problems(library: Library, con: duckdb.DuckDBPyConnection, *, user: bool) -> list[Problem]:
    docs = sqlcheck.view_docs(library.user_views if user else library.views)
    return [
        Problem(Path(doc.file) if user else packaged_dir() / "views" / doc.file, doc.line, text)
        for doc in docs
        if (text := sqlcheck.check_view_doc(con, doc))
    ]


def _rule_problems(rule: Rule, library: Library, con: duckdb.DuckDBPyConnection) -> Iterator[Problem]:
    file = library.sources[rule.code]

    def problem(key: str, text: str) -> Problem:
        return Problem(file.path, file.line((key,)), f"{key}: {text}")

    try:
        sqlcheck.check_query(con, rule.query, library.view_names, frozenset(rule.params))
        values = {name: param.value for name, param in rule.params.items()}
        columns = sqlcheck.check_output(con, rule.query, values, rule.price.on if rule.price else None)
        if rule.kind == "suppressor" and not {"loop", *ID_LISTS} & columns.keys():
            yield problem(
                "query", "says neither which loop (loop) nor which things (gpu_ops, profiles …) it speaks for"
            )
        yield from (problem(key, text) for key, text in _sentences(rule, columns, con))
        refused = False
    except sqlcheck.SqlProblem as error:
        yield problem("query", str(error))
        refused = True
    yield from (problem(key, text) for key, text in _references(rule, library))
    yield from (problem(key, text) for key, text in _prose(rule))
    if not refused:  # what may not be run is not run here either
        yield from _cases(rule, file, library)


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
    if rule.kind == "finding" and not rule.remedies:
        yield "remedies", "a finding names at least one remedy"


def _sentences(rule: Rule, columns: dict[str, str], con: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str]]:
    """Templates that name what the query does not give, tried on one made-up row."""
    row = {name: _example(kind) for name, kind in columns.items()}
    loop = {str(r[0]): _example(str(r[1])) for r in con.execute("describe loop").fetchall()}
    for key, text in (("title", rule.title), ("message", rule.message)):
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
    for key, text in (
        ("message", rule.message), ("why", rule.why), ("not_a_problem_when", rule.not_a_problem_when)
    ):  # fmt: skip
        if not re.search(r"[.!?)`}]$", text.strip()):
            yield key, "is not a whole sentence; end it with a full stop"
    for link in rule.references:
        if not link.startswith("https://"):
            yield "references", f"{link} is not an https:// address"


def _cases(rule: Rule, file: yamlfile.YamlFile, library: Library) -> Iterator[Problem]:
    path = rulecheck.test_path(file.path)
    if not path.exists():
        yield Problem(file.path, 1, f"has no test; write {path.name} with a case that fires and a near miss")
        return
    try:
        results = rulecheck.run_cases(file.path, library)
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
    sandbox.serve(_serve)
