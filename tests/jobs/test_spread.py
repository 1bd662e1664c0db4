from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluation.jobs.generate import written
from evaluation.jobs.plants import Plant
from evaluation.jobs.template import templates
from evaluation.packed import recording
from gpudiag import pipeline
from gpudiag.errors import GpudiagError
from gpudiag.jobs import spread
from gpudiag.jobs.rank_summary import packed
from gpudiag.jobs.spread import summaries
from gpudiag.options import Options
from gpudiag.report import formats
from paths import ROOT

CAPTURES = ROOT / "fixtures" / "captures" / "ddp_one_bucket"


pytestmark = [pytest.mark.slow, pytest.mark.capture]


def test_a_job_reads_the_same_however_it_is_spread(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    cause = Plant("slow rank", ranks=(5,), strength=0.2, strengths=(0.2,))
    files = written(tmp_path / "job", templates(tmp_path, 2), cause, 8, np.random.default_rng(1))
    alone = pipeline.explain(files, Options(cached=False))
    spread = pipeline.explain([tmp_path / "job"], Options(workers=2))
    assert formats.render(alone, "json") == formats.render(spread, "json")
    [slow] = [one for one in (*alone.findings, *alone.minor) if one.id == "slow-ranks-of-job"]
    assert "`rank 5` on `node2` does" in slow.message
    assert alone.job is not None
    assert [one.label for one in alone.job.members if one.slow] == ["rank 5"]
    steps = pipeline.next_steps(files, Options())
    assert steps.inputs == ("job.rank5.sqlite",)


def test_a_cluster_elsewhere_gives_the_same_summaries() -> None:
    """A second cluster on this machine, reached by its address, stands in for one of other machines."""
    distributed = pytest.importorskip("distributed", reason="Dask is an extra")
    files = [recording(CAPTURES / f"slow.rank{rank}") for rank in (0, 1)]
    alone = [packed(one) for one in summaries(files, Options(cached=False))]
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        there = Options(cached=False, scheduler=cluster.scheduler_address)
        assert [packed(one) for one in summaries(files, there)] == alone


@pytest.mark.parametrize("address", ["nonsense", "tcp://", "tcp://host"])
def test_what_is_no_address_of_a_scheduler_is_said(address: str) -> None:
    pytest.importorskip("distributed", reason="Dask is an extra")
    with pytest.raises(GpudiagError, match="this is no address of a scheduler"):
        summaries([recording(CAPTURES / "slow.rank0")], Options(cached=False, scheduler=address))


def test_no_cluster_at_an_address_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="Dask is an extra")
    monkeypatch.setattr(spread, "_ANSWERS_WITHIN_S", 1)
    said: list[str] = []
    there = Options(cached=False, scheduler="tcp://127.0.0.1:9", progress=said.append)
    with pytest.raises(GpudiagError, match=r"^tcp://127\.0\.0\.1:9: no Dask scheduler answers there"):
        summaries([recording(CAPTURES / "slow.rank0")], there)
    assert said == ["waiting up to 1 s for the scheduler at tcp://127.0.0.1:9"]
