from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluation.jobs.generate import written
from evaluation.jobs.plants import Plant
from evaluation.jobs.template import templates
from gpudiag import pipeline
from gpudiag.options import Options
from gpudiag.report import formats


@pytest.mark.slow
@pytest.mark.capture
def test_a_job_reads_the_same_however_it_is_spread(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    cause = Plant("slow rank", ranks=(5,), strength=0.2, strengths=(0.2,))
    files = list(written(tmp_path / "job", templates(tmp_path, 2), cause, 8, np.random.default_rng(1)))
    alone = pipeline.explain(files, Options(cached=False))
    spread = pipeline.explain([tmp_path / "job"], Options(cached=False, workers=2))
    assert formats.render(alone, "json") == formats.render(spread, "json")
    [slow] = [one for one in (*alone.findings, *alone.minor) if one.id == "slow-ranks-of-job"]
    assert "`rank 5` on `node2` does" in slow.message
    assert alone.job is not None
    assert [one.label for one in alone.job.members if one.slow] == ["rank 5"]
