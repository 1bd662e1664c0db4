"""One rule from one file: its shape checked, each mistake with its line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, TypeVar

from pydantic import ValidationError

from gpudiag.errors import GpudiagError
from gpudiag.library import yaml_file
from gpudiag.model import EvidenceItem, Frozen, Param, Price, Rule

_KEYS = sorted({name for model in (Rule, Param, Price, EvidenceItem) for name in model.model_fields} - {"family"})
_M = TypeVar("_M", bound=Frozen)

_MAX_MISTAKES = 20  # named of one file: nobody repairs more at once, and looking for what was meant takes time


def validate(model: type[_M], value: Any, file: yaml_file.YamlFile, at: yaml_file.Loc = ()) -> _M:
    """`value` as a model. Raises GpudiagError with one `file:line: key: what is wrong` line for each problem."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        lines = []
        for item in error.errors(include_url=False)[:_MAX_MISTAKES]:
            loc = (*at, *(part for part in item["loc"] if part != "[key]"))
            key = ".".join(str(part) for part in loc)
            text = item["msg"].removeprefix("Value error, ")
            if item["type"] == "extra_forbidden":
                guess = near(str(loc[-1]), _KEYS)
                text = "a text with a comma in it must be quoted" if " " in key else f"is no key here{guess}"
            lines.append(f"{file.where(loc)}: {key + ': ' if key else ''}{text:.500}")
        raise GpudiagError("\n".join(lines)) from None


def near(name: str, known: Iterable[str]) -> str:
    """`; did you mean …?` for a misspelt name, or nothing."""
    matches = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(matches)}?" if matches else ""


def near_or_all(name: str, known: Iterable[str]) -> str:
    """`; did you mean …?` for a misspelt name, or all that are known where none is like it."""
    known = sorted(known)
    return near(name, known) or f"; known are {', '.join(known) or 'none'}"


def parse_rule(file: yaml_file.YamlFile, family: str = "") -> Rule:
    """A rule file's content. Raises GpudiagError."""
    if not isinstance(file.data, dict):
        raise GpudiagError(f"{file.path}:1: holds no rule; start one with `gpudiag rules new`.")
    if "family" in file.data:
        raise GpudiagError(f"{file.where(('family',))}: family: is the folder's name; remove the key.")
    rule = validate(Rule, {**file.data, "family": family}, file)
    if rule.id != file.path.stem:
        raise GpudiagError(f"{file.where(('id',))}: id: {rule.id!r} differs from the file's name {file.path.stem!r}.")
    return rule


def check_edits(rule: Rule, file: yaml_file.YamlFile, known: frozenset[str] | None) -> None:
    """Raise GpudiagError at the first edit that nobody knows."""
    if rule.price is None or known is None:
        return
    named: dict[tuple[str, ...], tuple[str, ...]] = {
        ("price", key): getattr(rule.price, key) for key in ("low", "expected", "high")
    }
    named |= {("price", "remedies", remedy): edits for remedy, edits in rule.price.remedies.items()}
    for loc, edits in named.items():
        for number, edit in enumerate(edits):
            if edit not in known:
                where = file.where((*loc, number))
                hint = near_or_all(edit, known)
                end = "" if hint.endswith("?") else "."
                raise GpudiagError(f"{where}: {'.'.join(loc)}: {edit!r} is no edit{hint}{end}")
