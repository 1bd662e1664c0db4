"""The picture of a capture, made while its store is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import duckdb

from gpudiag.model import Finding, Loop, Run
from gpudiag.replay.gains import GainCalculator
from gpudiag.replay.priced_finding import PricedFinding
from gpudiag.text.format import plural
from gpudiag.timeline import tracks
from gpudiag.timeline.fix_preview import preview
from gpudiag.timeline.model import Picture

Connection = duckdb.DuckDBPyConnection
LOOPS = 3


def draw(con: Connection, run: Run, findings: Sequence[Finding], ledger: GainCalculator) -> Picture:
    """An iteration of each loop that has findings (else of the longest), the whole run, and the first fix.

    ledger: the one that priced the findings; it knows what each of them points at.
    """
    loops = {loop.id: loop for loop in run.loops}
    wanted = dict.fromkeys(f.gain.loop for f in findings)
    shown = [loops[number] for number in wanted if number in loops] or list(run.loops[:1])
    pointed = {finding.rank: _marks(finding, ledger) for finding in findings}
    drawn = []
    for loop in shown[:LOOPS]:
        iteration = tracks.usual_iteration(con, loop.id)
        if iteration:
            own = [mark for f in findings if f.gain.loop == loop.id for mark in pointed[f.rank]]
            drawn.append(tracks.of_iteration(con, f"loop{loop.id}", iteration, loop, own, len(shown[:LOOPS])))
    main = tracks.usual_iteration(con, run.loops[0].id) if run.loops else None
    undrawn = len(shown[LOOPS:])
    everything = [mark for marks in pointed.values() for mark in marks]
    overview = tracks.of_run(con, main, _of_process(run.loops, shown), everything, drawn)
    if overview and undrawn:
        remark = f"Findings of {plural(undrawn, 'more loop')} are marked here only."
        overview = replace(overview, remarks=(*overview.remarks, remark))
    first = next((f for f in findings if f.gain.kind != "test_needed"), None)
    return Picture(tuple(drawn), overview, preview(con, first, _item(first, ledger)) if first else None)


def _of_process(loops: Sequence[Loop], shown: Sequence[Loop]) -> list[Loop]:
    """The loops whose iterations the overview tells apart: those drawn and the longest."""
    return list({loop.id: loop for loop in (*loops[:LOOPS], *shown)}.values())


def _item(finding: Finding, ledger: GainCalculator) -> PricedFinding | None:
    return ledger.items.get((finding.code, finding.gain.loop))


def _marks(finding: Finding, ledger: GainCalculator) -> list[tracks.Marks]:
    item = _item(finding, ledger)
    price = item.rule.price if item else None
    if item is None or price is None or price.on is None:
        return []
    on = "gpu_ops" if price.on == "profiles" else price.on
    ids = sorted({number for row in item.rows for number in price.ids_of(row) or ()})
    idle = sorted(int(key.partition(":")[2]) for key in item.claim if key.startswith("interval:"))
    if on == "idle_intervals":
        ids, idle = [], sorted({*ids, *idle})
    found = [tracks.Marks(finding, on, ids, "mark"), tracks.Marks(finding, "idle_intervals", idle, "idle_mark")]
    return [marks for marks in found if marks.ids]
