"""Places of a finding in the user's program: Python lines by samples, NVTX ranges, kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import duckdb

from gpudiag.diagnosis.callers import votes
from gpudiag.diagnosis.callers.backward_pass import backward
from gpudiag.diagnosis.callers.call_operators import UNKNOWN, operators
from gpudiag.diagnosis.callers.votes import Votes
from gpudiag.model import Place, Rule
from gpudiag.model.finding import MOST_PLACES
from gpudiag.replay.edits import registry
from gpudiag.text.format import clean

Connection = duckdb.DuckDBPyConnection
_LINES = 5  # lines a place: more is a listing, not a pointer
LOOKED_AT = 20  # rows a finding: each takes some queries, and a rule of the user's may give a thousand


class _Line(NamedTuple):
    """A line, its part of a row, and whether its backward pass is meant."""

    file: str
    line: int | None
    function: str | None
    part: float | None
    backward: bool | None = None


@dataclass(frozen=True)
class _Store:
    """Captures in which the places of one finding are looked for, and what all its rows ask of them."""

    con: Connection

    @cached_property
    def settings(self) -> Mapping[str, float]:
        """The thresholds. A query that names one by `setting(…)` takes longer to plan than to run."""
        return dict(self.con.execute("from setting").fetchall())

    @cached_property
    def loaders(self) -> bool:
        """Return whether a sample was inside a data loader."""
        return bool(self.con.execute("from call_sample where fetches_input limit 1").fetchall())


def places(
    con: Connection, rule: Rule, rows: Sequence[Mapping[str, Any]], loop: int | None, looked_at: int = LOOKED_AT
) -> tuple[Place, ...]:
    """The places of a finding, worst first: for each row its lines where samples name them, else its range or kernel.

    rows: as the rule's query ordered them. A row's `share` is its part of the loop; a place's share is its part of the
    finding, estimated from samples. looked_at: rows, worst first, whose lines are looked for.
    """
    weights = [float(row["share"]) if isinstance(row.get("share"), int | float) else 1.0 for row in rows]
    total = sum(weights) or 1.0
    store, found = _Store(con), list[Place]()
    calls_of = [_calls(con, row) for row in rows[:looked_at]]
    ran_in = operators(con, rule, calls_of, store.settings["most_share"]) if calls_of else []
    for number, (row, weight) in enumerate(zip(rows, weights, strict=True)):
        nvtx = row.get("nvtx_path") if "nvtx" in rule.locate else None
        kernel = row.get("kernel") if "kernel" in rule.locate else None
        lines: list[_Line] = _kernel_lines(store, row) if kernel and number < looked_at else _function(rule, row)
        if not lines and "python" in rule.locate and number < looked_at:
            lines = _lines(store, rule, row, calls_of[number], loop)
        ran = ran_in[number] if number < looked_at else UNKNOWN
        own = Place(nvtx=nvtx, kernel=kernel, operator=ran.operator, module=ran.module, backward=ran.backward)
        for one in lines:
            share = None if one.part is None else one.part * weight / total
            spot = {"file": one.file, "line": one.line, "function": one.function, "share": share}
            found.append(own.model_copy(update=spot | ({"backward": True} if one.backward else {})))
        if not lines and (nvtx or kernel or ran.operator):
            found.append(own.model_copy(update={"share": weight / total}))
    times = store.settings["backward_times"]
    merged = _merged(sorted(found, key=lambda place: -(place.share or 0.0)))
    return tuple(sorted(merged, key=lambda place: -_worth(place, times))[:MOST_PLACES])


def _worth(place: Place, times: float) -> float:
    """Return what a place is ordered by: its share, of a backward pass as much as a forward pass has of the same."""
    return (place.share or 0.0) / (times if place.file and place.backward else 1.0)


def _function(rule: Rule, row: Mapping[str, Any]) -> list[_Line]:
    """The function that the row itself names, as one of a profile of the CPU does; no sample has to be looked for."""
    if "python" not in rule.locate or not isinstance(row.get("file"), str):
        return []
    function = clean(str(row.get("function") or "")) or None
    return [_Line(clean(row["file"]), row.get("line") or None, function, 1.0)]


def _merged(found: Sequence[Place]) -> list[Place]:
    """Rows that share a line (a loop over several kernels or ranges, say) are one place, in the range of the worst."""
    merged: dict[tuple[object, ...], Place] = {}
    for place in found:
        line = (place.file, place.line, place.function)
        key: tuple[object, ...] = line if place.file else (
            place.nvtx, place.kernel, place.operator, place.module, place.backward,
        )  # fmt: skip
        before = merged.get(key)
        if before is None:
            merged[key] = place
        else:
            known = [share for share in (before.share, place.share) if share is not None]
            merged[key] = before.model_copy(update={"share": sum(known) if known else None})
    return list(merged.values())


def _lines(
    store: _Store, rule: Rule, row: Mapping[str, Any], calls: Sequence[int] | None, loop: int | None
) -> list[_Line]:
    """Lines with their part of the calls, at most `_LINES`, each above line_min_share; no part where another line
    already stands for the same. Parts are those of the samples, as far as the calls' threads were sampled.
    """
    made = backward(store.con, calls) if calls else None
    met: list[int] = []
    if calls is None:
        if loop is None:
            return []
        counted = store.con.execute(
            "select file, line, function, samples from loop_sample where loop = ? order by samples desc, file, line",
            [loop],
        ).fetchall()
    else:
        met = _met_while_idle(store, rule, row)
        counted = votes.of(store.con, met) if met else _voted(store, rule, calls)
    total, least = sum(row[3] for row in counted), store.settings["line_min_share"]
    sampled = made.sampled if made else 1.0

    def often(voted: Sequence[Votes]) -> list[_Line]:
        parts = (_Line(file, line, function, count / total * sampled) for file, line, function, count in voted[:_LINES])
        return [one for one in parts if one.part is not None and one.part >= least]

    late = [_Line(*line, backward=True) for line in made.lines if line[-1] >= least] if made else []
    # Of many lines their functions may stand for enough.
    lines = [*often(counted), *late] or often(votes.by_function(counted))
    # Where input was asked for comes before the code that prepared it: that is where the loader is set up.
    asked = _asked_for_input(store, calls, met) if calls and store.loaders else []
    others = [line for line in lines if _spot(line) not in map(_spot, asked)]
    # The samples inside the loader are those of the line that asked it: no share is counted twice.
    return asked + ([line._replace(part=None) for line in others] if asked else others)


def _is_about_work_before(rule: Rule) -> bool:
    """Return whether a fix is about what the host does before the calls of a row, not about the calls."""
    return bool(rule.price and any(edit.before_call for edit in registry.of(rule.price.best)))


def _met_while_idle(store: _Store, rule: Rule, row: Mapping[str, Any]) -> list[int]:
    """The samples in a row's idle intervals: of what the host did before its calls, only that costs time. Empty where
    a rule is about the calls themselves, or so few that the line may be chance.
    """
    if not (row.get("idle_intervals") and _is_about_work_before(rule)):
        return []
    met = votes.met_while_idle(store.con, row["idle_intervals"])
    return met if len(met) >= store.settings["line_near_samples"] else []


def _voted(store: _Store, rule: Rule, calls: Sequence[int]) -> list[Votes]:
    """Count the samples of the lines that made the calls; of the host work before them, where a fix is about that.

    A call of a few microseconds is rarely met by a sample. Those on the way into it then name its line; the host work
    before it may have been done anywhere.
    """
    settings = store.settings
    inside, near, every = votes.before_calls(store.con, calls, settings["line_near_ns"])
    if not _is_about_work_before(rule):
        if inside:
            return inside
        if sum(count for *_, count in near) >= settings["line_near_samples"]:
            return near
    return every or votes.heading(store.con, calls, settings["cpu_phase_ns"])


def _asked_for_input(store: _Store, calls: Sequence[int], met: Sequence[int]) -> list[_Line]:
    """The line that asked the data loader for input, where most of the samples counted were inside one."""
    row = votes.asked_for_input(store.con, calls, met)
    return [_Line(*row[:4])] if row and row[4] > store.settings["most_share"] else []


def _spot(line: _Line) -> tuple[str, int | str | None]:
    return line.file, line.function if line.line is None else line.line


def _kernel_lines(store: _Store, row: Mapping[str, Any]) -> list[_Line]:
    """Source lines of a profiled kernel at which its warps were seen waiting most, where the report has them."""
    if not isinstance(row.get("profiles"), list):
        return []
    counted = store.con.execute(
        """
        select file, line, sum(not_issued) as n from kernel_line
        where profile in (select unnest(?::integer[])) and file is not null
        group by file, line order by n desc, file, line
        """,
        [row["profiles"]],
    ).fetchall()
    total, least = sum(n for *_, n in counted), store.settings["line_min_share"]
    return [_Line(file, line, None, n / total) for file, line, n in counted[:_LINES] if total and n / total >= least]


def lines_of_calls(con: Connection, calls: Sequence[int]) -> list[Place]:
    """The user's lines that most samples before and in these calls were in, each with its part of the calls."""
    *_, voted = votes.before_calls(con, calls, 0.0)
    total, made = sum(count for *_, count in voted), backward(con, calls)
    lines = [_Line(*row[:3], row[3] / total * made.sampled) for row in voted]
    lines += [_Line(*line, backward=True) for line in made.lines]
    found = _merged([Place(file=f, line=n, function=fn, share=part, backward=late) for f, n, fn, part, late in lines])
    return sorted(found, key=lambda place: -(place.share or 0.0))


def _calls(con: Connection, row: Mapping[str, Any]) -> list[int] | None:
    """The calls a row is about; None when it names none."""
    if isinstance(row.get("api_calls"), list):
        return list(row["api_calls"])
    if isinstance(row.get("gpu_ops"), list):
        ids = con.execute(
            "select distinct api_call from gpu_op where id in (select unnest(?::integer[])) and api_call is not null",
            [row["gpu_ops"]],
        ).fetchall()
        return [call for (call,) in ids]
    if isinstance(row.get("idle_intervals"), list):
        ids = con.execute(
            "select distinct api_call from idle_interval"
            " where idle_interval in (select unnest(?::integer[])) and api_call is not null",
            [row["idle_intervals"]],
        ).fetchall()
        return [call for (call,) in ids]
    return None
