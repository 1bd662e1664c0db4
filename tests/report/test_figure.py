"""The report as a figure for notebooks."""

from __future__ import annotations

import io
import sys
from importlib.util import find_spec
from itertools import pairwise

import pytest

import gpudiag
import samples
from gpudiag.model import Kernel, Report
from gpudiag.report import figure
from gpudiag.report.html import kinds
from gpudiag.timeline.model import Name, Picture, Row, Slice, Timeline


def profiled(name: str) -> Report:
    """Synthetic: a launch-bound loop, and a kernel with counted operations."""
    report = samples.launch_bound()
    facts = {"intensity": 3.0, "ridge": 13.8, "precision": "fp32", "dram_pct": 60.0, "limit": "dram", "busy_pct": 60.0}
    kernel = Kernel(name=name, launches=1, duration_ms=1.0, facts=facts)
    return report.model_copy(update={"run": report.run.model_copy(update={"kernels": (kernel,)})})


def picture(name: str = "gemm") -> Picture:
    """Synthetic."""
    rows = (
        Row("f1", "finding", name, (Slice(10, 50, "mark", 0, 1),), rank=1),
        Row("g0", "gpu", "GPU", (Slice(0, 400_000, "compute", -1, 1), Slice(400_000, 600_000, "idle_sync", 0, 1))),
    )
    return Picture((Timeline("loop1", 0, 1_000_000, rows, (Name(name, name),), 1, 3),))


def test_the_parts_of_a_loop_are_one_row_that_adds_up() -> None:
    panel = figure.tree(samples.launch_bound())
    assert panel
    ((label, bars),) = panel.rows
    assert label == "decode_token, 5.70 ms"
    assert sum(bar.length for bar in bars) == pytest.approx(100, abs=0.5)
    assert all(left.start + left.length == pytest.approx(right.start) for left, right in pairwise(bars))


def test_an_iteration_is_drawn_as_on_the_page() -> None:
    report = samples.launch_bound()
    panel = figure.timeline(picture(), report)
    assert panel and panel.title == "An iteration of decode_token"
    assert [label for label, _ in panel.rows] == ["gemm", "GPU"]
    assert panel.rows[1][1] == [figure.Bar(0, 0.4, "compute"), figure.Bar(0.4, 0.6, "idle_sync")]
    assert panel.kinds == ["mark", "compute", "idle_sync"]
    assert figure.timeline(None, report) is None


def test_every_kind_has_the_colour_of_the_page() -> None:
    found = kinds.colours()
    assert set(kinds.ALL) <= set(found)
    assert found["compute"] == found["kernel"] == "#3567a8"


def test_a_missing_library_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(
        gpudiag.GpudiagError, match=r"needs matplotlib: install it, or gpudiag with the extra `notebook`\.$"
    ):
        gpudiag.Report(samples.launch_bound()).plot()


def test_nothing_to_draw_is_one_sentence() -> None:
    with pytest.raises(gpudiag.GpudiagError, match="nothing to plot"):
        gpudiag.Report(samples.no_gpu_activity()).plot()


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is an extra")
def test_a_figure_has_all_three_whatever_names_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    evil = r"$\frac{ _$ %s </b>"
    drawn = gpudiag.Report(profiled(evil), picture(evil)).plot()
    assert [axis.get_title(loc="left") for axis in drawn.axes] == [
        "Where the time goes",
        "An iteration of decode_token",
        "Roofline",
    ]
    assert any(r"\$" in label.get_text() for label in drawn.axes[1].get_yticklabels())
    drawn.savefig(io.BytesIO())
