"""The author's tools: a rule to start from, the check that speaks plainly, pages, the editor's schema."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest

from gpudiag.authoring import lint, rule_texts
from gpudiag.authoring import scaffold as authoring
from gpudiag.errors import GpudiagError
from gpudiag.evaluate import sandbox
from gpudiag.library import load as library
from gpudiag.library import yaml_file
from gpudiag.model import PLACE_KINDS, Param
from gpudiag.model.rule import PlaceKind


@pytest.fixture
def started(tmp_path: Path) -> Path:
    """A folder with a freshly scaffolded rule U01 whose placeholders have been written."""
    for path in authoring.scaffold(tmp_path, "kernel/memory", "my-smell", "U01"):
        path.write_text(path.read_text("utf-8").replace("FILL IN", "Written"), "utf-8")
    return tmp_path


def rule_file(folder: Path) -> Path:
    return folder / "kernel" / "memory" / "my-smell.yaml"


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def problems(folder: Path) -> list[str]:
    return [problem.text for problem in authoring.check([folder])]


def of_each(folder: Path, changes: list[tuple[str, str, str]], ending: str) -> list[list[str]]:
    """Return the problems of each of many written rules, one a change, from one check of them all."""
    for number in range(10, 10 + len(changes)):
        for path in authoring.scaffold(folder, "kernel/memory", f"my-smell-{number}", f"U{number}"):
            path.write_text(path.read_text("utf-8").replace("FILL IN", "Written"), "utf-8")
    files = [folder / "kernel/memory" / f"my-smell-{number}{ending}" for number in range(10, 10 + len(changes))]
    for number, (file, (old, new, _)) in enumerate(zip(files, changes, strict=True), 10):
        replaced(file, old, new.replace("U01", f"U{number}"))
    found = authoring.check([folder])
    return [[problem.text for problem in found if problem.path == file] for file in files]


def any_has(texts: list[str], words: str) -> bool:
    return any(words in re.sub(r"\bU\d\d\b", "U01", text) for text in texts)


@pytest.mark.slow
def test_a_new_rule_lacks_nothing_but_its_words(tmp_path: Path) -> None:
    paths = authoring.scaffold(tmp_path / "mine", "sync", "my-smell", "U01")
    assert [path.name for path in paths] == ["my-smell.yaml", "my-smell.test.yaml", "rule.schema.json"]
    found = authoring.check([tmp_path / "mine"])
    assert found
    assert all("still says 'FILL IN'" in problem.text for problem in found)
    assert {problem.text.split(":")[0] for problem in found} == {
        "title",
        "what",
        "message",
        "why",
        "question",
        "not_a_problem_when",
        "params",
    }


def test_a_new_rule_lists_places_and_remedies(started: Path) -> None:
    text = rule_file(started).read_text("utf-8")
    assert get_args(PlaceKind) == tuple(PLACE_KINDS)
    assert "locate: [kernel, nvtx]  # how places are named; there are python, nvtx, kernel\n" in text
    comments = " ".join(line[2:] for line in text.splitlines() if line.startswith("# "))
    assert [name for name in library.load().remedies if f"{name}," not in f"{comments},"] == []


@pytest.mark.slow
def test_a_written_rule_has_no_problem(started: Path) -> None:
    assert problems(started) == []


def test_a_new_rule_names_a_schema_that_is_there(started: Path) -> None:
    reference = rule_file(started).read_text("utf-8").splitlines()[0].partition("$schema=")[2]
    assert (rule_file(started).parent / reference).resolve() == (started / "rule.schema.json").resolve()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "name", "code", "words"),
    [
        ("../out", "my-smell", "U01", "is no family"),
        ("sync", "My_Smell", "U01", "id: String should match"),
        ("sync", "my-smell", "u01", "code: String should match"),
        ("sync", "launch-bound", "U01", "H01 (launch-bound) exists already"),
        ("sync", "my-smell", "H01", "H01 (launch-bound) exists already"),
    ],
)
def test_names_that_do_not_fit_are_refused(tmp_path: Path, family: str, name: str, code: str, words: str) -> None:
    with pytest.raises(GpudiagError) as caught:
        authoring.scaffold(tmp_path, family, name, code)
    assert words in str(caught.value)
    assert list(tmp_path.rglob("*")) == []


def test_nothing_is_overwritten(started: Path) -> None:
    before = rule_file(started).read_text("utf-8")
    with pytest.raises(GpudiagError, match="exists already"):
        authoring.scaffold(started, "kernel/memory", "my-smell", "U02")
    assert rule_file(started).read_text("utf-8") == before


MISTAKES = [
    ("requires: [gpu_ops]", "requires: [gpu_opps]", "gpu_opps is no capability; did you mean gpu_ops"),
    ("requires:", "suppressed_by: [X99]\nrequires:", "there is no suppressor X99"),
    ("requires:", "yields_to: [X01]\nrequires:", "yields_to: there is no finding X01"),
    (
        "requires:",
        "yields_to: [U01]\nrequires:",
        "yields_to: leads in a circle: U01 → U01; where",
    ),
    ("[cuda-graphs]", "[cuda-graph]", "there is no remedies/cuda-graph.md; did you mean cuda-graphs"),
    ("[cuda-graphs]", "[zzz]", "there is no remedies/zzz.md; known are allocate-ahead, attention-without-plan,"),
    ("requires: [gpu_ops]", "requires: [zzz]", "zzz is no capability; known are "),
    ("[kernel, nvtx]", "[kernel, op]", "locate.1: Input should be 'python', 'nvtx' or 'kernel'"),
    ("[graph_region]", "[zzz]", "price.high: 'zzz' is no edit; known are balance_ranks, batch_copies,"),
    ("[cuda-graphs]", "[]", "a finding names at least one remedy"),
    ("from loop_gpu_op", "from gpu_op", "a table of the reader; a rule reads the view analysed_gpu_op"),
    ("<= $max_kernel_ns", "<= 5000", "never uses $max_kernel_ns"),
    ("on: gpu_ops", "on: idle_intervals", "gives no column idle_intervals"),
    ("places[0].kernel", "places[0].kernle", "message: there is no 'kernle' in this row"),
    ("  busy_ns: {", "  bsy_ns: {", "evidence.bsy_ns: the query gives no such column; did you mean busy_ns"),
    ("unit: ns}\nprice", "unit: nanoseconds}\nprice", "evidence.busy_ns.unit: Input should be 'ns', 'us', 'ms'"),
    ("{label: launches, unit: count}", "{label: launches, unit: name}", "launches: BIGINT is not counted in name"),
    ("  launches: {", "  gpu_ops: {", "evidence.gpu_ops: is not printed as evidence; take it out"),
    ("total.busy_ns", "totl.busy_ns", "message: names totl"),
]
"""What is replaced in a written rule by what, and the words of the problem."""


@pytest.mark.slow
def test_mistakes_name_their_key(tmp_path: Path) -> None:
    found = of_each(tmp_path, MISTAKES, ".yaml")
    assert {
        words: texts for (_, _, words), texts in zip(MISTAKES, found, strict=True) if not any_has(texts, words)
    } == {}


@pytest.mark.slow
def test_a_problem_has_the_line_of_its_key(started: Path) -> None:
    replaced(rule_file(started), "[cuda-graphs]", "[cuda-graph]")
    [problem] = authoring.check([started])
    line = rule_file(started).read_text("utf-8").splitlines()[problem.line - 1]
    assert line.startswith("remedies:")


FAILURES = [
    (
        "launches: 10",
        "launches: 11",
        "short kernels are reported: expected launches 11, found 10 (column launches, row 1)",
    ),
    ("expect: []", "expect: [{loop: 0}]", "no case expects silence"),
    ("duration: 2,", "duration: 9,", "gave 0 rows instead of 1"),
    ("gpu_op:", "gpu_ops:", "gpu_ops is neither a table nor"),
    ("name: tiny", "nam: tiny", "gpu_op has no column nam"),
    ("busy_ns: 20000", "busy: 1", "row 1 has no column busy"),
]
"""The same in the cases beside it."""


@pytest.mark.slow
def test_a_failing_case_says_what_came_instead(tmp_path: Path) -> None:
    found = of_each(tmp_path, FAILURES, ".test.yaml")
    assert {
        words: texts for (_, _, words), texts in zip(FAILURES, found, strict=True) if not any_has(texts, words)
    } == {}


@pytest.mark.slow
def test_a_rule_without_test_is_a_problem(started: Path) -> None:
    rule_file(started).with_name("my-smell.test.yaml").unlink()
    assert problems(started) == ["has no test; write my-smell.test.yaml with a case that fires and a near miss"]


@pytest.mark.slow
def test_one_rule_can_be_checked_alone(started: Path) -> None:
    authoring.scaffold(started, "sync", "other", "U02")
    assert authoring.check([started], only="U01") == []
    assert authoring.check([started], only="other") != []
    with pytest.raises(GpudiagError, match="There is no rule 'U03' here"):
        authoring.check([started], only="U03")


@pytest.mark.slow
def test_undocumented_views_of_the_user_s_are_problems(started: Path) -> None:
    (started / "views").mkdir()
    (started / "views" / "own.sql").write_text(
        "-- An op.\n--   op: which\ncreate view own as select op, loop from loop_gpu_op;\n"
    )
    assert problems(started) == ["own does not say what loop means; write `--   column: meaning (unit)` above it"]
    (started / "views" / "own.sql").write_text("create view own as select * from read_csv('/etc/passwd');\n")
    assert any("read_csv" in text for text in problems(started))


def test_the_committed_schema_is_fresh() -> None:
    committed = library.packaged_dir() / "rule.schema.json"
    assert committed.read_text("utf-8") == authoring.schema_json(), "run python -m evaluation.generate_docs"


def test_the_schema_knows_the_packaged_rules() -> None:
    schema = json.loads(authoring.schema_json())
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft7Validator(schema)
    known = library.load()
    for rule in known.rules:
        assert [error.message for error in validator.iter_errors(known.sources[rule.code].data)] == [], rule.code
    assert list(validator.iter_errors({"code": "H01"}))


def test_the_index_and_the_pages_cover_every_rule() -> None:
    known = library.load()
    index = authoring.rule_index(known)
    for rule in known.rules:
        assert f"| {rule.code} | {rule.title} |" in index
        page = authoring.rule_page(known, rule.code, example=False)
        for heading in ("What it does", "What it reports", "Why it costs", "How to fix", "When it is not a problem"):
            assert f"## {heading}\n" in page


def test_a_page_gives_thresholds_with_their_reasons() -> None:
    known = library.load()
    page = authoring.rule_page(known, "launch-bound")
    for name, param in known.find("H01").params.items():
        assert f"`H01.{name}`" in page
        assert f"| {param.source} | {param.why} |" in page
    with pytest.raises(GpudiagError, match="There is no rule 'H0'"):
        authoring.rule_page(known, "H0")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, ""),
        ({"source": None}, "params.limit: says no `source`; write measured, ncu, docs or judgement"),
        ({"source": "docs"}, "params.limit: has the source docs and no address; name it in `why` or `references`"),
        ({"source": "docs", "why": "stated at https://docs.nvidia.com/cuda/"}, ""),
    ],
)
def test_packaged_thresholds_say_their_source(change: dict[str, str | None], problem: str, tmp_path: Path) -> None:
    given = {"value": 1, "unit": "ns", "source": "judgement", "why": "less is noise", **change}
    file = yaml_file.parse("\nparams:\n  limit: {}\n", tmp_path / "x.yaml")
    found = rule_texts.unsourced(file, ("params",), {"limit": Param.model_validate(given)})
    assert [str(one) for one in found] == ([f"{file.path}:3: {problem}"] if problem else [])


ENDLESS = "with recursive r as (select 0 as n union all select n + 1 from r) select max(n) as n from r"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint, "LIMITS", sandbox.Limits(seconds=3))


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_a_view_that_never_ends_is_bound_and_not_run(started: Path) -> None:
    (started / "views").mkdir()
    (started / "views" / "own.sql").write_text(f"-- A.\n-- materialised: b\n--   n: c\ncreate view own as {ENDLESS};\n")
    assert problems(started) == []


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_a_rule_that_never_ends_leaves_the_others_checked(started: Path) -> None:
    for path in authoring.scaffold(started, "sync", "endless", "U02"):
        path.write_text(path.read_text("utf-8").replace("FILL IN", "Written"), "utf-8")
    endless = "with recursive r as (select 0 as n union all select n + 1 from r)\n  select loop, short as kernel"
    replaced(started / "sync" / "endless.yaml", "select loop, short as kernel", endless)
    replaced(started / "sync" / "endless.yaml", "from loop_gpu_op\n", "from loop_gpu_op, (select max(n) as n from r)\n")
    replaced(rule_file(started), "[cuda-graphs]", "[cuda-graph]")
    found = {problem.path.name: problem.text for problem in authoring.check([started])}
    assert "the rule was stopped" in found["endless.yaml"]
    assert "there is no remedies/cuda-graph.md" in found["my-smell.yaml"]


@pytest.mark.slow
def test_memory_that_a_rule_asks_for_is_not_given(started: Path) -> None:
    replaced(rule_file(started), "value: 5000", "value: 4000000000")
    replaced(rule_file(started), "select loop,", "select repeat('x', $max_kernel_ns::bigint) as s, loop,")
    assert any("emory" in text for text in problems(started)), problems(started)


@pytest.mark.slow
def test_what_the_static_check_refuses_is_never_run(started: Path) -> None:
    text = rule_file(started).read_text("utf-8")
    query = text[text.index("query: |") : text.index("price:")]
    rule_file(started).write_text(text.replace(query, "query: |\n  commit; drop table gpu_op\n"), "utf-8")
    assert problems(started) == ["query: holds 2 statements; a rule is exactly one SELECT"]


@pytest.mark.slow
def test_a_macro_of_the_tool_s_cannot_be_replaced(started: Path) -> None:
    (started / "views").mkdir()
    (started / "views" / "own.sql").write_text("-- Nothing counts.\ncreate macro setting(wanted) as 0;\n")
    assert any("setting is the name of something that exists" in text for text in problems(started))


def test_a_page_shows_what_the_rule_does_without_gaps(started: Path) -> None:
    page = authoring.rule_page(library.load(), "L02")
    assert "## What it does\n\nLooks for kernels whose last wave" in page
    assert "> `matmul` launches 133 blocks, and the GPU holds 132 at a time" in page
    assert "{%" not in page
    # A user's query and views are not run to write a page: they belong in the sandbox.
    assert "```jinja\n" in authoring.rule_page(library.load([started]), "U01")
