from __future__ import annotations

import pytest

from evaluation.packed import recording
from gpudiag.jobs.map_rank import summarise
from gpudiag.jobs.rank_summary import packed, unpacked
from gpudiag.options import Options
from paths import ROOT

RANK = ROOT / "fixtures" / "captures" / "ddp_one_bucket" / "slow.rank1"


@pytest.mark.capture
def test_a_summary_survives_the_cache_and_the_wire() -> None:
    [one] = found = summarise(recording(RANK), Options(cached=False))
    assert (one.rank, one.n, set(one.operations)) == (1, 28, {"all_gather", "all_reduce", "broadcast"})
    assert packed(unpacked(packed(found))) == packed(found)
    with pytest.raises(ValueError):  # noqa: PT011
        unpacked(packed(found)[:-8])
