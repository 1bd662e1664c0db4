"""What a report of a labelled capture got right: the planted cause, its place, and the time after the fix."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import corpus
from gpudiag import store
from gpudiag.ingest import ingest
from gpudiag.library import load
from gpudiag.model import Finding, Report
from gpudiag.pipeline import build_report, explain, prepare

NEAR_LINES = 8  # a sample names the line being run, which may be another one of a statement or of the planted function
WORTH = 0.05  # a finding on a healthy program counts when it promises more than this part of the steady time
UNANNOTATED = "/ranges left out"
HOST = "HSADMO"  # families whose cause is a line of host code


@dataclass(frozen=True)
class Score:
    """One capture. `rank` is that of the planted cause or a listed alternate; times in ms for one iteration."""

    program: str
    variant: str
    split: str
    role: str
    suffix: str  # which of the variant's captures: "", /no-nvtx, /kernels or UNANNOTATED
    planted: str | None
    first: str | None
    rank: int | None
    forbidden: tuple[str, ...]  # findings that the label rules out
    alarms: tuple[str, ...]  # on a healthy or fixed variant: findings worth more than WORTH
    place: bool | None = None  # whether the first finding names the planted line; None: no sample fell on its calls
    before_ms: float | None = None
    predicted_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    measured_ms: float | None = None

    @property
    def name(self) -> str:
        return f"{self.program} `{self.variant}`" + self.suffix.replace("/no-nvtx", " without NVTX").replace("/", ", ")

    @property
    def key(self) -> str:
        return f"{self.program}/{self.variant}{self.suffix}"

    @property
    def family(self) -> str:
        return self.planted[0] if self.planted else "healthy"

    @property
    def answerable(self) -> bool:
        """Whether the library has a rule for the planted cause yet."""
        return self.planted is None or self.planted in corpus.rule_codes()

    @property
    def hit(self) -> bool:
        """Slow: the planted cause is first. Healthy: nothing is worth reporting."""
        return self.rank == 1 if self.role == "slow" else not self.alarms

    @property
    def exact(self) -> bool:
        """Whether the first finding is the planted cause itself and no alternate."""
        return self.hit and self.first == self.planted

    @property
    def exceeded(self) -> bool:
        """Whether the fix was worth more than the printed maximum."""
        return self.measured_ms is not None and self.low_ms is not None and self.measured_ms < self.low_ms

    @property
    def inside(self) -> bool | None:
        """Whether the measured time lies in the predicted interval."""
        if self.measured_ms is None or self.low_ms is None or self.high_ms is None:
            return None
        return self.low_ms <= self.measured_ms <= self.high_ms


def judge(case: corpus.Case) -> Score:
    """Explain the case's captures as a user would; once more with the unprofiled iteration time for the prediction."""
    found = score(case, explain(list(case.captures)))
    before = corpus.iteration_ms(case.slug, case.variant)
    if found.role != "slow" or not found.hit or case.kernel_page or not before:
        return found
    timed = explain(list(case.captures), iteration_times={"": before * 1e6})
    first = next((f for f in timed.findings if f.code == found.first), None)
    return replace(found, **_prediction(case, first)) if first else found  # type: ignore[arg-type]


def judge_unannotated(case: corpus.Case) -> Score:
    """The same capture as if the program had no NVTX ranges: they are left out after reading."""
    with tempfile.TemporaryDirectory() as folder:
        con = store.create(small=True)
        try:
            ingest(case.capture, con, Path(folder))
            con.execute("delete from nvtx_range")
            library = load()
            prepare(con, library)
            store.lock(con)
            return replace(score(case, build_report(con, library, {})), suffix=UNANNOTATED)
        finally:
            con.close()


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


def _prediction(case: corpus.Case, first: Finding) -> dict[str, float | None]:
    """The report's interval beside the fixed variant's time; a kernel's gain is carried over to the iteration."""
    fixed = case.expect.get("fixed_by")
    measured = corpus.iteration_ms(case.slug, fixed[0] if isinstance(fixed, list) else fixed) if fixed else None
    before, gain = corpus.iteration_ms(case.slug, case.variant), first.gain
    if not before or not gain.before_ms or gain.after_ms is None or gain.low_ms is None or gain.high_ms is None:
        return {"before_ms": before, "measured_ms": measured}
    scale = before / gain.before_ms
    return {
        "before_ms": before,
        "predicted_ms": gain.after_ms * scale,
        "low_ms": gain.low_ms * scale,
        "high_ms": gain.high_ms * scale,
        "measured_ms": measured,
    }
