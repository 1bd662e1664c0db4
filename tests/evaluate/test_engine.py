"""Three outcomes, vetoes and notes, on tiny stores."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from gpudiag.evaluate.engine import Evaluation, evaluate, evaluate_all
from gpudiag.evaluate.evidence import Known, flag
from gpudiag.library.catalogue import Capability, Library
from gpudiag.model import Clear, Fired, NotEvaluated, Rule
from gpudiag.store import database

NVTX = Capability(meaning="NVTX annotations", missing="NVTX ranges were not recorded", flag="--trace=cuda,nvtx")
VIEWS = (("v.sql", "-- An op.\ncreate view op_of_loop as select device as loop, id, bytes, src_kind from gpu_op;\n"),)


def rule(code: str = "H01", kind: str = "finding", **changes: Any) -> Rule:
    data: dict[str, Any] = {
        "code": code, "kind": kind, "id": "x", "title": "T", "requires": ("nvtx",), "why": "w",
        "what": "x",
        "not_a_problem_when": "n",
        "query": "select loop, list(id order by id) as gpu_ops, sum(bytes) as bytes from op_of_loop "
        "where src_kind = 'device' group by loop order by loop",
        "message": "{{ total.bytes|bytes }} in {{ places|length|plural('place') }}.",
    }  # fmt: skip
    if kind == "finding":
        data["price"] = {"kind": "upper_bound", "on": "gpu_ops", "high": ["graph_region"]}
    return Rule.model_validate(data | changes)


def opened(state: str = "recorded", ops: int = 3) -> database.Connection:
    """Operations 0 … with loop 0, 0, 1, … of 1024 bytes each."""
    con = database.create()
    con.execute("insert into capability values (0, 'nvtx', ?, null)", [state])
    con.execute("insert into loop (id, name) values (0, 'train'), (1, 'test')")
    for number in range(ops):
        con.execute(
            "insert into gpu_op (id, device, bytes, src_kind) values (?, ?, 1024, 'device')", [number, number // 2]
        )
    database.load_views(con, VIEWS)
    database.lock(con)
    return con


def library(*rules: Rule) -> Library:
    return Library(rules=rules, views=VIEWS, capabilities={"nvtx": NVTX})


def judge(*rules: Rule) -> Evaluation:
    return evaluate_all(library(*rules), opened())


def test_rows_are_fired_in_the_query_s_order() -> None:
    outcome = evaluate(rule(), opened(), library())
    assert isinstance(outcome, Fired)
    assert outcome.rows == ({"loop": 0, "gpu_ops": [0, 1], "bytes": 2048}, {"loop": 1, "gpu_ops": [2], "bytes": 1024})


def test_no_rows_is_clear() -> None:
    assert isinstance(evaluate(rule(), opened(ops=0), library()), Clear)


def test_missing_evidence_is_reported_with_the_flag() -> None:
    outcome = evaluate(rule(), opened("not_recorded"), library())
    assert isinstance(outcome, NotEvaluated)
    assert (outcome.reason, outcome.hint) == ("NVTX ranges were not recorded", "--trace=cuda,nvtx")


def test_work_that_the_driver_kept_is_not_a_missing_flag() -> None:
    known = Known.of(library(), opened())
    about = Capability(meaning="kernels", missing="no kernels", flag="--trace=cuda", lost="use a newer driver")
    states = (("recorded", "not_recorded"), ("recorded", "unknown"), ("not_recorded", "not_recorded"))
    hints = [
        flag(about, dataclasses.replace(known, states={"cuda_api": calls, "gpu_ops": work})) for calls, work in states
    ]
    assert hints == ["use a newer driver", "--trace=cuda", "--trace=cuda"]


def test_either_of_two_kinds_of_evidence_will_do() -> None:
    either = rule(requires=("memory|nvtx",))
    assert isinstance(evaluate(either, opened(), library()), Fired)
    outcome = evaluate(either, opened("not_recorded"), library())
    assert isinstance(outcome, NotEvaluated)
    assert outcome.reason == "memory was not recorded, and NVTX ranges were not recorded"


def test_silence_clears_nothing_when_recording_is_unknown() -> None:
    silent = evaluate(rule(), opened("unknown", ops=0), library())
    assert isinstance(silent, NotEvaluated)
    assert "does not say whether" in silent.reason
    assert isinstance(evaluate(rule(), opened("unknown"), library()), Fired)


def test_one_input_that_recorded_it_is_enough() -> None:
    con = database.create()
    con.execute("insert into capability values (0, 'nvtx', 'not_recorded', ''), (1, 'nvtx', 'recorded', '')")
    database.load_views(con, VIEWS)
    assert isinstance(evaluate(rule(), con, library()), Clear)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"query": "select nope from op_of_loop"}, "its query failed: Binder Error"),
        ({"query": "select src_kind::integer as loop from op_of_loop"}, "its query failed: Conversion Error"),
        ({"message": "{{ places[0].nope }}"}, "its sentence cannot be written"),
    ],
)
def test_a_rule_that_fails_is_not_evaluated(changes: dict[str, str], words: str) -> None:
    outcome = evaluate(rule(**changes), opened(), library())
    assert isinstance(outcome, NotEvaluated)
    assert words in outcome.reason


def test_figures_that_json_cannot_hold_become_null() -> None:
    text = "select loop, 'nan'::double as a, 1.5::decimal(4, 1) as b, [null, 1] as c from op_of_loop where id = 0"
    outcome = evaluate(rule(query=text, message="m."), opened(), library())
    assert isinstance(outcome, Fired)
    assert outcome.rows == ({"loop": 0, "a": None, "b": 1.5, "c": [None, 1]},)


def suppressor(query: str, code: str = "X01") -> Rule:
    return rule(code, "suppressor", query=query, message="the GPU was busy.")


@pytest.mark.parametrize(
    ("veto", "left"),
    [
        ("select 0 as loop", [[2]]),
        ("select null::integer as loop", []),
        ("select 5 as loop", [[0, 1], [2]]),
        ("select 0 as loop, [1] as gpu_ops", [[0], [2]]),
        ("select null::integer as loop, [0, 1] as gpu_ops", [[2]]),
        ("select 0 as loop, [0, 1, 2] as gpu_ops", [[2]]),
        ("select 0 as loop, [0, 1] as api_calls", [[0, 1], [2]]),
    ],
)
def test_a_veto_takes_what_it_names(veto: str, left: list[list[int]]) -> None:
    result = judge(rule(suppressed_by=("X01",)), suppressor(veto))
    assert [row["gpu_ops"] for outcome in result.fired for row in outcome.rows] == left
    assert bool(result.suppressed) == (left != [[0, 1], [2]])
    assert result.clear == ()


def test_a_veto_gives_its_reason() -> None:
    own = judge(rule(suppressed_by=("X01",)), suppressor("select 0 as loop, 'it was the last' as reason"))
    assert [(s.code, s.by, s.reason) for s in own.suppressed] == [("H01", "X01", "it was the last")]
    summary = judge(rule(suppressed_by=("X01",)), suppressor("select 0 as loop"))
    assert [s.reason for s in summary.suppressed] == ["the GPU was busy."]


def test_only_named_suppressors_veto() -> None:
    result = judge(rule(suppressed_by=("X02",)), suppressor("select null::integer as loop"))
    assert result.suppressed == ()
    assert len(result.fired[0].rows) == 2


def kernels(code: str, *launches: list[int], **changes: Any) -> Rule:
    """A finding with a row for each list of profiled launches."""
    rows = ", ".join(f"({ids}::integer[])" for ids in launches)
    return rule(
        code, query=f"select null as loop, * from (values {rows}) as kernel (profiles)", message="m.",
        price={"kind": "upper_bound", "on": "profiles", "high": ["shrink_kernel"]}, **changes,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("closer", "left"),
    [([[0, 1]], [[2, 3]]), ([[1]], [[0], [2, 3]]), ([[0, 1, 2, 3]], []), ([[7]], [[0, 1], [2, 3]])],
)
def test_a_finding_yields_kernel_by_kernel(closer: list[list[int]], left: list[list[int]]) -> None:
    result = judge(kernels("W01", [0, 1], [2, 3], yields_to=("K01",)), kernels("K01", *closer))
    rows = {outcome.rule.code: [row["profiles"] for row in outcome.rows] for outcome in result.fired}
    assert rows.get("W01", []) == left
    assert rows["K01"] == closer
    assert result.suppressed == ()
    assert ("W01" in {outcome.rule.code for outcome in result.clear}) == (left == [])


def test_a_finding_yields_loop_by_loop() -> None:
    of_one = rule("P05", query="select 1 as loop, [2] as gpu_ops, 1 as bytes")
    result = judge(rule("P03", yields_to=("P05",)), of_one)
    assert [row["loop"] for outcome in result.fired for row in outcome.rows if outcome.rule.code == "P03"] == [0]


def test_a_finding_yields_whatever_its_better_yields_to() -> None:
    result = judge(
        kernels("W01", [0], yields_to=("K01",)), kernels("K01", [0], yields_to=("K03",)), kernels("K03", [0])
    )
    assert [outcome.rule.code for outcome in result.fired] == ["K03"]


def test_other_findings_do_not_yield() -> None:
    result = judge(kernels("W01", [0]), kernels("K01", [0]))
    assert {outcome.rule.code for outcome in result.fired} == {"K01", "W01"}


def test_hygiene_gives_a_note_for_each_loop_and_weakens() -> None:
    hygiene = rule("Q02", "hygiene", weakens=("H01",), message="{{ loop.name }} moved {{ total.bytes|bytes }}.")
    result = judge(rule(), hygiene)
    assert [note.text for note in result.notes] == ["`train` moved 2.0 KiB.", "`test` moved 1.0 KiB."]
    assert result.weakened["H01"] == tuple(note.text for note in result.notes)
    assert [outcome.rule.code for outcome in result.fired] == ["H01"]


def test_what_was_lost_leaves_a_rule_nothing_to_judge() -> None:
    query = "select null::integer as loop, true as forbids_findings"
    note = rule("Q19", "hygiene", weakens=("H01",), title="The profiler lost events", message="Record again.")
    result = judge(rule(), note.model_copy(update={"query": query, "requires": ()}))
    assert not result.fired
    assert [(one.rule.code, one.reason) for one in result.not_evaluated] == [("H01", "the profiler lost events (Q19)")]
    assert result.lost == ("Record again.",)
