"""From a file to a report: containers, formats, iteration times, determinism, and what stays untouched."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import re
import sqlite3
from pathlib import Path

import duckdb
import pytest

from captures import report_of
from evaluation.corpus import CAPTURES, ROOT
from evaluation.packed import recording
from gpudiag.errors import GpudiagError
from gpudiag.model import Framework, Report, Run
from gpudiag.options import Options
from gpudiag.pipeline import explain, report
from gpudiag.report import json_format
from timelines import library

pytestmark = pytest.mark.capture

ITEM = CAPTURES / "item_every_stage"
SMALL = recording(CAPTURES / "game_of_life_small" / "slow")


def said(report: Report) -> dict[str, object]:
    """The report as bots see it, without the names of the files it came from."""
    document = json.loads(json_format.render(report))
    del document["inputs"]
    return document


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("captures") / "run.sqlite"
    file.write_bytes(SMALL.read_bytes())
    return file


def test_plain_gz_and_xz_exports_give_the_same_report(export: Path, tmp_path: Path) -> None:
    packed = tmp_path / "run.sqlite.gz"
    packed.write_bytes(gzip.compress(export.read_bytes()))
    assert said(explain([packed])) == said(explain([export])) == said(report_of(SMALL))


def test_a_parquet_folder_gives_the_report_of_the_sqlite_export() -> None:
    assert said(report_of(ITEM / "slow.parquetdir.tar.xz")) == said(report_of(ITEM / "slow.sqlite.xz"))


def test_the_name_of_a_file_does_not_matter(export: Path, tmp_path: Path) -> None:
    odd = tmp_path / "profile.csv"
    odd.write_bytes(export.read_bytes())
    assert said(explain([odd])) == said(report_of(SMALL))


def test_twice_the_same_file_gives_the_same_bytes(export: Path) -> None:
    assert json_format.render(explain([export])) == json_format.render(explain([export], Options(cached=False)))


def test_nothing_is_written_beside_the_untouched_file(export: Path) -> None:
    before = (export.read_bytes(), os.listdir(export.parent), export.stat().st_mtime_ns)
    explain([export])
    assert (export.read_bytes(), os.listdir(export.parent), export.stat().st_mtime_ns) == before


def test_a_read_only_file_in_a_read_only_folder_is_read(export: Path, tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    copy = folder / "run.sqlite"
    copy.write_bytes(export.read_bytes())
    copy.chmod(0o400)
    folder.chmod(0o500)
    try:
        assert explain([copy]).findings
    finally:
        folder.chmod(0o700)


def test_gains_are_based_on_the_unprofiled_time(export: Path) -> None:
    report = explain([export], Options(iteration_times={"iter": 493_000.0}))
    gain = report.findings[0].gain
    assert report.run.loops[0].iteration_ms_unprofiled == pytest.approx(0.493)
    assert gain.before_ms == pytest.approx(0.493)
    assert gain.after_ms == pytest.approx(0.493 * (1 - gain.share))


def test_an_iteration_time_for_no_loop_names_the_nearest(export: Path) -> None:
    with pytest.raises(GpudiagError, match="did you mean iter"):
        explain([export], Options(iteration_times={"itre": 1.0}))


def test_a_threshold_can_be_overridden(export: Path) -> None:
    assert "H01" in {f.code for f in explain([export]).findings}
    report = explain([export], Options(overrides={"H01.min_share": 0.99}))
    assert "H01" not in {f.code for f in report.findings}


def test_a_timeline_and_a_kernel_profile_are_explained_together() -> None:
    folder = CAPTURES / "transpose"
    report = explain([folder / "slow-naive.sqlite.xz", folder / "slow-naive.raw.csv.xz"])
    assert [item.kind for item in report.inputs] == ["nsys", "ncu"]
    assert report.findings[0].code == "K01"
    assert report.run.loops and report.run.kernels


def test_healthy_recordings_of_different_runs_are_no_healthy_run() -> None:
    apart = [recording(CAPTURES / name / "healthy") for name in ("healthy_stream_triad", "healthy_gemm_loop")]
    verdict = explain(apart).verdict
    assert verdict.state == "cannot_tell"
    assert verdict.text.startswith("The files were recorded at different times. Explain each by itself")


def test_an_export_without_gpu_work_says_why_it_cannot_tell(export: Path, tmp_path: Path) -> None:
    stripped = tmp_path / "run.sqlite"
    stripped.write_bytes(export.read_bytes())
    with sqlite3.connect(stripped) as database:
        for table in ("KERNEL", "MEMCPY", "MEMSET", "RUNTIME", "SYNCHRONIZATION"):
            database.execute(f"drop table if exists CUPTI_ACTIVITY_KIND_{table}")
    report = explain([stripped])
    assert report.verdict.state == "cannot_tell"
    assert report.verdict.text.startswith("No GPU activity was recorded, because")
    assert report.findings == ()


def test_a_fault_of_the_database_is_said_in_a_sentence(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise duckdb.InternalException(
            "INTERNAL Error: a dictionary changed\nThis is a fault within DuckDB.\n\nStack Trace: …"
        )

    monkeypatch.setattr("gpudiag.evaluate.engine.query.run", fails)
    with pytest.raises(GpudiagError) as raised:
        report([export], Options(cached=False))
    assert re.fullmatch(
        rf"{export}: DuckDB \S+ fails by a fault of its own \(a dictionary changed\): install another version \(.*\),"
        r" and report this to gpudiag\.",
        str(raised.value),
    )


def test_a_file_name_may_be_any_bytes(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff.sqlite"))
    path.write_bytes(lzma.decompress((CAPTURES / "histogram" / "slow.sqlite.xz").read_bytes()))
    assert explain([path]).inputs[0].file == "bad\ufffd.sqlite"


def test_a_saved_report_is_read_alone(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(json_format.render(explain([SMALL])))
    with pytest.raises(GpudiagError, match=r"b\.json is a saved report, which is read alone"):
        report([tmp_path / "a.sqlite", tmp_path / "b.json"])
    (tmp_path / "c.json").write_text('{"rate": 1}')
    with pytest.raises(GpudiagError, match=r"c\.json is JSON, but neither a trace .* nor a report of gpudiag"):
        report([tmp_path / "a.sqlite", tmp_path / "c.json"])


@pytest.mark.parametrize(
    ("frameworks", "programs", "known"),
    [
        (("cuda",), ("solver",), True),
        (("any",), (), True),  # kernels of OpenMP or OpenACC
        (("cuda",), (), False),
        (("cuda",), ("python3.12",), False),
        (("cupy", "cuda"), ("solver",), False),
        ((), ("solver",), False),
    ],
)
def test_programs_without_python_are_known(
    frameworks: tuple[Framework, ...], programs: tuple[str, ...], known: bool
) -> None:
    assert Run(frameworks=frameworks, programs=programs).without_python is known


def test_a_reason_names_no_evidence_of_other_languages() -> None:
    rule = library().by_code["M12"]
    reason = "operating system calls were not recorded, and no Python stacks are in the file"
    assert library().but_python(rule, reason) == "operating system calls were not recorded"
    assert (library().about_python(rule), library().about_python(library().by_code["H19"])) == (False, True)


@pytest.mark.parametrize(("name", "missed"), [("cg_solver.none", False), ("cupy_images.none", True)])
def test_a_profile_of_python_is_missed_in_python_alone(name: str, missed: bool) -> None:
    report = report_of(recording(ROOT / "fixtures/wild/captures" / name))
    codes = {item.code for item in report.not_evaluated}
    assert (("H11" in codes), ("H19" in codes)) == (missed, False)
