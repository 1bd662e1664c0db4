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
from replaying import rule
from timelines import library


@pytest.mark.parametrize(("computing", "left"), [(None, 0.94), (0.9, 0.7)])
def test_a_bound_holds_for_other_stretches_than_the_replayed_one(
    computing: float | None, left: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that fall behind now and then starve one stretch of iterations and not the next."""
    loop = Loop(id=0, name="step", source="period", iterations=9, iteration_ms=1.0, share_of_span=1.0)
    wanted = rule("to_workers")
    price: dict[str, Any] = {"kind": "upper_bound", "on": "api_calls", "high": ("to_workers",)}
    wanted = type(wanted).model_validate({**wanted.model_dump(by_alias=True, exclude_none=True), "price": price})
    stretch = SimpleNamespace(computing=computing, select=lambda _rule, _rows: [object()])
    monkeypatch.setattr(GainCalculator, "model", lambda _self, _loop: (stretch, None))
    monkeypatch.setattr(bounds, "claim", lambda *_: {"interval:1": 0.3e6})
    monkeypatch.setattr(estimate, "price", lambda *_: Estimate(0.95, 0.94, 1.0, 0.94))
    with duckdb.connect() as con:
        item = GainCalculator(con, library().setting_values, [loop]).item(wanted, [{"api_calls": [1]}], loop, 1e6)
    assert item.proven == pytest.approx(left)
    assert item.own_share == pytest.approx(1 - left)


@pytest.mark.parametrize(
    ("longest", "kind", "range_ms"), [(0.999, "expected", (0.85, 1.0)), (0.92, "lower_bound", (0.0, 0.92))]
)
def test_a_least_gain_of_next_to_nothing_is_an_expected_one(
    longest: float, kind: str, range_ms: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the profiler may have slowed the host, nearly nothing is proven; what is expected says more."""
    loop = Loop(id=0, name="step", source="period", iterations=9, iteration_ms=1.0, share_of_span=1.0)
    wanted = rule("remove_kernel")
    price: dict[str, Any] = {"kind": "lower_bound", "on": "gpu_ops", "expected": ("remove_kernel",)}
    wanted = type(wanted).model_validate({**wanted.model_dump(by_alias=True, exclude_none=True), "price": price})
    stretch = SimpleNamespace(computing=None, select=lambda _rule, _rows: [object()])
    monkeypatch.setattr(GainCalculator, "model", lambda _self, _loop: (stretch, None))
    monkeypatch.setattr(bounds, "claim", lambda *_: {"interval:1": 0.1e6})
    monkeypatch.setattr(estimate, "price", lambda *_: Estimate(0.9, 0.85, 1.0, longest))
    with duckdb.connect() as con:
        item = GainCalculator(con, library().setting_values, [loop]).item(wanted, [{"gpu_ops": [1]}], loop, 1e6)
    found = gain(item, 0.9)
    assert (found.kind, (found.low_ms, found.high_ms)) == (kind, pytest.approx(range_ms))


@pytest.mark.capture
def test_no_range_begins_below_what_the_gpu_has_to_do() -> None:
    """Unprofiled times are guessed here, and what recording cost differs by guess: the kernels' time does not."""
    report = report_of(recording(ROOT / "fixtures/wild/captures/cg_solver.sync_each_kernel"))
    [loop] = report.run.loops
    [gain] = [finding.gain for finding in report.findings if finding.code == "S02"]
    computing = loop.iteration_ms * loop.budget["compute"]
    assert gain.low_ms is not None
    assert gain.low_ms >= 0.94 * computing  # kernels of two runs differ, and clearing memory counts as computing
