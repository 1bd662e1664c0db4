"""Everything that can be wrong with a rule, found before anybody runs it: names, SQL, sentences, prose and tests.

Packaged rules are checked in this process. Rules and views from a user's folder are untrusted code, whose views and
cases the check has to run: that happens in a child with the sandbox's limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import duckdb

from gpudiag import prepare
from gpudiag.authoring import cases, kernel_presets, references, rule_texts
from gpudiag.errors import GpudiagError
from gpudiag.evaluate import sandbox, sandbox_worker
from gpudiag.evaluate.engine import PLACEHOLDER
from gpudiag.evaluate.row_check import ID_LISTS
from gpudiag.library import former_names, sql_check, yaml_file
from gpudiag.library import view_docs as viewdoc
from gpudiag.library.catalogue import Library
from gpudiag.library.folder import leads_out
from gpudiag.library.load import Problem, is_packaged, scan
from gpudiag.library.packaged import packaged_dir
from gpudiag.library.rule_file import near
from gpudiag.model import Rule
from gpudiag.replay.edits import registry
from gpudiag.store import database

__all__ = ["PLACEHOLDER", "check"]

# A rule is bound once and run once a case, each on a handful of rows; a hundred rules take half a minute.
# Address space, of which a tenth is ever used: DuckDB reserves a block for each column that a case fills, and keeps it.
LIMITS = sandbox_worker.Limits(seconds=10.0, seconds_in_all=90.0, process_mb=3072)
_MAX_TEXT = 2_000  # characters of one problem: it may quote values of any length
_Test = yaml_file.YamlFile | GpudiagError | None
_TestWithPresets = tuple[_Test, kernel_presets.Presets]


def check(library_dirs: Iterable[Path] = (), only: str | None = None, *, jobs: int = 1) -> list[Problem]:
    """Every problem of the rules in these folders, or of the packaged ones when there are none.

    `only`: a code or id; views and remedies are then left out. `jobs`: packaged rules are checked in so many
    processes. Raises GpudiagError when there is no such rule.
    """
    folders = [Path(folder) for folder in library_dirs if not is_packaged(Path(folder))]
    library, problems = scan(folders, edits=frozenset(registry.known()))
    former_names.warn(folders, library.former_used, library.former)
    problems += _presets(folders)[1]
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
        _, con, _ = _packaged()
    except GpudiagError as error:
        return [*problems, Problem(packaged_dir() / "views", 1, str(error))]
    if not only:
        problems += _view_problems(library, con, user=False)
        problems += rule_texts.unsourced(yaml_file.read(packaged_dir() / "settings.yaml"), (), library.settings)
    codes = [rule.code for rule in rules]
    if jobs == 1 or len(codes) < jobs:
        return problems + [problem for code in codes for problem in _problems_of_packaged(code)]
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        return problems + [problem for found in pool.map(_problems_of_packaged, codes) for problem in found]


@cache
def _packaged() -> tuple[Library, duckdb.DuckDBPyConnection, kernel_presets.Presets]:
    """The packaged rules, a store to bind them to and their presets. Raises GpudiagError."""
    library, _ = scan([], edits=frozenset(registry.known()))
    return library, empty_store(library), _presets([])[0]


def _problems_of_packaged(code: str) -> list[Problem]:
    library, con, presets = _packaged()
    rule = library.by_code[code]
    test = _test_of(library.sources[code].path, [packaged_dir()])
    return list(_rule_problems(rule, library, con, library.view_names, (test, presets)))


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
    presets, _ = _presets(folders)  # the parent tells what is wrong with them
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
            found = list(_rule_problems(library.by_code[code], library, con, names, (tests[code], presets)))
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


def _presets(folders: Sequence[Path]) -> tuple[kernel_presets.Presets, list[Problem]]:
    """The presets that cases may start from, and what is wrong with those files."""
    try:
        return kernel_presets.of_folders(folders), []
    except GpudiagError as error:
        found = [re.match(r"(.+?):(\d+): (.*)", line) for line in str(error).splitlines()]
        problems = [Problem(Path(match[1]), int(match[2]), match[3]) for match in found if match]
        return {}, problems or [Problem(packaged_dir() / kernel_presets.FILE, 1, str(error))]


def empty_store(library: Library) -> duckdb.DuckDBPyConnection:
    """A locked store without rows and with the packaged views, to bind queries to. Raises GpudiagError."""
    con = database.create(small=True)
    database.lock(con)
    prepare.prepare(con, library)
    database.load_views(con, library.job_views, side_by_side=False, with_macros=False)
    return con


def _view_problems(library: Library, con: duckdb.DuckDBPyConnection, *, user: bool) -> list[Problem]:
    docs = viewdoc.view_docs(library.user_views if user else library.views)
    return [
        Problem(Path(doc.file) if user else packaged_dir() / "views" / doc.file, doc.line, text)
        for doc in docs
        if (text := viewdoc.check_view_doc(con, doc))
    ]


def _rule_problems(
    rule: Rule, library: Library, con: duckdb.DuckDBPyConnection, views: frozenset[str], test: _TestWithPresets
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
        yield from (problem(key, text) for key, text in rule_texts.sentences(rule, columns, con))
        yield from rule_texts.unlabelled(rule, file, columns)
        refused = False
    except sql_check.SqlProblem as error:
        yield problem("query", str(error))
        refused = True
    yield from (problem(key, text) for key, text in references.of_files(rule, library))
    yield from (problem(key, text) for key, text in rule_texts.prose(rule))
    yield from (problem("needs", text) for text in references.of_columns(rule, con))
    if rule.code not in library.user_codes:
        yield from rule_texts.unsourced(file, ("params",), rule.params, rule.references)
    if not refused:  # what may not be run is not run here either
        yield from _cases(rule, file, library, test)


def _cases(rule: Rule, file: yaml_file.YamlFile, library: Library, given: _TestWithPresets) -> Iterator[Problem]:
    path = cases.test_path(file.path)
    test, presets = given
    if test is None:
        yield Problem(file.path, 1, f"has no test; write {path.name} with a case that fires and a near miss")
        return
    try:
        if isinstance(test, GpudiagError):
            raise test
        results = cases.run_cases(file.path, library, test, presets)
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
