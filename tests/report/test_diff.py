"""The page of a comparison: verdict first, then times, findings, kernels; hostile names do no harm."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpudiag.model import (
    BudgetChange,
    Diff,
    FindingChange,
    JobChange,
    KernelChange,
    LoopChange,
    Place,
    ProfileChange,
    RankChange,
    Ratio,
    Side,
    Times,
    Tool,
)
from gpudiag.report import diff as diffpage
from samples import EVIL, LONG_NAME


def times(ms: float, **changes: Any) -> Times:
    values: dict[str, Any] = {
        "ms": ms, "least_ms": ms * 0.6, "most_ms": ms * 1.05, "recorded_ms": (ms,), "busy_ms": ms / 2,
        "iterations": 20, "launches": 30.0, "calls": 40.0,
    }  # fmt: skip
    return Times.model_validate(values | changes)


def loop(**changes: Any) -> LoopChange:
    values: dict[str, Any] = {
        "name": "step", "head_name": "step", "matched_by": "nvtx", "state": "improvement", "text": "Faster.",
        "ratio": Ratio(value=0.5, low=0.3, high=0.8), "share_of_span": 0.9, "same_work": False, "host_bound": True,
        "base": times(10.0), "head": times(5.0),
        "budget": (BudgetChange(category="idle_sync", base_ms=5.0, head_ms=0.0),),
        "kernels": (
            KernelChange(name="gemm", state="changed", base_launches=10, head_launches=15, base_ms=8.0, head_ms=6.0,
                         by_count_ms=4.0, by_duration_ms=-6.0),
            KernelChange(name="copy", state="gone", base_launches=2, base_ms=1.0, by_count_ms=-1.0, by_duration_ms=0.0),
        ),
        "same_kernels": 3,
    }  # fmt: skip
    return LoopChange.model_validate(values | changes)


def diff(**changes: Any) -> Diff:
    side = Side(files=("/tmp/a.sqlite",), reports=1, kind="timeline", devices=("GPU A",))
    values: dict[str, Any] = {
        "tool": Tool(version="0"), "state": "improvement", "text": "Faster: an iteration of `step` takes less.",
        "base": side, "head": side.model_copy(update={"files": ("/tmp/b.sqlite",)}), "loops": (loop(),),
        "findings": (
            FindingChange(state="gone", code="S01", title="A value is read", loop="step", base_share=0.4,
                          base_saves_ms=4.0, where=Place(file="/home/me/train.py", line=7)),
            FindingChange(state="new", code="H01", title="Small kernels", loop="step", head_share=0.2,
                          head_saves_ms=1.0),
            FindingChange(state="unchanged", code="M01", title="Pageable copies", loop="step"),
        ),
    }  # fmt: skip
    return Diff.model_validate(values | changes)


def test_first_things_come_first() -> None:
    page = diffpage.markdown(diff())
    parts = ["**Faster:", "## Where the time went", "## Findings", "**New:**", "**Gone:**", "## Kernels of `step`"]
    places = [page.index(part) for part in parts]
    assert places == sorted(places)
    assert page.startswith("# gpudiag diff: `a.sqlite` → `b.sqlite`")


def test_times_budget_and_interval_stand_in_one_table() -> None:
    page = diffpage.markdown(diff())
    assert "| **an iteration**, as recorded | 10.0 ms | 5.00 ms | ÷ 2.0 |" in page
    assert "| 6.00 ms to 10.5 ms | 3.00 ms to 5.25 ms | ÷ 3.3 to ÷ 1.2 |" in page
    assert "| 5.00 ms | 0 | −5.00 ms |" in page


def test_a_given_time_is_marked_as_given() -> None:
    page = diffpage.markdown(
        diff(
            loops=(
                loop(
                    host_bound=False,
                    base=times(10.0, unprofiled_ms=(7.0,)),
                ),
            )
        )
    )
    assert "(given)" in page


def test_both_parts_of_a_kernels_change_are_written() -> None:
    page = diffpage.markdown(diff())
    assert "10 → 15 times: +4.00 ms" in page
    assert "800 µs → 400 µs: −6.00 ms" in page
    assert "**gone** `copy`" in page
    assert "3 kernels did not change" in page


def test_findings_say_what_their_fix_was_worth_and_where() -> None:
    page = diffpage.markdown(diff())
    assert "S01 A value is read: its fix was worth 4.00 ms (40 %), `train.py:7`" in page
    assert "/home/me" not in page
    assert "Unchanged: Pageable copies (M01)." in page


def test_a_hidden_cause_is_written_with_its_time() -> None:
    hidden = FindingChange(
        state="now_visible", code="H01", title="Small kernels", loop="step", head_share=0.2, head_saves_ms=1.0,
        base_about_ms=3.5, head_about_ms=3.7,
    )  # fmt: skip
    page, text = (write(diff(findings=(hidden,))) for write in (diffpage.markdown, diffpage.text))
    for written in (page, text):
        assert "ow visible, though the time it is about was there before" in written
        assert "; the time it is about: 3.50 ms before, 3.70 ms now" in written
    assert "New" not in page


def test_a_worth_of_a_recorded_time_beside_a_given_one_says_so() -> None:
    timed = loop(base=times(7.0, unprofiled_ms=(7.0,)))
    gone = FindingChange(
        state="gone", code="S01", title="A value", loop="step", base_share=0.4, base_saves_ms=4.0, base_of_ms=10.0
    )
    assert "its fix was worth 4.00 ms (40 % of 10.0 ms, as recorded)" in diffpage.markdown(
        diff(loops=(timed,), findings=(gone,))
    )
    assert "its fix was worth 4.00 ms (40 %)\n" in diffpage.markdown(diff(findings=(gone,)))
    summary = gone.model_copy(update={"base_of_ms": 7.0})
    assert "as recorded)" not in diffpage.markdown(diff(loops=(timed,), findings=(summary,)))


def test_under_noise_the_page_says_that_worth_is_noise_too() -> None:
    page = diffpage.markdown(diff(state="noise"))
    assert "On both sides: Pageable copies (M01). What their fixes are worth differs by no more than noise." in page


def test_no_findings_are_written_as_none() -> None:
    assert "None before, none now." in diffpage.markdown(diff(findings=()))


def test_a_refusal_is_the_reason_and_nothing_else() -> None:
    refused = diff(state="incomparable", text="These cannot be compared: no.", reasons=("no.",), loops=(), findings=())
    page = diffpage.markdown(refused)
    assert "**These cannot be compared: no.**" in page
    assert "##" not in page


def test_kernel_profiles_get_a_table_of_their_own() -> None:
    profile = ProfileChange(
        name="tile<32>", head_name="tile<33>", matched_by="template", state="improvement", base_ms=0.8, head_ms=0.3,
        ratio=Ratio(value=0.375, low=0.33, high=0.43), base_facts={"limit": "l2", "achieved_occupancy_pct": 58.0},
        head_facts={"limit": "issue", "achieved_occupancy_pct": 24.0},
    )  # fmt: skip
    page = diffpage.markdown(diff(loops=(), profiles=(profile,)))
    assert "L2 cache → instruction issue" in page
    assert "58 % → 24 %" in page
    assert "÷ 3.0 to ÷ 2.3" in page


@pytest.mark.parametrize("name", [EVIL, LONG_NAME])
def test_hostile_names_stay_names(name: str) -> None:
    kernel = KernelChange(name=name, renamed=name, state="new", head_launches=1, head_ms=1.0)
    where = Place(file=name, line=1)
    evil = diff(
        text=f"Slower: `{name}`.",
        notes=(f"`{name}` differs.",),
        loops=(loop(name=name, head_name=f"{name}!", kernels=(kernel,)),),
        findings=(FindingChange(state="not_evaluated", code="S01", title=name, where=where, reason=name),),
        base_only=(name,),
    )
    page, text = diffpage.markdown(evil), diffpage.text(evil)
    for written in (page, text):
        assert "\x1b" not in written
        assert "\u202e" not in written
    assert "\n# not a heading" not in page
    table = [line for line in page.splitlines() if line.startswith("| **new**")]
    assert len(table) == 1
    assert table[0].replace("\\|", "").count("|") == 7
    assert json.loads(diffpage.as_json(evil))["loops"][0]["kernels"][0]["state"] == "new"


def test_the_text_is_a_few_plain_lines() -> None:
    lines = diffpage.text(diff()).splitlines()
    assert lines[0] == "improvement: an iteration of 'step' takes less."
    assert lines[1:] == [
        "new: H01 Small kernels: its fix is worth 1.00 ms (20 %) of an iteration",
        "gone: S01 A value is read: its fix was worth 4.00 ms (40 %)",
    ]


@pytest.mark.parametrize("limit", [200, 4000])
def test_kernels_whose_short_names_are_alike_are_distinguished(limit: int) -> None:
    functors = ["AddFunctor<float>", "MulFunctor<float>", "AddFunctor<double>"]
    padding = "at::native::detail::Padding" * (limit // 27)
    names = [f"void at::native::vectorized_kernel<4, at::native::{f}, {padding}>(int, {padding})" for f in functors]
    kernels = tuple(
        KernelChange(name=name, state="changed", base_launches=1, head_launches=1, base_ms=1.0, head_ms=ms)
        for name, ms in zip(names, (2.0, 3.0, 4.0), strict=True)
    )
    page = diffpage.markdown(
        diff(loops=(loop(kernels=(*kernels, KernelChange(name="relu", state="new", head_ms=1.0))),))
    )
    rows = [line.split(" | ")[0] for line in page.splitlines() if "vectorized_kernel" in line]
    assert len(set(rows)) == 3
    telling = [("Add", "float"), ("Mul",), ("Add", "double")]
    assert all(part in row for parts, row in zip(telling, rows, strict=True) for part in parts)
    assert all(len(row) < 200 for row in rows)
    assert "`relu`" in page


def test_long_names_that_differ_in_the_middle_are_numbered() -> None:
    names = [f"f<{'a' * 500}{i}{'a' * 500}>" for i in range(3)]
    kernels = tuple(KernelChange(name=name, state="changed", base_ms=1.0, head_ms=2.0) for name in names)
    page = diffpage.markdown(diff(loops=(loop(kernels=kernels),)))
    assert len({line for line in page.splitlines() if line.startswith("| `f<")}) == 3


def test_a_job_has_a_table_of_the_ranks_that_changed() -> None:
    job = JobChange(
        base_ranks=1024, head_ranks=1024, base_iteration_ms=10.0, head_iteration_ms=12.5, base_waiting=0.02,
        head_waiting=0.2, base_at_median_ms=9.9, head_at_median_ms=9.9, base_reference="rank 3", head_reference=EVIL,
        ranks=(
            RankChange(label=EVIL, state="new", base_more=0.0, head_more=0.25),
            RankChange(label="rank 7", state="gone", base_more=0.1),
        ),
    )  # fmt: skip
    page = diffpage.parts(diff(job=job))["job"]
    assert "| ranks | 1,024 | 1,024 |" in page
    assert "| slow now | 0 % | 25 % |" in page
    assert "| `rank 7` | no longer slow | 10 % |  |" in page
    assert "rank 7: no longer slow\n" in diffpage.text(diff(job=job))
    assert diffpage.parts(diff())["job"] == ""
