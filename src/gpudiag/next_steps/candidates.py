"""Kernels worth a profile: those whose halving shortens the replayed loop, and that nothing else explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import duckdb

from gpudiag.evaluate.engine import Evaluation
from gpudiag.library.catalogue import Library
from gpudiag.model import Finding, Loop, Price, Row, Rule, Run
from gpudiag.replay.edited_graph import EditedGraph
from gpudiag.replay.edits import registry
from gpudiag.replay.edits.kernel_time import SHRINK_KERNEL
from gpudiag.replay.gains import GainCalculator
from gpudiag.replay.loop_model import LoopModel
from gpudiag.store import query

Connection = duckdb.DuckDBPyConnection

HALF = 0.5  # not a threshold: the question that the sentences name, what a kernel twice as fast would save
_HALVED = Rule.model_construct(price=Price(kind="expected", on="gpu_ops", expected=(SHRINK_KERNEL.name,)))


@dataclass(frozen=True, slots=True)
class KernelCandidate:
    """A kernel of a loop (a row of `profile_candidate`) and what the loop gains if it takes half its time."""

    loop: Loop
    row: Row
    saved: float  # part of an iteration as it is now
    saved_then: float  # part of what the timeline's own findings about kernels leave
    replayed: bool  # false: the loop could not be replayed, and the saving is the most that it can be

    @property
    def name(self) -> str:
        """The base name."""
        return str(self.row["short"])

    @property
    def worth(self) -> float:
        """Its saving as a part of the steady time."""
        return self.saved_then * self.loop.share_of_span


@dataclass(slots=True)
class LoopView:
    """A loop: what its timeline alone explains, what comes before its kernels, and what is left to profile."""

    loop: Loop
    known: list[Finding] = field(default_factory=list)
    first: Finding | None = None  # outside the kernels, and worth more than any of them
    measured: list[Finding] = field(default_factory=list)  # what the profiles given say of its kernels
    explained: dict[str, list[str]] = field(default_factory=dict)  # by code: kernels that a known finding speaks of
    open: list[KernelCandidate] = field(default_factory=list)
    profiled: list[KernelCandidate] = field(default_factory=list)
    heaviest: KernelCandidate | None = None
    held: bool = False  # the GPU computes nearly all the time, yet something unrecorded sets the pace of the replay


def about_kernels(rule: Rule) -> bool:
    """Return whether the rule's fix changes what kernels do."""
    price = rule.price
    edits = {*price.low, *price.expected, *price.high, *chain(*price.remedies.values())} if price else set()
    return bool(edits) and all(edit.changes_kernels for edit in registry.of(edits))


def views(
    con: Connection,
    library: Library,
    evaluation: Evaluation,
    run: Run,
    findings: Sequence[Finding],
    ledger: GainCalculator,
) -> list[LoopView]:
    """Every loop that matters, the longest first. ledger: that of the findings, which knows how the loops replay."""
    rows = {outcome.rule.code: outcome.rows for outcome in evaluation.fired}
    result = []
    for loop in run.loops:
        model, doubt = ledger.model(loop)
        view = LoopView(loop, held=doubt is not None and doubt.kind == "held")
        outside: list[Finding] = []
        fixes: list[tuple[Rule, list[Row]]] = []
        for finding in findings:
            rule = library.by_code[finding.code]
            if finding.gain.loop != loop.id or finding.gain.kind == "test_needed":
                continue
            summary = [row for row in rows[finding.code] if row.get("loop") == loop.id and row.get("gpu_ops")]
            if not about_kernels(rule):
                outside.append(finding)
            elif rule.price and rule.price.on == "gpu_ops" and summary:
                view.known.append(finding)
                fixes.append((rule, summary))
            else:
                view.measured.append(finding)
        _fill(view, con, library.setting_values, model, fixes)
        _put_first(view, outside, library.setting_values)
        result.append(view)
    return result


def _fill(
    view: LoopView,
    con: Connection,
    settings: Mapping[str, float],
    model: LoopModel | None,
    fixes: Sequence[tuple[Rule, list[Row]]],
) -> None:
    """The loop's kernels: explained by a finding, profiled already, or open."""
    spoken_of = {rule.code: {op for row in rows for op in row.get("gpu_ops") or ()} for rule, rows in fixes}
    edited_graphs = _fixed(model, fixes)
    left = model.remaining(edited_graphs) if model and edited_graphs else 1.0
    candidates = query.run(
        con, "select * from profile_candidate where loop = $loop order by share desc, name", {"loop": view.loop.id}
    )
    for row in candidates:
        code = _explained_by(set(row["gpu_ops"]), spoken_of, settings["next_known_share"])
        if code:
            view.explained.setdefault(code, []).append(str(row["short"]))
            continue
        # Half the time of a kernel cannot save more than all of it takes.
        if row["share"] * view.loop.share_of_span < settings["next_min_saved"] * left:
            continue
        candidate = KernelCandidate(
            view.loop, row, *_saving(model, edited_graphs, left, row), replayed=model is not None
        )
        if view.heaviest is None or candidate.saved > view.heaviest.saved:
            view.heaviest = candidate
        if candidate.worth >= settings["next_min_saved"] and row["median_ns"] >= settings["next_min_kernel_ns"]:
            (view.profiled if row["profiled"] else view.open).append(candidate)


def _explained_by(own: set[int], spoken_of: Mapping[str, set[int]], enough: float) -> str | None:
    """The finding that speaks of most of a kernel's launches, if all findings together speak of enough of them."""
    if not spoken_of or len(own & set().union(*spoken_of.values())) < enough * len(own):
        return None
    return max(spoken_of, key=lambda code: len(own & spoken_of[code]))


def _fixed(model: LoopModel | None, fixes: Sequence[tuple[Rule, list[Row]]]) -> list[EditedGraph] | None:
    """The replay with what the timeline says of its kernels put right; none if there is nothing of the kind."""
    edited_graphs: list[EditedGraph] | None = None
    for rule, rows in fixes:
        chosen = model.select(rule, rows) if model else None
        if model and chosen:
            edited_graphs = model.fixed(rule, chosen, edited_graphs)
    return edited_graphs


def _saving(
    model: LoopModel | None, edited_graphs: list[EditedGraph] | None, left: float, row: Row
) -> tuple[float, float]:
    """Return what halving the kernel's time saves now, and after the fixes."""
    if model is None:
        return row["share"] * HALF, row["share"] * HALF
    halved = [{"gpu_ops": row["gpu_ops"], "recoverable": HALF}]
    chosen = model.select(_HALVED, halved)
    if not chosen:
        return 0.0, 0.0
    now = max(0.0, 1 - model.remaining(model.fixed(_HALVED, chosen, None)))
    if edited_graphs is None or left <= 0:
        return now, now
    return now, max(0.0, 1 - model.remaining(model.fixed(_HALVED, chosen, edited_graphs)) / left)


def _put_first(view: LoopView, outside: Sequence[Finding], settings: Mapping[str, float]) -> None:
    """A fix outside the kernels that is worth more than any of them comes first: they are then other kernels' rivals.

    Half a kernel's time is the most that tuning usually brings, so it counts as an upper bound does in the ranking.
    """
    most = view.heaviest.saved * settings["weight_bound"] if view.heaviest else 0.0
    for finding in outside:
        fair = settings["weight_bound"] if finding.gain.kind == "upper_bound" else 1.0
        if finding.gain.share * fair >= most:
            view.first = finding
            view.open.clear()
            return


def launches(con: Connection, settings: Mapping[str, float], row: Row) -> tuple[int, int, int, int]:
    """Launches of the base name to skip, wanted ones caught, launches that takes; and local memory a thread (B)."""
    found = con.execute(
        """
        with placed as (
            select op, process, local_per_thread,
                   row_number() over (partition by process order by called, start, op) - 1 as place
            from kernel_launch where short = ?
        )
        select process, place, max(local_per_thread) over () from placed
        where op in (select unnest(?::integer[])) order by process, place
        """,
        [row["short"], row["main_ops"]],
    ).fetchall()
    places = [place for process, place, _ in found if process == found[0][0]]
    skip, wanted, count = window(places, int(settings["next_launches"]), int(settings["next_most_launches"]))
    return skip, wanted, count, found[0][2] or 0


def window(places: Sequence[int], wanted: int, most: int) -> tuple[int, int, int]:
    """Return where to begin, how many of the places are then reached, and in how many launches: the shortest row, the
    first of these. Other kernels of the same base name stand between the places.
    """
    for number in range(min(wanted, len(places)), 1, -1):
        spans = [last - first + 1 for first, last in zip(places, places[number - 1 :], strict=False)]
        if min(spans) <= most:
            return places[spans.index(min(spans))], number, min(spans)
    return places[0], 1, 1
