"""Names in a rule that lead nowhere, or in a circle."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb

from gpudiag.library.catalogue import Library
from gpudiag.library.rule_file import near, near_or_all
from gpudiag.model import Rule


def of_files(rule: Rule, library: Library) -> Iterator[tuple[str, str]]:
    """Capabilities, rules and remedies that there are not, each with the key that names it."""
    for name in (name for wanted in rule.requires for name in wanted.split("|")):
        if library.capability(name) is None:
            yield "requires", f"{name} is no capability{near_or_all(name, library.capabilities)}"
    for key, codes, kind in (
        ("suppressed_by", rule.suppressed_by, "suppressor"),
        ("yields_to", rule.yields_to, "finding"),
        ("after", rule.after, "finding"),
        ("behind", rule.behind, "finding"),
        ("weakens", rule.weakens, "finding"),
    ):
        for code in codes:
            if code not in library.by_code or library.by_code[code].kind != kind:
                yield key, f"there is no {kind} {code}"
    yield from _circles(rule, library)
    for name in rule.remedies:
        if name not in library.remedies:
            yield "remedies", f"there is no remedies/{name}.md{near_or_all(name, library.remedies)}"
    for name in rule.price.remedies if rule.price else ():
        if name not in rule.remedies:
            yield "price", f"`remedies` prices {name}, which the rule does not name{near_or_all(name, rule.remedies)}"
    if rule.kind == "finding" and not rule.remedies:
        yield "remedies", "a finding names at least one remedy"


def _circles(rule: Rule, library: Library) -> Iterator[tuple[str, str]]:
    for key, stuck in (
        ("yields_to", "none would be reported"),
        ("after", "none could come first"),
        ("behind", "none could come first"),
    ):
        if circle := _circle(rule.code, library, key):
            yield key, f"leads in a circle: {' → '.join(circle)}; where all of these fire, {stuck}"


def _circle(code: str, library: Library, key: str) -> list[str]:
    """The shortest way from a rule back to itself over the rules that a key of each names; empty if there is none."""
    ways, seen = [[code]], set[str]()
    for way in ways:
        known = library.by_code.get(way[-1])
        for other in getattr(known, key) if known else ():
            if other == code:
                return [*way, code]
            if other not in seen:
                seen.add(other)
                ways.append([*way, other])
    return []


def of_columns(rule: Rule, con: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Columns of profiled kernels that there are not."""
    wanted = [name for need in rule.needs for name in need.split("|")]
    if not wanted:
        return
    known = [str(row[0]) for row in con.execute("describe kernel_facts").fetchall()]
    yield from (f"kernel_facts has no column {name}{near(name, known)}" for name in wanted if name not in known)
