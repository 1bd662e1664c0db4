"""Timelines: one iteration of a loop as it was recorded, and the whole run as an overview."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import duckdb

from gpudiag.model import Finding, Loop
from gpudiag.text.format import clean, dur, plural
from gpudiag.timeline import relations
from gpudiag.timeline.downsampler import Downsampler
from gpudiag.timeline.model import Row, Slice, Timeline

Connection = duckdb.DuckDBPyConnection

SLICES_ITERATION = 2000  # in the rows of one kind; more are drawn together: a page stays below 400 kB
SLICES_RUN = 700
SLICES_MARKED = 0.5  # of those, for all findings together
DEPTH = 6  # nested ranges drawn, in an iteration and in the run
DEPTH_RUN = 2
STREAMS = 6
THREADS = 3
DEVICES = 8


class Iteration(NamedTuple):
    """A recorded iteration; process and thread are those that drive it."""

    id: int
    number: int
    loop: int
    process: int
    thread: int
    start: int
    end: int


class Marks(NamedTuple):
    """Targets of a finding: lists of ids, by the table that they refer to."""

    finding: Finding
    on: str
    ids: list[int]
    kind: str  # mark: what it names; idle_mark: the idle time that its fix could remove


def usual_iteration(con: Connection, loop: int) -> Iteration | None:
    """The analysed iteration whose length is nearest to the median; of equals the earliest."""
    row = con.execute(
        """
        with own as (
            select t.*, i.ordinal from analysed_iteration t join iteration i on i.id = t.iteration where t.loop = ?
        )
        select iteration, ordinal, loop, process, thread, start, "end" from own
        order by abs("end" - start - (select median("end" - start) from own)), start limit 1
        """,
        [loop],
    ).fetchone()
    return Iteration(*row) if row else None


def of_iteration(
    con: Connection, key: str, iteration: Iteration, loop: Loop, marks: Sequence[Marks], timelines: int = 1
) -> Timeline:
    """One iteration of the loop: findings, ranges, host calls, what the GPU did, streams.

    timelines: how many loops are drawn, which share the slices of a page.
    """
    downsampler = Downsampler(con, iteration.start, iteration.end, SLICES_ITERATION // timelines)
    given = {"thread": iteration.thread, "deepest": DEPTH}
    process = (
        iteration.process if loop.processes == 1 else None
    )  # ranks wait for one another: their GPUs belong together
    rows = [*_findings(downsampler, marks, process)]
    rows += _ranges(downsampler, given)
    remarks = [*_ahead(con, iteration), *_deeper(con, iteration, DEPTH)]
    threads, more = _threads(con, iteration)
    rows += _calls(downsampler, "analysed_api_call", threads, iteration.thread)
    remarks += [f"Not drawn: the CUDA calls of {plural(more, 'more thread')}."] * (more > 0)
    rows += _gpu(downsampler, iteration.loop, process)
    rows += _streams(downsampler, "analysed_gpu_op", iteration.process)
    if loop.processes > 1:
        remarks.append(f"Ranges, calls and streams are those of one process of {loop.processes}.")
    remarks += [*_more_gpus(con, loop), *together(downsampler)]
    return Timeline(
        key,
        iteration.start,
        downsampler.ns,
        tuple(rows),
        downsampler.named(),
        iteration.loop,
        iteration.number,
        tuple(remarks),
    )


def of_run(
    con: Connection,
    iteration: Iteration | None,
    loops: Sequence[Loop],
    marks: Sequence[Marks],
    drawn: Sequence[Timeline],
) -> Timeline | None:
    """The whole run; the rows of the host are those of the process that drives the longest loop. drawn: timelines whose
    place is marked.
    """
    row = con.execute(
        """
        select coalesce((select min(start) from "window"), (select min(start) from gpu_op)),
               coalesce((select max("end") from "window"), (select max("end") from gpu_op))
        """
    ).fetchone()
    if row is None or row[0] is None or row[1] <= row[0]:
        return None
    downsampler = Downsampler(con, row[0], row[1], SLICES_RUN)
    rows: list[Row] = []
    remarks: list[str] = []
    if iteration:
        given = {"thread": iteration.thread, "deepest": DEPTH_RUN}
        rows += _phases(downsampler, iteration.process, loops)
        places = tuple(sorted(Slice(one.start - downsampler.begin, one.ns, "drawn", -1, 1) for one in drawn))
        rows.append(Row("drawn", "phase", "drawn by itself", places))
        rows += _findings(downsampler, marks, None)
        rows += _ranges(downsampler, given)
        rows += _calls(downsampler, "api_call", [iteration.thread], iteration.thread)
        rows += _gpu(downsampler, None, None)
        remarks.append(
            "What the GPU waits for is known for the iterations that were analysed, and drawn for those only."
        )
        remarks.append(f"Ranges ({DEPTH_RUN} levels) and calls are those of the thread that drives the longest loop.")
        remarks += _more_gpus(con, None)
    rows += _streams(downsampler, "gpu_op", None)
    return Timeline(
        "run",
        downsampler.begin,
        downsampler.ns,
        tuple(rows),
        downsampler.named(),
        remarks=(*remarks, *together(downsampler)),
    )


def together(downsampler: Downsampler) -> list[str]:
    """Describe what was drawn together."""
    if not downsampler.merged:
        return []
    least = dur(float(downsampler.longest_merged))
    many = f"{downsampler.merged:,} items"
    return [f"What is shorter than {least} is drawn together with its neighbours of the same kind: {many}."]


def _findings(downsampler: Downsampler, marks: Sequence[Marks], process: int | None) -> Iterable[Row]:
    """A line a finding, in the report's order; those that have nothing here are left out."""
    found: dict[int, list[Slice]] = {}
    most = int(SLICES_MARKED * downsampler.slices / max(1, len(marks)))
    by_rank = {mark.finding.rank: mark.finding for mark in marks}
    for mark in marks:
        given = {"ids": mark.ids, "process": process, "kind": mark.kind}
        lanes = downsampler.lanes(relations.marks(mark.on), given, most)
        slices = lanes.get("mark", ())
        found.setdefault(mark.finding.rank, []).extend(_joined(slices) if mark.kind == "idle_mark" else slices)
    for rank in sorted(found):
        if found[rank]:
            finding = by_rank[rank]
            yield Row(f"f{rank}", "finding", finding.title, tuple(sorted(found[rank])), rank=rank)


def _phases(downsampler: Downsampler, process: int, loops: Sequence[Loop]) -> Iterable[Row]:
    for slices in downsampler.lanes(relations.PHASES, {"process": process}).values():
        yield Row("phase", "phase", "Phases", slices)
    known = {str(loop.id): loop for loop in loops if loop.source != "unknown"}
    lanes = downsampler.lanes(relations.ITERATIONS, {"process": process, "loops": [loop.id for loop in known.values()]})
    for key, loop in known.items():
        if key in lanes:
            yield Row(f"t{key}", "phase", loop.name, lanes[key])


def _ranges(downsampler: Downsampler, given: Mapping[str, Any]) -> Iterable[Row]:
    for depth, slices in sorted(downsampler.lanes(relations.RANGES, given).items()):
        yield Row(f"n{depth}", "nvtx", "NVTX ranges", slices, depth=int(depth))


def _deeper(con: Connection, iteration: Iteration, deepest: int) -> list[str]:
    row = con.execute(
        "select count(*) from nvtx_range where thread = ? and kind = 'push_pop' and (depth >= ? or domain is not null)"
        ' and start < ? and "end" > ?',
        [iteration.thread, deepest, iteration.end, iteration.start],
    ).fetchone()
    ranges = plural(row[0], "NVTX range") if row and row[0] else ""
    return [f"Not drawn: {ranges} nested deeper or of another domain."] if ranges else []


def _ahead(con: Connection, iteration: Iteration) -> list[str]:
    """Say how long before the iteration the host had started most of its work, where that is a good part of it."""
    row = con.execute(
        """
        select median(o.start - a.start) as ahead_ns
        from analysed_gpu_op o join analysed_api_call a on a.id = o.api_call
        where o.process = $process and o.start >= $start and o.start < $end
        having ahead_ns >= setting('drawn_ahead_share') * ($end - $start)
        """,
        {"process": iteration.process, "start": iteration.start, "end": iteration.end},
    ).fetchone()
    if not row:
        return []
    return [f"The CPU ran {dur(float(row[0]))} ahead: the calls drawn here belong to later work."]


def _threads(con: Connection, iteration: Iteration) -> tuple[list[int], int]:
    """The driving thread and the others that spent most time in CUDA calls meanwhile; and how many more there are."""
    rows = con.execute(
        'select thread from analysed_api_call where process = ? and start < ? and "end" > ? and thread <> ?'
        ' group by thread order by sum("end" - start) desc, thread',
        [iteration.process, iteration.end, iteration.start, iteration.thread],
    ).fetchall()
    others = [thread for (thread,) in rows]
    return [iteration.thread, *others[: THREADS - 1]], len(others[THREADS - 1 :])


def _calls(downsampler: Downsampler, table: str, threads: list[int], driver: int) -> Iterable[Row]:
    lanes = downsampler.lanes(relations.calls(table), {"threads": threads})
    texts = dict(
        downsampler.con.execute(
            "select id, name from thread where id in (select unnest(?::bigint[]))", [threads]
        ).fetchall()
    )
    for thread in threads:
        if str(thread) in lanes:
            named = clean(texts.get(thread) or "")
            label = "CUDA calls" if thread == driver else f"CUDA calls, {named or 'another thread'}"
            yield Row(f"h{thread}", "host", label, lanes[str(thread)])


def _gpu(downsampler: Downsampler, loop: int | None, process: int | None) -> Iterable[Row]:
    """Return what each GPU did or waited for: disjoint and complete over the analysed iterations, the loop's budget."""
    lanes = downsampler.lanes(relations.GPU_TIME, {"loop": loop, "process": process})
    ordinals = dict(downsampler.con.execute("select id, ordinal from device").fetchall())
    for device in sorted(lanes, key=int)[:DEVICES]:
        label = "GPU" if len(ordinals) == 1 else f"GPU {ordinals.get(int(device), device)}"
        yield Row(f"g{device}", "gpu", label, _joined(lanes[device]))


def _more_gpus(con: Connection, loop: Loop | None) -> list[str]:
    row = con.execute(
        "select count(distinct device) from steady_interval_device where $loop is null or loop = $loop",
        {"loop": loop.id if loop else None},
    ).fetchone()
    more = row[0] - DEVICES if row else 0
    return [f"Not drawn: {plural(more, 'more GPU')}."] if more > 0 else []


def _joined(slices: Sequence[Slice]) -> tuple[Slice, ...]:
    """Neighbours that touch and are idle for the same reason as one slice, named after the longest of them."""
    found: list[Slice] = []
    longest = 0
    for slice_ in slices:
        last = found[-1] if found else None
        if last and last.kind == slice_.kind and last.many == slice_.many == 1 and last.start + last.ns == slice_.start:
            found[-1] = last._replace(ns=last.ns + slice_.ns, name=slice_.name if slice_.ns > longest else last.name)
            longest = max(longest, slice_.ns)
        else:
            found.append(slice_)
            longest = slice_.ns
    return tuple(found)


def _streams(downsampler: Downsampler, table: str, process: int | None) -> Iterable[Row]:
    """The busiest streams, a line each; the others share one."""
    rows = downsampler.con.execute(
        f"""
        select o.stream, s.number, d.ordinal
        from {table} o join stream s on s.id = o.stream join device d on d.id = o.device
        where ($process is null or o.process = $process) and o.start < $end and o."end" > $begin
        group by all order by sum(o."end" - o.start) desc, o.stream
        """,
        {"process": process, "begin": downsampler.begin, "end": downsampler.end},
    ).fetchall()
    shown = rows[:STREAMS]
    lanes = downsampler.lanes(relations.operations(table), {"process": process, "streams": [row[0] for row in shown]})
    several = len({row[2] for row in rows}) > 1
    for stream, number, ordinal in sorted(shown, key=lambda row: (row[2], row[1], row[0])):
        where = f"GPU {ordinal} stream {number}" if several else f"stream {number}"
        yield Row(f"s{stream}", "stream", where, lanes.get(str(stream), ()))
    if len(rows) > STREAMS:
        yield Row("other", "stream", f"{len(rows) - STREAMS} more streams", lanes.get("other", ()))
