"""Score gpudiag on the labelled corpus:  python -m evaluation.scorecard [--check] [--only PROGRAM,…]

For every captured variant of every program in fixtures/: whether the first finding is the planted cause, whether it
names the planted line, what time it promises and what was measured, and what is said of healthy programs. Writes
docs/accuracy.md, docs/accuracy.json and the figures of docs/tutorial.md. With --check nothing is written: it fails when
a committed score would get worse, and when the committed pages are not those of this version. Takes three to five
minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict

from evaluation import accuracy_page, corpus, kept_reports, price_page
from evaluation.scoring import Score, judge, judge_unannotated
from evaluation.site import tutorial

PAGE = corpus.ROOT / "docs" / "accuracy.md"
DATA = corpus.ROOT / "docs" / "accuracy.json"
TUTORIAL = corpus.ROOT / tutorial.PAGE


def scores(only: Iterable[str] = ()) -> list[Score]:
    """The score of every captured variant, in the corpus's order."""
    wanted = set(only)
    if unknown := wanted - {case.slug for case in corpus.cases()}:
        raise SystemExit(f"No such program: {', '.join(sorted(unknown))}. They are in fixtures/workloads.")
    cases = [case for case in corpus.cases() if case.taken and (not wanted or case.slug in wanted)]
    timelines = [case for case in cases if case.role != "fixed" and case.suffix == "" and not case.kernel_page]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        annotated = pool.map(judge, cases)
        unannotated = pool.map(judge_unannotated, [case for case in timelines if len(case.captures) == 1])
        return [*annotated, *unannotated]


def as_json(found: Sequence[Score]) -> str:
    """The scores for programs to read, figures to four digits."""
    rows = {s.key: {name: _round(value) for name, value in asdict(s).items() if value is not None} for s in found}
    return corpus.one_a_line(rows)


def _round(value: object) -> object:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def worse(before: dict[str, dict[str, object]], after: Sequence[Score]) -> list[str]:
    """Return what the committed scores had right and these have not, one sentence each."""
    said = []
    for score in after:
        old = before.get(score.key)
        if old is None:
            continue
        was_hit = old.get("rank") == 1 if score.role == "slow" else not old.get("alarms")
        if score.role != "fixed" and was_hit and not score.hit:
            said.append(f"{score.key}: the first finding was right and is now {score.first or 'none'}.")
        if old.get("place") is True and score.place is not True:
            said.append(f"{score.key}: the planted line was named and no longer is.")
        new = set(score.forbidden) - set(old.get("forbidden", ()))  # type: ignore[call-overload]
        said += [f"{score.key}: {code} is said now, which its label rules out." for code in sorted(new)]
    gone = before.keys() - {score.key for score in after}
    return [*said, *(f"{key}: scored before, and now missing." for key in sorted(gone))]


def check(found: Sequence[Score], text: str, lesson: str) -> list[str]:
    """Explain why the committed tables cannot stay as they are; empty when they can."""
    if lost := sorted(corpus.missing() - corpus.pending("captures").keys()):
        return [f"{name}: a capture is missing, and fixtures/pending.yaml does not say so." for name in lost]
    if not (PAGE.exists() and DATA.exists()):
        return ["docs/accuracy.md or .json is missing: run `python -m evaluation.scorecard`."]
    problems = worse(json.loads(DATA.read_text("utf-8")), found)
    problems += [
        f"{score.key}: missed, and fixtures/misses.yaml gives no cause." for score in accuracy_page.unexplained(found)
    ]
    made = {DATA: as_json(found), PAGE: text, TUTORIAL: lesson}
    if not problems and (stale := [path.name for path in made if path.read_text("utf-8") != made[path]]):
        names = ", ".join(f"docs/{name}" for name in stale)
        problems = [f"Stale: {names}; run `python -m evaluation.scorecard` and commit what it writes."]
    return problems


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with the committed tables; write nothing")
    parser.add_argument("--only", default="", help="these programs, separated by commas; printed, not written")
    args = parser.parse_args()
    if args.check and args.only:
        parser.error("--check compares the whole corpus: leave --only away.")
    with kept_reports.shared():
        found = scores(filter(None, args.only.split(",")))
        two, curve = ([], []) if args.only else (price_page.cells(), price_page.stages())
        lesson = "" if args.only else tutorial.page()
    text = accuracy_page.page(found, two, curve)
    if args.check:
        problems = check(found, text, lesson)
        print("\n".join(problems) or accuracy_page.headline(found))
        return 1 if problems else 0
    if not args.only:
        for path, made in ((PAGE, text), (DATA, as_json(found)), (TUTORIAL, lesson)):
            path.write_text(made, "utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
