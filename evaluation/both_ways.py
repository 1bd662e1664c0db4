"""Compare what gpudiag says of one program recorded by nsys and by torch.profiler:  python -m evaluation.both_ways

For every trace of torch.profiler in fixtures/captures whose variant has a timeline of nsys, too: the first finding of
both, whether the label accepts it, the function that it names, and the time that it promises beside the one measured.
The unprofiled times given with the new traces were taken in the same processes (fixtures/torch_times.json); those of
older traces are the labels'. What nsys's timeline leads to is read from docs/accuracy.json. Writes docs/both_ways.md.
"""

from __future__ import annotations

import ast
import json
import os
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from evaluation import corpus, kept_reports, packed
from evaluation.scoring import HOST, WORTH
from gpudiag.errors import GpudiagError
from gpudiag.library.load import load
from gpudiag.model import Finding, Report

PAGE = corpus.ROOT / "docs" / "both_ways.md"
SCORES = corpus.ROOT / "docs" / "accuracy.json"
TIMES = corpus.ROOT / "fixtures" / "torch_times.json"


@dataclass(frozen=True)
class Pair:
    """One variant of one program, recorded by both. Times in ms for one iteration, of the trace's own machine."""

    case: corpus.Case
    nsys: str | None  # the first finding of nsys's timeline, as it is scored
    trace: str | None
    alarms: tuple[str, ...] = ()  # findings of the trace worth more than WORTH
    function: bool | None = None  # whether the trace's first finding names the label's function
    kind: str | None = None  # of its price
    before_ms: float | None = None
    predicted_ms: float | None = None
    measured_ms: float | None = None
    slowed: float | None = None  # the recorded iteration over the unprofiled one
    refused: bool = False  # the unprofiled time was not taken

    @property
    def accepted(self) -> tuple[str, ...]:
        """The codes that the label accepts as the first finding."""
        return tuple(filter(None, (self.case.expect.get("top"), *self.case.expect.get("alternates", []))))

    @property
    def same(self) -> bool:
        return self.trace == self.nsys

    @property
    def error(self) -> float | None:
        """Predicted over measured time after the fix, less one, where an expected time can be compared."""
        if self.kind != "expected" or self.predicted_ms is None or not self.measured_ms:
            return None
        return self.predicted_ms / self.measured_ms - 1


@cache
def times() -> dict[str, float]:
    """Return program/variant → the unprofiled iteration (ms) on the machine that recorded the new traces."""
    found: dict[str, float] = json.loads(TIMES.read_text("utf-8"))["iteration_ms"]
    return found


@cache
def older() -> frozenset[str]:
    """Return the program/variants whose traces another machine recorded."""
    return frozenset(json.loads(TIMES.read_text("utf-8"))["older"])


def traces() -> list[tuple[corpus.Case, Path]]:
    """Return the variants that have both a timeline of nsys and a trace."""
    found = []
    for case in corpus.cases():
        trace = packed.stored(case.capture.parent / f"{case.variant.replace(':', '-')}{packed.TRACE}")
        if case.suffix == "" and not case.kernel_page and len(case.captures) == 1 and case.taken and trace.exists():
            found.append((case, trace))
    return found


def judge(case: corpus.Case, trace: Path, scores: dict[str, dict[str, Any]]) -> Pair:
    """Explain the trace with its unprofiled time, and compare the report with the label and with nsys's score."""
    own = None if case.key in older() else times().get(case.key)
    before = own or corpus.iteration_ms(case.slug, case.variant)
    refused = False
    try:
        report = kept_reports.report_of(trace, iteration_ms=before)
    except GpudiagError:
        refused, report = True, kept_reports.report_of(trace)
    score = scores.get(case.key, {})
    first = report.findings[0] if report.findings else None
    recorded = report.run.loops[0].iteration_ms if report.run.loops else None
    facts: dict[str, Any] = {
        "case": case,
        "nsys": score.get("first") or next(iter(score.get("alarms", ())), None),
        "trace": first.code if first else None,
        "alarms": _alarms(report),
        "slowed": recorded / before if recorded and before and not refused else None,
        "refused": refused,
    }
    if first is None or case.role != "slow":
        return Pair(**facts)
    return Pair(**facts, function=_function(case, first), **_price(case, first, before, own is not None))


def _alarms(report: Report) -> tuple[str, ...]:
    parts = {loop.id: loop.share_of_span for loop in report.run.loops}
    return tuple(f.code for f in report.findings if f.gain.share * parts.get(f.gain.loop or 0, 1.0) > WORTH)


def _function(case: corpus.Case, first: Finding) -> bool | None:
    """Return whether the first place names the planted function; None where the label names none."""
    place = case.expect.get("place") or {}
    if not place.get("file", "").endswith(".py") or str(case.expect["top"])[0] not in HOST or not first.where:
        return None
    named = first.where[0].function
    return named in {*place.get("functions", []), *enclosing(place["file"], corpus.line_of(place))} if named else None


@cache
def enclosing(file: str, line: int) -> tuple[str, ...]:
    """Return the names of the functions around a line of a workload."""
    tree = ast.parse((corpus.WORKLOADS / file).read_text("utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return tuple(node.name for node in functions if node.lineno <= line <= (node.end_lineno or 0))


def _price(case: corpus.Case, first: Finding, before: float | None, own: bool) -> dict[str, Any]:
    """Return the promised time and the one measured on the machine that the time before comes from."""
    fixed = case.expect.get("by_code", {}).get(first.code) or case.expect.get("fixed_by")
    variant = fixed[0] if isinstance(fixed, list) else fixed
    measured = times().get(f"{case.slug}/{variant}") if own else corpus.iteration_ms(case.slug, variant or "")
    comparable = first.code == case.expect.get("top") or first.code in case.expect.get("by_code", {})
    found = {"kind": first.gain.kind, "before_ms": before, "measured_ms": measured if comparable else None}
    if not before or first.gain.after_ms is None or not first.gain.before_ms:
        return found
    return found | {"predicted_ms": first.gain.after_ms * before / first.gain.before_ms}


def page(pairs: Sequence[Pair]) -> str:
    """The Markdown page."""
    slow = [pair for pair in pairs if pair.case.role == "slow"]
    healthy = [pair for pair in pairs if pair.case.role == "healthy"]
    placed = [pair for pair in slow if pair.function is not None and pair.trace in pair.accepted]
    errors = sorted(abs(pair.error) for pair in slow if pair.error is not None)
    programs = len({pair.case.slug for pair in pairs})
    lines = [
        "<!-- Written by `python -m evaluation.both_ways`. -->",
        "",
        "# One program, recorded both ways",
        "",
        f"{programs} programs in {len(pairs)} variants, each recorded by Nsight Systems (nsys) and by torch.profiler",
        "(the trace: five iterations, with stacks and shapes).",
        "",
        "A variant is a program with its fault (slow), with the fault fixed, or a program without one (healthy). The",
        "first finding is the one that a report lists first; where neither report has one, both say the same: none.",
        "",
        "| what is counted | holds for | of |",
        "|---|--:|---|",
        _line("both recordings lead to the same first finding", slow, "slow variants", lambda pair: pair.same),
        _line("both recordings lead to the same first finding", pairs, "all variants", lambda pair: pair.same),
        _line("the label accepts the trace's first finding", slow, "slow variants", _trace_accepted),
        _line("the label accepts nsys's first finding", slow, "slow variants", lambda pair: pair.nsys in pair.accepted),
        _line(
            "the trace's first finding names the label's function",
            placed,
            "slow variants whose label names a function of Python and accepts the finding",
            lambda pair: bool(pair.function),
        ),
        _line("no finding of the trace is worth 5 % of the run", healthy, "healthy programs", _quiet),
        "",
        f"In the median of {len(errors)} slow variants the iteration that the trace's report expects after the fix",
        f"differs by {statistics.median(errors):.0%} from the measured one. They are those where the report expects a",
        "time rather than bounding it, and whose fixed program was timed.",
        "",
        "*Label* lists the findings that are accepted as the first one. *Function* says whether the trace's first",
        "finding names the label's. *Slowed* is the recorded iteration over the unprofiled one: stacks and shapes cost",
        "a host-bound program more than nsys does. Promised and measured times are of the machine that recorded the",
        "trace; the time before was given with `--iteration-time`, except where the trace's five iterations do not fit",
        "it (*not taken*).",
        "",
        "| program | variant | label | nsys | torch.profiler | function | slowed | promised ms | measured ms |",
        "|---|---|---|---|---|---|--:|--:|--:|",
        *map(_row, pairs),
        "",
        "The findings in the table:",
        "",
        *_key(pairs),
    ]
    return "\n".join(lines) + "\n"


def _trace_accepted(pair: Pair) -> bool:
    return pair.trace in pair.accepted


def _quiet(pair: Pair) -> bool:
    return not pair.alarms


def _line(what: str, pairs: Iterable[Pair], of: str, holds: Callable[[Pair], bool]) -> str:
    found = [holds(pair) for pair in pairs]
    return f"| {what} | {sum(found)} ({sum(found) / max(1, len(found)):.0%}) | {len(found)} {of} |"


def _key(pairs: Sequence[Pair]) -> list[str]:
    """Each code of the table once, with its rule's name and a link to its page."""
    rules = load().by_code
    codes = {code for pair in pairs for code in (*pair.accepted, pair.nsys, pair.trace) if code in rules}
    return [f"* [{code}](reference/rules/{code}.md): {rules[code].id.replace('-', ' ')}" for code in sorted(codes)]


def _row(pair: Pair) -> str:
    label = ", ".join(pair.accepted) if pair.case.role == "slow" else pair.case.role
    trace = pair.trace or "none"
    function = {True: "yes", False: "no", None: ""}[pair.function]
    slowed = "not taken" if pair.refused else f"{pair.slowed:.1f}" if pair.slowed else ""
    bound = {"upper_bound": "at least ", "lower_bound": "at most "}.get(pair.kind or "", "")
    promised = f"{bound}{pair.predicted_ms:.3g}" if pair.predicted_ms is not None else ""
    measured = f"{pair.measured_ms:.3g}" if pair.measured_ms else ""
    cells = (pair.case.slug, f"`{pair.case.variant}`", label, pair.nsys or "none", trace, function, slowed)
    return f"| {' | '.join(cells)} | {promised} | {measured} |"


def main() -> int:
    """The command line."""
    scores = json.loads(SCORES.read_text("utf-8"))
    found = traces()
    with kept_reports.shared(), ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        pairs = list(pool.map(judge, *zip(*found, strict=True), [scores] * len(found)))
    PAGE.write_text(page(pairs), "utf-8")
    print(PAGE.read_text("utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
