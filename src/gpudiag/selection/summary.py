"""The part of the captures that a report is about, and the complete recording, in figures and in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb

from gpudiag.model import Row, Selected, Whole
from gpudiag.store import query
from gpudiag.text.format import clean, code, dur, num, pct, plural

NAMED = 4
"""Ranges, processes and so on that are named; the rest is counted."""


def selected(con: duckdb.DuckDBPyConnection) -> Selected | None:
    """None where nothing was selected, which is all."""
    rows = query.run(con, "from whole_run")
    if not rows:
        return None
    row = {**rows[0], **{key: tuple(map(clean, rows[0][key])) for key in ("nvtx", "processes")}}
    whole = Whole(
        span_ms=(row["last"] - row["first"]) / 1e6,
        busy_share=row["busy_ns"] / max(1, row["gpus"] * (row["last"] - row["first"])),
        gpus=row["gpus"],
        gpu_ops=row["gpu_ops"],
        processes=row["users"],
    )
    start, end, length = (None if row[key] is None else row[key] / 1e6 for key in ("start", "end", "selected_ns"))
    return Selected(
        text=f"{_part(row, whole)} {_all(whole)}",
        start_ms=start,
        end_ms=end,
        nvtx=row["nvtx"],
        devices=tuple(row["devices"]),
        processes=row["processes"],
        ranks=tuple(row["ranks"]),
        selected_ms=length,
        whole=whole,
    )


def _part(row: Row, whole: Whole) -> str:
    summary = ", ".join(_asked(row))
    if row["selected_ns"] is None:
        return f"Selected: {summary}."
    share = pct(row["selected_ns"] / max(1.0, whole.span_ms * 1e6))
    return f"Selected: {summary}; that is {dur(row['selected_ns'])} of {dur(whole.span_ms * 1e6)} recorded ({share})."


def _asked(row: Row) -> Iterator[str]:
    start, end = row["start"], row["end"]
    if start is not None or end is not None:
        yield f"{'the beginning' if start is None else _exact(start)} to {'the end' if end is None else _exact(end)}"
    for noun, values in (
        ("range", [code(name) for name in row["nvtx"]]),
        ("GPU", row["devices"]),
        ("process", [name if name.isdecimal() else code(name) for name in row["processes"]]),
        ("rank", row["ranks"]),
    ):
        if values:
            yield _named(noun, values)


def _exact(ns: int) -> str:
    """As it was asked for: to three digits two moments of a long capture may be the same."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("µs", 10**3)):
        if ns >= size:
            return f"{ns / size:.12g} {unit}"
    return f"{ns} ns"


def _named(noun: str, values: Sequence[object]) -> str:
    many = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    more = f" and {len(values) - NAMED} more" if len(values) > NAMED else ""
    return f"{noun if len(values) == 1 else many} {', '.join(map(str, values[:NAMED]))}{more}"


def _all(whole: Whole) -> str:
    who = "the GPU was" if whole.gpus == 1 else f"{num(whole.gpus)} GPUs were"
    share = f"{pct(whole.busy_share)} of {dur(whole.span_ms * 1e6)}{'' if whole.gpus == 1 else ' on average'}"
    by = f" of {plural(whole.processes, 'process', 'processes')}" if whole.processes > 1 else ""
    return f"In the whole run {who} busy {share}, with {plural(whole.gpu_ops, 'operation')}{by}."
