"""Everything that can be wrong with a rule, found before anybody runs it: names, SQL, sentences, prose and tests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from gpudiag import pipeline, rulecheck, sqlcheck, store, yamlfile
from gpudiag.errors import GpudiagError
from gpudiag.evaluate import ID_LISTS
from gpudiag.library import Library, Problem, is_packaged, near, packaged_dir, scan
from gpudiag.model import Rule
from gpudiag.templating import TemplateProblem, render

PLACEHOLDER = "FILL IN"  # what `gpudiag rules new` leaves for the author to write


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
    try:
        con = empty_store(library)
    except (GpudiagError, sqlcheck.SqlProblem) as error:
        return [*problems, Problem(packaged_dir() / "views" if not folders else folders[0], 1, str(error))]
    try:
        if not only:
            problems += _view_problems(library, con, user=bool(folders))
        for rule in rules:
            problems += list(_rule_problems(rule, library, con))
    finally:
        con.close()
    return problems


def empty_store(library: Library) -> duckdb.DuckDBPyConnection:
    """A locked store without rows and with all views, to bind queries to. Raises GpudiagError or SqlProblem."""
    con = store.create(small=True)
    store.lock(con)
    known = library.view_names | sqlcheck.canonical_names()
    for file, sql in library.user_views:
        try:
            sqlcheck.check_view_file(con, sql, known)
        except sqlcheck.SqlProblem as problem:
            raise GpudiagError(f"{file}: {problem}") from None
    pipeline.prepare(con, replace(library, views=(*library.views, *library.user_views)))
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
    except sqlcheck.SqlProblem as error:
        yield problem("query", str(error))
    yield from (problem(key, text) for key, text in _references(rule, library))
    yield from (problem(key, text) for key, text in _prose(rule))
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
    texts = {"title": rule.title, "message": rule.message, "why": rule.why, "check": rule.check or "",
             "not_a_problem_when": rule.not_a_problem_when}  # fmt: skip
    for name, param in rule.params.items():
        texts[f"params.{name}.why"] = param.why
    for key, text in texts.items():
        if PLACEHOLDER in text:
            yield key.split(".")[0], f"still says {PLACEHOLDER!r}; write it"
    if rule.title.endswith("."):
        yield "title", "is a headline; drop the full stop"
    for key in ("message", "why", "not_a_problem_when"):
        if not re.search(r"[.!?)`}]$", texts[key].strip()):
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
