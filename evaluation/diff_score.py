"""Score `gpudiag diff` on measured pairs:  python -m evaluation.diff_score [--check] [--reports FOLDER]

Compares every measured pair of variants in fixtures/captures, repeats of the same variant (fixtures/repeats), and
unrelated programs. Writes docs/diff.md; with --check nothing is written, and it fails when the page would change.
--reports keeps the reports as JSON there and takes them from there the next time. About two minutes on two cores.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import NamedTuple

from evaluation import corpus, packed
from gpudiag import pipeline
from gpudiag.compare import compare
from gpudiag.model import Diff, Report
from gpudiag.report import json_format, saved

PAGE = corpus.ROOT / "docs" / "diff.md"
REPEATS = corpus.ROOT / "fixtures" / "repeats"
GIVEN = 2  # unprofiled times a side; the other processes' are the truth then
SAME_LOOP = 0.7  # an iteration found that is shorter than this part of the label's is another loop's
NOTICE = "<!-- Written by `python -m evaluation.diff_score`; change the program or the captures instead. -->"
HOW = """
Every pair of variants in [the corpus](../fixtures/README.md) whose unprofiled times were measured is compared as a user
would do it: one recording a side. The truth is the ratio of the unprofiled times, new over old (medians of five
processes a variant). The constants were set on the development programs alone.

A fixed variant should be called an improvement, and the interval should hold the true ratio. *Cannot tell* is no error
but no help either: the host sets the pace there, and what the profiler adds is as large as the change. With the times
of two unprofiled runs a side (`--base-time`, `--head-time`) these are scored as well; the truth is then the median of
the other processes.
"""
REPEATED = """
The same variant of the same program, recorded again hours to days later on the same GPU model. What differs is noise.
Recorded times of programs whose pace the host sets differ up to 1.7 times.
"""
UNRELATED = """
Timelines of different programs, each with each. Those that are not refused call their loops alike (`iter`) and use the
same framework; where they have little kernel time in common, the page warns that these may be two programs.
"""


class Pair(NamedTuple):
    slug: str
    base: str
    head: str
    true: float  # head's unprofiled time over base's
    split: str
    blind: Diff
    timed: Diff
    timed_true: float  # the same ratio, by the processes whose times were not given

    @property
    def inside(self) -> bool | None:
        return holds(self.blind, self.true)


def holds(diff: Diff, true: float) -> bool | None:
    return diff.ratio.low <= true <= diff.ratio.high if diff.ratio else None


def timelines() -> dict[str, tuple[Path, ...]]:
    """program/variant → its captures, one a rank; repeats as repeat:program/variant."""
    found: dict[str, tuple[Path, ...]] = {}
    for slug in corpus.splits():
        folder = corpus.CAPTURES / slug
        for path in packed.recordings(folder):
            name, _, rank = packed.stem(path).partition(".rank")
            if rank in ("", "0"):
                ranks = [one for one in packed.recordings(folder) if packed.stem(one).startswith(f"{name}.rank")]
                found[f"{slug}/{name}"] = tuple(ranks) if rank else (path,)
    for path in packed.recordings(REPEATS):
        found[f"repeat:{path.parent.name}/{packed.stem(path)}"] = (path,)
    return found


def _report(captures: tuple[Path, ...], kept: Path | None) -> Report:
    if kept and kept.exists():
        return saved.read(kept)
    report = pipeline.explain([packed.opened(capture) for capture in captures])
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json_format.render(report))
    return report


def reports(folder: Path | None) -> dict[str, Report]:
    """Each timeline's report, made once."""
    named = timelines()
    kept = [folder / f"{name.replace('/', '--').replace(':', '-')}.json" if folder else None for name in named]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return dict(zip(named, pool.map(_report, named.values(), kept), strict=True))


def _settings() -> tuple[Mapping[str, float], Mapping[str, tuple[str, ...]]]:
    """Thresholds and budget parts: all that a comparison takes from the rules."""
    known = corpus.library()
    return known.setting_values, known.budget_parts


def pairs(found: dict[str, Report]) -> list[Pair]:
    settings = _settings()
    result = []
    for slug, split in corpus.splits().items():
        for name, ratio in corpus.label(slug).get("ratios", {}).items():
            base, head = name.split(" / ")
            names = [f"{slug}/{variant.replace(':', '-')}" for variant in (base, head)]
            if not found.keys() >= set(names):
                continue  # a fix whose time was measured need not have been recorded
            sides = [found[one] for one in names]
            times = [_unprofiled(slug, variant, report) for variant, report in zip((base, head), sides, strict=True)]
            true = 1 / ratio["ratio"]
            blind = compare(sides[:1], sides[1:], *settings)
            if not (all(times) and blind.loops):
                result.append(Pair(slug, base, head, true, split, blind, blind, true))
                continue
            given = [{"": one[:GIVEN]} for one in times]
            kept = [median(one[GIVEN:]) for one in times]
            timed = compare(sides[:1], sides[1:], *settings, *given)
            result.append(Pair(slug, base, head, true, split, blind, timed, kept[1] / kept[0]))
    return result


def _unprofiled(slug: str, variant: str, report: Report) -> list[float]:
    """The times of single processes; none where the iteration found is only a part of the labelled one."""
    about = corpus.label(slug)["variants"][variant]
    traced = about.get("nsys", {}).get("traced_iteration_ms")
    if not report.run.loops or not traced or not SAME_LOOP < report.run.loops[0].iteration_ms / traced < 1 / SAME_LOOP:
        return []
    return [float(time) for time in about["unprofiled"]["per_process_ms"]]


def repeats(found: dict[str, Report]) -> list[tuple[str, Diff]]:
    """Each repeat with its capture in the corpus, both ways."""
    settings = _settings()
    result = []
    for name, again in found.items():
        if name.startswith("repeat:"):
            own = name.removeprefix("repeat:")
            result.append((own, compare([found[own]], [again], *settings)))
            result.append((own, compare([again], [found[own]], *settings)))
    return result


def unrelated(found: dict[str, Report]) -> list[Diff]:
    settings = _settings()
    chosen: dict[str, Report] = {}
    for name, report in found.items():
        if not name.startswith("repeat:") and report.run.loops:
            chosen.setdefault(name.split("/")[0], report)
    return [compare([one], [other], *settings) for one, other in combinations(chosen.values(), 2)]


def _part(count: int, of: int) -> str:
    return f"{count} of {of}" + (f" ({count / of:.0%})" if of else "")


def _rates(rows: list[Pair]) -> list[str]:
    """A line a half of the corpus: improvement, inside, both; without and with the unprofiled times."""
    lines = [
        "| programs | | improvement | true ratio inside, of those compared | both, of all |", "|:--|:--|--:|--:|--:|"
    ]  # fmt: skip
    for name in ("all", *corpus.SPLITS):
        those = [row for row in rows if name in ("all", row.split)]
        for how, timed in (("one recording a side", False), (f"and {GIVEN} unprofiled times a side", True)):
            diffs = [(row.timed, row.timed_true) if timed else (row.blind, row.true) for row in those]
            improved = [diff.state == "improvement" for diff, _ in diffs]
            held = [holds(diff, true) for diff, true in diffs]
            both = sum(bool(a and b) for a, b in zip(improved, held, strict=True))
            compared = [inside for inside in held if inside is not None]
            cells = _part(sum(improved), len(those)), _part(sum(compared), len(compared)), _part(both, len(those))
            lines.append(f"| {name} | {how} | {' | '.join(cells)} |")
    return lines


def _row(row: Pair) -> str:
    ratio, state = row.blind.ratio, row.blind.state.replace("_", " ")
    interval = f"{_three(ratio.low)} to {_three(ratio.high)}" if ratio else "–"
    inside = {True: "yes", False: "**no**", None: "–"}[row.inside]
    timed = row.timed.state.replace("_", " ") if row.timed is not row.blind else "–"
    split = "" if row.split == "development" else "✓"
    names = f"{row.slug} `{row.base}` → `{row.head}`"
    return f"| {names} | {split} | {_three(row.true)} | {state} | {interval} | {inside} | {timed} |"


def _three(value: float) -> str:
    return f"{value:.3g}"


def page(found: dict[str, Report]) -> str:
    rows, again, others = pairs(found), repeats(found), unrelated(found)
    refused = sum(diff.state == "incomparable" for diff in others)
    warned = sum(any("two programs" in note for note in diff.notes) for diff in others)
    noise = sum(diff.state == "noise" for _, diff in again)
    parts = [
        NOTICE,
        "# How often `gpudiag diff` is right",
        HOW.strip(),
        "\n".join(_rates(rows)),
        "## Repeats of one program",
        REPEATED.strip(),
        f"Called noise: {_part(noise, len(again))} comparisons, each repeat with its capture both ways.",
        _table("program and variant | verdict | recorded, new over old | interval", "llrl", map(_repeat, again[::2])),
        "## Unrelated programs",
        UNRELATED.strip(),
        f"Refused: {_part(refused, len(others))} pairs. Warned of: {_part(warned, len(others) - refused)} of the rest.",
        "## Every pair",
        _table(
            "pair | validation | true ratio | verdict | interval | inside | with unprofiled times",
            "llrllll",
            map(_row, rows),
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _repeat(again: tuple[str, Diff]) -> str:
    name, diff = again
    ratio = diff.ratio
    figures = f"{_three(ratio.value)} | {_three(ratio.low)} to {_three(ratio.high)}" if ratio else "– | –"
    return f"| {name} | {diff.state.replace('_', ' ')} | {figures} |"


def _table(heads: str, align: str, rows: Iterable[str]) -> str:
    rule = "|".join({"l": ":--", "r": "--:"}[side] for side in align)
    return "\n".join([f"| {heads} |", f"|{rule}|", *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when docs/diff.md would change")
    parser.add_argument(
        "--reports", type=Path, metavar="FOLDER", help="keep the reports there, and take them from there"
    )
    arguments = parser.parse_args()
    text = page(reports(arguments.reports))
    if not arguments.check:
        PAGE.write_text(text, "utf-8")
        sys.stdout.write(text.partition("## Every pair")[0])
    elif not PAGE.exists() or PAGE.read_text("utf-8") != text:
        raise SystemExit("docs/diff.md is not that of this version: run `python -m evaluation.diff_score`.")


if __name__ == "__main__":
    main()
