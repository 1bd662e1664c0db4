"""What a page draws: sums that agree with the budget, few parts of however much, marks where findings point."""

from __future__ import annotations

from collections import Counter

import pytest

from evaluation.corpus import CAPTURES
from evaluation.packed import recording
from gpudiag import pipeline, prepare
from gpudiag.model import Report
from gpudiag.timeline import relations, tracks
from gpudiag.timeline.downsampler import Downsampler
from gpudiag.timeline.model import Picture, Row, Timeline
from timelines import launched, opened

pytestmark = pytest.mark.capture

VIEWS = ("gpu_time_slice", "gap", "idle_interval", "loop_facts", "analysed_api_call", "analysed_gpu_op", "api_name")


def rows_of(timeline: Timeline, group: str) -> list[Row]:
    return [row for row in timeline.rows if row.group == group]


@pytest.fixture(scope="module")
def real() -> tuple[Report, Picture]:
    report, picture = pipeline.pictured([CAPTURES / "item_every_stage" / "slow.sqlite.xz"])
    assert picture is not None
    return report, picture


def test_the_gpus_row_is_the_budget_of_that_iteration() -> None:
    path = recording(CAPTURES / "nbody_host_arrays" / "slow")
    with prepare.opened([path]) as (con, library, _):
        report = pipeline.build_report(con, library, {})
        loop = report.run.loops[0]
        iteration = tracks.usual_iteration(con, loop.id)
        assert iteration is not None
        timeline = tracks.of_iteration(con, "loop", iteration, loop, [])
        wanted = dict(
            con.execute(
                'select category, sum(least("end", $end) - greatest(start, $start)) from gpu_time_slice'
                ' where loop = $loop and start < $end and "end" > $start group by category',
                {"loop": loop.id, "start": iteration.start, "end": iteration.end},
            ).fetchall()
        )
    (row,) = rows_of(timeline, "gpu")
    found: Counter[str] = Counter()
    for part in row.slices:
        found[part.kind] += part.ns
    assert found == {kind: int(ns) for kind, ns in wanted.items()}
    assert sum(found.values()) == timeline.ns == iteration.end - iteration.start
    ends = [part.start + part.ns for part in row.slices]
    assert [part.start for part in row.slices[1:]] == ends[:-1]  # disjoint and complete


def test_the_iteration_drawn_is_the_one_nearest_to_the_median(real: tuple[Report, Picture]) -> None:
    report, picture = real
    loop = report.run.loops[0]
    assert loop.deciles_ms is not None
    assert picture.loops[0].ns / 1e6 == pytest.approx(loop.deciles_ms[1], rel=0.01)


def test_findings_are_marked_where_they_point(real: tuple[Report, Picture]) -> None:
    report, picture = real
    assert picture.overview is not None
    assert picture.loops[0].marked == picture.overview.marked == {finding.rank for finding in report.findings}
    row, *_ = rows_of(picture.loops[0], "finding")
    names = picture.loops[0].names
    named = {names[part.name].short for part in row.slices if part.kind == "mark"}
    assert named == {"cudaStreamSynchronize"}
    idle = sum(part.ns for part in row.slices if part.kind == "idle_mark")
    assert 0 < idle < picture.loops[0].ns


def test_the_run_has_its_phases_and_the_iteration_that_is_drawn(real: tuple[Report, Picture]) -> None:
    overview = real[1].overview
    assert overview is not None
    phases = {row.key: row for row in rows_of(overview, "phase")}
    assert [part.kind for part in phases["phase"].slices] == ["cold_start", "steady_state", "teardown"]
    assert sum(part.ns for part in phases["phase"].slices) == overview.ns
    (here,) = phases["drawn"].slices
    assert (overview.start + here.start, here.ns) == (real[1].loops[0].start, real[1].loops[0].ns)


def test_the_fixed_iteration_is_as_long_as_the_finding_says(real: tuple[Report, Picture]) -> None:
    report, picture = real
    preview, gain = picture.preview, report.findings[0].gain
    assert preview is not None and gain.before_ms and gain.after_ms
    assert (preview.before_ms, preview.after_ms) == (gain.before_ms, gain.after_ms)
    for rows, length in ((preview.before, gain.before_ms), (preview.after, gain.after_ms)):
        last = max(part.start + part.ns for row in rows for part in row.slices)
        assert 0.9 * length < last / 1e6 < 1.001 * length


def test_what_is_too_much_to_draw_is_merged_and_reported() -> None:
    """Synthetic: 300,000 kernels of 1 µs, one behind the other on three streams."""
    with opened(launched(20, 100, ("gemm", 0, 10, 50)), *VIEWS) as con:
        con.execute(
            """
            insert into gpu_op (id, start, "end", device, process, stream, kind, name)
            select 1000 + i, 5000000 + 2000 * i, 5000000 + 2000 * i + 1000, 0, 0, i % 3, 'kernel', 0
            from range(300000) t(i)
            """
        )
        downsampler = Downsampler(con, 5_000_000, 605_000_000, slices=400)
        lanes = downsampler.lanes(relations.operations("gpu_op"), {"process": None, "streams": [0, 1]})
    assert set(lanes) == {"0", "1", "other"}
    parts = [part for lane in lanes.values() for part in lane]
    assert 100 < len(parts) <= 400
    assert sum(part.many for part in parts) == 300_000 == downsampler.merged
    assert sum(part.ns for part in parts) == 300_000 * 1_000
    assert "300,000 items" in " ".join(tracks.together(downsampler))


def test_few_operations_are_drawn_one_by_one() -> None:
    with opened(launched(20, 100, ("gemm", 0, 10, 50)), *VIEWS) as con:
        downsampler = Downsampler(con, 0, 2_000_000, slices=400)
        (parts,) = downsampler.lanes(relations.operations("gpu_op"), {"process": None, "streams": [0]}).values()
        assert [part.many for part in parts] == [1] * 20 and downsampler.merged == 0
        assert {downsampler.named()[part.name].short for part in parts} == {"gemm"}
