"""Rules that users wrote for an earlier version: they say the same as in present names, and the user is told."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from gpudiag.authoring import lint
from gpudiag.library.former_names import FormerNameWarning
from gpudiag.library.load import load

RULE = """\
code: {code}
kind: finding
id: {id}
title: The turn of a loop launches small work
params:
  {min_turns}: {{value: 4, unit: count, why: "a turn is no loop"}}
query: |
  with many as (select {turn} from {turn_view} where loop is not null)  -- one turn each
  select w.loop, 'turn' as word, list(w.op order by w.op) as gpu_ops, any_value(f.{turns}) as {turns},
         count(*) / any_value(f.{turns}) as {launches_per_turn}
  from {work} w join loop_facts f using (loop) join many m on m.{turn} = w.{turn}
  where f.{turns} >= ${min_turns} and f.{turns} >= setting('{min_turns}')
  group by w.loop
evidence: [{turns}]
price: {{kind: upper_bound, on: gpu_ops, high: [graph_region]}}
message: >-
  In turn, {{{{ total.{launches_per_turn}|plural("turn", "turns") }}}} of
  {{{{ places|map(attribute="{turns}")|first }}}}.
why: A turn costs time.
question: Does every turn launch small work?
not_a_problem_when: Never.
remedies: [cuda-graphs]
"""
TEST = """\
it fires:
  iteration: [{{start: 0, duration: 100, repeat: 10, every: 100}}]
  gpu_op: [{{name: tiny, start: 10, duration: 2, repeat: 10, every: 100}}]
  expect: [{{loop: 0, word: turn, {turns}: 10, {launches_per_turn}: 1}}]
  expect_message: In turn, 1 turn of 10.
it does not:
  iteration: [{{start: 0, duration: 100, repeat: 10, every: 100}}]
  gpu_op: [{{name: tiny, start: 10, duration: 2, repeat: 10, every: 100}}]
  params: {{{min_turns}: 11}}
  expect: []
"""
FORMER = {
    "turn": "turn", "turn_view": "turn", "turns": "turns", "min_turns": "min_turns", "work": "work",
    "launches_per_turn": "launches_per_turn",
}  # fmt: skip
PRESENT = {
    "turn": "iteration", "turn_view": "analysed_iteration", "turns": "iterations", "min_turns": "min_iterations",
    "work": "loop_gpu_op", "launches_per_turn": "launches_per_iteration",
}  # fmt: skip


def folder(path: Path, names: dict[str, str], code: str = "U01") -> Path:
    """A folder of one rule and its test, in these names."""
    (path / "sync").mkdir(parents=True)
    (path / "sync" / "small-work.yaml").write_text(RULE.format(code=code, id="small-work", **names))
    (path / "sync" / "small-work.test.yaml").write_text(TEST.format(**names))
    return path


def test_a_rule_in_former_names_is_the_rule_in_present_ones(tmp_path: Path) -> None:
    with pytest.warns(FormerNameWarning) as caught:
        former = load([folder(tmp_path / "former", FORMER)]).by_code["U01"]
    assert len(caught) == 1
    assert "min_turns → min_iterations" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        present = load([folder(tmp_path / "present", PRESENT)]).by_code["U01"]
    assert former == present


@pytest.mark.slow
def test_the_test_of_a_rule_in_former_names_passes(tmp_path: Path) -> None:
    with pytest.warns(FormerNameWarning, match="work → loop_gpu_op"):
        assert lint.check([folder(tmp_path, FORMER)]) == []


def test_views_of_the_user_may_use_former_names(tmp_path: Path) -> None:
    rules = folder(tmp_path, PRESENT)
    (rules / "views").mkdir()
    text = "-- Idle time of an {t}.\n--   {t}: which\n--   ns: how long (ns)\ncreate view mine as\n"
    text += "select {t}, sum(\"end\" - start) as ns from {p} where category <> 'turn' group by {t};\n"
    (rules / "views" / "mine.sql").write_text(text.format(t="turn", p="idle_piece"))
    with pytest.warns(FormerNameWarning, match="idle_piece → idle_interval"):
        [(_, sql)] = load([rules]).user_views
    assert sql == text.format(t="iteration", p="idle_interval").replace("of an iteration", "of an turn")


def test_names_of_ones_own_are_no_former_names(tmp_path: Path) -> None:
    rules = folder(tmp_path, PRESENT)
    file = rules / "sync" / "small-work.yaml"
    query = file.read_text().replace("with many as", "with work as").replace("join many m", "join work m")
    file.write_text(query)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "with work as" in load([rules]).by_code["U01"].query


@pytest.mark.parametrize(
    ("former", "present"),
    [
        ("settings.min_turns", "settings.min_iterations"),
        ("settings.read_block_calls", "settings.readback_range_calls"),
        ("settings.told_stall", "settings.min_stall_share"),
        ("L02.pieces", "L02.splits"),
        ("A01.min_per_turn", "A01.min_per_iteration"),
    ],
)
def test_thresholds_are_set_by_their_former_names(former: str, present: str) -> None:
    library = load()
    owner, _, name = present.partition(".")
    with pytest.warns(FormerNameWarning, match=name):
        changed = library.with_overrides({former: 0.75})
    params = changed.settings if owner == "settings" else changed.by_code[owner].params
    assert params[name].value == 0.75
