"""Generated help for rule authors: the index, a page a rule, a first rule, the schema for editors, the check."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from textwrap import fill
from typing import Any

from gpudiag.authoring import cases
from gpudiag.authoring.lint import PLACEHOLDER, check
from gpudiag.errors import GpudiagError
from gpudiag.library import yaml_file
from gpudiag.library.catalogue import Library
from gpudiag.library.load import load
from gpudiag.library.packaged import packaged_dir
from gpudiag.library.remedy import FRAMEWORK_HEADINGS
from gpudiag.library.rule_file import parse_rule
from gpudiag.model import PLACE_KINDS, Rule
from gpudiag.replay.edits import registry

__all__ = ["check", "rule_index", "rule_page", "scaffold", "schema_json"]

_HEADINGS: dict[str, str] = {framework: heading for heading, framework in FRAMEWORK_HEADINGS.items()}


# --- reading --------------------------------------------------------------------------------------------------------


def rule_index(library: Library) -> str:
    """Every rule, a table row each, as Markdown."""
    rows = [
        f"| {rule.code} | {rule.title} | {_name(rule)} | {rule.kind} | {rule.severity} | {rule.status} |"
        for rule in library.rules
    ]
    head = ["# Rules", "", "| code | what it says | name | kind | severity | status |", "|---|---|---|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


def rule_page(library: Library, code_or_id: str, *, example: bool = True) -> str:
    """All about one rule, as Markdown. Raises GpudiagError when there is no such rule.

    `example`: run the rule's test for the sentence it gives, which takes a quarter of a second.
    """
    rule = library.find(code_or_id)
    parts = [
        f"# {rule.code}: {rule.title}",
        f"`{_name(rule)}` · {rule.kind} · severity {rule.severity} · {rule.status} · confidence {rule.confidence}"
        + (f" ({rule.confidence_reason})" if rule.confidence_reason else ""),
        *([f"## What it does\n\n{rule.what}"] if rule.what else []),
        f"## What it reports\n\n{_reported(rule, library, example)}",
        f"## Why it costs\n\n{rule.why}",
        *([f"## What to ask in a review\n\n{rule.question}"] if rule.question else []),
        f"## How to fix\n\n{_fixes(rule, library)}",
        f"## When it is not a problem\n\n{rule.not_a_problem_when}",
        f"## How it is found\n\n{_needs(rule, library)}\n\n```sql\n{rule.query.strip()}\n```",
    ]
    if rule.params:
        rows = [
            f"| `{rule.code}.{name}` | {p.value:g} | {p.unit} | {p.source or ''} | {p.why} |"
            for name, p in rule.params.items()
        ]
        head = "| name | value | unit | source | why |\n|---|---|---|---|---|"
        parts.append("\n".join([f"## Thresholds\n\n{head}", *rows]))
    if rule.price:
        parts.append(f"## What the fix is worth\n\n{_price(rule)}")
    if rule.references:
        parts.append("## References\n\n" + "\n".join(f"- <{link}>" for link in rule.references))
    return "\n\n".join(parts) + "\n"


def _name(rule: Rule) -> str:
    """Return the rule's path as a reader would look for it."""
    return f"{rule.family}/{rule.id}".lstrip("/")


def _reported(rule: Rule, library: Library, example: bool) -> str:
    """A message of the rule: of its test's first case that finds something, else as it is written.

    Only packaged rules are run here: the views and queries of others may run in the sandbox alone.
    """
    if example and rule.code not in library.user_codes and (text := cases.example(rule, library)):
        return "\n".join(f"> {line}".rstrip() for line in text.splitlines())
    return f"```jinja\n{rule.message.strip()}\n```"


def _fixes(rule: Rule, library: Library) -> str:
    parts = [f"Afterwards: {rule.check}"] if rule.check else []
    for name in rule.remedies:
        remedy = library.remedies.get(name)
        if remedy:
            sections = [
                f"#### {_HEADINGS[framework]}{f': {hint}' if (hint := remedy.hints[framework]) else ''}\n\n{text}"
                for framework, text in remedy.sections.items()
            ]
            parts.append("\n\n".join([f"### {remedy.title}", remedy.intro, *sections]))
    return "\n\n".join(parts) or "There is nothing to fix: this rule only qualifies what others say."


def _needs(rule: Rule, library: Library) -> str:
    lines = []
    for wanted in rule.requires:
        abouts = [about for name in wanted.split("|") if (about := library.capability(name))]
        lines.append("- needs " + ", or ".join(f"{about.meaning} (`{about.flag}`)" for about in abouts))
    for title, codes in (("kept quiet by", rule.suppressed_by), ("weakens", rule.weakens)):
        named = [f"{code} ({library.by_code[code].title})" if code in library.by_code else code for code in codes]
        lines += [f"- {title} {', '.join(named)}"] if named else []
    return "\n".join(lines) or "It needs nothing in particular."


def _price(rule: Rule) -> str:
    price = rule.price
    assert price is not None
    if price.kind == "test_needed":
        return f"Only an experiment can tell: {price.test}"
    fixes = {"cautious": price.low, "usual": price.expected, "best": price.high}
    edits = [f"- {name}: {', '.join(f'`{edit}`' for edit in found)}" for name, found in fixes.items() if found]
    return f"Kind: `{price.kind}`, by these edits of the timeline on its `{price.on}`:\n\n" + "\n".join(edits)


def schema_json() -> str:
    """The JSON Schema of a rule file, in the draft that the YAML language server understands."""
    schema = Rule.model_json_schema()
    schema["properties"].pop("family")
    _refer_to_edits(schema)
    remedies = schema["properties"]["remedies"]  # an editor completes the packaged ones; a folder may have others
    known = sorted(path.stem for path in (packaged_dir() / "remedies").glob("*.md") if path.name != "README.md")
    remedies["items"] = {"anyOf": [{"enum": known}, remedies["items"]]}
    edits = {"description": "An edit of the timeline.", "enum": list(registry.known()), "type": "string"}
    schema["$defs"] = {"Edit": edits, **schema["$defs"]}
    stamped = {"$schema": "http://json-schema.org/draft-07/schema#", **schema, "title": "A rule of gpudiag"}
    return json.dumps(stamped, indent=2, ensure_ascii=False) + "\n"


def _refer_to_edits(schema: Any) -> None:
    """Refer to the list of known edits wherever the schema wants one."""
    if isinstance(schema, dict) and schema.get("format") == "edit":
        schema.clear()
        schema["$ref"] = "#/$defs/Edit"
        return
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _refer_to_edits(part)


# --- writing --------------------------------------------------------------------------------------------------------

_RULE = """\
# yaml-language-server: $schema={schema}
code: {code}
kind: finding
id: {id}
title: {placeholder} the smell in one line, as the reader meets it
what: >-
  {placeholder} what the rule looks for, in one or two sentences.
status: draft
severity: medium
requires: [gpu_ops]
params:
  max_kernel_ns: {{value: 5000, unit: ns, why: "{placeholder} why this value and not another"}}
query: |
  select loop, short as kernel, list(op order by op) as gpu_ops,
         count(*) as launches, cast(sum(duration_ns) as bigint) as busy_ns
  from loop_gpu_op
  where kind = 'kernel' and duration_ns <= $max_kernel_ns
  group by loop, short
  order by busy_ns desc
evidence:
  launches: {{label: launches, unit: count}}
  busy_ns: {{label: GPU time, unit: ns}}
price: {{kind: upper_bound, on: gpu_ops, high: [graph_region]}}
locate: [kernel, nvtx]  # how places are named; there are {places}
message: >-
  {placeholder} {{{{ total.launches|plural("launch", "launches") }}}} of {{{{ places[0].kernel|code }}}} and others took
  {{{{ total.busy_ns|dur }}}}.
why: >-
  {placeholder} the mechanism by which this costs time.
question: {placeholder} could the code do without it, as a reviewer can tell by reading it?
not_a_problem_when: >-
  {placeholder} when a careful engineer would leave it as it is.
# The remedies that may be named; add your own to remedies/:
{known_remedies}
remedies: [cuda-graphs]
"""

_TEST = """\
# Times in microseconds; columns left out take the defaults of the canonical tables (docs/reference/tables.md).
short kernels are reported:
  iteration: [{start: 0, duration: 100, repeat: 10, every: 100}]
  gpu_op: [{name: tiny, start: 10, duration: 2, repeat: 10, every: 100}]
  expect: [{loop: 0, kernel: tiny, launches: 10, busy_ns: 20000}]
kernels just above the limit are not:
  iteration: [{start: 0, duration: 100, repeat: 10, every: 100}]
  gpu_op: [{name: enough, start: 10, duration: 5.1, repeat: 10, every: 100}]
  expect: []
"""


def scaffold(directory: Path, family: str, smell: str, code: str) -> list[Path]:
    """Write a rule that works, with its test, to be made one's own; the paths written.

    Raises GpudiagError when the names do not fit or are taken. Nothing is ever overwritten.
    """
    if not re.fullmatch(r"[a-z0-9-]+(/[a-z0-9-]+)*", family):
        raise GpudiagError(f"{family!r} is no family; use lower-case words such as sync or kernel/memory.")
    up = "../" * (family.count("/") + 1)
    library = load([directory] if directory.is_dir() else [])
    text = _RULE.format(
        code=code,
        id=smell,
        schema=f"{up}rule.schema.json",
        placeholder=PLACEHOLDER,
        places=", ".join(PLACE_KINDS),
        known_remedies=_commented(sorted(library.remedies)),
    )
    path = directory / family / f"{smell}.yaml"
    rule = parse_rule(yaml_file.parse(text, path), family)
    for other in library.rules:
        if rule.code == other.code or rule.id == other.id:
            raise GpudiagError(f"{other.code} ({other.id}) exists already; choose another code and id.")
    files = {path: text, cases.test_path(path): _TEST}
    schema = directory / "rule.schema.json"
    if not schema.exists():
        files[schema] = schema_json()
    for target in files:
        if target.exists():
            raise GpudiagError(f"{target} exists already; choose another id.")
    path.parent.mkdir(parents=True, exist_ok=True)
    for target, content in files.items():
        target.write_text(content, encoding="utf-8")
    return list(files)


def _commented(names: Iterable[str]) -> str:
    """Names as lines of comments."""
    return fill(", ".join(names), 120, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
