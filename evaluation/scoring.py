"""Score of a report on a labelled capture: the planted cause, its place, and the time after the fix."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from evaluation import corpus, kept_reports, packed
from gpudiag.ingest import ingest
from gpudiag.library.catalogue import Library
from gpudiag.library.load import load
from gpudiag.model import Finding, Report
from gpudiag.pipeline import build_report, evaluated
from gpudiag.prepare import prepare
from gpudiag.replay import graph, loop_model, overhead, simulate, trace
from gpudiag.store import database

Connection = duckdb.DuckDBPyConnection

NEAR_LINES = 8  # a sample names the line being run, which may be another one of a statement or of the planted function
SAME_LOOP = 0.7  # an iteration found that is shorter than this part of the label's is another loop's
WORTH = 0.05  # a finding on a healthy program counts when it promises more than this part of the steady time
UNANNOTATED = "/ranges left out"
NO_NVTX = "/no-nvtx"
JOINED = "/both"
HOST = "HSADMO"  # families whose cause is a line of host code


@dataclass(frozen=True)
class Score:
    """One capture. `rank` is that of the planted cause or a listed alternate; times in ms for one iteration."""

    program: str
    variant: str
    split: str
    role: str
    suffix: str  # which of the variant's captures: "", NO_NVTX, JOINED, /kernels or UNANNOTATED
    planted: str | None
    first: str | None
    rank: int | None
    accepted: tuple[str, ...]  # the planted cause and its alternates
    forbidden: tuple[str, ...]  # findings that the label rules out
    alarms: tuple[str, ...]  # on a healthy or fixed variant: findings worth more than WORTH
    place: bool | None = None  # whether the first finding names the planted line; None: no sample fell on its calls
    before_ms: float | None = None
    kind: str | None = None  # of the price: expected, upper_bound, lower_bound or test_needed
    predicted_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    blind_low_ms: float | None = None  # the interval without the unprofiled time, as parts of it
    blind_high_ms: float | None = None
    measured_ms: float | None = None
    other_fix: str | None = None  # how the measured fix differs from the one that is priced
    replay_off: float | None = None  # by which part the unedited replay misses the recorded window
    starts_off: float | None = None  # 95th percentile of the operations' start errors, in iterations
    timed_first: str | None = None  # the first finding when the unprofiled time is given
    call_ns: float | None = None  # what recording a call cost, solved from the unprofiled time; None: it did not matter
    driver: float | None = None  # what is left of all other host time in that solution
    blind_width: float | None = None  # half the interval without the unprofiled time, over its middle

    @property
    def name(self) -> str:
        how = {NO_NVTX: " without NVTX", JOINED: " with both files"}.get(self.suffix, self.suffix.replace("/", ", "))
        return f"{self.program} `{self.variant}`{how}"

    @property
    def key(self) -> str:
        return f"{self.program}/{self.variant}{self.suffix}"

    @property
    def counted(self) -> bool:
        """Return whether it is the variant's one vote: the same program without NVTX, or with a second file, is no
        other.
        """
        return self.suffix not in (UNANNOTATED, NO_NVTX, JOINED)

    @property
    def family(self) -> str:
        return self.planted[0] if self.planted else "healthy"

    @property
    def answerable(self) -> bool:
        """Return whether the library has a rule for the planted cause yet."""
        return self.planted is None or self.planted in corpus.rule_codes()

    @property
    def hit(self) -> bool:
        """Slow: the planted cause is first. Healthy: nothing is worth reporting."""
        return self.rank == 1 if self.role == "slow" else not self.alarms

    @property
    def exact(self) -> bool:
        """Return whether the first finding is the planted cause itself and no alternate."""
        return self.hit and self.first == self.planted

    @property
    def timed_hit(self) -> bool | None:
        """Return whether the planted cause or an alternate is first when the unprofiled time is given."""
        return None if self.timed_first is None else self.timed_first in self.accepted

    @property
    def priced(self) -> bool:
        """Return whether an expected gain can be compared with a measured one."""
        return self.kind == "expected" and self.predicted_ms is not None and self.measured_ms is not None

    @property
    def error(self) -> float | None:
        """Predicted over measured time after the fix, less one."""
        return self.predicted_ms / self.measured_ms - 1 if self.predicted_ms and self.measured_ms else None

    @property
    def gain_error(self) -> float | None:
        """The same of what the fix saves."""
        if self.before_ms is None or self.predicted_ms is None or self.measured_ms is None:
            return None
        saved = self.before_ms - self.measured_ms
        return (self.before_ms - self.predicted_ms) / saved - 1 if saved else None

    @property
    def width(self) -> float | None:
        """Half the interval over its middle."""
        if self.low_ms is None or self.high_ms is None or self.low_ms + self.high_ms == 0:
            return None
        return (self.high_ms - self.low_ms) / (self.high_ms + self.low_ms)

    @property
    def exceeded(self) -> bool:
        """Return whether the fix gained over a tenth more than an upper bound promised."""
        if self.kind != "upper_bound" or self.measured_ms is None or self.low_ms is None:
            return False
        return self.measured_ms < 0.9 * self.low_ms

    @property
    def blind_inside(self) -> bool | None:
        """Return whether the measured time lies in the interval that is printed when no unprofiled time is given."""
        if self.measured_ms is None or self.blind_low_ms is None or self.blind_high_ms is None:
            return None
        return self.blind_low_ms <= self.measured_ms <= self.blind_high_ms

    @property
    def inside(self) -> bool | None:
        """Return whether the measured time lies in the predicted interval."""
        if self.measured_ms is None or self.low_ms is None or self.high_ms is None:
            return None
        return self.low_ms <= self.measured_ms <= self.high_ms


@contextmanager
def opened(case: corpus.Case, *, annotated: bool = True) -> Iterator[tuple[Connection, Library]]:
    """A prepared store of the case's captures; without the program's NVTX ranges if so asked."""
    with tempfile.TemporaryDirectory() as folder:
        con = database.create(small=True)
        try:
            for capture in case.captures:
                ingest(packed.opened(capture), con, Path(folder))
            if not annotated:
                con.execute("delete from nvtx_range")
            library = load()
            prepare(con, library)
            database.lock(con)
            yield con, library
        finally:
            con.close()


def judge(case: corpus.Case) -> Score:
    """Explain the case's captures as a user would; once more with the unprofiled iteration time for the prediction."""
    with opened(case) as (con, library):
        asked = evaluated(con, library)  # for both reports: rules do not know the unprofiled time
        report = build_report(con, library, {}, evaluation=asked)
        kept_reports.keep(case.captures, report)
        found = score(case, report)
        if case.kernel_page:
            return found
        found = replace(found, **_replayed(con, report, library.setting_values))  # type: ignore[arg-type]
        before = corpus.iteration_ms(case.slug, case.variant)
        if found.role != "slow" or not found.hit or not before:
            return found
        iteration_ms = before * _iterations_in(case, report)
        timed = build_report(con, library, {"": iteration_ms * 1e6}, evaluation=asked)
        kept_reports.keep(case.captures, timed, iteration_ms)
        cost = _recording_cost(con, report, iteration_ms, library.setting_values)
    first = next((f for f in (*timed.findings, *timed.minor) if f.code == found.first), None)
    found = replace(found, timed_first=timed.findings[0].code if timed.findings else "none", **cost)  # type: ignore[arg-type]
    blind = {"blind_low_ms": found.low_ms, "blind_high_ms": found.high_ms, "blind_width": found.width}
    return replace(found, **blind, **_prediction(case, first)) if first else found  # type: ignore[arg-type]


def judge_unannotated(case: corpus.Case) -> Score:
    """The same capture as if the program had no NVTX ranges: they are left out after reading."""
    with opened(case, annotated=False) as (con, library):
        return replace(score(case, build_report(con, library, {})), suffix=UNANNOTATED)


def _recording_cost(
    con: Connection, report: Report, unprofiled_ms: float, settings: Mapping[str, float]
) -> dict[str, float]:
    """Return the profiler's cost by the unprofiled time; nothing where the host does not set the pace."""
    if not report.run.loops:
        return {}
    found, _ = loop_model.model(con, report.run.loops[0].id, settings, unprofiled_ms * 1e6)
    if found is None or found.guesses[0][0] == overhead.plausible(settings)[0]:
        return {}
    return {"call_ns": found.guesses[0][0].per_call, "driver": found.guesses[0][0].driver}


def _iterations_in(case: corpus.Case, report: Report) -> float:
    """The found loop's iteration as a part of the label's iteration: a micro-batch may be what repeats in a step."""
    traced = corpus.label(case.slug)["variants"][case.variant].get("nsys", {}).get("traced_iteration_ms")
    if not traced or not report.run.loops:
        return 1.0
    part = report.run.loops[0].iteration_ms / float(traced)
    return part if part < SAME_LOOP else 1.0


def _replayed(con: Connection, report: Report, settings: Mapping[str, float]) -> dict[str, float]:
    """Return how well the longest loop's unedited replay reproduces what was recorded."""
    if not report.run.loops:
        return {}
    recorded = replayed = 0.0
    starts: list[float] = []
    for window in trace.windows(con, report.run.loops[0].id, settings["replay_min_cover"]):
        seen = trace.read(con, window)
        if not len(seen.calls) or not len(seen.ops):
            continue
        one = graph.build(seen, settings)
        ends = simulate.replay(one)
        recorded += one.length
        replayed += simulate.length(one, ends)
        iteration = one.length / one.iterations
        starts += (abs(ends[one.op] - one.duration[one.op] - seen.ops.start) / iteration).tolist()
    if not recorded:
        return {}
    return {"replay_off": replayed / recorded - 1, "starts_off": sorted(starts)[int(0.95 * (len(starts) - 1))]}


def score(case: corpus.Case, report: Report) -> Score:
    """Compare a report with the label."""
    codes = [finding.code for finding in report.findings]
    accepted = [case.expect.get("top"), *case.expect.get("alternates", [])]
    rank = next((number for number, code in enumerate(codes, 1) if code in accepted), None)
    parts = {loop.id: loop.share_of_span for loop in report.run.loops}
    worth = [f.code for f in report.findings if f.gain.share * parts.get(f.gain.loop or 0, 1.0) > WORTH]
    first = report.findings[0] if report.findings else None
    facts = {
        "program": case.slug,
        "variant": case.variant,
        "split": case.split,
        "role": case.role,
        "suffix": case.suffix,
        "planted": case.expect.get("top"),
        "first": codes[0] if codes else None,
        "rank": rank,
        "accepted": tuple(code for code in accepted if code),
        "forbidden": tuple(sorted(set(codes) & set(case.expect.get("must_not", [])))),
        "alarms": tuple(worth) if case.role != "slow" else (),
    }
    if case.role != "slow" or first is None:
        return Score(**facts)  # type: ignore[arg-type]
    return Score(**facts, place=_place(case, first), **_prediction(case, first) if rank == 1 else {})  # type: ignore[arg-type]


def _place(case: corpus.Case, first: Finding) -> bool | None:
    place = case.expect.get("place") or {}
    if not (case.sampled and place.get("file", "").endswith(".py") and str(case.expect["top"])[0] in HOST):
        return None
    named = next((p for p in first.where if p.line is not None), None)
    if named is None:  # no sample fell on the calls in question
        return None
    if named.file is None or not named.file.endswith(place["file"]):
        return False
    return named.function in place.get("functions", []) or abs((named.line or 0) - corpus.line_of(place)) <= NEAR_LINES


def _prediction(case: corpus.Case, first: Finding) -> dict[str, float | str | None]:
    """The report's interval beside the fixed variant's time; a kernel's gain is carried over to the iteration."""
    fixed = case.expect.get("by_code", {}).get(first.code) or case.expect.get("fixed_by")
    measured = corpus.iteration_ms(case.slug, fixed[0] if isinstance(fixed, list) else fixed) if fixed else None
    before, gain = corpus.iteration_ms(case.slug, case.variant), first.gain
    found = {"before_ms": before, "measured_ms": measured, "kind": gain.kind, "other_fix": _other_fix(case, first)}
    if not before or not gain.before_ms or gain.after_ms is None or gain.low_ms is None or gain.high_ms is None:
        return found
    scale = before / gain.before_ms
    interval = {"predicted_ms": gain.after_ms, "low_ms": gain.low_ms, "high_ms": gain.high_ms}
    return found | {name: value * scale for name, value in interval.items()}


def _other_fix(case: corpus.Case, first: Finding) -> str | None:
    said = case.expect.get("other_fix")
    if not said and first.code != case.expect.get("top") and first.code not in case.expect.get("by_code", {}):
        return f"the planted cause is {case.expect.get('top')}"
    return str(said) if said else None
