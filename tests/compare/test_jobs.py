"""Synthetic jobs beside each other."""

from __future__ import annotations

import samples
from gpudiag.compare import jobs
from gpudiag.library.load import load
from gpudiag.model import Job, JobRank, Report

SETTINGS = load().setting_values


def report(*more: float, slow: int | None = None) -> Report:
    """A job whose ranks do so much more than the others, in this order."""
    members = tuple(
        JobRank(label=f"rank {number}", rank=number, file=f"{number}.sqlite", more=part, waits=0.1, slow=number == slow)
        for number, part in enumerate(more)
    )
    job = Job(
        ranks=len(more), reference="rank 0", iterations=20, iteration_ms=10.0, waiting=0.1, at_median_ms=9.0,
        members=members,
    )  # fmt: skip
    return samples.launch_bound().model_copy(update={"job": job})


def test_ranks_that_became_slow_or_no_longer_are_come_first() -> None:
    found = jobs.change(report(0, 0.2, 0, 0.01, slow=1), report(0, 0, 0.3, 0.05, slow=2), SETTINGS)
    assert found is not None
    assert [(one.label, one.state) for one in found.ranks] == [
        ("rank 2", "new"),
        ("rank 1", "gone"),
        ("rank 3", "moved"),
    ]


def test_ranks_that_differ_by_chance_are_left_out() -> None:
    found = jobs.change(report(0, 0.01, 0), report(0.01, 0, 0.02), SETTINGS)
    assert found is not None
    assert found.ranks == ()


def test_a_job_of_another_size_or_none_is_a_sentence() -> None:
    alone = samples.launch_bound()
    assert jobs.change(alone, report(0, 0), SETTINGS) is None
    assert jobs.notes(alone, alone) == []
    assert jobs.notes(report(0, 0), report(0, 0)) == []
    assert jobs.notes(alone, report(0, 0)) == [
        "Head is a job of 2 ranks, the other side is not: only one rank of it is compared."
    ]
    assert jobs.notes(report(0, 0, 0), report(0, 0))[0].startswith("Base has 3 ranks, head 2: where a batch")
