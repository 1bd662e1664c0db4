"""Pages of single ranks beside the page of a job. The job is synthetic, made of report values."""

from __future__ import annotations

from pathlib import Path

import pytest

import samples
from gpudiag.errors import GpudiagError
from gpudiag.model import Job, JobRank, Report
from gpudiag.report import rank_pages

OUT = Path("pages/job night.html")


def of(*more: float, slow: tuple[int, ...], file: str = "job.rank{}.sqlite") -> Job:
    """A job whose first rank is the one shown in full."""
    members = tuple(
        JobRank(label=f"rank {n}", rank=n, file=file.format(n), more=part, waits=0.1, slow=n in slow)
        for n, part in enumerate(more)
    )
    return Job(
        ranks=len(members), reference="rank 0", iterations=4, iteration_ms=10.0, waiting=0.2, at_median_ms=8.0,
        members=members,
    )  # fmt: skip


def captures(job: Job, folder: str = "ranks") -> list[Path]:
    return [Path(folder) / one.file for one in job.members]


def test_slow_ranks_and_the_least_busy_get_a_page() -> None:
    job = of(0.4, 0.2, 0.3, 0.02, 0.01, slow=(0, 1, 2))
    made = rank_pages.pages(job, OUT, captures(job))
    assert [page.label for page in made] == ["rank 2", "rank 1", "rank 4"]
    assert made[0].path == Path("pages/job night.rank2.html")
    assert made[0].capture == Path("ranks/job.rank2.sqlite")
    assert made[0].alone is None


def test_a_slow_host_does_not_get_a_page_for_each_of_its_ranks() -> None:
    job = of(*[0.4] * 32, slow=tuple(range(32)))
    assert len(rank_pages.pages(job, OUT, captures(job))) == rank_pages.PAGES


def test_a_rank_that_shares_its_file_is_selected_by_number() -> None:
    job = of(0.4, 0.0, slow=(0,), file="all.sqlite")
    [page] = rank_pages.pages(job, OUT, [Path("all.sqlite")])
    assert (page.capture, page.alone) == (Path("all.sqlite"), 1)


def test_the_job_links_its_pages() -> None:
    job = of(0.4, 0.0, slow=(0,))
    report: Report = samples.launch_bound().model_copy(update={"job": job})
    linked = rank_pages.linked(report, rank_pages.pages(job, OUT, captures(job)))
    assert linked.job is not None
    assert [one.page for one in linked.job.members] == [None, "job%20night.rank1.html"]
    assert Report.model_validate_json(linked.model_dump_json()) == linked


def test_files_of_one_name_are_refused() -> None:
    job = of(0.4, 0.0, slow=(0,))
    with pytest.raises(GpudiagError, match=r"^job\.rank1\.sqlite: its name does not tell rank 1 from others"):
        rank_pages.pages(job, OUT, [*captures(job, "a"), *captures(job, "b")])


def test_of_a_saved_report_there_are_no_pages() -> None:
    with pytest.raises(GpudiagError, match=r"^job\.rank1\.sqlite: is not among the files given"):
        rank_pages.pages(of(0.4, 0.0, slow=(0,)), OUT, [Path("saved.json")])
