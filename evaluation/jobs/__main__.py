"""Score generated jobs and write docs/jobs.md:  python -m evaluation.jobs [--ranks N] [--workers N] [--costs] [--check]

Makes jobs of many ranks out of two real ones, with causes planted by seed, explains them, and writes what was named.
Without options only the page is written anew, from docs/jobs.json. --ranks N scores all jobs of so many ranks, --costs
measures time and memory; each replaces its part of docs/jobs.json. All of it takes half an hour.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from evaluation.corpus import ROOT
from evaluation.jobs import growth
from evaluation.jobs.page import page
from evaluation.jobs.plants import KINDS
from evaluation.jobs.score import JobScore, scored

PAGE = ROOT / "docs" / "jobs.md"
DATA = ROOT / "docs" / "jobs.json"

FIRST_SEED = 1_000
"""Seeds from here on are scored; the constants were set on jobs of smaller ones."""

REPEATS = 2
LARGE = ("balanced", "slow rank", "several slow ranks", "slow host", "slow link")
JOBS: dict[int, tuple[int, tuple[str, ...]]] = {
    8: (12, KINDS),
    64: (4, KINDS),
    256: (1, LARGE),
    1_024: (1, ("several slow ranks",)),
}
"""By the number of ranks: how many jobs of each kind, and the kinds."""


def jobs(ranks: int, workers: int | None) -> Iterator[JobScore]:
    """Score the jobs of so many ranks, one after another."""
    count, kinds = JOBS[ranks]
    for seed in range(FIRST_SEED, FIRST_SEED + count):
        for kind in kinds:
            one = scored(kind, ranks, seed, repeats=REPEATS, workers=workers)
            print(
                f"{ranks} ranks, {kind}, seed {seed}, {one.strength:.1%}: {'named' if one.named else '-'}", flush=True
            )
            yield one


def main() -> int:
    """Score what is asked for, and write the page, or say whether it is stale."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ranks", type=int, action="append", default=[], choices=JOBS, help="score jobs of this size")
    parser.add_argument("--workers", type=int, help="processes that make and read ranks")
    parser.add_argument("--costs", action="store_true", help="measure time and memory")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where the page is stale")
    args = parser.parse_args()
    known: dict[str, Any] = json.loads(DATA.read_text("utf-8")) if DATA.exists() else {"jobs": [], "costs": {}}
    for ranks in args.ranks:
        known["jobs"] = [one for one in known["jobs"] if one["ranks"] != ranks]
        for one in jobs(ranks, args.workers):
            known["jobs"].append(_rounded(asdict(one)))
            known["jobs"].sort(key=lambda one: (one["ranks"], one["seed"], KINDS.index(one["kind"])))
            DATA.write_text(_as_json(known), "utf-8")  # whatever ends this early leaves what was scored
    if args.costs:
        known["costs"] = _rounded(growth.measured())
        DATA.write_text(_as_json(known), "utf-8")
    text = page(known)
    if args.check:
        if not PAGE.exists() or PAGE.read_text("utf-8") != text:
            print("docs/jobs.md: stale; run python -m evaluation.jobs", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(text, "utf-8")
    return 0


def _as_json(known: dict[str, Any]) -> str:
    """A line a job, so that a change of one is a change of one line."""
    rows = ",\n".join(json.dumps(one, sort_keys=True, separators=(",", ":")) for one in known["jobs"])
    return f'{{"jobs": [\n{rows}\n ],\n "costs": {json.dumps(known["costs"], indent=1, sort_keys=True)}\n}}\n'


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(inner) for inner in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


if __name__ == "__main__":
    sys.exit(main())
