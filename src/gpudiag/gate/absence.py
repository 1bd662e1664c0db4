"""Known findings that a report does not list: gone, hidden behind something else, or never looked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gpudiag import budgetparts
from gpudiag.gate import known
from gpudiag.gate.result import AbsentFinding, Baseline, Doubt, KnownFinding
from gpudiag.model import Loop, Report
from gpudiag.templating import pct

IDLE = {
    "idle_launch": "waits for launches",
    "idle_sync": "idles after a wait of the CPU",
    "idle_input": "waits for input",
    "idle_allocation": "waits for an allocation",
    "idle_other": "waits for work of the CPU",
}


class Absent(NamedTuple):
    gone: tuple[KnownFinding, ...]
    unseen: tuple[KnownFinding, ...]
    """What their rules need was not recorded, or another rule overruled them."""
    small: tuple[KnownFinding, ...]
    """There, but too small to be listed."""


def absent(report: Report, baseline: Baseline) -> Absent:
    listed = known.matched(report, baseline)
    small = tuple(entry for index, entry in listed.items() if index >= len(report.findings))
    rest = [entry for entry in baseline.findings if not any(entry is other for other in listed.values())]
    blind = {item.code for item in report.not_evaluated} | {item.code for item in report.suppressed}
    gone = tuple(entry for entry in rest if entry.code not in blind and report.verdict.state != "cannot_tell")
    unseen = tuple(entry for entry in rest if entry not in gone)
    return Absent(gone, unseen, small)


def doubted(entry: KnownFinding, report: Report, settings: Mapping[str, float], *, failed: bool) -> AbsentFinding:
    """The entry with what speaks against its being fixed: the time it cost is still lost, or something new fails."""
    doubt, reason = _doubt(entry, report, settings, failed)
    return AbsentFinding(**dict(entry), doubt=doubt, reason=reason)


def _doubt(entry: KnownFinding, report: Report, settings: Mapping[str, float], failed: bool) -> tuple[Doubt, str]:
    part = settings["known_hidden_part"]
    enough = entry.worth * part if entry.worth else settings["known_grown_share"]
    for key in budgetparts.of(entry.code):
        loop, share = _still(key, entry, report)
        if key in IDLE and loop and share * loop.share_of_span >= enough:
            return "same_idleness", f"the GPU still {IDLE[key]} for {pct(share)} of an iteration of `{loop.name}`"
    return ("failing", "") if failed else ("none", "")


def _still(key: str, entry: KnownFinding, report: Report) -> tuple[Loop | None, float]:
    """The loop that the entry names (where it names none, the longest), and the part of it in question."""
    loops = sorted(report.run.loops, key=lambda loop: -loop.share_of_span)
    named = [loop for loop in loops if entry.loop in (None, loop.name, loop.nvtx_path)]
    return (named[0], named[0].budget.get(key, 0.0)) if named else (None, 0.0)
