"""A report that was saved as JSON, read again: to compare it, post it, or print it in another format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from gpudiag import files, remote
from gpudiag.diagnosis import loop_names
from gpudiag.diagnosis.validate_report import misfit
from gpudiag.errors import GpudiagError
from gpudiag.ingest import registry
from gpudiag.model import Finding, Framework, Kernel, Remedy, Report, Rule, Unevaluated

if TYPE_CHECKING:
    from gpudiag.library.catalogue import Library

SUFFIX = ".json"
LARGEST = 100_000_000  # bytes; a report has some hundred thousand
_HEAD = 65_536  # bytes that tell a trace
LONGEST_NAME = 200  # characters of a key that an error quotes
_AGAIN = "Write it again: `gpudiag explain CAPTURE --format json -o report.json`."


def is_one(path: Path) -> bool:
    """Return whether the file claims to be a saved report: by its name, unless it begins as a trace does."""
    return path.suffix.lower() == SUFFIX and not remote.address(path) and not _is_trace(path)


def read(path: Path) -> Report:
    """The report in the file; what a newer version added to it is left out. Raises GpudiagError."""
    if _is_trace(path):
        raise GpudiagError(f"{path} is a trace of torch.profiler or of Chrome, no report of gpudiag. {_AGAIN}")
    try:
        content = files.json_content(path, LARGEST, "saved report")
    except OSError as error:
        raise GpudiagError(f"{path} cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError):
        raise GpudiagError(f"{path} is not JSON. {_AGAIN}") from None
    if not isinstance(content, dict) or "schema_version" not in content:
        raise GpudiagError(f"{path} is JSON, but neither a trace of torch.profiler nor a report of gpudiag. {_AGAIN}")
    if isinstance(content["schema_version"], bool):
        raise GpudiagError(f"{path} is a damaged report (schema_version). {_AGAIN}")
    if place := misfit(content):
        raise GpudiagError(f"{path} is a damaged report: {place[:LONGEST_NAME]} cannot be. {_AGAIN}")
    try:
        report = Report.model_validate(content, extra="ignore")
    except (ValidationError, RecursionError) as error:
        place = ".".join(map(str, error.errors()[0]["loc"])) if isinstance(error, ValidationError) else "nesting"
        raise GpudiagError(f"{path} is a damaged report, or one of a newer gpudiag ({place}). {_AGAIN}") from None
    if place := misfit(report.model_dump()):  # once more, of what was a number in quotes
        raise GpudiagError(f"{path} is a damaged report: {place[:LONGEST_NAME]} cannot be. {_AGAIN}")
    return loop_names.with_markers(report)


def _is_trace(path: Path) -> bool:
    """Return whether a file is a trace of a profiler, which ends in .json too and may be gigabytes."""
    try:
        if not path.is_file():  # opening a pipe would wait
            return False
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False  # whoever reads it says why not
    return b'"schema_version"' not in head and registry.kind_of(head) is not None


# What a rule says of every program, and so the library knows better than a file that somebody else wrote.
_AUTHORED = ("id", "status", "severity", "why", "question", "not_a_problem_when", "check", "references")
_WORD = re.compile(r"[\w'-]+")
_PLAIN = re.compile(r"[\w',. -]*")
_HOW_OFTEN = "in every most some iterations iteration an the recorded work"  # what templates put in by themselves
_NO_RULE = "Not known here: the rule that found this is not in this gpudiag."
_CODE = re.compile(r"[A-Z]+[0-9]{0,3}")
_STALL = re.compile(r"\{'stall': '([^']*)'[^{}]*?'means': '([^']*)',\s*'cure': '([^']*)'\}")


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
    """The rule's title; what the file says where there is none, where it holds figures of the run, or where it can have
    come of the rule's headline: of no other words and numbers.
    """
    if rule is None or "{" in rule.title:
        return title
    if rule.headline and _PLAIN.fullmatch(title):
        known = set(_WORD.findall(f"{rule.headline} {_HOW_OFTEN}"))
        if all(word in known or word.isdigit() for word in _WORD.findall(title)):
            return title
    return rule.title


def _remedies(remedies: Iterable[Remedy], rule: Rule, library: Library) -> Iterator[Remedy]:
    """The remedies that the file names and the rule has, in the library's words."""
    for remedy in remedies:
        text = library.remedies.get(remedy.id)
        if text is not None and remedy.id in rule.remedies:
            framework: Framework = remedy.framework if remedy.framework in text.sections else "any"
            yield text.remedy(framework)


def _unevaluated(item: Unevaluated, library: Library) -> Unevaluated:
    """Its hint is a command to paste: only one that the library itself gives for this rule."""
    rule = library.by_code.get(item.code)
    known = [library.capability(name) for wanted in (rule.requires if rule else ()) for name in wanted.split("|")]
    given = {hint for one in known if one for hint in (one.flag, one.torch, one.lost)}
    hint = item.hint if item.hint in given else ""
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
