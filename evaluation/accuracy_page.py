"""docs/accuracy.md: the scores as tables, each figure with its n."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from statistics import mean, median, stdev

import yaml

from evaluation import corpus, price_page
from evaluation.price_page import Cell, Stage
from evaluation.scoring import JOINED, NEAR_LINES, NO_NVTX, UNANNOTATED, WORTH, Score

MISSES = corpus.ROOT / "fixtures" / "misses.yaml"
FAMILIES = {
    "H": "host and launch", "S": "synchronisation", "M": "transfers", "A": "allocation", "O": "overlap", "D": "input",
    "N": "several GPUs", "C": "kernel: compute", "K": "kernel: memory", "L": "kernel: launch shape",
    "W": "kernel: stalls", "P": "precision",
}  # fmt: skip
NOTICE = "<!-- Written by `python -m evaluation.scorecard`; change the programs or the rules instead. -->"


def page(scores: Sequence[Score], cells: Sequence[Cell], stages: Sequence[Stage]) -> str:
    """The whole page."""
    bare = [s for s in scores if s.suffix in (UNANNOTATED, NO_NVTX)]
    joined = [s for s in scores if s.suffix == JOINED]
    scores = [s for s in scores if s.counted]
    slow = [s for s in scores if s.role == "slow" and s.answerable]
    waiting = [s for s in scores if s.role == "slow" and not s.answerable]
    healthy = [s for s in scores if s.role == "healthy"]
    fixed = [s for s in scores if s.role == "fixed"]
    parts = [
        NOTICE,
        "# How often gpudiag is right",
        headline([*scores, *bare, *joined]),
        "## How good the prices are",
        "\n".join(f"* {line}" for line in price_page.headline([*scores, *joined], stages)),
        "## How it is measured",
        _how(),
        "## By family",
        _families(slow),
        "## Programs with a planted fault",
        _programs(slow),
        "## Prices beside measured fixes",
        price_page.section(scores, cells, stages),
        *(
            ["## Programs whose cause has no rule yet", "What is said of them today:", _programs(waiting)]
            if waiting
            else []
        ),
        "## Timeline and counters together",
        _joined(joined),
        "## Healthy programs",
        _healthy(healthy),
        "## Fixed variants",
        _still(fixed),
        "## Without annotations",
        _bare(bare),
        "## What was said instead",
        _confusion(slow, healthy),
        "## Misses",
        _misses(scores),
        "## Not there yet",
        _pending(),
        "## What was measured",
        _labels(),
    ]
    return "\n\n".join(parts) + "\n"


def headline(scores: Sequence[Score]) -> str:
    """The result in a few lines."""
    bare = [s for s in scores if s.suffix == UNANNOTATED and s.role == "slow" and s.answerable]
    bare_healthy = [s for s in scores if s.suffix == UNANNOTATED and s.role == "healthy"]
    recorded = [s for s in scores if s.suffix == NO_NVTX]
    joined = [s for s in scores if s.suffix == JOINED and s.answerable]
    scores = [s for s in scores if s.counted]
    slow = [s for s in scores if s.role == "slow" and s.answerable]
    healthy = [s for s in scores if s.role == "healthy"]
    timeline = [s for s in slow if s.family not in corpus.KERNEL_FAMILIES]
    placed = [s for s in slow if s.place is not None]
    found = {
        "Planted cause, or an alternate that its label accepts, is the first finding": price_page.part(
            slow, lambda s: s.hit
        ),
        "Planted cause itself is the first finding": price_page.part(slow, lambda s: s.exact),
        "The same, counting programs whose cause has no rule yet": price_page.part(
            [s for s in scores if s.role == "slow"], lambda s: s.exact
        ),
        "Planted cause or alternate is among the first three": price_page.part(
            slow, lambda s: s.rank is not None and s.rank <= 3
        ),
        "Planted cause or alternate is first, causes that a timeline shows": price_page.part(timeline, lambda s: s.hit),
        "Planted cause or alternate is first, causes that an Nsight Compute page shows": price_page.part(
            [s for s in slow if s.family in corpus.KERNEL_FAMILIES], lambda s: s.hit
        ),
        "The same with the timeline given as well": price_page.part(
            [s for s in joined if s.role == "slow"], lambda s: s.hit
        ),
        "Planted line named, of host-side causes that samples could show": price_page.part(
            placed, lambda s: bool(s.place)
        ),
        f"Healthy programs with a finding worth more than {WORTH:.0%}": price_page.part(
            healthy, lambda s: bool(s.alarms)
        ),
        "Without the program's NVTX ranges, planted cause or alternate is the first finding": price_page.part(
            bare, lambda s: s.hit
        ),
        f"Without them, healthy programs with a finding worth more than {WORTH:.0%}": price_page.part(
            bare_healthy, lambda s: bool(s.alarms)
        ),
        "Recorded once more without NVTX, planted cause or alternate is the first finding": price_page.part(
            recorded, lambda s: s.hit
        ),
    }
    lines = [f"* {what}: {result}." for what, result in found.items()]
    for split in corpus.SPLITS:
        part = [s for s in slow if s.split == split]
        lines.append(f"* First finding, {split} programs alone: {price_page.part(part, lambda s: s.hit)}.")
    return "\n".join(lines)


def _how() -> str:
    return f"""\
Each program of the [corpus](../fixtures/README.md) carries one planted fault, some in several slow variants; counts
are of variants. Each is captured once and explained as a user would. A hit is the planted code or an alternate that the
program's `.expect.yaml` lists. Kernel causes (C, K, L, W) are read from an Nsight Compute page, the others from the
timeline. A place is right when the first finding's file is the planted one and its line within {NEAR_LINES} lines or
in the planted function. The rules' constants were set on the *development* programs; *validation* programs set none
([the split](../fixtures/split.yaml)). `.venv/bin/python -m
evaluation.scorecard` makes this page anew."""


def _families(slow: Sequence[Score]) -> str:
    rows = []
    for family, name in FAMILIES.items():
        for split in corpus.SPLITS:
            part = [s for s in slow if s.family == family and s.split == split]
            if part:
                placed, timed = [s for s in part if s.place is not None], [s for s in part if s.inside is not None]
                rows.append([f"{family}, {name}", split, len(part), _count(part, lambda s: s.hit),
                             _count(part, lambda s: s.rank is not None and s.rank <= 3),
                             f"{_count(placed, lambda s: bool(s.place))}/{len(placed)}" if placed else "",
                             f"{_count(timed, lambda s: bool(s.inside))}/{len(timed)}" if timed else "",
                             _error(timed)])  # fmt: skip
    head = ["family", "split", "variants", "first", "first three", "place", "interval holds", "median error"]
    return price_page.table(head, rows)


def _count(scores: Sequence[Score], right: Callable[[Score], bool]) -> int:
    return sum(map(right, scores))


def _error(timed: Sequence[Score]) -> str:
    errors = [abs(s.error) for s in timed if s.priced and s.error is not None]
    return f"{median(errors):.0%}" if errors else ""


def _programs(slow: Sequence[Score]) -> str:
    rows = [[s.name, s.split[:3], s.planted, s.first or "none", _hit(s), _said(s.place), price_page.ms(s.before_ms),
             price_page.ms(s.measured_ms), ", ".join(s.forbidden)] for s in slow]  # fmt: skip
    head = ["program", "split", "planted", "first finding", "hit", "place", "slow, ms", "fixed, ms",
            "said but ruled out"]  # fmt: skip
    return price_page.table(head, rows)


def _hit(score: Score) -> str:
    if score.hit:
        return "first" if score.first == score.planted else "alternate"
    return f"rank {score.rank}" if score.rank else "**missed**"


def _said(value: bool | None) -> str:
    return "" if value is None else ("right" if value else "**wrong**")


def _joined(joined: Sequence[Score]) -> str:
    how = (
        "The same programs with both files given: the kernel's share comes from the timeline, the reason and its"
        " interval from the counters, the iteration's gain from the replay. Healthy ones may say nothing either."
    )
    rows = [
        [s.name, s.split[:3], s.planted or "none", s.first or "none", _hit(s) if s.role == "slow" else _said(s.hit),
         *map(price_page.ms, (s.before_ms, s.predicted_ms)), price_page.interval(s), price_page.ms(s.measured_ms),
         _said(s.inside) if s.kind == "expected" else (s.kind or "").replace("_", " ")]
        for s in joined
    ]  # fmt: skip
    head = ["program", "split", "planted", "first finding", "hit", "slow, ms", "predicted, ms", "interval", "fixed, ms",
            "inside"]  # fmt: skip
    return f"{how}\n\n{price_page.table(head, rows)}"


def _healthy(healthy: Sequence[Score]) -> str:
    rows = [
        [s.name, s.split[:3], ", ".join(s.alarms) or "none", s.first or "none", ", ".join(s.forbidden)] for s in healthy
    ]
    return price_page.table(
        ["program", "split", f"findings above {WORTH:.0%}", "any finding", "said but ruled out"], rows
    )


def _still(fixed: Sequence[Score]) -> str:
    rows = [[s.name, ", ".join(s.alarms)] for s in fixed if s.alarms]
    how = (
        "What is still said once the planted fault is gone, above the same gate. Some of it is true: a fixed variant"
        " may have the next fault (`chunked_pipeline` has two), and most kernels could be better."
    )
    quiet = f"{len(fixed) - len(rows)} of {len(fixed)} captures of fixed variants: nothing."
    return f"{how}\n\n{price_page.table(['fixed variant', f'findings above {WORTH:.0%}'], rows)}\n\n{quiet}"


def _bare(bare: Sequence[Score]) -> str:
    how = (
        "The same captures with the program's NVTX ranges left out after reading, and three programs recorded"
        " without NVTX: the loop has to be found from what repeats. It may be a part of the iteration that was timed,"
        " so no price is held against a measurement here. Listed are those where the answer then is another one; these"
        " are no misses of the page above."
    )
    rows = [
        [s.name.partition(",")[0], s.planted or "none", s.first or "none"] for s in bare if s.answerable and not s.hit
    ]
    return f"{how}\n\n{price_page.table(['program', 'planted', 'first finding'], rows)}"


def _confusion(slow: Sequence[Score], healthy: Sequence[Score]) -> str:
    planted = sorted({str(s.planted) for s in slow})
    rows = []
    for code in planted:
        firsts = Counter(s.first or "none" for s in slow if s.planted == code)
        elsewhere = sum(s.first == code and s.rank != 1 for s in slow)
        alarms = sum(code in s.alarms for s in healthy)
        summary = ", ".join(
            f"{first} × {n}" for first, n in sorted(firsts.items(), key=lambda item: (-item[1], item[0]))
        )
        rows.append([code, sum(firsts.values()), summary, elsewhere, alarms])
    return price_page.table(
        ["planted", "n", "first finding", "first where something else was planted", "alarms on healthy"], rows
    )


@cache
def _causes() -> dict[str, str]:
    document = yaml.safe_load(MISSES.read_text("utf-8")) if MISSES.exists() else None
    return dict(document or {})


def unexplained(scores: Sequence[Score]) -> list[Score]:
    """Misses of which fixtures/misses.yaml does not give the cause."""
    return [s for s in scores if _missed(s) and s.key not in _causes()]


def _missed(score: Score) -> bool:
    if score.role == "fixed" or not score.answerable or not score.counted:
        return False
    return not score.hit or score.place is False or bool(score.forbidden)


def _misses(scores: Sequence[Score]) -> str:
    rows = [f"* {s.name}: {_causes().get(s.key, 'the cause is not written down yet.')}" for s in scores if _missed(s)]
    return "\n".join(rows) or "None."


def _pending() -> str:
    rows = [f"* {name}: {why}." for what in corpus.PENDING_KINDS for name, why in corpus.pending(what).items()]
    return "\n".join(rows) or "Nothing is missing."


def _labels() -> str:
    rows = []
    for case in corpus.cases():
        if case.role != "slow" or not case.annotated or case.joined:
            continue
        label = corpus.label(case.slug)
        for pair, ratio in label.get("ratios", {}).items():
            if not pair.startswith(f"{case.variant} / "):
                continue
            entry = label["variants"][case.variant]
            times = entry["unprofiled"]["per_process_ms"]
            slow, fixed = (price_page.ms(corpus.iteration_ms(case.slug, name)) for name in pair.split(" / "))
            rows.append([f"{case.slug} `{pair}`", slow, fixed, f"{ratio['ratio']:.2f}",
                         f"{ratio['low']:.2f}–{ratio['high']:.2f}", " + ".join(map(str, ratio["n"])),
                         f"{stdev(times) / mean(times):.1%}",
                         f"{entry['traced_over_unprofiled']:.2f}" if "traced_over_unprofiled" in entry else "",
                         "yes" if label.get("agree") else "**no**"])  # fmt: skip
    head = ["slow / fixed", "slow, ms", "fixed, ms", "ratio", "95 % interval", "processes", "noise of slow",
            "traced ÷ unprofiled", "same results"]  # fmt: skip
    how = (
        "One iteration, unprofiled: the median over fresh processes of three windows each, the variants interleaved;"
        " the interval is a bootstrap over processes (with three processes it is their range, which holds less often"
        " than 95 %), noise the coefficient of variation between them. While the programs for two GPUs and those added"
        " last were timed, others were being profiled on a second GPU of the same host."
    )
    return f"{how}\n\n{price_page.table(head, rows)}"
