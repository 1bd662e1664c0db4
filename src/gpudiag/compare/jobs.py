"""Two jobs of many ranks: who is slow now, who no longer is, and what the ranks wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from gpudiag.model import JobChange, JobRank, RankChange, Report


def change(base: Report, head: Report, settings: Mapping[str, float]) -> JobChange | None:
    """The jobs beside each other; None where a side is none. Ranks are matched by number, or by label without one."""
    if base.job is None or head.job is None:
        return None
    pairs = _pairs(base.job.members, head.job.members)
    found = [one for pair in pairs if (one := _rank(*pair, settings["job_min_late"]))]
    return JobChange(
        base_ranks=base.job.ranks, head_ranks=head.job.ranks, base_iteration_ms=base.job.iteration_ms,
        head_iteration_ms=head.job.iteration_ms, base_waiting=base.job.waiting, head_waiting=head.job.waiting,
        base_at_median_ms=base.job.at_median_ms, head_at_median_ms=head.job.at_median_ms,
        base_reference=base.job.reference, head_reference=head.job.reference,
        ranks=tuple(sorted(found, key=lambda one: (-_moved(one), one.label))),
    )  # fmt: skip


def notes(base: Report, head: Report) -> list[str]:
    """Sentences for a reader who compares a job with something else, or with one of another size."""
    sizes = [report.job.ranks if report.job else 0 for report in (base, head)]
    if all(sizes) and sizes[0] != sizes[1]:
        said = "where a batch is divided among them, an iteration of a rank is not as much work."
        return [f"Base has {sizes[0]:,} ranks, head {sizes[1]:,}: {said}"]
    if any(sizes) and not all(sizes):
        side = "Base" if sizes[0] else "Head"
        return [f"{side} is a job of {max(sizes):,} ranks, the other side is not: only one rank of it is compared."]
    return []


def _pairs(base: Sequence[JobRank], head: Sequence[JobRank]) -> list[tuple[JobRank | None, JobRank | None]]:
    def key(one: JobRank) -> str | int:
        return one.label if one.rank is None else one.rank

    before, now = {key(one): one for one in base}, {key(one): one for one in head}
    return [(before.get(name), now.get(name)) for name in {**before, **now}]


def _rank(before: JobRank | None, now: JobRank | None, least: float) -> RankChange | None:
    slow = bool(before and before.slow), bool(now and now.slow)
    state: Literal["new", "gone", "still", "moved"]
    state = "still" if all(slow) else "gone" if slow[0] else "new" if slow[1] else "moved"
    shown = now or before
    assert shown is not None
    found = RankChange(
        label=shown.label, state=state, base_more=before.more if before else None, head_more=now.more if now else None
    )
    worth_a_row = state != "moved" or (before is not None and now is not None and _moved(found) >= least)
    return found if worth_a_row else None


def _moved(one: RankChange) -> float:
    return abs((one.head_more or 0.0) - (one.base_more or 0.0))
