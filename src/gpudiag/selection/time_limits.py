"""Limits of the selected part in each process, for the GPU and for the host that launches ahead of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import duckdb

from gpudiag.errors import GpudiagError
from gpudiag.loops.clip import Chosen, TimeFilter
from gpudiag.selection.spec import Selection
from gpudiag.text.format import dur

Connection = duckdb.DuckDBPyConnection
_NEVER, _FOREVER = -(2**62), 2**62
_EPOCH = 10**17
"""Times beyond three years count from 1970, not from the beginning of the capture: then its first event is 0."""

# An operation that was launched before the part and had ended there says up to where all launches belong to what came
# before; the first operation that begins behind the part, from where they belong to what came after.
_LIMITS = """
create or replace temp table selected as
with hull as (
    select unnest($process::integer[]) as process, unnest($start::bigint[]) as start, unnest($end::bigint[]) as until
), launched as (
    select o.process, h.start, h.until, o.start as begins, o."end" as ends, coalesce(a.start, o.start) as called
    from gpu_op o join hull h on h.process = o.process left join api_call a on a.id = o.api_call
    where o.device in (from chosen_device)
), reported as (
    select process, max(called) filter (ends <= start) as ended, min(called) filter (begins >= until) as later,
           min(called) filter (ends > start and begins < until) as first
    from launched group by process
)
select h.process, h.start, h.until, least(h.start, greatest(t.first, t.ended)) as host, t.ended, t.later,
       t.first is not null as works
from hull h left join reported t using (process)
"""


def find(con: Connection, selection: Selection, chosen: Sequence[Chosen]) -> Mapping[int, TimeFilter]:
    """The limits of each process, where a part of the time was selected; as a temporary table `selected` as well.

    Needs `chosen_process` and `chosen_device`. Raises GpudiagError when the GPU did nothing in the part.
    """
    whole = _extents(con)
    zero = min(first + offset for offset, first, _ in whole.values())
    zero = zero if zero > _EPOCH else 0
    hulls = {
        process: (
            _NEVER if selection.start is None else selection.start + zero - offset,
            _FOREVER if selection.end is None else selection.end + zero - offset,
        )
        for process, (offset, _, _) in whole.items()
    }
    if selection.nvtx:
        hulls = {process: _hull(*hulls[process], chosen, process) for process in {one.process for one in chosen}}
    names = ("process", "start", "end")
    given = [list(hulls), *([hull[side] for hull in hulls.values()] for side in (0, 1))]
    con.execute(_LIMITS, dict(zip(names, given, strict=True)))
    con.execute("delete from chosen_process where id not in (select process from selected)")
    rows = con.execute("select process, start, until, host, ended, later, works from selected order by 1").fetchall()
    if not any(row[-1] for row in rows):
        raise GpudiagError(_idle(con, selection))
    if not selection.timed:
        return {}
    found = {}
    for process, start, until, host, ended, later, _ in rows:
        _, first, last = whole[process]
        found[process] = TimeFilter(
            start=max(start, first),
            end=max(start, min(until, last)),
            after=host - 1 if ended is None else max(ended, host - 1),
            before=until if later is None else min(later, until),
            begun=first < host,
            opened=selection.start is not None and first < host,
            closed=selection.end is not None and last > until,
        )
    return found


def _extents(con: Connection) -> dict[int, tuple[int, int, int]]:
    """Of each process, how far the first input's clock is ahead, and its first and last moment (ns)."""
    rows = con.execute(
        """
        select p.id, coalesce(i.clock_offset_ns, 0), s.first, s.last + 1
        from process p join input i on i.id = p.input join (
            select process, min(start) as first, max("end") as last from (
                select process, start, "end" from api_call union all
                select process, start, "end" from gpu_op union all
                select process, start, "end" from nvtx_range
            ) group by process
        ) s on s.process = p.id where p.id in (from chosen_process)
        """
    ).fetchall()
    return {process: (offset, first, last) for process, offset, first, last in rows}


def _hull(start: int, end: int, chosen: Iterable[Chosen], process: int) -> tuple[int, int]:
    own = [one.bounds for one in chosen if one.process == process]
    first, last = min(int(bounds[0, 0]) for bounds in own), max(int(bounds[:, 1].max()) for bounds in own)
    return max(start, first), max(min(end, last), start, first)


def _idle(con: Connection, selection: Selection) -> str:
    """Explain why nothing can be said about the part."""
    row = con.execute(
        """
        select min(o.start + coalesce(i.clock_offset_ns, 0)), max(o."end" + coalesce(i.clock_offset_ns, 0))
        from gpu_op o join process p on p.id = o.process join input i on i.id = p.input
        where o.process in (from chosen_process) and o.device in (from chosen_device)
        """
    ).fetchone()
    assert row is not None
    what = "--range" if selection.ranged else "--nvtx"
    return (
        f"The GPU did nothing in the part that {what} selects; its work lies between {dur(row[0])} and {dur(row[1])}."
    )
