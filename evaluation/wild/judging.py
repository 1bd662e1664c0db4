"""Score of the report on one recording of the wild corpus: its iteration, its first finding, the price of the fix."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import duckdb
import numpy as np

from evaluation import kept_reports
from evaluation.scoring import WORTH
from evaluation.wild.corpus import Label
from gpudiag.errors import GpudiagError
from gpudiag.ingest import ingest
from gpudiag.library.catalogue import Library
from gpudiag.library.load import load
from gpudiag.model import Finding, Report
from gpudiag.pipeline import build_report, evaluated
from gpudiag.prepare import prepare
from gpudiag.store import database

Connection = duckdb.DuckDBPyConnection

NEAR = 0.05  # of an iteration: within it the loop found is the program's
ENOUGH = 1 / 3  # of the program's iterations that the loop found has to hold before their times are compared


@dataclass(frozen=True)
class Price:
    """Promises of a report on an iteration without the fault, as parts of the iteration with it."""

    code: str
    kind: str
    after: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Score:
    """One recording. Times in ms for one iteration."""

    label: Label
    own_ms: float
    found_ms: float | None
    state: str
    first: tuple[str, ...]  # codes of the first findings
    alarms: tuple[str, ...]  # findings worth more than WORTH of the steady time
    blind: Price | None = None  # the price of the highest finding that names the fault
    timed: Price | None = None  # the same with the unprofiled time of the faulty variant given
    refused: str = ""  # why gpudiag would not take that time
    # share and claimed of each leaf, of the loop that takes most of the time
    tree: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    observed: bool = True  # whether each large part of it that no finding claims comes with a line or a call

    @property
    def iteration_found(self) -> bool:
        return self.found_ms is not None and abs(self.found_ms / self.own_ms - 1) <= NEAR

    @property
    def hit(self) -> bool | None:
        """Return whether the first finding names what is slow; None where nothing has to be named."""
        return bool(self.first) and self.first[0] in self.label.codes if self.label.faulty else None

    @property
    def quiet(self) -> bool | None:
        """Return whether nothing is worth reporting of a healthy program; None of others."""
        return not self.alarms if self.label.healthy else None


@contextmanager
def opened(label: Label) -> Iterator[tuple[Connection, Library]]:
    """A prepared store of the recording."""
    with tempfile.TemporaryDirectory() as folder:
        con = database.create(small=True)
        try:
            ingest(label.capture, con, Path(folder))
            prepare(con, library())
            database.lock(con)
            yield con, library()
        finally:
            con.close()


@cache
def library() -> Library:
    """The packaged rules and settings, read once a process."""
    return load()


def judge(label: Label) -> Score:
    """Explain a recording as a user would, once more with the unprofiled time, and compare with its label."""
    with opened(label) as (con, rules):
        asked = evaluated(con, rules)  # for both reports: rules do not know the unprofiled time
        report = build_report(con, rules, {}, evaluation=asked)
        kept_reports.keep((label.capture,), report)
        found = loop_found(con, report)
        own = own_ms(con, label.ticks, found)
        timed, refused = None, ""
        if label.unprofiled and label.faulty:
            try:
                given = {"": label.unprofiled[0] * 1e6}
                timed = _price(label, build_report(con, rules, given, evaluation=asked))
            except GpudiagError as error:
                refused = str(error)
    parts = {loop.id: loop.share_of_span for loop in report.run.loops}
    main = max(report.run.loops, key=lambda one: one.share_of_span, default=None)
    return Score(
        label=label,
        own_ms=own,
        found_ms=found[2] if found else None,
        state=report.verdict.state,
        first=tuple(one.code for one in report.findings[:3]),
        alarms=tuple(f.code for f in report.findings if f.gain.share * parts.get(f.gain.loop or 0, 1.0) > WORTH),
        blind=_price(label, report) if label.faulty else None,
        timed=timed,
        refused=refused,
        tree={name: leaf.model_dump() for name, leaf in main.tree.items()} if main else {},
        observed=main is None or all(one.where or one.calls or one.os_calls for one in main.unclaimed),
    )


def _price(label: Label, report: Report) -> Price | None:
    """Of the highest finding that names the fault, minor ones last."""
    named = next((f for f in (*report.findings, *report.minor) if f.code in label.codes), None)
    return price(named) if named else None


def price(finding: Finding) -> Price:
    """Promises of a finding, as parts of the time before."""
    gain = finding.gain
    after, low, high = (value / gain.before_ms if value is not None and gain.before_ms else None
                        for value in (gain.after_ms, gain.low_ms, gain.high_ms))  # fmt: skip
    return Price(finding.code, gain.kind, after, low, high)


def loop_found(con: Connection, report: Report) -> tuple[int, int, float] | None:
    """Return when the longest loop's analysed iterations begin and end (ns), and their median (ms), if any."""
    loop = max(report.run.loops, key=lambda one: one.share_of_span, default=None)
    return span_of(con, loop.id) if loop else None


def span_of(con: Connection, loop: int) -> tuple[int, int, float] | None:
    """Return the same of one loop."""
    row = con.execute(
        'select min(start), max("end"), median("end" - start) / 1e6 from iteration where loop = ? and in_steady_state',
        [loop],
    ).fetchall()[0]
    return (int(row[0]), int(row[1]), float(row[2])) if row[0] is not None else None


def own_ms(con: Connection, ticks: Sequence[int], found: tuple[int, int, float] | None) -> float:
    """The median of the program's own iterations (ms), as far as the loop found holds them.

    An iteration ends when the GPU has done what was launched up to the program's tick: a host may run far ahead.
    """
    rows = con.execute(
        'select a.start, o."end" from gpu_op o join api_call a on a.id = o.api_call order by 1'
    ).fetchnumpy()
    done = np.maximum.accumulate(np.asarray(rows["end"], dtype=np.int64))
    at = np.searchsorted(np.asarray(rows["start"]), ticks) - 1
    moments = np.maximum(np.where(at >= 0, done[np.maximum(at, 0)], 0), ticks)
    steps, middles = np.diff(moments) / 1e6, (moments[1:] + moments[:-1]) / 2
    inside = np.zeros(len(steps), dtype=bool)
    if found:
        inside = (middles >= found[0]) & (middles <= found[1])
    if inside.sum() < ENOUGH * len(steps):
        inside = np.arange(len(steps)) >= len(steps) // 10
    return float(np.median(steps[inside]))
