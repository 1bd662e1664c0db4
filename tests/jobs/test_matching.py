"""Ranks of synthetic jobs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from gpudiag.errors import GpudiagError
from gpudiag.jobs import matching
from gpudiag.jobs.rank_summary import ARRAYS, RankSummary
from gpudiag.jobs.rank_waits import pace, waits

LIMITS = matching.MatchLimits(shared=4, part=0.9, spread_ns=50_000, end_ns=10_000, apart_ns=1e9)


def rank(number: int, ends: Sequence[int], joined: int = 100, size: int = -1, clock: int = 0) -> RankSummary:
    """Ends of its collectives, each of which it joined so long before (µs), by a clock that is off."""
    end = np.array(ends) * 1000 + clock
    n = len(end)
    columns = {name: np.zeros(n, dtype=np.int64) for name in ARRAYS}
    columns |= {"channel": np.ones(n, dtype=np.int64), "sequence": np.arange(n), "ranks": np.full(n, size)}
    columns |= {"end": end, "start": end - joined * 1000, "exposed": np.full(n, joined * 1000)}
    return RankSummary(
        f"r{number}", number, number, None, 0, None, 0, f"{number}{ends}", {}, ("all_reduce",), {}, 0, columns
    )


STEPS = [1000, 2100, 3050, 4200, 5000, 6100]


def test_clocks_are_aligned_and_the_last_to_join_sets_the_pace() -> None:
    job = matching.matched([rank(0, STEPS, 300), rank(1, STEPS, 100, clock=700_000)], LIMITS)
    found, met = waits(job)
    assert job.offsets.tolist() == [0, -700_000]
    assert met.transfer.tolist() == [100_000] * 6
    assert found.wait[found.member == 0].tolist() == [200_000] * 6
    assert pace(found, 2, 0.3) == 1


def test_a_rank_of_another_run_is_one_sentence() -> None:
    other = [1000, 2400, 3700, 4900, 6000, 7900]
    with pytest.raises(GpudiagError, match="r2: its collectives are not those of the other ranks"):
        matching.matched([rank(0, STEPS), rank(1, STEPS), rank(2, other)], LIMITS)


def test_a_rank_given_twice_is_one_sentence() -> None:
    with pytest.raises(GpudiagError, match="r1 holds the same as r1"):
        matching.ordered([rank(0, STEPS), rank(1, STEPS), rank(1, STEPS)])
    with pytest.raises(GpudiagError, match="are both of rank 1"):
        matching.ordered([rank(1, STEPS), rank(1, [step + 1 for step in STEPS])])


def test_missing_ranks_are_known_by_their_communicator() -> None:
    assert matching.missing([rank(0, STEPS, size=4), rank(2, STEPS, size=4)]) == [1, 3]
    assert matching.missing([rank(0, STEPS), rank(2, STEPS)]) == []
