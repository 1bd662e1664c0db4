"""The iteration before and after the first fix, as a strip: two bars to one scale, and the GPU's rows where known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpudiag.report.wording.words import duration
from gpudiag.timeline.model import Row, Sketch, Slice, Strip


def strip(sketch: Sketch) -> Strip:
    """Now above, after below; the interval of the new time beneath it."""
    before, after, low, high = (
        round(ms * 1e6) for ms in (sketch.before_ms, sketch.after_ms, sketch.low_ms, sketch.high_ms)
    )
    rows = [
        Row("now", "length", f"now: {duration(sketch.before_ms)}", (Slice(0, before, "now", -1, 1),)),
        *_renamed(sketch.before, "now"),
        Row("fixed", "length", f"after: {duration(sketch.after_ms)}", (Slice(0, after, "fixed", -1, 1),)),
    ]
    if high > low:
        within = f"{duration(sketch.low_ms)} to {duration(sketch.high_ms)}"
        rows.append(Row("interval", "interval", within, (Slice(low, high - low, "interval", -1, 1),)))
    rows += _renamed(sketch.after, "after")
    return Strip("fix", 0, max(before, high, after, 1), tuple(rows), sketch.names, remarks=sketch.remarks)


def _renamed(rows: Sequence[Row], when: str) -> list[Row]:
    return [replace(row, key=f"{when}-{row.key}") for row in rows]
