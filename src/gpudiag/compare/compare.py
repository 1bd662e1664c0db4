"""Base and head compared: refusal or verdict, loops, kernels, findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpudiag import __version__
from gpudiag.compare import (
    causes,
    change_state,
    compatibility,
    given_times,
    hidden_causes,
    jobs,
    loop_matching,
    loops,
    profiles,
    sentences,
)
from gpudiag.compare.given_times import Times
from gpudiag.compare.hidden_causes import BudgetParts
from gpudiag.compare.interval import joined
from gpudiag.model import Diff, Loop, LoopChange, Report, Side, Tool


def compare(
    base: Sequence[Report],
    head: Sequence[Report],
    settings: Mapping[str, float],
    budget_parts: BudgetParts,
    base_times: Times | None = None,
    head_times: Times | None = None,
) -> Diff:
    """Compare head with base; several reports of a side are repeats of one another.

    budget_parts: by a rule's code, the parts of the time budget that its findings explain.
    Raises GpudiagError when a time names a loop that is not there.
    """
    if not base or not head:
        raise ValueError("both sides need a report")
    sides = compatibility.side(base), compatibility.side(head)
    reasons = compatibility.refusals(*sides, base, head, settings, timed=bool(base_times and head_times))
    if reasons:
        return _refused(sides, reasons)
    middle = _middle(base), _middle(head)
    if sides[0].kind == "kernels":
        return _kernels(sides, base, head, middle, settings)
    times = base_times or {}, head_times or {}
    settings = compatibility.of_recorders(settings, [*base, *head])
    return _timelines(sides, base, head, middle, settings, budget_parts, times)


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
    settings: Mapping[str, float], budget_parts: BudgetParts, times: tuple[Times, Times],
) -> Diff:  # fmt: skip
    pairs = loop_matching.paired(*middle, settings)
    strange = compatibility.unrelated(*middle, pairs) if pairs else compatibility.unmatched(*middle, settings)
    if strange:
        return _refused(sides, [strange])
    given = [
        given_times.of(side, report, pairs, at, settings)
        for at, (side, report) in enumerate(zip(times, middle, strict=True))
    ]
    found = causes.changes(*middle, pairs, settings, budget_parts)
    changes: list[LoopChange] = []
    doubted = [note for side in given for note in side.notes]
    for pair in pairs:
        repeats = _repeats(pair.base, middle[0], base, settings), _repeats(pair.head, middle[1], head, settings)
        own = given[0].times.get(pair.base.id, ()), given[1].times.get(pair.head.id, ())
        sure = hidden_causes.beyond_noise(pair, found, budget_parts, settings)
        change = loops.change(pair, repeats, own, settings, causes_differ=hidden_causes.changed(pair, sure))
        if change:
            changes.append(hidden_causes.credited(change, sure, settings))
            doubted += compatibility.contradicted(pair, change, settings)
    if not changes:
        return _refused(sides, ["no loop in both has a time that can be compared: the reports are damaged."])
    ratio = joined([(*_spent(change), change.ratio) for change in changes])
    narrow = all(change.same_work is True for change in changes)
    state = change_state.whole(
        change_state.state(ratio, same_work=narrow, settings=settings), (change.state for change in changes)
    )
    summary = (
        *compatibility.parts(*middle), *jobs.notes(*middle), *compatibility.notes(*sides, pairs, settings), *doubted,
    )  # fmt: skip
    matched = {id(loop) for pair in pairs for loop in (pair.base, pair.head)}
    return Diff(
        tool=Tool(version=__version__), state=state, text=sentences.loops(state, changes, ratio),
        notes=summary, base=sides[0], head=sides[1], ratio=ratio,
        loops=tuple(changes), job=jobs.change(*middle, settings),
        base_only=tuple(loop.name for loop in middle[0].run.loops if id(loop) not in matched),
        head_only=tuple(loop.name for loop in middle[1].run.loops if id(loop) not in matched),
        findings=causes.changes(*middle, pairs, settings, budget_parts, _quiet(state, changes, middle[0])),
    )  # fmt: skip


def _quiet(state: str, changes: Sequence[LoopChange], base: Report) -> set[str | None]:
    """Loops of which differences mean nothing; where the whole is noise, all of them, and what is of no loop."""
    if state == "noise":
        return {None, *(loop.name for loop in base.run.loops)}
    return {change.name for change in changes if change.state == "noise"}


def _spent(change: LoopChange) -> tuple[float, float]:
    """Each side's time for as much work: what both recorded, so that swapping the sides inverts the result."""
    factor = (change.work or 1.0) if change.ratio_of == "equal work" else 1.0
    portions = change.base.iterations + change.head.iterations * factor
    return portions * change.base.ms, portions * change.head.ms / factor


def _repeats(loop: Loop, own: Report, reports: Sequence[Report], settings: Mapping[str, float]) -> list[Loop]:
    """The same loop in each of a side's reports; those without it, or with another portion of the work, are passed
    over.
    """
    found = [loop]
    for report in reports:
        if report is not own:
            pairs = (pair for pair in loop_matching.paired(own, report, settings) if pair.base is loop)
            found += [pair.head for pair in pairs if pair.work.factor in (None, 1.0)]
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
    state = change_state.whole(change_state.state(ratio, same_work=True, settings=settings), states)
    if left_out and state == "noise":
        state = "cannot_tell"
    return Diff(
        tool=Tool(version=__version__), state=state, text=sentences.profiles(state, changes),
        notes=(*compatibility.notes(*sides, (), settings), *left_out), base=sides[0], head=sides[1], ratio=ratio,
        profiles=changes, findings=causes.changes(*middle, (), settings, {}, _quiet(state, (), middle[0])),
    )  # fmt: skip
