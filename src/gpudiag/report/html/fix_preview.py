"""The iteration before and after the first fix: two bars to one scale, and the rows of the GPU where they are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpudiag.report.wording.words import duration
from gpudiag.timeline.model import FixPreview, Row, Slice, Timeline


def timeline(preview: FixPreview) -> Timeline:
    """Now above, after below; the interval of the new time beneath it."""
    before, after, low, high = (
        round(ms * 1e6) for ms in (preview.before_ms, preview.after_ms, preview.low_ms, preview.high_ms)
    )
    rows = [
        Row("now", "length", f"now: {duration(preview.before_ms)}", (Slice(0, before, "now", -1, 1),)),
        *_renamed(preview.before, "now"),
        Row("fixed", "length", f"after: {duration(preview.after_ms)}", (Slice(0, after, "fixed", -1, 1),)),
    ]
    if high > low:
        within = f"{duration(preview.low_ms)} to {duration(preview.high_ms)}"
        rows.append(Row("interval", "interval", within, (Slice(low, high - low, "interval", -1, 1),)))
    rows += _renamed(preview.after, "after")
    return Timeline("fix", 0, max(before, high, after, 1), tuple(rows), preview.names, remarks=preview.remarks)


def _renamed(rows: Sequence[Row], when: str) -> list[Row]:
    return [replace(row, key=f"{when}-{row.key}") for row in rows]
