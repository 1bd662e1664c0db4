"""The section of a rule's page that says how often the rule was right, from the scores in docs/accuracy.json."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from evaluation import corpus
from evaluation.price_page import ms, table
from evaluation.scoring import JOINED, NO_NVTX, UNANNOTATED

_WORTH = "5 %"


def section(code: str, kind: str) -> str:
    """Return what the labelled programs say of a rule, as a section of its page."""
    if kind != "finding":
        return ""
    planted = [row for row in _rows("slow") if row["planted"] == code]
    healthy = _rows("healthy")
    alarms = sum(code in row.get("alarms", ()) for row in healthy)
    different = [row for row in _rows("slow") if row["planted"] != code and code not in row.get("accepted", ())]
    wrong = sum(row.get("first") == code for row in different)
    others = (
        f"It is said of {alarms or 'none'} of {len(healthy)} healthy programs as worth more than {_WORTH}, and comes"
        f" first in {wrong or 'none'} of {len(different)} variants whose planted cause it is no part of."
    )
    if not planted:
        text = "No labelled program has it planted, so that nothing is known of how often it is found."
        return f"## How often it is right\n\n{text} {others}\n"
    first = sum(row.get("rank") == 1 for row in planted)
    text = (
        f"It is planted in {len(planted)} variant{'s' * (len(planted) > 1)} of labelled programs; in {first} the"
        " first finding is this one or another that the label accepts."
    )
    shown = [
        [
            f"`{row['program']}` {row['variant']}",
            _line(row),
            *map(ms, (row.get("before_ms"), row.get("measured_ms"), row.get("predicted_ms"))),
            _place(row),
        ]
        for row in planted
    ]
    head = ["program", "the planted line", "slow, ms", "fixed, ms", "expected, ms", "found"]
    what = (
        "These are its programs, with what an iteration or a launch took without a profiler, and what was expected of"
        " the fix ([all programs](../../accuracy.md)):"
    )
    return f"## How often it is right\n\n{text} {others}\n\n{what}\n\n{table(head, shown)}\n"


@cache
def _rows(role: str) -> list[dict[str, Any]]:
    """The scores of one kind that count."""
    document = json.loads((corpus.ROOT / "docs" / "accuracy.json").read_text("utf-8"))
    apart = (UNANNOTATED, NO_NVTX, JOINED)
    return [row for row in document.values() if row["role"] == role and row.get("suffix", "") not in apart]


@cache
def _expected() -> dict[tuple[str, str], dict[str, Any]]:
    return {(case.slug, case.variant): case.expect for case in corpus.cases() if case.expect}


def _line(row: dict[str, Any]) -> str:
    """The line that the program's label names."""
    place = _expected().get((row["program"], row["variant"]), {}).get("place") or {}
    text = str(place.get("line_contains", "")).replace("|", "\\|")
    return f"`{text}`" if text else ""


def _place(row: dict[str, Any]) -> str:
    rank = row.get("rank")
    return {1: "first", 2: "second", 3: "third"}.get(rank, "later") if rank else "**no**"
