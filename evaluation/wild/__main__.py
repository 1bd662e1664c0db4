"""Score the wild corpus, programs as people write them, and write docs/wild.md:  python -m evaluation.wild [--check]

For each recording in fixtures/wild/captures: whether the iteration found takes as long as the program's own, by its own
clock in the same recording; whether the first finding names what is slow; whether healthy programs are left alone; and
what is promised of the program without its fault, beside what that took. Development and validation apart. Writes
docs/wild.md and docs/wild.json. Takes about two minutes on two cores.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict

from evaluation.corpus import ROOT, one_a_line
from evaluation.wild.corpus import Label, labels
from evaluation.wild.judging import Score, judge
from evaluation.wild.page import figures, page

PAGE = ROOT / "docs" / "wild.md"
DATA = ROOT / "docs" / "wild.json"


def scored(chosen: Iterable[Label]) -> list[Score]:
    """Judge them all, the largest first, so that no process is left with one at the end."""
    chosen = list(chosen)
    order = sorted(chosen, key=lambda label: -label.capture.stat().st_size)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = dict(zip(order, pool.map(judge, order), strict=True))
    return [found[label] for label in chosen]


def as_json(scores: Sequence[Score]) -> str:
    """The scores for programs to read, figures to four digits."""
    rows = {}
    for score in scores:
        row = {name: _round(value) for name, value in asdict(score).items() if name not in ("label", "refused")}
        verdicts = {"iteration_found": score.iteration_found, "hit": score.hit, "quiet": score.quiet}
        both = {**row, **verdicts, "split": score.label.split}
        rows[score.label.name] = {name: value for name, value in both.items() if value not in (None, ())}
    return one_a_line(rows)


def _round(value: object) -> object:
    if isinstance(value, dict):
        return {name: _round(inner) for name, inner in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def main() -> int:
    """Write the page, or say whether it is stale."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where the page is stale")
    args = parser.parse_args()
    scores = scored(labels())
    written = {PAGE: page(scores), DATA: as_json(scores)}
    if args.check:
        stale = [path.name for path, text in written.items() if not path.exists() or path.read_text("utf-8") != text]
        if stale:
            print(f"docs/{' and '.join(stale)}: stale; run python -m evaluation.wild", file=sys.stderr)
        return int(bool(stale))
    for path, text in written.items():
        path.write_text(text, "utf-8")
    print(figures(scores))
    return 0


if __name__ == "__main__":
    sys.exit(main())
