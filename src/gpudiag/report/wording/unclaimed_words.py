"""Time that no finding explains, in words: what the host did meanwhile, as an observation that names no cause."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gpudiag.model import Finding, Loop, Place, Unclaimed
from gpudiag.report.wording.words import LITTLE, WHOLE, leaf_label
from gpudiag.text.escape import code, plain
from gpudiag.text.format import base_name, pct

STARTED = {
    "exposed_copy": "the copies were{mostly} started by",
    "exposed_communication": "the exchange was{mostly} started by",
}
UNKNOWN = "the recording does not show what the host did"


class Observation(NamedTuple):
    """A large part of a loop's time without a finding, at a glance; the texts are Markdown."""

    title: str
    where: str


def large(loops: Iterable[Loop], findings: Sequence[Finding]) -> list[Observation]:
    """The parts that are worth a row of the first screen, each with what the host did most of the time."""
    known = list(loops)
    return [
        Observation(
            f"{_left_by(one, loop, findings)} {pct(one.share)} of {_whole(loop, known)}"
            f" ({plain(leaf_label(one.leaf))})",
            _mostly(one),
        )
        for loop in known
        for one in loop.unclaimed
        if one.large
    ]


def _about(one: Unclaimed, loop: Loop, findings: Sequence[Finding]) -> str:
    """`finding 2`, from which a part follows though its fix leaves it; empty where there is none."""
    ranks = [str(found.rank) for found in findings if found.code in one.about and found.gain.loop == loop.id]
    return f"finding{'s' if len(ranks) > 1 else ''} {' and '.join(ranks)}" if ranks else ""


def _left_by(one: Unclaimed, loop: Loop, findings: Sequence[Finding]) -> str:
    about = _about(one, loop, findings)
    return f"Fixing {about} leaves" if about else "No finding explains"


def _whole(loop: Loop, loops: Sequence[Loop]) -> str:
    """Return what the part is of, in few words: of the only loop `an iteration`."""
    return "an iteration" if len(loops) == 1 and loop.source != "unknown" else _name(loop)


def lines(loop: Loop, findings: Sequence[Finding]) -> list[str]:
    """A line for each large part of a loop's time that is left unexplained: all that is known of what the host did."""
    found = []
    for one in loop.unclaimed:
        said = []
        if places := _seen(one):
            said.append(f"the host was in {', '.join(map(_place, places))}")
        if one.os_calls:
            said.append(f"it called {', '.join(map(code, one.os_calls))}")
        if one.calls:
            said.append(f"{_call(one)} {', '.join(map(code, one.calls))}")
        about = _about(one, loop, findings)
        fixed = f" with {about} fixed" if about else ""
        found.append(f"{pct(one.share)} **{plain(leaf_label(one.leaf))}**{fixed}: {'; '.join(said) or UNKNOWN}")
    return found


def _mostly(one: Unclaimed) -> str:
    """`the host was in `load` (`a.py:3`) for 61 % of that time`; without a place the call that it was heading for."""
    if places := _seen(one):
        part = places[0].share
        most = f" for {pct(part)} of that time" if part is not None and part < 1 - LITTLE else ""
        return f"the host was in {_place(places[0])}{most}"
    if one.calls:
        mostly = " mostly" if len(one.calls) > 1 else ""
        return f"{_call(one, mostly)} {code(one.calls[0])}"
    return f"the host called {code(one.os_calls[0])}" if one.os_calls else UNKNOWN


def _seen(one: Unclaimed) -> list[Place]:
    """The places that the host was in for a part of that time worth naming."""
    return [place for place in one.where if place.share is None or place.share >= LITTLE]


def _call(one: Unclaimed, mostly: str = "") -> str:
    return STARTED.get(one.leaf, "the next CUDA call was{mostly}").format(mostly=mostly)


def _name(loop: Loop) -> str:
    return WHOLE if loop.source == "unknown" else code(loop.name)


def _place(place: Place) -> str:
    if not place.file:
        return f"the range {code(place.nvtx or '')}"
    spot = code(base_name(place.file) if place.line is None else f"{base_name(place.file)}:{place.line}")
    return f"{code(place.function)} ({spot})" if place.function else spot
