"""Loops from NVTX push/pop ranges of the program itself: a message that repeats on one thread, outermost first.

`step_0`, `step_1` … are one loop; alternating siblings such as `data` and `train` are one loop; an epoch that is filled
by iterations gives way to them. Ranges around every operator overlap each other's turns and are no loops.
"""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import duckdb

from gpudiag.loops import Found, Settings, Turns, turn_bounds

Connection = duckdb.DuckDBPyConnection

# range_label (rules/views/api_kinds.sql) drops the number that only says which turn it is. Ranges in a domain of their
# own come from libraries and describe the library, not the program; operator annotations do not mark iterations.
_CANDIDATES = """
with recursive message as (
    select r.id, r.parent, r.process, r.thread, r.start, r."end", range_label(n.text) as label
    from nvtx_range r join name n on n.id = r.name
    where r.kind = 'push_pop' and r.domain is null and r."end" > r.start and not names_operator(n.text)
), pathed as (
    select *, label as path, null::varchar as parent_path from message where parent is null
    union all
    select m.*, p.path || ' / ' || m.label, p.path from message m join pathed p on m.parent = p.id
)
select any_value(label), path, any_value(parent_path), process, thread,
       list(start order by start), list("end" order by start)
from pathed group by path, process, thread having count(*) >= ?
order by process, thread, path
"""


@dataclass(slots=True, eq=False)
class Candidate:
    """Ranges with one message on one thread: a possible loop. Times in ns."""

    name: str
    path: str
    parent: str | None
    process: int
    thread: int
    starts: list[int]
    ends: list[int]

    @property
    def turns(self) -> int:
        return len(self.starts)

    @property
    def covered(self) -> int:
        return sum(self.ends) - sum(self.starts)

    @property
    def extent(self) -> int:
        return max(1, self.ends[-1] - self.starts[0])


Group = list[Candidate]


def loops_from_nvtx(con: Connection, settings: Settings, owners: Mapping[int, tuple[str, int]]) -> list[Found]:
    """The annotated loops of all processes; the same path in processes of one capture or job is one loop."""
    rows = con.execute(_CANDIDATES, [int(settings["min_turns"])]).fetchall()
    by_thread: dict[tuple[int, int], list[Candidate]] = defaultdict(list)
    for row in rows:
        candidate = Candidate(*row)
        by_thread[candidate.process, candidate.thread].append(candidate)
    found: dict[tuple[tuple[str, int], str], Found] = {}
    for (process, thread), candidates in by_thread.items():
        groups = _without_rehearsals(_without_operators(_choose(candidates)), candidates)
        for group in groups:
            phases = sorted(group, key=lambda c: c.starts[0])
            name = " + ".join(phase.name for phase in phases)
            path = f"{phases[0].parent} / {name}" if phases[0].parent else name
            bounds = turn_bounds(con, phases[0].starts, phases[-1].ends, process, settings)
            loop = found.setdefault((owners.get(process, ("input", 0)), path), Found(name, path, "nvtx"))
            loop.runs.append(Turns(process, thread, bounds))
    return list(found.values())


def _choose(candidates: list[Candidate]) -> list[Group]:
    """The outermost repeated ranges of one thread; alternating siblings with the same count form one loop."""
    chosen: list[Group] = []
    for candidate in sorted(candidates, key=lambda c: (c.path.count(" / "), c.starts[0])):
        taken = any(candidate in group or _inside(candidate, group) for group in chosen)
        if not taken and not _is_outer_of_a_loop(candidate, candidates):
            siblings = [c for c in candidates if c.parent == candidate.parent and _alternate(candidate, c)]
            chosen.append([candidate, *siblings])
    return chosen


def _inside(candidate: Candidate, group: Group) -> bool:
    return any(candidate.path.startswith(f"{member.path} / ") for member in group)


def _is_outer_of_a_loop(candidate: Candidate, candidates: list[Candidate]) -> bool:
    """True for an epoch-like range whose inner range repeats many times and fills it: the inner one is the loop."""
    children = [c for c in candidates if c.parent == candidate.path]
    return any(c.turns >= 5 * candidate.turns and c.covered >= 0.8 * candidate.covered for c in children)


def _alternate(a: Candidate, b: Candidate) -> bool:
    """Same count (give or take the last) and strictly interleaved: phases of one turn."""
    if a is b or abs(a.turns - b.turns) > 1 or b.starts[0] < a.starts[0]:
        return False
    pairs = zip(a.starts, b.starts, [*a.starts[1:], math.inf], strict=False)
    return all(start <= inner < following for start, inner, following in pairs)


def _without_operators(groups: list[Group]) -> list[Group]:
    """Drop ranges that fill little of their turns, which others' ranges begin in: annotations of single operators."""
    starts = sorted((start, index) for index, group in enumerate(groups) for start in group[0].starts)
    kept: list[Group] = []
    for index, group in enumerate(groups):
        first, covered = group[0], sum(member.covered for member in group)
        foreign = [start for start, other in starts if other != index]
        invaded = sum(
            bisect.bisect_left(foreign, following) > bisect.bisect_left(foreign, end)
            for end, following in zip(first.ends, first.starts[1:], strict=False)
        )
        if 2 * invaded <= first.turns or 2 * covered >= first.extent:
            kept.append(group)
    return kept


def _without_rehearsals(groups: list[Group], candidates: list[Candidate]) -> list[Group]:
    """Drop a loop of phases that also occur inside another loop: the same code, run before it to warm up."""
    inner = {c.name: group for group in groups for c in candidates if _inside(c, group)}
    return [
        group
        for group in groups
        if not all(m.name in inner and inner[m.name] is not group and m.turns < inner[m.name][0].turns for m in group)
    ]
