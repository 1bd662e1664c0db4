"""What a finding gains beyond what one stretch of its loop shows. The replay is a stand-in."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from captures import report_of
from evaluation.corpus import ROOT
from evaluation.packed import recording
from gpudiag.model import Loop
from gpudiag.replay import bounds, estimate
from gpudiag.replay.estimate import Estimate
from gpudiag.replay.gains import GainCalculator, gain
from gpudiag.replay.loop_model import LoopModel
from gpudiag.replay.priced_finding import PricedFinding
from replaying import loop_model, rule
from timelines import library

from .test_edits import ids, waiting


def priced(
    monkeypatch: pytest.MonkeyPatch, price: dict[str, Any], estimated: Estimate, claimed: float, computing: float | None
) -> PricedFinding:
    """A finding in a loop of 1 ms, priced by a stand-in for the replay. claimed: the part of the loop it claims."""
    loop = Loop(id=0, name="step", source="period", iterations=9, iteration_ms=1.0, share_of_span=1.0)
    wanted = rule((price.get("high") or price["expected"])[0])
    wanted = type(wanted).model_validate({**wanted.model_dump(by_alias=True, exclude_none=True), "price": price})
    stretch = SimpleNamespace(stretch=computing is not None, select=lambda _rule, _rows: [object()])
    monkeypatch.setattr(GainCalculator, "model", lambda _self, _loop: (stretch, None))
    monkeypatch.setattr(bounds, "claim", lambda *_: {"interval:1": claimed * 1e6})
    monkeypatch.setattr(estimate, "price", lambda *_: estimated)
    with duckdb.connect() as con:
        return GainCalculator(con, library().setting_values, [loop]).item(wanted, [{price["on"]: [1]}], loop, 1e6)


@pytest.mark.parametrize(("computing", "left"), [(None, 0.94), (0.9, 0.7)])
def test_a_bound_holds_for_other_stretches_than_the_replayed_one(
    computing: float | None, left: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that fall behind now and then starve one stretch of iterations and not the next."""
    price: dict[str, Any] = {"kind": "upper_bound", "on": "api_calls", "high": ("to_workers",)}
    item = priced(monkeypatch, price, Estimate(0.95, 0.94, 1.0, 0.94), 0.3, computing)
    assert item.proven == pytest.approx(left)
    assert item.own_share == pytest.approx(1 - left)


@pytest.mark.parametrize(
    ("longest", "kind", "range_ms"), [(0.999, "expected", (0.85, 1.0)), (0.92, "lower_bound", (0.0, 0.92))]
)
def test_a_least_gain_of_next_to_nothing_is_an_expected_one(
    longest: float, kind: str, range_ms: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the profiler may have slowed the host, nearly nothing is proven; what is expected says more."""
    price: dict[str, Any] = {"kind": "lower_bound", "on": "gpu_ops", "expected": ("remove_kernel",)}
    found = gain(priced(monkeypatch, price, Estimate(0.9, 0.85, 1.0, longest), 0.1, None), 0.9)
    assert (found.kind, (found.low_ms, found.high_ms)) == (kind, pytest.approx(range_ms))


def test_fixes_leave_no_less_than_the_loop_computes() -> None:
    """A kernel takes 100 of 120 µs in what is replayed, and what counts as computing takes 108: short gaps do, too."""
    case = waiting(host=10)
    unwaited, faster = rule("drop_sync"), rule("shrink_kernel", on="gpu_ops")
    with loop_model(case) as model:
        model.computing = 0.9
        waits = model.select(unwaited, [{"api_calls": ids(case, 1)}])
        kernels = model.select(faster, [{"gpu_ops": ids(case, 0, table="gpu_op"), "recoverable": 0.5}])
        assert waits is not None
        assert kernels is not None
        free = model.fixed(unwaited, waits, None)
        assert model.remaining(free) == pytest.approx(0.9)
        both = model.remaining(model.fixed(faster, kernels, free))
    assert both == pytest.approx(0.9 - 50 / 120), "what the kernel saves goes, the rest of the computing stays"


def test_no_fix_removes_what_the_replay_of_a_run_leaves_out() -> None:
    """Copies that nobody asked for follow a run's only kernel; the replay does not know when they come."""
    case = waiting(host=10)
    faster = rule("shrink_kernel", on="gpu_ops")
    with loop_model(case) as model:
        [one] = model.graphs
        kernels = model.select(faster, [{"gpu_ops": ids(case, 0, table="gpu_op"), "recoverable": 0.5}])
        assert kernels is not None
        before, saved = model.base(0), 1 - model.ratio(0, ("shrink_kernel",), kernels)[0]
        run = LoopModel(model.con, [one], model.settings, None, missed=[before / 4])
        assert run.base(0) == pytest.approx(1.25 * before)
        assert 1 - run.ratio(0, ("shrink_kernel",), kernels)[0] == pytest.approx(saved / 1.25)


def test_a_bound_saves_no_more_time_than_its_kernels_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the profiler an iteration may be shorter, of which its kernels take a larger part."""
    price: dict[str, Any] = {"kind": "upper_bound", "on": "gpu_ops", "high": ("shrink_kernel",)}
    guesses = [(800, [600, 600]), (1000, [800, 800]), (500, [300, 300])]  # ns, and after the fix: 200 ns less
    model = SimpleNamespace(
        start=[None] * 3, graphs=[SimpleNamespace(length=1000)], base=lambda number: float(guesses[number][0])
    )
    lengths = [after / base for base, afters in guesses for after in afters]
    over = estimate._bounds(model, lengths, max)  # type: ignore[arg-type]
    found = gain(priced(monkeypatch, price, Estimate(0.75, 0.6, 1.0, 0.6, bounds=over), 0.1, None), 0.6)
    assert found.share == pytest.approx(0.4)
    assert found.before_ms is not None and found.after_ms is not None
    assert found.before_ms - found.after_ms == pytest.approx(0.2)  # of an iteration of 1 ms
    least = estimate._bounds(model, [0.9, 0.95, 0.96], min)  # type: ignore[arg-type]
    assert least * (1 - 0.96) == pytest.approx(0.02), "what is saved in the shortest loop, of 0.5"


def test_a_bound_holds_for_what_the_finding_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """The claim is of the recorded iteration, the replay's bound of a shorter one."""
    price: dict[str, Any] = {"kind": "upper_bound", "on": "gpu_ops", "high": ("shrink_kernel",)}
    found = gain(priced(monkeypatch, price, Estimate(0.7, 0.6, 1.0, 0.6, bounds=0.6), 0.35, 0.9), 0.6)
    assert found.before_ms is not None and found.after_ms is not None
    assert found.share == pytest.approx(0.4)
    assert found.before_ms - found.after_ms == pytest.approx(0.35)  # and not 0.24 ms


@pytest.mark.capture
def test_no_range_begins_below_what_the_gpu_has_to_do() -> None:
    """Unprofiled times are guessed here, and what recording cost differs by guess: the kernels' time does not."""
    report = report_of(recording(ROOT / "fixtures/wild/captures/cg_solver.sync_each_kernel"))
    [loop] = report.run.loops
    [gain] = [finding.gain for finding in report.findings if finding.code == "S02"]
    computing = loop.iteration_ms * loop.budget["compute"]
    assert gain.low_ms is not None
    assert gain.low_ms >= 0.94 * computing  # kernels of two runs differ, and clearing memory counts as computing
