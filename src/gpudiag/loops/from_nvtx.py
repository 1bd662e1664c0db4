"""Loops from NVTX push/pop ranges of the program itself: a message that repeats on one thread, outermost first.

`step_0`, `step_1` … are one loop; alternating siblings such as `data` and `train` are one loop; an epoch that is filled
by iterations gives way to them. Ranges around every operator overlap each other's iterations and are no loops.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import duckdb
import numpy as np

from gpudiag.loops.iteration_bounds import Bounds, Found, Ints, Iterations, Settings, iteration_bounds

Connection = duckdb.DuckDBPyConnection

# range_label (rules/views/host/macros.sql) drops the number that only says which iteration it is. Ranges in a domain of
# their own come from libraries and describe the library, not the program; operator annotations mark no iterations.
_PATHS = """
create or replace temp table nvtx_path as
with recursive labelled as (
    select n.id, range_label(n.text) as label, names_profiler_step(n.text) as is_step,
           names_framework_phase(n.text) as is_phase
    from name n where n.id in (select distinct name from nvtx_range) and not names_operator(n.text)
), by_torch as (
    select p.id, p.id in (
        select r.process from nvtx_range r join labelled l on l.id = r.name where l.is_step
    ) as has_steps
    from process p join input i on i.id = p.input where i.kind = 'torch'
), message as (
    select r.id, r.parent, r.process, r.thread, r.start, r."end", l.label, l.is_step and t.id is not null as is_step
    from nvtx_range r join labelled l on l.id = r.name left join by_torch t on t.id = r.process
    where r.kind = 'push_pop' and r.domain is null and r."end" > r.start
      and (t.id is null or l.is_step or not t.has_steps and not l.is_phase)
), placed as (  -- a number stands for a path: as texts they are long, and as many as there are ranges
    select *, hash(label) as path, null::ubigint as above from message where parent is null
    union all
    select m.*, hash(p.path, m.label), p.path from message m join placed p on m.parent = p.id
)
select process, thread, path, above, label, start, "end", is_step from placed
"""
_CANDIDATES = """
select process, thread, path, count(*) as iterations, min(start), max("end"), sum("end" - start)
from nvtx_path group by process, thread, path having iterations >= ? or bool_or(is_step)
"""
_STEPS = "select path, any_value(above), any_value(label) from nvtx_path group by path"
_TIMES = 'select "{}" as time from nvtx_path where process = ? and thread = ? and path = ? order by start, "end"'


@dataclass(slots=True, eq=False)
class LoopCandidate:
    """Ranges with one message on one thread: a possible loop. Times in ns."""

    name: str
    path: str
    parent: str | None
    process: int
    thread: int
    iterations: int
    first: int
    last: int
    covered: int
    load: Callable[[str], Ints]
    """Asks for the times: most candidates are judged without, and all together would be as large as the capture."""
    _starts: Ints | None = None

    @property
    def starts(self) -> Ints:
        if self._starts is None:
            self._starts = self.load("start")
        return self._starts

    @property
    def ends(self) -> Ints:
        return self.load("end")

    def forget(self) -> None:
        """Keep no times any longer: one loop's at once is enough."""
        self._starts = None

    def ended(self, iterations: Ints) -> Ints:
        """Return when the ranges at these positions ended, or the last range where there is none."""
        return self.ends[np.minimum(iterations, self.iterations - 1)]

    @property
    def extent(self) -> int:
        return max(1, self.last - self.first)


Group = list[LoopCandidate]

COMPARED = 500
"""Candidates of one thread that are compared with each other, pair by pair: those that cover most time."""


def loops_from_nvtx(con: Connection, settings: Settings, owners: Mapping[int, tuple[str, int]]) -> list[Found]:
    """The annotated loops of all processes; the same path in processes of one capture or job is one loop."""
    by_thread: dict[tuple[int, int], list[LoopCandidate]] = defaultdict(list)
    for candidate in _candidates(con, int(settings["min_iterations"])):
        by_thread[candidate.process, candidate.thread].append(candidate)
    found: dict[tuple[tuple[str, int], str], Found] = {}
    for (process, thread), every in by_thread.items():
        candidates = _longest(every)
        groups = _without_rehearsals(_without_operators(_choose(candidates, settings), settings), candidates)
        for candidate in candidates:
            candidate.forget()
        for group in groups:
            phases = sorted(group, key=lambda c: c.first)
            name = " + ".join(phase.name for phase in phases)
            path = f"{phases[0].parent} / {name}" if phases[0].parent else name
            bounds = iteration_bounds(con, phases[0].load("start"), phases[-1].ended, process, settings)
            if _are_short(con, group, settings) and not _hold_work(con, process, bounds):
                continue
            loop = found.setdefault((owners.get(process, ("input", 0)), path), Found(name, path, "nvtx"))
            loop.runs.append(Iterations(process, thread, bounds))
    con.execute("drop table nvtx_path")
    return list(found.values())


def _candidates(con: Connection, least: int) -> list[LoopCandidate]:
    """Paths of labels that occur at least so often on one thread, by process, thread and path."""
    con.execute(_PATHS)
    rows = con.execute(_CANDIDATES, [least]).fetchall()
    steps = {path: (above, label) for path, above, label in con.execute(_STEPS).fetchall()}
    found = []
    for process, thread, path, iterations, first, last, covered in rows:
        above, label = steps[path]
        parent = _text(steps, above) if above is not None else None
        text = f"{parent} / {label}" if parent is not None else label
        load = partial(_times, con, process, thread, path)
        found.append(LoopCandidate(label, text, parent, process, thread, iterations, first, last, int(covered), load))
    return sorted(found, key=lambda c: (c.process, c.thread, c.path))


def _text(steps: Mapping[int, tuple[int | None, str]], path: int | None) -> str:
    """A path's labels from the outermost range on, joined by ` / `."""
    found = []
    while path is not None:
        path, label = steps[path]
        found.append(label)
    return " / ".join(reversed(found))


def _times(con: Connection, process: int, thread: int, path: int, which: str) -> Ints:
    """Return when the ranges of a path began, ascending, or when they ended, in the same order (ns)."""
    times: Ints = con.execute(_TIMES.format(which), [process, thread, path]).fetchnumpy()["time"]
    return times


def _longest(candidates: list[LoopCandidate]) -> list[LoopCandidate]:
    """As they are, less those that cover least where they are too many to compare."""
    longest = sorted(range(len(candidates)), key=lambda number: candidates[number].covered, reverse=True)[:COMPARED]
    return [candidates[number] for number in sorted(longest)]


def _choose(candidates: list[LoopCandidate], settings: Settings) -> list[Group]:
    """The outermost repeated ranges of one thread; alternating siblings with the same count form one loop."""
    chosen: list[Group] = []
    for candidate in sorted(candidates, key=lambda c: (c.path.count(" / "), c.first)):
        taken = any(candidate in group or _inside(candidate, group) for group in chosen)
        if not taken and not _is_outer_of_a_loop(candidate, candidates, settings):
            siblings = [c for c in candidates if c.parent == candidate.parent and _alternate(candidate, c)]
            chosen.append([candidate, *siblings])
    return chosen


def _inside(candidate: LoopCandidate, group: Group) -> bool:
    return any(candidate.path.startswith(f"{member.path} / ") for member in group)


def _is_outer_of_a_loop(candidate: LoopCandidate, candidates: list[LoopCandidate], settings: Settings) -> bool:
    """True for an epoch-like range whose inner range repeats many times and fills it: the inner one is the loop."""
    children = [c for c in candidates if c.parent == candidate.path]
    often, filled = (
        settings["nvtx_inner_times"] * candidate.iterations,
        settings["nvtx_inner_share"] * candidate.covered,
    )
    return any(c.iterations >= often and c.covered >= filled for c in children)


def _alternate(a: LoopCandidate, b: LoopCandidate) -> bool:
    """Same count (give or take the last) and strictly interleaved: phases of one iteration."""
    if a is b or abs(a.iterations - b.iterations) > 1 or b.first < a.first:
        return False
    both = min(a.iterations, b.iterations)
    inner, following = b.starts[:both], a.starts[1 : both + 1]
    return bool((a.starts[:both] <= inner).all() and (inner[: len(following)] < following).all())


def _without_operators(groups: list[Group], settings: Settings) -> list[Group]:
    """Drop ranges that fill little of their iterations and hold starts of others: annotations of single operators."""
    if len(groups) == 1:
        return groups
    kept: list[Group] = []
    for group in groups:
        first, covered = group[0], sum(member.covered for member in group)
        foreign = np.sort(
            np.concatenate([other[0].starts for other in groups if other is not group] or [first.ends[:0]])
        )
        begun = np.searchsorted(foreign, first.starts[1:]) > np.searchsorted(foreign, first.ends[:-1])
        invaded = int(begun.sum())
        few = invaded <= settings["nvtx_foreign_share"] * first.iterations
        if few or covered >= settings["nvtx_filled_share"] * first.extent:
            kept.append(group)
    return kept


def _are_short(con: Connection, group: Group, settings: Settings) -> bool:
    """Return whether ranges take little of the time recorded of their process.

    Of ranges without GPU work, as a compiler's passes, only long ones are a loop that the program might run on the GPU.
    """
    ((recorded,),) = con.execute(
        """
        select max("end") - min(start) from (
            select start, "end" from nvtx_range where process = $process union all
            select start, "end" from gpu_op where process = $process
        )
        """,
        {"process": group[0].process},
    ).fetchall()
    return sum(member.covered for member in group) < settings["further_loop_share"] * (recorded or 0)


def _hold_work(con: Connection, process: int, bounds: Bounds) -> bool:
    """Return whether most of these iterations launch a GPU operation, which may run much later."""
    starts = con.execute(
        "select coalesce(a.start, o.start) as start from gpu_op o left join api_call a on a.id = o.api_call"
        " where o.process = ? order by 1",
        [process],
    ).fetchnumpy()["start"]
    held = np.diff(np.searchsorted(starts, bounds), axis=1) > 0
    return bool(2 * held.sum() > len(bounds))


def _without_rehearsals(groups: list[Group], candidates: list[LoopCandidate]) -> list[Group]:
    """Drop a loop of phases that also occur inside another loop: the same code, run before it to warm up."""
    inner = {c.name: group for group in groups for c in candidates if _inside(c, group)}
    return [
        group
        for group in groups
        if not all(
            m.name in inner and inner[m.name] is not group and m.iterations < inner[m.name][0].iterations for m in group
        )
    ]
