"""The figures of docs/tutorial.md, between its markers: what gpudiag says at each stage of the training curve.

The stages are recordings of one program (fixtures/workloads/training_curve.py), each with the fix of the one before.
Their iterations were timed without the profiler, too, and those times are given to gpudiag and held against it.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from evaluation import corpus, kept_reports
from evaluation.corpus import CAPTURES, ROOT, WORKLOADS
from gpudiag.model import Finding, Report
from gpudiag.report import markdown

PAGE = "docs/tutorial.md"
SLUG = "training_curve"
STAGES = range(6)
_BAR = 20
_BLOCK = re.compile(r"(<!-- (?P<name>[a-z]+)(?: (?P<stage>\d))?: generated -->\n).*?(<!-- end -->)", re.DOTALL)


def page() -> str:
    """The tutorial with its figures as they are now."""

    def filled(block: re.Match[str]) -> str:
        stage = int(block["stage"] or 0)
        text = {"curve": lambda _: curve(), "seen": seen, "gave": gave}[block["name"]](stage)
        return f"{block[1]}{text}\n{block[4]}"

    return _BLOCK.sub(filled, (ROOT / PAGE).read_text("utf-8"))


def capture(stage: int) -> Path:
    """The recording of a stage."""
    return CAPTURES / SLUG / f"stage-{stage}.sqlite.xz"


def measured(stage: int) -> float:
    """The time of an iteration without the profiler, in ms, as the commands of the page give it."""
    time = corpus.iteration_ms(SLUG, f"stage:{stage}")
    assert time is not None
    return round(time, 2)


def report(stage: int) -> Report:
    """The report of a stage, its unprofiled time given."""
    return kept_reports.report_of(capture(stage), iteration_ms=measured(stage))


def fixed(stage: int) -> Finding:
    """The finding whose fix the next stage has: the planted cause, wherever it ranks."""
    wanted = yaml.safe_load((WORKLOADS / f"{SLUG}.expect.yaml").read_text("utf-8"))["expect"][f"stage:{stage}"]["top"]
    return next(finding for finding in report(stage).findings if finding.code == wanted)


def screen(found: Report) -> str:
    """The first screen of a report as a quotation."""
    first, _, _ = markdown.render(found).partition("\n## ")
    quoted = "\n".join(f"> {line}".rstrip() for line in first.strip().replace("\n#", "\n###").splitlines())
    return quoted.replace("> # ", "> ### ", 1)


def seen(stage: int) -> str:
    """The command and the first screen that it prints, but for its title."""
    path = capture(stage).relative_to(ROOT)
    command = f"gpudiag explain {path} --iteration-time iter={measured(stage):.2f}ms"
    _, _, below = screen(report(stage)).partition("\n>\n")
    return f"```sh\n{command}\n```\n\n{below}"


def gave(stage: int) -> str:
    """The time that the fix was expected to leave, beside the measured one."""
    finding, before, after = fixed(stage), measured(stage), measured(stage + 1)
    rank = {1: "first", 2: "second", 3: "third"}[finding.rank]
    inside = _inside(finding, after)
    return (
        f"The {rank} finding's fix ({finding.code}) was expected to leave {_interval(finding)} of {_ms(before)}."
        f" Measured without the profiler, {_ms(after)} are left ({before / after:.1f} times as fast):"
        f" {'inside' if inside else 'outside'} what was said."
    )


def curve() -> str:
    """All stages: measured time, expected time and whether the interval held."""
    rows = ["| stage | an iteration, measured | | fix | expected after it | held |", "|--:|--:|:--|---|---|---|"]
    for stage in STAGES:
        time = measured(stage)
        bar = "█" * max(1, round(time / measured(0) * _BAR))
        said = ["", "", ""]
        if stage + 1 in STAGES:
            finding = fixed(stage)
            said = [_link(finding), _interval(finding), "yes" if _inside(finding, measured(stage + 1)) else "**no**"]
        rows.append(f"| {stage} | {_ms(time)} | {bar} | {' | '.join(said)} |")
    held = sum(_inside(fixed(stage), measured(stage + 1)) for stage in STAGES[:-1])
    first = sum(fixed(stage).rank == 1 for stage in STAGES[:-1])
    steps = len(STAGES) - 1
    rows.append(
        f"\n{measured(0) / measured(STAGES[-1]):.1f} times as fast in {steps} steps; the fix that was made stood first"
        f" at {first} of them, and the interval held at {held}."
    )
    return "\n".join(rows)


def _link(finding: Finding) -> str:
    return f"[{finding.code}](reference/rules/{finding.code}.md), rank {finding.rank}"


def _inside(finding: Finding, after: float) -> bool:
    gain = finding.gain
    assert gain.low_ms is not None
    assert gain.high_ms is not None
    return gain.low_ms <= after <= gain.high_ms


def _interval(finding: Finding) -> str:
    gain = finding.gain
    assert gain.low_ms is not None
    assert gain.high_ms is not None
    return f"{gain.low_ms:.3g} to {_ms(gain.high_ms)}"


def _ms(time: float) -> str:
    return f"{time:.3g} ms"
