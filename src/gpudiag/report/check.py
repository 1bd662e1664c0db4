"""The answer of `gpudiag check`: Markdown that reads well in a log, JSON for bots."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable
from typing import TypeVar

from gpudiag.gate.result import (
    AbsentFinding,
    BudgetCheck,
    CheckResult,
    FindingCheck,
    KnownFinding,
    SuppressionCheck,
    UnknownRule,
)
from gpudiag.model import Place
from gpudiag.report import json_format
from gpudiag.report.code_review.locations import common_folder
from gpudiag.report.wording.gain_words import SIZES
from gpudiag.report.wording.words import BUDGET, duration, leaf_label, named_function, plural, within
from gpudiag.text.escape import code, plain, prose
from gpudiag.text.format import num, pct

STATES = {"broken": "**broken:** ", "unknown": "**not checked:** ", "kept": "kept: "}
FIGURES: dict[str, Callable[[float], str]] = {"ms": duration, "share": pct, "launches": num}
EXACT: dict[str, Callable[[float], str]] = {
    "ms": lambda value: f"{value:,.6g} ms",
    "share": lambda value: f"{value * 100:.6g} %",
    "launches": lambda value: f"{value:,.8g}",
}
SUBJECTS = {
    "iteration_time": "takes {} an iteration",
    "launches": "starts {} kernels and graphs an iteration",
    "idle": "leaves the GPU idle {} of an iteration",
    "exposed_copies": "only copies memory {} of an iteration",
    "exposed_communication": "only exchanges data between GPUs {} of an iteration",
    "compute": "computes {} of an iteration",
}
LEAF = "spends {} of an iteration "  # its label follows
BASES = {
    "unprofiled": "measured without the profiler",
    "recorded": "as recorded: the profiler's own cost is in it; give the real time with `--iteration-time` "
    "(to `explain`, where its saved report is checked)",
}
T = TypeVar("T")
_LINKED = re.compile(r"https?://\S*\w/?|(?<![\w`])(?:[\w.-]{1,100}/[\w.-]{1,100})?#\d+|(?<![\w`])@\w[\w/-]*")
"""What GitHub would make a link or a mention of."""
STEADY = "Steady time is what was recorded between the end of warm-up and the end of the last iteration."
CAUSES = 2  # of idleness: the first two say what to look at


def as_json(result: CheckResult) -> str:
    """Indented ASCII JSON, ending in a newline."""
    return json.dumps(json_format.tidy(result.model_dump(mode="json")), indent=2, allow_nan=False) + "\n"


def markdown(result: CheckResult) -> str:
    """The page, ending in a newline."""
    failing = _those(result.findings, "failed")
    folder = common_folder(at for one in result.findings for at in one.where)

    def failed(one: FindingCheck) -> str:
        return failing_line(one, folder)

    def quiet(one: FindingCheck) -> str:
        return quiet_line(one, folder)

    parts = [
        f"# gpudiag check: {'passed' if result.passed else 'failed'}\n\n{_summary(result)}",
        _legend(result.findings, folder),
        _section("Budgets", sorted(result.budgets, key=lambda one: list(STATES).index(one.state)), budget_line),
        _section("Findings that fail", failing, failed),
        _next(result, failing),
        _section("Known findings", _those(result.findings, "known"), quiet),
        _section("Suppressed or allowed", _those(result.findings, "suppressed", "allowed"), quiet),
        _section("Findings that pass", _those(result.findings, "passed"), quiet),
        _notes(result),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def in_short(result: CheckResult) -> str:
    """`1 of 3 limits kept, 2 broken, 1 finding fails`."""
    count = {state: sum(one.state == state for one in result.budgets) for state in STATES}
    said = []
    if result.budgets:
        said.append(f"{count['kept']} of {plural(len(result.budgets), 'limit')} kept")
        said += [f"{count['broken']} broken"] if count["broken"] else []
        said += [f"{count['unknown']} could not be checked"] if count["unknown"] else []
    failing = len(_those(result.findings, "failed"))
    summary = plural(failing, "finding") if failing else "no finding"
    said.append(f"{summary} {'fail' if failing > 1 else 'fails'}")
    return ", ".join(said)


def _summary(result: CheckResult) -> str:
    inputs = ", ".join(map(code, result.files[:3])) + (" …" if len(result.files) > 3 else "")
    against = f" against {code(result.config)}" if result.config else ""
    lines = [f"{inputs or 'The report'}{against}: {in_short(result)}."]
    if result.verdict.state == "cannot_tell":
        outcome = "so it fails" if result.unchecked_fails else 'which `missing = "ignore"` lets pass'
        lines.append(f"**The report cannot tell whether this program is healthy, {outcome}:** {_text(result)}")
    elif any(one.state == "unknown" for one in result.budgets):
        outcome = (
            'counts as a failure, unless the configuration says `missing = "ignore"`'
            if result.unchecked_fails
            else 'is not a failure here (`missing = "ignore"`), but nobody knows whether it is kept'
        )
        lines.append(f"A limit that could not be checked {outcome}.")
    return "\n\n".join(lines)


def _text(result: CheckResult) -> str:
    return prose(result.verdict.text)


def budget_line(one: BudgetCheck) -> str:
    """`broken: iter takes 17.3 ms an iteration, at most 12 ms allowed: 44 % over`."""
    bound = "at least" if one.at_least else "at most"
    figure = FIGURES[one.unit]
    if one.measured is None:
        name = code(one.loop or one.budget)
        return f"{STATES[one.state]}{name} `{one.limit}`, {bound} {figure(one.allowed)}: {prose(one.reason)}"
    measured, allowed = figure(one.measured), figure(one.allowed)
    if measured == allowed and one.state == "broken":
        measured, allowed = EXACT[one.unit](one.measured), EXACT[one.unit](one.allowed)
    subject = SUBJECTS[one.limit] if one.limit in SUBJECTS else LEAF + within(leaf_label(one.limit))
    said = f"{code(one.loop or one.budget)} {subject.format(measured)}, {bound} {allowed} allowed"
    if one.state == "broken":
        said += f": {_beyond(one)}"
    causes = [f"{pct(share)} {_cause(key)}" for key, share in list(one.parts.items())[:CAUSES]]
    if one.state == "broken" and causes:
        said += f"; {', '.join(causes)}"
    return f"{STATES[one.state]}{said}{f' ({BASES[one.basis]})' if one.basis else ''}"


def _beyond(one: BudgetCheck) -> str:
    """By how much, in the limit's own unit: points of a share, percent of a time or a count."""
    assert one.measured is not None
    gap = abs(one.measured - one.allowed)
    if one.unit == "share":
        return f"{num(gap * 100)} points {'too little' if one.at_least else 'too much'}"
    return f"{pct(gap / one.allowed)} too {'long' if one.unit == 'ms' else 'many'}" if one.allowed else "too many"


def _cause(key: str) -> str:
    words = BUDGET.get(key, "")
    return within(words.split("**")[1]) if words else plain(key.replace("_", " "))


def _headline(one: FindingCheck) -> str:
    worth = "its worth is to be tested"
    if one.worth is not None:
        of = "one launch" if one.basis == "kernel" else "all steady time"
        worth = f"worth {SIZES[one.gain]} {pct(one.worth)} of {of}"
    loop = f", in {code(one.loop)}" if one.loop else ""
    return f"{plain(one.code)}, {prose(one.title)} ({one.severity}; {worth}{loop})"


def failing_line(one: FindingCheck, folder: str = "") -> str:
    """Title, worth, why it fails, and where: files below the folder."""
    where = "; ".join(place(at, folder) for at in one.where[:3]) + ("; …" if len(one.where) > 3 else "")
    return f"**{_headline(one)}**{f' at {where}' if where else ''}. Fails: {prose(one.reason)}."


def quiet_line(one: FindingCheck, folder: str = "") -> str:
    where = f" at {place(one.where[0], folder)}" if one.where else ""
    return f"{_headline(one)}{where}: {_written(one.reason)}"


def _written(reason: str) -> str:
    """A team's own words. What GitHub would link stands in a code span, which reads well in a log, too."""
    parts = reason.split("`")
    return prose("`".join(part if i % 2 else _LINKED.sub(r"`\g<0>`", part) for i, part in enumerate(parts)))


def _legend(findings: Iterable[FindingCheck], folder: str) -> str:
    """Explain what several lines share."""
    said = [f"Paths are relative to {code(folder)}."] if folder else []
    if any(one.worth is not None and one.basis != "kernel" for one in findings):
        said.append(STEADY)
    return " ".join(said)


def place(one: Place, folder: str = "") -> str:
    """`train.py:31` in `step`, else the range, else the kernel."""
    if one.file:
        file = one.file.removeprefix(folder)
        line = code(f"{file}:{one.line}" if one.line else file)
        function = named_function(one)
        return f"{line} in {code(function)}" if function else line
    return code(one.nvtx or one.kernel or "")


def _next(result: CheckResult, failing: list[FindingCheck]) -> str:
    if result.passed or not result.files:
        return ""
    command = code(f"gpudiag explain {shlex.join(result.files)}", 300)
    rule = f"; about the first rule: {code(f'gpudiag rules show {failing[0].code}')}" if failing else ""
    return f"Why, where, and how to fix it: {command}{rule}."


def _notes(result: CheckResult) -> str:
    lines = [_suppression_line(one) for one in result.suppressions]
    lines += [_unknown_line(one) for one in result.unknown_rules]
    lines += [_gone_line(one, result.passed) for one in result.gone]
    lines += [
        f"Not looked for: {_known_line(one)}. What the rule needs was not recorded, or another rule overruled it; the "
        "baseline keeps it."
        for one in result.unseen
    ]
    if result.not_evaluated:
        needs = "; the report says what each lacks" if result.files else ""
        summary = "rule" if result.not_evaluated == 1 else "rules"
        lines.append(f"{result.not_evaluated} {summary} could not be evaluated on this capture, so cannot fail{needs}.")
    return _section("Notes", lines, str)


def _known_line(one: KnownFinding) -> str:
    at = next((f" at {place(p)}" for p in one.places), f" in {code(one.loop)}" if one.loop else "")
    return f"{plain(one.code)}, {prose(one.title) or 'untitled'}{at} (known since {one.since})"


def _gone_line(one: AbsentFinding, passed: bool) -> str:
    """A failed check says nothing of removing: whoever did would accept what hides the finding."""
    still = f": {prose(one.reason)}" if one.doubt == "same_idleness" else ""
    if not passed:
        hidden = f"It may be hidden{still}" if still else "What fails may hide it"
        return f"Not seen in this capture: {_known_line(one)}. {hidden}; the baseline keeps it."
    if still:
        summary = f"Not seen in this capture: {_known_line(one)}. It may be hidden{still}."
        return f"{summary} If you know that it is fixed, remove it from the baseline: `--prune-baseline`."
    return f"Gone: {_known_line(one)}. Remove it from the baseline: `--prune-baseline`."


def _unknown_line(one: UnknownRule) -> str:
    meant = f": did you mean {' or '.join(one.meant)}?" if one.meant else "; `gpudiag rules list` shows all."
    return f"`{one.key}` names {plain(one.code)}, but there is no such rule{meant}"


def _suppression_line(one: SuppressionCheck) -> str:
    what = f"The suppression of {one.code}{f' at {code(one.place)}' if one.place else ''}"
    if one.state == "expired":
        return f"{what} expired on {one.until} and no longer counts ({_written(one.reason)})."
    if one.state == "expiring":
        return f"{what} ends on {one.until}; then what it covers fails ({_written(one.reason)})."
    return f"{what} (until {one.until}) matches nothing in this report: remove it if that stays so."


def _section(title: str, items: Iterable[T], line: Callable[[T], str]) -> str:
    lines = [f"* {line(item)}" for item in items]
    return "\n".join([f"## {title}", "", *lines]) if lines else ""


def _those(findings: Iterable[FindingCheck], *states: str) -> list[FindingCheck]:
    return [one for one in findings if one.state in states]
