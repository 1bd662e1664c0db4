"""The phases of an iteration: where its time goes by line or NVTX range, and the phase or process of a finding."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import duckdb

from gpudiag.model import Phase, Place
from gpudiag.replay import bounds
from gpudiag.replay.priced_finding import PricedFinding
from gpudiag.text.format import clean

Connection = duckdb.DuckDBPyConnection


def of_loops(con: Connection, settings: Mapping[str, float]) -> dict[int, tuple[Phase, ...]]:
    """Loop → its phases that are worth naming, longest first; none where one phase is all of it, or where those that
    samples hardly ever meet are too much of it to tell how long any takes.
    """
    rows = con.execute(
        """
        select loop, path, file, line, function, share, computing_share from loop_phase where share >= $least
        qualify coalesce(sum(share) filter (seen < $seen) over (partition by loop), 0) <= $unseen
        order by loop, share desc, path, file, line
        """,
        {
            "least": settings["min_phase_share"],
            "seen": settings["phase_seen"],
            "unseen": settings["most_unseen_phases"],
        },
    ).fetchall()
    found: dict[int, list[Phase]] = defaultdict(list)
    for loop, path, file, line, function, share, computing in rows:
        place = _place(path, file, line, function)
        found[loop].append(Phase(name=_name(place), place=place, share=share, computing_share=computing))
    return {loop: _distinct(phases) for loop, phases in found.items() if len(phases) > 1}


def of_finding(con: Connection, item: PricedFinding, part: float) -> Place | None:
    """The phase in which at least this part of a finding's time lies, with the part that does; None where none is."""
    if item.loop is None or not item.loop.phases:
        return None
    found = _largest(
        con,
        item,
        """
        called as (
            select c.ns, i.api_call from numbered c join idle_interval i on c.id = i.idle_interval
            where c.of = 'interval'
            union all
            select c.ns, w.api_call from numbered c join loop_gpu_op w on c.id = w.op where c.of = 'op'
        )
        select p.path, p.file, p.line, p.function, sum(c.ns) as ns
        from called c join call_phase p on p.api_call = c.api_call
        group by p.path, p.file, p.line, p.function order by ns desc, p.path, p.file, p.line limit 1
        """,
    )
    if found is None or found[1] < part:
        return None
    (path, file, line, function), share = found
    return _place(path, file, line, function).model_copy(update={"share": min(1.0, share)})


def process_of(con: Connection, item: PricedFinding, part: float) -> str | None:
    """Name the process in which at least this part of a finding's time lies; None where none is, or where it is alone.

    Time that no interval and no operation stands for belongs to no process.
    """
    if item.loop is None or item.loop.processes < 2:
        return None
    found = _largest(
        con,
        item,
        """
        placed as (
            select c.ns, g.process from numbered c join idle_interval i on c.id = i.idle_interval
            join gap g using (gap) where c.of = 'interval'
            union all
            select c.ns, o.process from numbered c join gpu_op o on o.id = c.id where c.of = 'op'
        )
        select coalesce('rank ' || p.rank, 'process ' || p.pid), sum(c.ns) as ns
        from placed c join process p on p.id = c.process group by p.id, p.rank, p.pid order by ns desc, p.id limit 1
        """,
    )
    return str(found[0][0]) if found and found[0][0] and found[1] >= part else None


def _largest(con: Connection, item: PricedFinding, query: str) -> tuple[tuple[Any, ...], float] | None:
    """Return the first row of a query over the claims, by `numbered`, less its last column; and that as a part of all.

    None where nothing is claimed, or the query finds nothing. query: its last column is time (ns).
    """
    claim = {key: ns for key, ns in item.claim.items() if key != bounds.WHOLE}
    whole = math.fsum(claim.values())
    if whole <= 0:
        return None
    bounds.keep(con, claim)
    row = con.execute(f"with numbered as ({bounds.NUMBERED}), {query}").fetchone()
    return (row[:-1], row[-1] / whole) if row else None


def _place(path: str | None, file: str | None, line: int | None, function: str | None) -> Place:
    if path is not None:
        return Place(nvtx=clean(path))
    return Place(file=file, line=line, function=clean(function) if function else None)


def _name(place: Place) -> str:
    if place.nvtx is not None:
        return place.nvtx.rsplit(" / ", 1)[-1]
    if place.function is None or place.function.startswith("<"):  # `<module>` is no name of what the line does
        return f"line {place.line}"
    return place.function


def _distinct(phases: list[Phase]) -> tuple[Phase, ...]:
    """The phases, those of one name with their lines."""
    known = Counter(phase.name for phase in phases)
    return tuple(
        phase.model_copy(update={"name": f"{phase.name}, line {phase.place.line}"})
        if known[phase.name] > 1 and phase.place.line is not None
        else phase
        for phase in phases
    )
