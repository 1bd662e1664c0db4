"""The page docs/jobs.md."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from evaluation.jobs.plants import KINDS, LEAST, MOST
from evaluation.jobs.score import LISTED, SHOWN
from evaluation.price_page import table

Row = Mapping[str, Any]

FITTED = 256
"""Ranks up to which time has to be linear."""

NOTICE = "<!-- Written by `python -m evaluation.jobs`; change the rules or the generated jobs instead. -->"

_INTRODUCTION = f"""
Jobs of 8 to 1,024 ranks that nobody ran: **generated** at run time by [`evaluation/jobs`](../evaluation/jobs) out of
the two real ranks of one recording, whose work, clocks, ids and hosts are varied. They show whether the comparison of
ranks names what is slow, and how its cost grows. They say nothing about programs; those are on
[the other pages](how-often-right.md).

A job is simulated collective by collective: each rank works, joins, and all leave once the last one has joined and the
message has travelled. A cause is planted that makes an iteration {LEAST:.0%} to {MOST:.0%} longer; where and by how
much is drawn by a seed. The rules' constants were set on jobs of seeds below 1,000; those below have seeds from 1,000
on, and were generated for this page only.

Each figure counts jobs, *of* those in question:

* **named**: jobs with a cause of {LISTED:.0%} or more whose report has the finding for this kind of cause, with the
  ranks, the host or the link that the cause was planted in.
* **as the first about ranks**: of the same jobs, those where no other finding about ranks stands before it.
* **shown**: jobs with a cause of less than {LISTED:.0%} where a finding names its place, or where one of its ranks is
  in the report's table of the {SHOWN} ranks that do the most extra work.
* **balanced and quiet**: jobs without a cause and without a finding about ranks.
* **another rank blamed**: jobs with a cause where some finding about ranks names a rank, host or link without one.
* **median error of the price**: the iteration that the report expects after the fix, against the simulated one without
  the cause; of slow links and pauses reports give bounds only.
""".strip()


def page(known: Mapping[str, Any]) -> str:
    """The whole page."""
    jobs: Sequence[Row] = known["jobs"]
    lines = [
        NOTICE,
        "# Generated jobs of many ranks",
        _INTRODUCTION,
        "## What is named",
        _named(jobs),
        "## By kind of cause",
        _kinds(jobs),
        _missed(jobs),
        "## What it costs",
        _costs(jobs, known["costs"]),
    ]
    return "\n\n".join(line for line in lines if line) + "\n"


def _of(jobs: Sequence[Row], right: Callable[[Row], bool]) -> str:
    return f"{sum(map(right, jobs))} of {len(jobs)}" if jobs else ""


def _parts(jobs: Sequence[Row]) -> tuple[list[Row], list[Row], list[Row]]:
    """Those with a cause above the limit, those with one below it, and the balanced ones."""
    planted = [one for one in jobs if one["kind"] != "balanced"]
    return (
        [one for one in planted if one["strength"] >= LISTED],
        [one for one in planted if one["strength"] < LISTED],
        [one for one in jobs if one["kind"] == "balanced"],
    )


def _cells(jobs: Sequence[Row]) -> list[str]:
    strong, weak, balanced = _parts(jobs)
    return [
        _of(strong, lambda one: one["named"]),
        _of(strong, lambda one: one["first"]),
        _of(weak, lambda one: one["named"] or one["place"] or one["shown"]),
        _of(balanced, lambda one: not one["false"]),
        _of(strong + weak, lambda one: bool(one["false"])),
        _error(strong),
    ]


_HEAD = [
    f"named, of {LISTED:.0%} or more", "as the first about ranks", f"shown, of less than {LISTED:.0%}",
    "balanced and quiet", "another rank blamed", "median error of the price",
]  # fmt: skip


def _named(jobs: Sequence[Row]) -> str:
    sizes = sorted({one["ranks"] for one in jobs})
    rows = [[f"{size:,}", *_cells([one for one in jobs if one["ranks"] == size])] for size in sizes]
    return table(["ranks", *_HEAD], [*rows, ["**all**", *_cells(jobs)]])


def _kinds(jobs: Sequence[Row]) -> str:
    return table(["cause", *_HEAD], [[kind, *_cells([one for one in jobs if one["kind"] == kind])] for kind in KINDS])


def _error(jobs: Sequence[Row]) -> str:
    """Median distance of the time that is left after the fix from the simulated one; of bounds there is none."""
    errors = [
        abs((1 - one["share"]) / (1 - one["worth"]) - 1)
        for one in jobs
        if one["share"] is not None and one["kind"] not in ("slow link", "pauses")
    ]
    return f"{statistics.median(errors):.1%}" if errors else ""


def _missed(jobs: Sequence[Row]) -> str:
    strong, _, _ = _parts(jobs)
    missed = [one for one in strong if not one["named"]]
    if not missed:
        return ""
    said = [
        f"{one['kind']} of {one['strength']:.1%} among {one['ranks']:,} (seed {one['seed']}): "
        + ("the rank is named, under another cause" if one["place"] else "shown" if one["shown"] else "not named")
        for one in missed
    ]
    return "Not named as what they are:\n\n" + "\n".join(f"* {one}" for one in said)


_ABOUT_COSTS = """
CPU seconds, the rank that is shown in full included; of small ranks the median of the jobs above. *Comparing* is all
that needs more than one rank. The two cores were shared with other work, more of it while the larger jobs ran, which
makes the same work take up to twice the CPU seconds.
""".strip()


def _costs(jobs: Sequence[Row], costs: Mapping[str, Any]) -> str:
    sizes = sorted({one["ranks"] for one in jobs})
    small = [_typical([one for one in jobs if one["ranks"] == size]) for size in sizes]
    large = costs.get("large", [])
    fitted = [(one["ranks"], one["cost"]["cpu_s"]) for one in jobs if one["ranks"] <= FITTED]
    largest = max(ranks for ranks, _ in fitted)
    rows = [_grown(one) for one in (*small, *large)]
    said = [
        _ABOUT_COSTS,
        table(["ranks", "a rank", "in all", "reading a rank", "comparing", "of reading"], rows),
        f"A line through the CPU times of all jobs of up to {largest} small ranks has R² = {_r2(fitted):.4f}.",
    ]
    if most := max((one["cost"]["worker_mb"] for one in jobs), default=0.0):
        ranks = ", ".join(f"{size:,}" for size in sorted({o["ranks"] for o in jobs if o["cost"]["worker_mb"]}))
        said.append(f"Jobs of {ranks} ranks were read by Dask workers, each of which took {most:.0f} MB at most.")
    if workers := costs.get("workers"):
        one, two, ranks = workers["one"], workers["two"], workers["ranks"]
        times = one["wall_s"] / two["wall_s"]
        said.append(
            f"Two workers take {two['wall_s']:.1f} s for {ranks} of the large ranks, one {one['wall_s']:.1f} s: "
            f"{times:.2f} times as long, the median of three each, on two cores with a load of {workers['load']:.1f}. "
            f"A worker takes {two['worker_mb']:.0f} MB at most."
        )
    return "\n\n".join(said)


def _typical(jobs: Sequence[Row]) -> dict[str, float]:
    """The median of each cost, of jobs of one size."""
    costs = {name: statistics.median(one["cost"][name] for one in jobs) for name in ("cpu_s", "read_s", "reduce_s")}
    return {"ranks": jobs[0]["ranks"], "rank_mb": statistics.median(one["rank_mb"] for one in jobs), **costs}


def _grown(one: Row) -> list[str]:
    return [
        f"{one['ranks']:,}",
        f"{one['rank_mb']:.1f} MB",
        f"{one['cpu_s']:.1f} s",
        f"{one['read_s'] / one['ranks']:.2f} s",
        f"{one['reduce_s']:.2f} s",
        f"{one['reduce_s'] / one['read_s']:.1%}",
    ]


def _r2(costs: Sequence[tuple[float, float]]) -> float:
    ranks, spent = (np.array(column, dtype=float) for column in zip(*costs, strict=True))
    return float(np.corrcoef(ranks, spent)[0, 1] ** 2)
