"""Cold start, steady state and teardown; loops and their turns. Runs after reading and before any view is asked.

A loop is found from NVTX ranges that repeat (`step_0`, `step_1` … are one loop; alternating siblings such as `data` and
`train` are one loop too), else from the period of the GPU operations, else the whole steady state counts as one turn
and says so. A turn lasts from its start to the next turn's start: what happens between two ranges (waiting for the next
batch, logging) belongs to the loop. The first turns are warm-up and never count.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median

import duckdb

from gpudiag.period import find_period, turn_starts

Connection = duckdb.DuckDBPyConnection


@dataclass(slots=True)
class Candidate:
    """Ranges with one message on one thread: a possible loop. Times in ns."""

    name: str
    path: str
    parent: str | None
    process: int
    thread: int
    domain: str | None
    starts: list[int]
    ends: list[int]

    @property
    def turns(self) -> int:
        return len(self.starts)

    @property
    def covered(self) -> int:
        return sum(self.ends) - sum(self.starts)


@dataclass(slots=True)
class Turns:
    """The turns of one loop in one process, before warm-up is cut."""

    process: int
    thread: int
    bounds: list[tuple[int, int]]


@dataclass(slots=True)
class Found:
    name: str
    path: str | None
    source: str
    runs: list[Turns] = field(default_factory=list)


def detect(con: Connection) -> None:
    """Fill `loop`, `iteration` and `window` from the events in the store; replaces what was there.

    Needs the settings and the macros of the rules library to be loaded.
    """
    con.execute('delete from loop; delete from iteration; delete from "window"')
    settings = {name: value for name, value in con.execute("select name, value from setting").fetchall()}
    loops = _loops_from_nvtx(con, settings)
    busy = {process for (process,) in con.execute("select distinct process from gpu_op").fetchall()}
    annotated = {run.process for loop in loops for run in loop.runs if _has_gpu_work(con, run)}
    for process in sorted(busy - annotated):
        loops.append(_loop_from_period(con, process, settings) or _whole_run(con, process))
    _write(con, loops, settings)


# --- from NVTX ------------------------------------------------------------------------------------------------------

# range_label (rules/views/api_kinds.sql) drops the number that only says which turn it is.
_CANDIDATES = """
with recursive message as (
    select r.id, r.parent, r.process, r.thread, r.domain, r.start, r."end", range_label(n.text) as label
    from nvtx_range r join name n on n.id = r.name
    where r.kind = 'push_pop' and r."end" > r.start
), pathed as (
    select *, label as path, null::varchar as parent_path from message where parent is null
    union all
    select m.*, p.path || ' / ' || m.label, p.path from message m join pathed p on m.parent = p.id
)
select any_value(label), path, any_value(parent_path), process, thread, domain,
       list(start order by start), list("end" order by start)
from pathed group by path, process, thread, domain having count(*) >= ?
order by process, thread, path, domain
"""


def _loops_from_nvtx(con: Connection, settings: dict[str, float]) -> list[Found]:
    rows = con.execute(_CANDIDATES, [int(settings["min_turns"])]).fetchall()
    candidates = [Candidate(*row) for row in rows]
    by_thread: dict[tuple[int, int], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_thread[candidate.process, candidate.thread].append(candidate)
    found: dict[str, Found] = {}
    for (process, thread), mine in by_thread.items():
        own = [c for c in mine if c.domain is None]  # a library's own domain describes the library, not the program
        for group in _without_rehearsals(_choose(own or mine), own or mine):
            first = min(group, key=lambda c: c.starts[0])
            name = " + ".join(c.name for c in sorted(group, key=lambda c: c.starts[0]))
            path = first.path if len(group) == 1 else f"{first.parent} / {name}" if first.parent else name
            bounds = _turns(con, first.starts, max(group, key=lambda c: c.starts[0]).ends, process, settings)
            loop = found.setdefault(path, Found(name, path, "nvtx"))
            loop.runs.append(Turns(process, thread, bounds))
    return list(found.values())


def _choose(candidates: list[Candidate]) -> list[list[Candidate]]:
    """The outermost repeated ranges of one thread; alternating siblings with the same count form one loop."""
    paths = {c.path for c in candidates}
    chosen: list[list[Candidate]] = []
    for candidate in sorted(candidates, key=lambda c: (c.path.count(" / "), c.starts[0])):
        if any(candidate in group or _inside(candidate, group) for group in chosen):
            continue
        if candidate.path in paths and _is_outer_of_a_loop(candidate, candidates):
            continue
        siblings = [c for c in candidates if c.parent == candidate.parent and _alternate(candidate, c)]
        chosen.append([candidate, *siblings])
    return chosen


def _without_rehearsals(groups: list[list[Candidate]], candidates: list[Candidate]) -> list[list[Candidate]]:
    """Drop a loop of phases that also occur inside another loop: the same code, run before it to warm up."""
    inner = {c.path.rsplit(" / ", 1)[-1]: group for group in groups for c in candidates if _inside(c, group)}
    return [
        group
        for group in groups
        if not all(m.name in inner and inner[m.name] is not group and m.turns < inner[m.name][0].turns for m in group)
    ]


def _inside(candidate: Candidate, group: list[Candidate]) -> bool:
    return any(candidate.path.startswith(f"{member.path} / ") for member in group)


def _is_outer_of_a_loop(candidate: Candidate, candidates: list[Candidate]) -> bool:
    """True for an epoch-like range whose inner range repeats many times and fills it: the inner one is the loop."""
    children = [c for c in candidates if c.parent == candidate.path and c.thread == candidate.thread]
    return any(c.turns >= 5 * candidate.turns and c.covered >= 0.8 * candidate.covered for c in children)


def _alternate(a: Candidate, b: Candidate) -> bool:
    """Same count (give or take the last) and strictly interleaved: phases of one turn."""
    if a is b or abs(a.turns - b.turns) > 1 or b.starts[0] < a.starts[0]:
        return False
    pairs = zip(a.starts, b.starts, [*a.starts[1:], math.inf], strict=False)
    return all(start <= inner < following for start, inner, following in pairs)


def _turns(
    con: Connection, starts: list[int], ends: list[int], process: int, settings: dict[str, float]
) -> list[tuple[int, int]]:
    """Turn bounds: start to next start; at a long pause and after the last turn, to the end of the GPU work it queued."""
    steps = [b - a for a, b in zip(starts, starts[1:], strict=False)]
    pause = settings["break_factor"] * (median(steps) if steps else 0)
    bounds: list[tuple[int, int]] = []
    for index, start in enumerate(starts):
        end = ends[min(index, len(ends) - 1)]
        following = starts[index + 1] if index + 1 < len(starts) else None
        if following is None or following - start > pause:
            end = max(start, min(end, following) if following else end)
            end = max(end, _drain(con, process, start, end))
            end = min(end, following) if following else end
        else:
            end = following
        bounds.append((start, end))
    return bounds


def _drain(con: Connection, process: int, start: int, end: int) -> int:
    """When the GPU finished what the host queued between start and end (ns)."""
    row = con.execute(
        'select max(o."end") from gpu_op o join api_call a on a.id = o.api_call'
        " where o.process = ? and a.start between ? and ?",
        [process, start, end],
    ).fetchone()
    return int(row[0]) if row and row[0] is not None else end


def _has_gpu_work(con: Connection, run: Turns) -> bool:
    row = con.execute(
        'select count(*) from gpu_op where process = ? and "end" > ? and start < ?',
        [run.process, run.bounds[0][0], run.bounds[-1][1]],
    ).fetchone()
    return bool(row and row[0])


# --- from the period of the GPU operations --------------------------------------------------------------------------


def _loop_from_period(con: Connection, process: int, settings: dict[str, float]) -> Found | None:
    """A loop from the repeated sequence of operations that the busiest launching thread started."""
    rows = con.execute(
        """
        with started as (
            select a.thread, a.start, a."end", o."end" as op_end,
                   coalesce(n.short, o.kind || ':' || coalesce(o.copy_kind, '')) as what,
                   count(*) over (partition by a.thread) as thread_ops
            from gpu_op o join api_call a on a.id = o.api_call left join name n on n.id = o.name
            where o.process = ?
        )
        select thread, start, "end", op_end, what from started
        qualify thread_ops = max(thread_ops) over () order by start, op_end limit ?
        """,
        [process, int(settings["max_ops"])],
    ).fetchall()
    if not rows:
        return None
    thread = rows[0][0]
    rows = [row for row in rows if row[0] == thread]
    sequence = [row[4] for row in rows]
    waits = [0] + [b[1] - a[2] for a, b in zip(rows, rows[1:], strict=False)]
    period = find_period(sequence, settings["period_match"], int(settings["min_turns"]))
    if period is None:
        return None
    starts = turn_starts(sequence, waits, period, settings["period_match"])
    if len(starts) < settings["min_turns"]:
        return None
    begins = [rows[i][1] for i in starts]
    ends = [rows[min(i + period, len(rows)) - 1][3] for i in starts]
    opener = next((what for what in sequence[starts[0] : starts[0] + period] if ":" not in what), sequence[starts[0]])
    bounds = _turns(con, begins, ends, process, settings)
    return Found(f"every {opener}", None, "period", [Turns(process, thread, bounds)])


def _whole_run(con: Connection, process: int) -> Found:
    """Nothing repeats: from the first GPU operation to the last counts as one turn."""
    row = con.execute(
        """
        select min(o.start), max(o."end"), mode(a.thread)
        from gpu_op o left join api_call a on a.id = o.api_call where o.process = ?
        """,
        [process],
    ).fetchone()
    assert row is not None
    thread = row[2]
    if thread is None:
        other = con.execute("select min(id) from thread where process = ?", [process]).fetchone()
        thread = other[0] if other and other[0] is not None else 0
    return Found("whole run", None, "unknown", [Turns(process, int(thread), [(int(row[0]), int(row[1]))])])


# --- writing --------------------------------------------------------------------------------------------------------


def _write(con: Connection, loops: list[Found], settings: dict[str, float]) -> None:
    iterations: list[tuple[int, int, int, int, int, int, bool, bool]] = []
    summary: list[tuple[int, Found, int, int, float]] = []
    for loop in loops:
        number = len(summary)
        lengths: list[int] = []
        part = _analysed_part(con, loop, settings)
        for run in loop.runs:
            skip = _warm_up(len(run.bounds), settings)
            enough = skip + math.ceil(part * (len(run.bounds) - skip))
            for ordinal, (start, end) in enumerate(_until_gpu_done(con, run, enough)):
                steady = ordinal >= skip
                iterations.append((number, run.process, run.thread, ordinal, start, end, steady, ordinal < enough))
                if steady:
                    lengths.append(end - start)
        mean = sum(lengths) / len(lengths) if lengths else 0.0
        summary.append((number, loop, len(lengths), sum(lengths), mean))
    total = sum(item[3] for item in summary) or 1
    if iterations:
        columns = list(zip(*iterations, strict=True))
        con.execute(
            "insert into iteration select row_number() over () - 1, * from (select unnest(?::integer[]), unnest(?::integer[]),"
            " unnest(?::integer[]), unnest(?::integer[]), unnest(?::bigint[]), unnest(?::bigint[]), unnest(?::boolean[]), unnest(?::boolean[]))",
            [list(column) for column in columns],
        )
    for number, loop, turns, length, mean in summary:
        processes = len({run.process for run in loop.runs})
        con.execute(
            "insert into loop values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [number, loop.name, loop.path, loop.source, processes, turns, length, mean, length / total],
        )
    _write_windows(con)


def _until_gpu_done(con: Connection, run: Turns, enough: int) -> list[tuple[int, int]]:
    """The turns' bounds, moved to where the GPU had finished what was queued before them.

    A host that runs far ahead passes its turns in microseconds; the work of each is done much later. Only turns that
    will be analysed are moved.
    """
    moved = con.execute(
        """
        with bound as (
            select unnest(?::bigint[]) as t
        ), done as (
            select a.start, max(o."end") over (order by a.start, o.id rows unbounded preceding) as done
            from gpu_op o join api_call a on a.id = o.api_call where o.process = ? and a.start < ?
        )
        select b.t, greatest(b.t, coalesce(d.done, b.t)) from bound b asof left join done d on d.start < b.t
        """,
        [[start for start, _ in run.bounds[: enough + 1]], run.process, run.bounds[min(enough, len(run.bounds) - 1)][1]],
    ).fetchall()
    later = dict(moved)
    result: list[tuple[int, int]] = []
    for start, end in run.bounds:
        begins = later.get(start, start)
        result.append((begins, max(begins, later.get(end, end))))
    return result


def _analysed_part(con: Connection, loop: Found, settings: dict[str, float]) -> float:
    """The part of a loop's turns worth analysing: all, unless its operations pass the setting max_ops."""
    operations = 0
    for run in loop.runs:
        row = con.execute(
            "select count(*) from gpu_op where process = ? and start >= ? and start < ?",
            [run.process, run.bounds[0][0], run.bounds[-1][1]],
        ).fetchone()
        operations += int(row[0]) if row else 0
    return min(1.0, settings["max_ops"] / max(operations, 1))


def _warm_up(turns: int, settings: dict[str, float]) -> int:
    """How many first turns are warm-up: three or a tenth, but never more than half of few turns."""
    wanted = max(int(settings["warm_up_turns"]), math.ceil(settings["warm_up_share"] * turns))
    return 0 if turns == 1 else min(wanted, turns // 2)


def _write_windows(con: Connection) -> None:
    """Per process: before the first steady turn, up to the last one's end, and after it."""
    con.execute(
        """
        insert into "window"
        with seen as (
            select process, min(start) as first, max("end") as last from (
                select process, start, "end" from api_call union all
                select process, start, "end" from gpu_op union all
                select process, start, "end" from nvtx_range
            ) group by process
        ), steady as (
            select process, min(start) as first, max("end") as last from iteration where in_steady_state group by process
        ), bounded as (
            select process, s.first, s.last, coalesce(t.first, s.last) as begins, coalesce(t.last, s.last) as ends
            from seen s left join steady t using (process)
        )
        select process, 'cold_start', first, greatest(first, begins) from bounded union all
        select process, 'steady_state', begins, ends from bounded where ends > begins union all
        select process, 'teardown', ends, greatest(last, ends) from bounded
        """
    )
