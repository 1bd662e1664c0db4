"""Sentences on what the loops of a report hold: which part of the GPU's work, and what repeats in an iteration."""

from __future__ import annotations

from gpudiag.model import Run
from gpudiag.text.format import code, pct

_NEARLY_ALL = 0.95
_LEAST = 0.0005  # of the work: less would be printed as 0.0 %


def holds_nearly_all(run: Run) -> bool:
    """Return whether so little of the work lies outside of the loops that a short report need not say it."""
    return run.mode != "run" and run.coverage is not None and run.coverage >= _NEARLY_ALL


def sentence(run: Run) -> str:
    """`The loop holds 97 % of the GPU's work; 2.0 % came before, 1.0 % after.`; empty where nothing is known.

    Of a run without iterations the line of its time says already that nothing repeats.
    """
    return " ".join(filter(None, (_held(run), repeated(run))))


def repeated(run: Run) -> str:
    """`In each iteration the same operations come 25 times.`: who counts these as iterations can divide by it."""
    several = len(run.loops) > 1
    found = [(loop.repeats, f" of {code(loop.name)}" if several else "") for loop in run.loops if loop.repeats]
    return " ".join(f"In each iteration{of} the same operations come {repeats:,} times." for repeats, of in found)


def _held(run: Run) -> str:
    """The part of the work that the loops hold."""
    if run.mode is None:
        return ""
    holds = "The loop holds" if len(run.loops) == 1 else "The loops hold"
    if run.mode == "run":
        if run.coverage is None or run.coverage > 1 - _LEAST:
            return "" if run.loops else "Nothing was found that repeats: this report is about the run as a whole."
        holds = "Nothing was found that repeats. The part of the run that is analysed holds"
    if run.coverage is None:
        return ""
    if run.coverage > 1 - _LEAST:
        return f"{holds} all of the GPU's work."
    return f"{holds} {pct(run.coverage)} of the GPU's work{_rest(run.coverage, run)}."


def _rest(coverage: float, run: Run) -> str:
    """Name where the rest of the work lies, so far as it would show in print."""
    if run.outside is None:
        return ""
    places = {
        "before": run.outside.before_ms,
        "between iterations": run.outside.between_ms,
        "after": run.outside.after_ms,
    }
    outside = sum(places.values())
    shares = {place: (1 - coverage) * ms / outside for place, ms in places.items() if ms}
    named = [(pct(share), place) for place, share in shares.items() if share >= _LEAST]
    return "".join(
        f"{', ' if number else '; '}{share}{'' if number else ' came'} {place}"
        for number, (share, place) in enumerate(named)
    )
