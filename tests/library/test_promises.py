"""Nothing is promised that nothing does: tables are filled, capabilities asked for, and ways to locate have effect."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from gpudiag.diagnosis.source_location import places
from gpudiag.ingest.nsys import ids as nsys_ids
from gpudiag.model import Rule
from gpudiag.schema import TABLES
from paths import ROOT
from timelines import Case, library, opened

SOURCES = {file: file.read_text() for file in sorted((ROOT / "src" / "gpudiag").rglob("*.py"))}


def writers(table: str) -> list[str]:
    """Modules that add rows to the table: by a statement, or by name to what inserts rows."""
    put = (
        rf'insert into \\?"?{table}\b(?!_)|\b(?:append|_append|_insert)\(\s*(?:\w+\.)?con,\s*"{table}"'
        rf'|capture\.con,\s*"{table}"'
    )
    found = [
        file.name
        for file, text in SOURCES.items()
        if file.name != "tables.py" and table in text and re.search(put, text)
    ]
    return [*found, "nsys_ids.py"] if table in nsys_ids._SAVED else found


@pytest.mark.slow
def test_every_table_has_a_writer_or_is_reserved() -> None:
    for table in TABLES:
        found, reserved = writers(table.name), table.reserved
        assert bool(found) != bool(reserved), f"{table.name}: written by {found}, reserved for {reserved!r}"


NOBODY_READS = {
    "nvtx_mark": "for rules of users: none of ours needs an instant, since iterations come from ranges",
    "kernel_rule": "for rules of users: ours state their own thresholds and do not repeat Nsight Compute's estimates",
}
"""Tables that a reader fills and nothing of ours reads, each with the reason why it is filled."""


def users(table: str) -> list[str]:
    """Views, rules and modules that select from the table; readers, which fill it, do not count."""
    selects = re.compile(rf'\b(?:from|join)\s+"?{table}\b(?!_)', re.IGNORECASE)
    known = library()
    texts = {f"view {name}": sql for name, sql in known.views} | {rule.code: rule.query for rule in known.rules}
    texts |= {file.name: text for file, text in SOURCES.items() if "ingest" not in file.parts}
    return [name for name, text in texts.items() if table in text.lower() and selects.search(text)]


@pytest.mark.slow
def test_every_table_filled_is_used() -> None:
    for table in (table.name for table in TABLES if not table.reserved):
        found = users(table)
        assert bool(found) != (table in NOBODY_READS), f"{table}: used by {found}"


def test_every_capability_is_asked_for_or_reserved() -> None:
    known = library()
    asked = {name for rule in known.rules for wanted in rule.requires for name in wanted.split("|")}
    queries = " ".join(rule.query for rule in known.rules) + " ".join(sql for _, sql in known.views)
    for name, capability in known.capabilities.items():
        found = (
            name in asked or f"'{name}'" in queries or (name == "ncu_*" and any(a.startswith("ncu_") for a in asked))
        )
        assert [found, bool(capability.used_by), bool(capability.reserved)].count(True) == 1, name


WAYS = get_args(get_args(Rule.model_fields["locate"].annotation)[0])


def test_no_more_ways_to_locate_than_have_an_effect() -> None:
    assert set(WAYS) == {"python", "nvtx", "kernel"}


@pytest.mark.parametrize("way", ["python", "nvtx", "kernel"])
def test_each_way_to_locate_changes_the_places(way: str) -> None:
    rule = Rule.model_validate({
        "code": "X01", "kind": "finding", "id": "x", "title": "t", "query": "select 1", "message": "m", "why": "w",
        "not_a_problem_when": "n", "what": "x", "price": {"kind": "test_needed", "test": "t"},
    })  # fmt: skip
    case: Case = {
        "api_call": [{"id": 0, "name": "cudaLaunchKernel", "start": 100, "duration": 10}],
        "py_sample": [{"time": 105, "frames": [{"function": "step", "file": "train.py", "line": 3}]}],
    }
    row = {"loop": None, "api_calls": [0], "nvtx_path": "step", "kernel": "gemm", "share": 1.0}
    with opened(case, "call_sample", "backward_stretch") as con:
        without = places(con, rule, [row], None)
        changed = places(con, rule.model_copy(update={"locate": (way,)}), [row], None)
    assert without == () and changed != ()


def test_the_guide_names_only_options_that_give_evidence() -> None:
    """A capture option in the guide's table records a capability that some rule uses."""
    guide = (ROOT / "docs" / "guide.md").read_text()
    offered = set(re.findall(r"^\| `(--[a-z-]+)=", guide, re.MULTILINE))
    reserved = {
        flag for c in library().capabilities.values() if c.reserved for flag in re.findall(r"--[a-z-]+", c.flag)
    }
    assert not offered & reserved


def test_a_section_without_an_entry_of_its_own_is_named() -> None:
    known = library().capability("ncu_Occupancy")
    assert known is not None and "section Occupancy" in known.meaning
