"""A report that was saved as JSON, read again: to compare it, post it, or print it in another format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from gpudiag import wholefile
from gpudiag.errors import GpudiagError
from gpudiag.model import Finding, Kernel, Remedy, Report, Rule, Unevaluated
from gpudiag.plausible import misfit

if TYPE_CHECKING:
    from gpudiag.library import Library

SUFFIX = ".json"
LARGEST = 100_000_000  # bytes; a report has some hundred thousand
LONGEST_NAME = 200  # characters of a key that an error quotes
_AGAIN = "Write it again: `gpudiag explain CAPTURE --format json -o report.json`."


def is_one(path: Path) -> bool:
    """Whether the file claims to be a saved report: by its name, since captures are never called so."""
    return path.suffix.lower() == SUFFIX


def read(path: Path) -> Report:
    """The report in the file; what a newer version added to it is left out. Raises GpudiagError."""
    try:
        content = wholefile.json_content(path, LARGEST, "saved report")
    except OSError as error:
        raise GpudiagError(f"{path} cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError):
        raise GpudiagError(f"{path} is not JSON. {_AGAIN}") from None
    if not isinstance(content, dict) or "schema_version" not in content:
        raise GpudiagError(f"{path} is JSON, but no report of gpudiag. {_AGAIN}")
    if isinstance(content["schema_version"], bool):
        raise GpudiagError(f"{path} is a damaged report (schema_version). {_AGAIN}")
    if place := misfit(content):
        raise GpudiagError(f"{path} is a damaged report: {place[:LONGEST_NAME]} cannot be. {_AGAIN}")
    try:
        return Report.model_validate(content, extra="ignore")
    except (ValidationError, RecursionError) as error:
        place = ".".join(map(str, error.errors()[0]["loc"])) if isinstance(error, ValidationError) else "nesting"
        raise GpudiagError(f"{path} is a damaged report, or one of a newer gpudiag ({place}). {_AGAIN}") from None


# What a rule says of every program, and so the library knows better than a file that somebody else wrote.
_AUTHORED = ("id", "status", "severity", "why", "question", "not_a_problem_when", "check", "references")
_NO_RULE = "Not known here: the rule that found this is not in this gpudiag."
_CODE = re.compile(r"[A-Z]+[0-9]{0,3}")
_STALL = re.compile(r"\{'stall': '([^']*)'.*?'means': '([^']*)', 'cure': '([^']*)'\}")


def trusted(report: Report, library: Library) -> Report:
    """The report with every authored text taken from the library; what was measured stays as the file says.

    A pull request's author may have written the file: texts that are printed as Markdown, links and commands to try
    must not be theirs. Findings of rules that the library lacks keep title and message, which are printed as plain
    text, and lose the rest.
    """
    waits = {name: words for _, sql in library.views for name, *words in _STALL.findall(sql)}
    rules = library.by_code
    return report.model_copy(
        update={
            "findings": tuple(_finding(finding, library) for finding in report.findings),
            "minor": tuple(_finding(finding, library) for finding in report.minor),
            "run": report.run.model_copy(
                update={"kernels": tuple(_kernel(kernel, waits) for kernel in report.run.kernels)}
            ),
            "clear": tuple(code for code in report.clear if code in rules),
            "not_evaluated": tuple(_unevaluated(item, library) for item in report.not_evaluated),
            "suppressed": tuple(
                item.model_copy(update={"code": _code(item.code), "by": _code(item.by)}) for item in report.suppressed
            ),
            "notes": tuple(
                note.model_copy(update={"code": _code(note.code), "title": _title(note.title, rules.get(note.code))})
                for note in report.notes
            ),
            "titles": {code: rules[code].id.replace("-", " ") for code in report.titles if code in rules},
        }
    )


def _finding(finding: Finding, library: Library) -> Finding:
    rule = library.by_code.get(finding.code)
    if rule is None or rule.kind != "finding" or rule.price is None:
        return finding.model_copy(
            update={
                "code": _code(finding.code),
                "id": "unknown-rule",
                "why": _NO_RULE,
                "question": None,
                "not_a_problem_when": _NO_RULE,
                "check": None,
                "remedies": (),
                "references": (),
                "gain": finding.gain.model_copy(update={"test": None}),
            }
        )
    own = {name: getattr(rule, name) for name in _AUTHORED}
    test = rule.price.test if finding.gain.test else None
    return finding.model_copy(
        update={
            **own,
            "title": _title(finding.title, rule),
            "remedies": tuple(_remedies(finding.remedies, rule, library)),
            "gain": finding.gain.model_copy(update={"test": test}),
        }
    )


def _title(title: str, rule: Rule | None) -> str:
    """The rule's title; what the file says where there is none, or where it holds figures of the run."""
    return title if rule is None or "{" in rule.title else rule.title


def _remedies(remedies: Iterable[Remedy], rule: Rule, library: Library) -> Iterator[Remedy]:
    """The remedies that the file names and the rule has, in the library's words."""
    for remedy in remedies:
        text = library.remedies.get(remedy.id)
        if text is not None and remedy.id in rule.remedies:
            framework = remedy.framework if remedy.framework in text.sections else "any"
            body = f"{text.intro}\n\n{text.sections.get(framework, '')}".strip()
            yield Remedy(id=text.id, title=text.title, framework=framework, text=body)


def _unevaluated(item: Unevaluated, library: Library) -> Unevaluated:
    """Its hint is a command to paste: only one that the library itself gives for this rule."""
    rule = library.by_code.get(item.code)
    known = [library.capability(name) for wanted in (rule.requires if rule else ()) for name in wanted.split("|")]
    hint = item.hint if item.hint in {one.flag for one in known if one} else ""
    return item.model_copy(update={"code": _code(item.code), "title": _title(item.title, rule), "hint": hint})


def _kernel(kernel: Kernel, waits: Mapping[str, Sequence[str]]) -> Kernel:
    stalls = tuple(
        stall.model_copy(update=dict(zip(("means", "cure"), waits[stall.name], strict=True)))
        for stall in kernel.stalls
        if stall.name in waits
    )
    return kernel.model_copy(update={"stalls": stalls})


def _code(code: str) -> str:
    return code if _CODE.fullmatch(code) else "?"
