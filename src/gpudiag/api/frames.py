"""A report's findings, places, loops and kernels as data frames. Columns are added, never renamed or reinterpreted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple, get_args

import polars as pl

from gpudiag.model import (
    SEVERITIES,
    Confidence,
    Diff,
    Finding,
    FindingChange,
    Gain,
    GainKind,
    Kernel,
    KernelChange,
    KernelUse,
    Loop,
    LoopChange,
    Place,
    Report,
    Status,
)
from gpudiag.report.wording.words import BUDGET

TEXT, WHOLE, NUMBER, WHETHER = pl.String(), pl.Int64(), pl.Float64(), pl.Boolean()
# In rising order: `pl.col("severity") >= "medium"` compares as one would expect.
SEVERITY, CONFIDENCE = pl.Enum(SEVERITIES), pl.Enum(get_args(Confidence))
GAIN_KIND, STATUS = pl.Enum(get_args(GainKind)), pl.Enum(get_args(Status))


class FrameColumn(NamedTuple):
    """`of`: the attribute of a row that it holds, or what to make of the row."""

    name: str
    type: pl.DataType
    meaning: str
    of: str | Callable[[Any], Any]


class _FindingRow(NamedTuple):
    """A finding with one of its places."""

    finding: Finding
    gain: Gain
    place: Place
    loop: str | None


class _Used(NamedTuple):
    """A loop with one of its kernels."""

    loop: Loop | LoopChange
    kernel: KernelUse | KernelChange


def _part(name: str) -> Callable[[Loop], float | None]:
    """A part of the budget: those of 0 are left out of it, an empty one is unknown."""
    return lambda loop: loop.budget.get(name, 0.0) if loop.budget else None


def _fact(name: str) -> Callable[[Kernel], float | None]:
    def of(kernel: Kernel) -> float | None:
        value = kernel.facts.get(name)
        return float(value) if isinstance(value, int | float) else None

    return of


def _of_change(name: str) -> Callable[[FindingChange], object]:
    return lambda change: getattr(change.where, name) if change.where else None


_PLACE = (
    FrameColumn("file", TEXT, "source file, as recorded", "place.file"),
    FrameColumn("line", WHOLE, "its line", "place.line"),
    FrameColumn("function", TEXT, "function in the source", "place.function"),
    FrameColumn("nvtx", TEXT, "path of NVTX ranges", "place.nvtx"),
    FrameColumn("kernel", TEXT, "kernel", "place.kernel"),
)
FINDINGS = (
    FrameColumn("rank", WHOLE, "position in the report; 1 is to be fixed first", "finding.rank"),
    FrameColumn("code", TEXT, "code of the rule, such as H01", "finding.code"),
    FrameColumn("id", TEXT, "name of the rule, such as launch-bound", "finding.id"),
    FrameColumn("title", TEXT, "what is wrong, in a few words", "finding.title"),
    FrameColumn("severity", SEVERITY, "how wrong it is: info, low, medium, high", "finding.severity"),
    FrameColumn("confidence", CONFIDENCE, "how sure: low, medium, high", "finding.confidence"),
    FrameColumn("status", STATUS, "state of the rule: draft, stable, deprecated", "finding.status"),
    FrameColumn("kind", GAIN_KIND, "kind of gain: expected, upper_bound, lower_bound, test_needed", "gain.kind"),
    FrameColumn("basis", TEXT, "what is timed: one iteration (loop), run, window, one launch (kernel)", "gain.basis"),
    FrameColumn("loop", TEXT, "name of the loop", "loop"),
    FrameColumn("loop_id", WHOLE, "the loop's `id` in `loops`", "gain.loop"),
    FrameColumn("before_ms", NUMBER, "time now, as guessed without the profiler; null if untested", "gain.before_ms"),
    FrameColumn("after_ms", NUMBER, "time with this fix alone", "gain.after_ms"),
    FrameColumn("low_ms", NUMBER, "shortest that it may become", "gain.low_ms"),
    FrameColumn("high_ms", NUMBER, "longest that it may become", "gain.high_ms"),
    FrameColumn("speedup", NUMBER, "before_ms / after_ms", "gain.speedup"),
    FrameColumn("share", NUMBER, "part of before_ms that the fix removes, 0 to 1", "gain.share"),
    FrameColumn("cumulative_after_ms", NUMBER, "time with this fix and those above it", "gain.cumulative_after_ms"),
    FrameColumn("test", TEXT, "the experiment that would tell, where there is no number", "gain.test"),
    FrameColumn("places", WHOLE, "how many it has; the next five are of the worst", lambda row: len(row.finding.where)),
    *_PLACE,
    FrameColumn("message", TEXT, "what was seen, with figures", "finding.message"),
    FrameColumn("fingerprint", TEXT, "the same over runs: made of code, loop and places", "finding.fingerprint"),
)  # fmt: skip
PLACES = (
    FrameColumn("rank", WHOLE, "rank of the finding", "finding.rank"),
    FrameColumn("code", TEXT, "code of its rule", "finding.code"),
    *_PLACE,
    FrameColumn("share", NUMBER, "part of the finding's cost, 0 to 1", "place.share"),
)
LOOPS = (
    FrameColumn("id", WHOLE, "number of the loop", "id"),
    FrameColumn("name", TEXT, "its NVTX range, else the function that holds it, or step", "name"),
    FrameColumn("source", TEXT, "what shows that it repeats: nvtx, period, unknown", "source"),
    FrameColumn("iterations", WHOLE, "iterations in the steady state", "iterations"),
    FrameColumn("processes", WHOLE, "processes that run it", "processes"),
    FrameColumn("iteration_ms", NUMBER, "one iteration, as recorded", "iteration_ms"),
    FrameColumn("iteration_ms_unprofiled", NUMBER, "one without the profiler, where given", "iteration_ms_unprofiled"),
    FrameColumn("share_of_span", NUMBER, "part of the steady state, 0 to 1", "share_of_span"),
    FrameColumn("launches", NUMBER, "kernels and graphs that an iteration starts", "launches"),
    FrameColumn("calls", NUMBER, "CUDA calls of an iteration", "calls"),
    *(
        FrameColumn(part, NUMBER, f"part of the iteration, 0 to 1: {words.replace('**', '')}", _part(part))
        for part, words in BUDGET.items()
    ),
)
KERNELS = (
    FrameColumn("name", TEXT, "a kernel that Nsight Compute measured", "name"),
    FrameColumn("launches", WHOLE, "launches measured; the other figures are their medians", "launches"),
    FrameColumn("duration_ms", NUMBER, "one launch", "duration_ms"),
    FrameColumn("share_of_loop", NUMBER, "part of its loop, 0 to 1, where a timeline shows it", "share_of_loop"),
    FrameColumn("grid", WHOLE, "blocks of a launch", "grid"),
    FrameColumn("block", WHOLE, "threads of a block", "block"),
    FrameColumn("limit", TEXT, "the unit nearest to its peak", lambda kernel: kernel.facts.get("limit")),
    FrameColumn("floor_ms", NUMBER, "what that unit alone would need", _fact("floor_ms")),
    FrameColumn("dram_pct", NUMBER, "DRAM throughput, % of its peak", _fact("dram_pct")),
    FrameColumn("sm_pct", NUMBER, "compute throughput, % of its peak", _fact("sm_pct")),
    FrameColumn(
        "achieved_occupancy_pct", NUMBER, "resident warps, % of the most possible", _fact("achieved_occupancy_pct")
    ),
    FrameColumn("occupancy_limit", TEXT, "what keeps more warps from being resident", "occupancy_limit"),
    FrameColumn("stall", TEXT, "what its warps wait for most", lambda k: k.stalls[0].name if k.stalls else None),
    FrameColumn(
        "stall_share", NUMBER, "part of a warp's time, 0 to 1", lambda k: k.stalls[0].share if k.stalls else None
    ),
)
LOOP_KERNELS = (
    FrameColumn("loop", TEXT, "name of the loop", "loop.name"),
    FrameColumn("loop_id", WHOLE, "the loop's `id` in `loops`", "loop.id"),
    FrameColumn("kernel", TEXT, "a kernel on the timeline", "kernel.name"),
    FrameColumn("launches", NUMBER, "launches in an iteration", "kernel.launches"),
    FrameColumn("ms", NUMBER, "what these take together", "kernel.ms"),
    FrameColumn("others", WHOLE, "how many kernels the row stands for, if not one", "kernel.others"),
)
DIFF_LOOPS = (
    FrameColumn("name", TEXT, "name of the loop in base", "name"),
    FrameColumn("head_name", TEXT, "its name in head", "head_name"),
    FrameColumn("state", TEXT, "regression, improvement, noise, cannot_tell", "state"),
    FrameColumn(
        "base_ms", NUMBER, "an iteration in base: without the profiler where known, else as recorded", "base.ms"
    ),
    FrameColumn("head_ms", NUMBER, "an iteration in head", "head.ms"),
    FrameColumn("ratio", NUMBER, "head over base; below 1 is faster", "ratio.value"),
    FrameColumn("ratio_low", NUMBER, "the least that the ratio may be", "ratio.low"),
    FrameColumn("ratio_high", NUMBER, "the most that it may be", "ratio.high"),
    FrameColumn("share_of_span", NUMBER, "part of base's steady state, 0 to 1", "share_of_span"),
    FrameColumn("same_work", WHETHER, "the same kernels, launched as often, and the GPU as long at work", "same_work"),
)
DIFF_FINDINGS = (
    FrameColumn(
        "state", TEXT, "new, worse, now_visible, gone, better, no_longer_visible, unchanged, not_evaluated", "state"
    ),
    FrameColumn("code", TEXT, "code of the rule", "code"),
    FrameColumn("title", TEXT, "what is wrong, in a few words", "title"),
    FrameColumn("loop", TEXT, "name of the loop", "loop"),
    FrameColumn("base_saves_ms", NUMBER, "what the fix was worth in base", "base_saves_ms"),
    FrameColumn("head_saves_ms", NUMBER, "what it is worth in head", "head_saves_ms"),
    *(column._replace(of=_of_change(column.name)) for column in _PLACE),
)
DIFF_KERNELS = (
    FrameColumn("loop", TEXT, "name of the loop in base", "loop.name"),
    FrameColumn("kernel", TEXT, "a kernel of the loop", "kernel.name"),
    FrameColumn("state", TEXT, "new, gone, changed", "kernel.state"),
    FrameColumn("base_launches", NUMBER, "launches in an iteration of base", "kernel.base_launches"),
    FrameColumn("head_launches", NUMBER, "launches in an iteration of head", "kernel.head_launches"),
    FrameColumn("base_ms", NUMBER, "what these take together in base", "kernel.base_ms"),
    FrameColumn("head_ms", NUMBER, "what these take together in head", "kernel.head_ms"),
)
ALL = {"findings": FINDINGS, "places": PLACES, "loops": LOOPS, "kernels": KERNELS, "loop_kernels": LOOP_KERNELS}
"""Frame → its columns. `minor` has those of `findings`."""
OF_DIFF = {"loops": DIFF_LOOPS, "findings": DIFF_FINDINGS, "kernels": DIFF_KERNELS}


def findings(report: Report) -> pl.DataFrame:
    """A row a finding, the first to fix first; of its places the worst."""
    return _frame(FINDINGS, (next(_summary(report, finding)) for finding in report.findings))


def minor(report: Report) -> pl.DataFrame:
    """As `findings`, of what is worth less than the reporting gate."""
    return _frame(FINDINGS, (next(_summary(report, finding)) for finding in report.minor))


def places(report: Report) -> pl.DataFrame:
    """A row a place of a finding, the worst of each first."""
    return _frame(PLACES, (row for finding in report.findings if finding.where for row in _summary(report, finding)))


def loops(report: Report) -> pl.DataFrame:
    """A row a loop, with its budget: a column a part."""
    return _frame(LOOPS, report.run.loops)


def kernels(report: Report) -> pl.DataFrame:
    """A row a kernel and launch size that Nsight Compute measured."""
    return _frame(KERNELS, report.run.kernels)


def loop_kernels(report: Report) -> pl.DataFrame:
    """A row a kernel of a loop on the timeline, the longest of each loop first."""
    return _frame(LOOP_KERNELS, (_Used(loop, kernel) for loop in report.run.loops for kernel in loop.kernels))


def diff_loops(diff: Diff) -> pl.DataFrame:
    """A row a loop that both sides have."""
    return _frame(DIFF_LOOPS, diff.loops)


def diff_findings(diff: Diff) -> pl.DataFrame:
    """A row a finding of either side."""
    return _frame(DIFF_FINDINGS, diff.findings)


def diff_kernels(diff: Diff) -> pl.DataFrame:
    """A row a kernel of a loop that changed."""
    return _frame(DIFF_KERNELS, (_Used(loop, kernel) for loop in diff.loops for kernel in loop.kernels))


def _summary(report: Report, finding: Finding) -> Iterator[_FindingRow]:
    """A row a place of the finding, one without a place if there is none."""
    name = next((loop.name for loop in report.run.loops if loop.id == finding.gain.loop), None)
    return (_FindingRow(finding, finding.gain, place, name) for place in finding.where or (Place(),))


def _frame(columns: Iterable[FrameColumn], rows: Iterable[object]) -> pl.DataFrame:
    rows = list(rows)
    return pl.DataFrame([_series(column, rows) for column in columns])


def _series(column: FrameColumn, rows: Iterable[object]) -> pl.Series:
    """A saved report may hold anything: a text or whole number that no column can hold is made one, or null."""
    of = attrgetter(column.of) if isinstance(column.of, str) else column.of
    values = (of(row) for row in rows)
    held = [value.encode("utf-8", "replace").decode() if isinstance(value, str) else value for value in values]
    return pl.Series(column.name, held, column.type, strict=False)
