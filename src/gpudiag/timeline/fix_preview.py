"""An iteration before and after the first fix, both by replay: the GPU's rows, or only the lengths where rows lack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import duckdb
import numpy as np

from gpudiag.model import Finding
from gpudiag.replay.edited_graph import EditedGraph
from gpudiag.replay.priced_finding import PricedFinding
from gpudiag.replay.trace import Floats
from gpudiag.text.format import clean
from gpudiag.timeline.model import FixPreview, Name, Row, Slice

Connection = duckdb.DuckDBPyConnection
SLICES = 1500
STREAMS = 4
KINDS = ("kernel", "communication", "set")
_COPIES = {1: "to_gpu", 2: "to_host", 3: "copy"}


def preview(con: Connection, finding: Finding, item: PricedFinding | None) -> FixPreview | None:
    """None where the finding promises no time of a loop."""
    gain = finding.gain
    if gain.basis != "loop" or gain.before_ms is None or gain.after_ms is None:
        return None
    low = gain.low_ms if gain.low_ms is not None else gain.after_ms
    high = gain.high_ms if gain.high_ms is not None else gain.after_ms
    bare = FixPreview(finding.rank, gain.before_ms, gain.after_ms, low, high)
    if item is None or item.model is None or not item.chosen or not item.expected:
        return bare
    model = item.model
    now = model.ends([part.edited for part in model.start[0]])[0]
    then = model.ends(model.fixed(item.rule, item.chosen, None))[0]
    drawn = _drawn(con, bare, now, then)
    if drawn and len(model.graphs) > 1:
        return replace(drawn, remarks=(*drawn.remarks, f"One process of {len(model.graphs)} is drawn."))
    return drawn or bare


Replayed = tuple[EditedGraph, Floats]


def _drawn(con: Connection, bare: FixPreview, now: Replayed, then: Replayed) -> FixPreview | None:
    """With the operations of the iteration that is nearest to the mean both before and after."""
    starts = [_iteration_starts(one) for one in (now, then)]
    if any(len(one) < 2 for one in starts) or len(starts[0]) != len(starts[1]):
        return None
    lengths = [np.diff(one) for one in starts]
    if min(float(np.mean(length)) for length in lengths) <= 0:
        return None
    scale = bare.before_ms * 1e6 / float(np.mean(lengths[0]))
    wanted = (bare.before_ms * 1e6, bare.after_ms * 1e6)
    off = [abs(length * scale / goal - 1) for length, goal in zip(lengths, wanted, strict=True) if goal > 0]
    iteration = int(np.argmin(np.sum(off, axis=0)))
    if len(off) < 2 or any(float(one[iteration]) > now[0].settings["drawn_off_share"] for one in off):
        return None
    names = _names(con, now[0])
    rows = [
        _rows(con, one, float(begins[iteration]), float(begins[iteration + 1]), goal / float(length[iteration]), names)
        for one, begins, length, goal in zip((now, then), starts, lengths, wanted, strict=True)
    ]
    if any(row is None for row in rows):
        return None
    remarks = []
    if any(len(side or ()) == STREAMS for side in rows):
        remarks.append(f"At most {STREAMS} streams are drawn, the busiest.")
    return FixPreview(
        bare.rank, bare.before_ms, bare.after_ms, bare.low_ms, bare.high_ms, rows[0] or (), rows[1] or (),
        tuple(names.values()), tuple(remarks),
    )  # fmt: skip


def _iteration_starts(one: Replayed) -> Floats:
    """Return when the GPU began each iteration's work, and when the last one's ended."""
    edited, ends = one
    record, graph = edited.graph.record, edited.graph
    duration = edited.duration[graph.op]
    here = (record.ops.call >= 0) & (duration > 0)
    if not here.any():
        return np.zeros(0)
    iteration = record.iteration_of_call[record.ops.call[here]]
    begins = np.full(int(iteration.max()) + 1, np.inf)
    np.minimum.at(begins, iteration, (ends[graph.op] - duration)[here])
    begins = begins[np.isfinite(begins)]
    return np.asarray(np.append(np.maximum.accumulate(begins), ends[graph.op].max()))


def _rows(
    con: Connection, one: Replayed, begin: float, end: float, scale: float, names: Mapping[int, Name]
) -> tuple[Row, ...] | None:
    """Return what runs from begin to end, a row a stream; None where that is too much to draw."""
    edited, ends = one
    graph, ops = edited.graph, edited.graph.record.ops
    stop = ends[graph.op]
    start = stop - edited.duration[graph.op]
    inside = np.flatnonzero((stop > begin) & (start < end) & (stop > start))
    if len(inside) > SLICES:
        return None
    place = {number: at for at, number in enumerate(names)}
    name_of = _name_of(con, ops.id[inside].tolist())
    rows: dict[int, list[Slice]] = {}
    for at in inside.tolist():
        left, right = max(float(start[at]), begin), min(float(stop[at]), end)
        number = name_of.get(int(ops.id[at]))
        kind = _COPIES.get(int(ops.direction[at])) or KINDS[int(ops.kind[at])]
        slice_ = Slice(
            round((left - begin) * scale),
            round((right - left) * scale),
            kind,
            -1 if number is None else place.get(number, -1),
            1,
        )
        rows.setdefault(int(ops.stream[at]), []).append(slice_)
    busiest = sorted(rows, key=lambda stream: -sum(slice_.ns for slice_ in rows[stream]))
    numbers = dict(con.execute("select id, number from stream").fetchall())
    return tuple(
        Row(f"s{stream}", "stream", f"stream {numbers.get(stream, stream)}", tuple(sorted(rows[stream])))
        for stream in sorted(busiest[:STREAMS])
    )


def _name_of(con: Connection, ops: Sequence[int]) -> dict[int, int]:
    return dict(
        con.execute(
            "select id, name from analysed_gpu_op where name is not null and id in (select unnest(?::bigint[]))",
            [list(ops)],
        ).fetchall()
    )


def _names(con: Connection, edited: EditedGraph) -> dict[int, Name]:
    rows = con.execute(
        "select id, text, short from name where id in"
        " (select distinct name from analysed_gpu_op where process = ? and name is not null) order by id",
        [edited.graph.record.window.process],
    ).fetchall()
    return {number: Name(clean(short or text or ""), clean(text or "")) for number, text, short in rows}
