"""docs/how-often-right.md: one table of what docs/accuracy.md, docs/wild.md and docs/diff.md measure at length."""

from __future__ import annotations

import re

from evaluation.corpus import ROOT

PAGE = "docs/how-often-right.md"
_NONE = "–"
_TEXT = """\
# How often it is right

| | labelled programs | of these, validation | as people write them, validation | first sight |
|---|--:|--:|--:|--:|
{rows}

*Labelled programs* carry one planted fault each, whose fix was timed without a profiler; [their page](accuracy.md)
lists them. *Programs as people write them* are trainers, solvers and pipelines recorded without annotations, on
[a page of their own](wild.md). The rules' constants were set on other programs than the *validation* ones, which only
judge; those of *first sight* were written last, from one-line ideas. Expect of a program of yours what the last two
columns say; with NVTX ranges around its iterations it comes nearer to the first two.

What is wrong is on the pages, too: every miss [with its cause](accuracy.md#misses), and all
[prices beside measured fixes](accuracy.md#prices-beside-measured-fixes). `python -m evaluation.scorecard` and
`python -m evaluation.wild` make them anew on any machine, and CI fails where a labelled program's figure is no longer
what the page says.

Whether an answer hangs on the value of one constant is [measured](robustness_of_constants.md), and so is what
[damaged files](fuzzing.md) come to and [how long it takes](performance.md).
"""


def page() -> str:
    """The whole page."""
    labelled, wild, compared = (_read(name) for name in ("accuracy", "wild", "diff"))
    bullets = dict(re.findall(r"^\* ([^:\n]+): (.*)\.$", labelled, re.MULTILINE))
    prices, unseen = bullets["Expected prices, all fixes"], bullets["Expected prices, all fixes, validation"]
    error = r"median error of the new time (\d+%)"
    inside = r"(\d+ of \d+ \(\d+%\)) inside"
    alarms = bullets["Healthy programs with a finding worth more than 5%"]
    rows = [
        (
            "the first finding is right",
            bullets["Planted cause, or an alternate that its label accepts, is the first finding"],
            bullets["First finding, validation programs alone"],
            *_wild(wild, "first finding right"),
        ),
        (
            "right among the first three",
            bullets["Planted cause or alternate is among the first three"],
            _NONE,
            *_wild(wild, "right among the first three"),
        ),
        ("the iteration is found", _NONE, _NONE, *_wild(wild, "iteration found")),
        (
            "the line of code is right",
            bullets["Planted line named, of host-side causes that samples could show"],
            _NONE,
            _NONE,
            _NONE,
        ),
        ("a healthy program is left in peace", _others(alarms), _NONE, *_wild(wild, "healthy and quiet")),
        (
            "median error of the time after a fix",
            _found(error, prices),
            _found(error, unseen),
            *_wild(wild, "median error of expected prices, time given"),
        ),
        (
            "the measured fix lies in the interval",
            _found(inside, prices),
            _found(inside, unseen),
            *_wild(wild, "inside the interval, time given"),
        ),
        (
            "`gpudiag diff` calls a fix an improvement",
            *(_found(rf"^\| {part} \| one recording a side \| ([^|]+) \|", compared) for part in ("all", "validation")),
            _NONE,
            _NONE,
        ),
    ]
    return _TEXT.format(rows="\n".join(f"| {' | '.join(row)} |" for row in rows))


def _read(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text("utf-8")


def _wild(text: str, row: str) -> tuple[str, str]:
    """The figures of validation and of first sight, with their shares."""
    found = re.search(rf"^\| {re.escape(row)} \| [^|]+ \| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
    assert found, f"docs/wild.md has no row {row!r}"
    return _shared(found[1]), _shared(found[2])


def _shared(count: str) -> str:
    """`17 of 25` with its share."""
    part, _, whole = count.partition(" of ")
    return f"{count} ({int(part) / int(whole):.0%})" if whole and int(whole) else count


def _others(alarms: str) -> str:
    """Of programs with an alarm, how many have none."""
    part, whole = re.findall(r"\d+", alarms)[:2]
    return _shared(f"{int(whole) - int(part)} of {whole}")


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    assert found, f"nothing like {pattern!r} is there"
    return found[1]
