"""Problems of a rule's texts: templates, prose, labels of its evidence, and where its thresholds come from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb

from gpudiag.diagnosis.rank import NOT_EVIDENCE
from gpudiag.evaluate.engine import PLACEHOLDER, unwritten
from gpudiag.library import yaml_file
from gpudiag.library.load import Problem
from gpudiag.library.rule_file import near
from gpudiag.model import Param, Rule
from gpudiag.model.evidence import UNITS, Unit
from gpudiag.text.templating import TemplateProblem, render


def sentences(rule: Rule, columns: dict[str, str], con: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str]]:
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


def unlabelled(rule: Rule, file: yaml_file.YamlFile, columns: Mapping[str, str]) -> Iterator[Problem]:
    """Declared columns that no report could print under their label, each with the reason."""
    for column, item in (rule.evidence or {}).items():
        kind = columns.get(column, "")
        if not kind:
            text = f"the query gives no such column{near(column, columns)}"
        elif column in NOT_EVIDENCE or kind.startswith(("STRUCT", "MAP")):
            text = "is not printed as evidence; take it out"
        elif item and item.unit not in (fitting := _units(kind)):
            text = f"{kind.partition('(')[0]} is not counted in {item.unit}; known are {', '.join(fitting)}"
        else:
            continue
        yield Problem(file.path, file.line(("evidence", column)), f"evidence.{column}: {text}")


def _units(kind: str) -> list[Unit]:
    """The units that a column of this type may be counted in."""
    of_type: dict[str, Unit] = {"VARCHAR": "name", "VARCHAR[]": "name", "ENUM": "name", "BOOLEAN": "yes_no"}
    unit = of_type.get(kind.partition("(")[0])
    return [unit] if unit else [one for one in UNITS if one not in of_type.values()]


def prose(rule: Rule) -> Iterator[tuple[str, str]]:
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


def unsourced(
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
