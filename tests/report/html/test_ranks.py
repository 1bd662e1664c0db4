"""Ranks of a synthetic job on the page."""

from __future__ import annotations

import re

import pytest

import samples
from gpudiag.model import Job, JobRank, Report
from gpudiag.report import formats
from gpudiag.report.html import ranks

HOSTILE = '</script><img src=x onerror="alert(1)">`|'


def job(members: int, *, slow: int | None = None, host: str | None = "node0") -> Job:
    """Ranks of which one does more work in the later half of the recording."""
    found = []
    for number in range(members):
        late = number == slow
        found.append(
            JobRank(
                label=f"rank {number}", rank=number, file=f"{number}.sqlite", host=host, more=0.25 if late else 0.0,
                waits=0.0 if late else 0.2, slow=late, over_time=(0.0, 0.0, 0.25, 0.5) if late else (0.0,) * 4,
                computes_ms=6.5 if late else 5.0,
            )
        )  # fmt: skip
    return Job(
        ranks=members, hosts=1, reference="rank 0" if slow is None else f"rank {slow}", iterations=4, iteration_ms=10.0,
        waiting=0.2, at_median_ms=8.0, members=tuple(found),
    )  # fmt: skip


def of_job(one: Job) -> Report:
    return samples.launch_bound().model_copy(update={"job": one})


def test_a_degrading_rank_darkens_and_leads_to_its_figures() -> None:
    seen = ranks.view(job(8, slow=5))
    assert seen is not None
    assert [lane.label for lane in seen.lanes if lane.slow] == ["rank 5"]
    assert str(seen.lanes[5].drawing) == (
        '<path class="m-4" d="M50.00 0H75.00V1H50.00Z"/><path class="m-5" d="M75.00 0H100.00V1H75.00Z"/>'
    )
    assert str(seen.lanes[0].drawing) == ""
    assert (seen.rows[0].label, seen.rows[0].more, seen.rows[0].computes) == ("rank 5", "25 %", "6.50 ms")
    page = formats.render(of_job(job(8, slow=5)), "html")
    assert 'href="#rank-5" title="rank 5 on node0: 25 % more work than the others, waits 0 %"' in page
    assert '<tr id="rank-5"><td>rank 5, slow</td>' in page


def test_of_a_thousand_ranks_only_slow_ones_are_labelled() -> None:
    seen = ranks.view(job(1024, slow=700))
    assert seen is not None
    assert [lane.label for lane in seen.lanes if lane.label] == ["rank 700"]
    assert len(formats.render(of_job(job(1024, slow=700)), "html")) < 1_000_000


def test_hostile_hosts_stay_text() -> None:
    page = formats.render(of_job(job(8, slow=1, host=HOSTILE)), "html")
    assert "<img" not in page
    assert page.count("&lt;img") >= 8


def test_without_a_job_there_is_no_such_section() -> None:
    assert not re.search(r'id="ranks"|#ranks"', formats.render(samples.launch_bound(), "html"))


@pytest.mark.parametrize("name", ["markdown", "html", "github-comment", "checklist"])
def test_the_heading_counts_ranks_and_hosts(name: str) -> None:
    text = formats.render(of_job(job(10, slow=3)), name)
    heading = re.search(r"<h1>.*|^#+ .*", text, re.MULTILINE)
    assert heading is not None
    assert "10 ranks on 1 host, " in heading[0]
    assert "rank 3" in heading[0]


def test_the_heading_leaves_out_hosts_that_are_not_known() -> None:
    unknown = job(9).model_copy(update={"hosts": None})
    assert formats.render(of_job(unknown), "markdown").startswith("# gpudiag: 9 ranks, `rank 0` in full\n")


def test_a_rank_with_a_page_is_linked() -> None:
    one = job(8, slow=5)
    members = tuple(m.model_copy(update={"page": "job.rank2.html"}) if m.rank == 2 else m for m in one.members)
    report = of_job(one.model_copy(update={"members": members}))
    assert '<tr id="rank-2"><td><a href="job.rank2.html">rank 2</a></td>' in formats.render(report, "html")
    assert "| [`rank 2`](job.rank2.html) |" in formats.render(report, "markdown")


def test_the_command_for_another_rank_is_said() -> None:
    text = formats.render(of_job(job(8, slow=0)), "markdown")
    assert "Another rank in full: `gpudiag explain 1.sqlite`; `--rank-pages`" in text


def test_ranks_of_one_file_are_selected() -> None:
    one = job(8, slow=0)
    members = tuple(m.model_copy(update={"file": "all.sqlite"}) for m in one.members)
    text = formats.render(of_job(one.model_copy(update={"members": members})), "markdown")
    assert "`gpudiag explain all.sqlite --rank 1`" in text


@pytest.mark.parametrize("page", ["javascript:alert(1)", "../x.html", "a b", "x)(y", ""])
def test_a_saved_report_links_to_nothing_else(page: str) -> None:
    with pytest.raises(ValueError, match="page"):
        JobRank(label="rank 0", file="0.sqlite", more=0.0, waits=0.0, page=page)


def test_a_saved_job_without_times_keeps_its_table() -> None:
    members = tuple(one.model_copy(update={"over_time": ()}) for one in job(8).members)
    page = formats.render(of_job(job(8).model_copy(update={"members": members})), "html")
    assert "The ranks of the job" in page
    assert "Ranks over time" not in page
