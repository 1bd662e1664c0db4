"""Base and head compared: refusal or verdict, loops, kernels, findings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from gpudiag import __version__
from gpudiag.comparison import causes, comparable, loops, pairing, profiles, sentences, verdict
from gpudiag.comparison.interval import joined
from gpudiag.comparison.pairing import Pair
from gpudiag.errors import GpudiagError
from gpudiag.model import Diff, Loop, LoopChange, Report, Side, Tool

Times = Mapping[str, Sequence[float]]
"""Loop name, or "" for the longest loop → unprofiled times of an iteration in ms."""


def compare(
    base: Sequence[Report],
    head: Sequence[Report],
    settings: Mapping[str, float],
    base_times: Times | None = None,
    head_times: Times | None = None,
) -> Diff:
    """What changed from base to head; several reports of a side are repeats of one another.

    Raises GpudiagError when a time names a loop that is not there.
    """
    if not base or not head:
        raise ValueError("both sides need a report")
    sides = comparable.side(base), comparable.side(head)
    reasons = comparable.refusals(*sides, base, head)
    if reasons:
        return _refused(sides, reasons)
    middle = _middle(base), _middle(head)
    if sides[0].kind == "kernels":
        return _kernels(sides, base, head, middle, settings)
    return _timelines(sides, base, head, middle, settings, (base_times or {}, head_times or {}))


def _refused(sides: tuple[Side, Side], reasons: Sequence[str]) -> Diff:
    return Diff(
        tool=Tool(version=__version__), state="incomparable", text=f"These cannot be compared: {reasons[0]}",
        reasons=tuple(reasons), base=sides[0], head=sides[1],
    )  # fmt: skip


def _middle(reports: Sequence[Report]) -> Report:
    """The repeat that stands for its side: the one whose longest loop takes the median time."""
    order = sorted(reports, key=lambda report: report.run.loops[0].iteration_ms if report.run.loops else 0.0)
    return order[(len(order) - 1) // 2]


def _timelines(
    sides: tuple[Side, Side], base: Sequence[Report], head: Sequence[Report], middle: tuple[Report, Report],
    settings: Mapping[str, float], times: tuple[Times, Times],
) -> Diff:  # fmt: skip
    pairs = pairing.paired(*middle)
    strange = comparable.strangers(*middle, pairs) if pairs else comparable.unmatched(*middle)
    if strange:
        return _refused(sides, [strange])
    given = [_given(side, report, pairs, at) for at, (side, report) in enumerate(zip(times, middle, strict=True))]
    changes: list[LoopChange] = []
    doubted: list[str] = []
    for pair in pairs:
        repeats = _repeats(pair.base, middle[0], base), _repeats(pair.head, middle[1], head)
        found = loops.change(pair, repeats, (given[0].get(pair.base.id, ()), given[1].get(pair.head.id, ())), settings)
        if found:
            changes.append(found)
            doubted += comparable.contradicted(pair, found, settings)
    if not changes:
        return _refused(sides, ["no loop in both has a time that can be compared: the reports are damaged."])
    ratio = joined([(*_spent(change), change.ratio) for change in changes])
    narrow = all(change.same_work is True for change in changes)
    state = verdict.whole(
        verdict.state(ratio, same_work=narrow, settings=settings), (change.state for change in changes)
    )
    told = (*comparable.parts(*middle), *comparable.notes(*sides, pairs, settings), *doubted)
    matched = {id(loop) for pair in pairs for loop in (pair.base, pair.head)}
    return Diff(
        tool=Tool(version=__version__), state=state, text=sentences.loops(state, changes, ratio),
        notes=told, base=sides[0], head=sides[1], ratio=ratio,
        loops=tuple(changes),
        base_only=tuple(loop.name for loop in middle[0].run.loops if id(loop) not in matched),
        head_only=tuple(loop.name for loop in middle[1].run.loops if id(loop) not in matched),
        findings=causes.changes(*middle, pairs, settings, _quiet(state, changes, middle[0])),
    )  # fmt: skip


def _quiet(state: str, changes: Sequence[LoopChange], base: Report) -> set[str | None]:
    """Loops of which differences mean nothing; where the whole is noise, all of them, and what is of no loop."""
    if state == "noise":
        return {None, *(loop.name for loop in base.run.loops)}
    return {change.name for change in changes if change.state == "noise"}


def _spent(change: LoopChange) -> tuple[float, float]:
    """Each side's time for as many turns: those that both recorded, so that swapping the sides inverts the result."""
    turns = change.base.iterations + change.head.iterations
    return turns * change.base.ms, turns * change.head.ms


def _repeats(loop: Loop, own: Report, reports: Sequence[Report]) -> list[Loop]:
    """The same loop in each of a side's reports; reports without it are passed over."""
    found = [loop]
    for report in reports:
        if report is not own:
            found += [pair.head for pair in pairing.paired(own, report) if pair.base is loop]
    return found


def _given(times: Times, report: Report, pairs: Sequence[Pair], side: int) -> dict[int, list[float]]:
    """Unprofiled times by the id of their loop."""
    option = ("--base-time", "--head-time")[side]
    known = {loop.name: loop for loop in reversed(report.run.loops)}
    found: dict[int, list[float]] = {}
    for name, values in times.items():
        loop = known.get(name) if name else (pairs[0].base, pairs[0].head)[side]
        if loop is None:
            names = ", ".join(sorted(known)[:5])
            raise GpudiagError(f"{option} names {name!r}, but no loop is called so; there are: {names}.")
        if not values or not all(math.isfinite(value) and value > 0 for value in values):
            raise GpudiagError(f"{option} wants times above zero.")
        found[loop.id] = [*found.get(loop.id, []), *values]
    return found


def _kernels(
    sides: tuple[Side, Side], base: Sequence[Report], head: Sequence[Report], middle: tuple[Report, Report],
    settings: Mapping[str, float],
) -> Diff:  # fmt: skip
    changes = profiles.changes(base, head, settings)
    ratio = profiles.together(changes)
    if ratio is None:
        names = [", ".join(f"`{kernel.name}`" for kernel in report.run.kernels[:3]) for report in middle]
        said = f"base has {names[0]}, head {names[1]}"
        return _refused(sides, [f"no kernel was measured at one launch size on both sides: {said}."])
    left_out = profiles.one_sided(changes)
    states = [change.state for change in changes if change.state in ("regression", "improvement", "noise")]
    state = verdict.whole(verdict.state(ratio, same_work=True, settings=settings), states)
    if left_out and state == "noise":
        state = "cannot_tell"
    return Diff(
        tool=Tool(version=__version__), state=state, text=sentences.profiles(state, changes),
        notes=(*comparable.notes(*sides, (), settings), *left_out), base=sides[0], head=sides[1], ratio=ratio,
        profiles=changes, findings=causes.changes(*middle, (), settings, _quiet(state, (), middle[0])),
    )  # fmt: skip
