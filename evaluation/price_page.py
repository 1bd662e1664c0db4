"""The part of docs/accuracy.md that holds prices against measured fixes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from evaluation import corpus, kept_reports
from evaluation.rank_correlation import middle, spearman
from evaluation.scoring import JOINED, Score
from gpudiag.model import Finding

# Causes that the rule catalogue prices by re-simulation; the others are bounds, rooflines or experiments.
SIMULATED = frozenset(
    [
        "H01",
        "H02",
        "H04",
        "H05",
        "H06",
        "H07",
        "H08",
        "H09",
        "H10",
        "S01",
        "S02",
        "S03",
        "S05",
        "M02",
        "M04",
        "M05",
        "M08",
        "A01",
        "A02",
        "O02",
        "O04",
        "D01",
        "D03",
        "D05",
        "N01",
        "N04",
        "N07",
    ]
)
CURVE = "training_curve"


@dataclass(frozen=True)
class Cell:
    """One cell of a program with two causes: which fixes are made, and what an iteration takes then (ms)."""

    program: str
    fixes: tuple[str, ...]
    predicted_ms: float | None
    measured_ms: float


@dataclass(frozen=True)
class Stage:
    """One stage of the training curve: the next stage's cause, where it ranks, and what all fixes leave (ms)."""

    stage: str
    cause: str
    rank: int | None
    before_ms: float
    predicted_end_ms: float | None


def headline(scores: Iterable[Score], stages: Sequence[Stage] = ()) -> list[str]:
    """The results in a few lines."""
    scores = list(scores)
    replayed = [s for s in scores if s.counted and s.replay_off is not None]
    timed = _timed(scores)
    off, starts = [abs(s.replay_off or 0) for s in replayed], [s.starts_off or 0 for s in replayed]
    close = sum(miss <= 0.05 for miss in off)
    simulated = [s for s in timed if s.planted in SIMULATED]
    lines = [
        f"Unedited replay within 5% of the recorded window: {close} of {len(off)}; worst {max(off, default=0):.1%}.",
    ]
    spread = f"median capture {middle(starts):.4f}, worst {max(starts, default=0):.2f}"
    lines.append(f"Start times in it, 95th percentile of the error in iterations: {spread}.")
    expected = part(simulated, lambda s: s.kind == "expected")
    lines.append(f"Pairs whose cause can be simulated that get an expected price: {expected}.")
    same = [s for s in timed if not s.other_fix]
    for name, those in (("all fixes", timed), ("fixes that are the priced ones", same)):
        for split in ("", *corpus.SPLITS):
            chosen = [s for s in those if s.priced and (not split or s.split == split)]
            lines.append(f"Expected prices, {name}{', ' + split if split else ''}: {_accuracy(chosen)}.")
        blind = part([s for s in those if s.priced], lambda s: bool(s.blind_inside))
        wide = middle([s.blind_width or 0 for s in those if s.priced])
        held = f"{blind} inside the printed interval (median width ±{wide:.0%})"
        lines.append(f"The same without the unprofiled time, {name}: {held}.")
    both = [s for s in timed if s.timed_hit is not None]
    lines.append(
        "Planted cause or alternate first when the unprofiled time is given, of those first without it:"
        f" {part(both, lambda s: bool(s.timed_hit))}."
    )
    for name, suffix in (("from the Nsight Compute page alone", ""), ("with the timeline as well", JOINED)):
        kernels = [s for s in scores if s.suffix == suffix and s.role == "slow" and s.family in corpus.KERNEL_FAMILIES]
        lines.append(f"Kernels' new times, {name}: {_accuracy([s for s in kernels if s.priced])}.")
    bounded = [s for s in timed if s.kind == "upper_bound"]
    lines.append(f"Upper bounds exceeded by more than a tenth: {part(bounded, lambda s: s.exceeded)}.")
    if stages:
        first_two = sum(stage.rank is not None and stage.rank <= 2 for stage in stages)
        lines.append(
            f"Training curve: the next stage's cause is first or second at {first_two} of {len(stages)} stages."
        )
    return lines


def _accuracy(chosen: Sequence[Score]) -> str:
    if not chosen:
        return "none"
    errors, gains = [abs(s.error or 0) for s in chosen], [abs(s.gain_error or 0) for s in chosen]
    near = part(chosen, lambda s: abs(s.error or 0) <= 0.2)
    held = part(chosen, lambda s: bool(s.inside))
    return (
        f"{len(chosen)} pairs, median error of the new time {middle(errors):.0%}, {near} within 20%,"
        f" {held} inside the interval (median width ±{middle([s.width or 0 for s in chosen]):.0%}),"
        f" median error of the gain {middle(gains):.0%}, rank correlation of the gains {spearman(chosen):.2f}"
    )


def _timed(scores: Iterable[Score]) -> list[Score]:
    """Timeline causes whose fix was measured."""
    return [
        s
        for s in scores
        if s.counted and s.role == "slow" and s.family not in corpus.KERNEL_FAMILIES
        if s.kind and s.measured_ms is not None
    ]


def section(scores: Sequence[Score], cells: Sequence[Cell], stages: Sequence[Stage]) -> str:
    """Tables of every price beside what was measured."""
    how = (
        "What the first finding promises with the unprofiled iteration time given, beside the measured variant that"
        " applies its fix. *Without* is the interval printed without that time. Where the measured fix is another one"
        " than the priced one, the last column says how. [How prices are made](prices.md)."
    )
    recording = (
        "Where the host sets the pace: what recording each call cost, solved from the unprofiled time, and what is left"
        " of the driver's and longer host work then. Without that time the range is"
        f" {_setting('replay_call_ns'):.0f} ns a call, none, and {_setting('replay_most_call_ns'):.0f} ns with"
        f" {_setting('replay_least_driver'):.0%} of the rest."
    )
    parts = [
        how,
        _prices(_timed(scores)),
        "### By edit",
        "The same prices by what the fix does to the timeline, all measured fixes.",
        _edits(_timed(scores)),
        "### What recording cost",
        recording,
        _recording(_timed(scores)),
        "### Programs with two causes",
        "From the capture that has both, with each fix alone and with both.",
        table(["program", "fixed", "predicted, ms", "measured, ms", "error"],
               [[c.program, " + ".join(c.fixes), ms(c.predicted_ms), ms(c.measured_ms),
                 f"{c.predicted_ms / c.measured_ms - 1:+.0%}" if c.predicted_ms else ""] for c in cells]),
        "### The training curve",
        "At each stage, where the next stage's cause ranks, and what all fixes found would leave together.",
        table(["stage", "measured, ms", "next cause", "its rank", "after all fixes found, ms"],
               [[s.stage, ms(s.before_ms), s.cause, s.rank or "not found", ms(s.predicted_end_ms)] for s in stages]),
    ]  # fmt: skip
    return "\n\n".join(parts)


def _edits(timed: Sequence[Score]) -> str:
    by_edit: dict[str, list[Score]] = {}
    for score in timed:
        found = corpus.library().by_code[score.first].price if score.first else None
        if found and score.priced:
            by_edit.setdefault(", ".join(found.expected or found.best), []).append(score)
    rows = [[edit, len(those), f"{middle([abs(s.error or 0) for s in those]):.0%}",
             f"{middle([abs(s.gain_error or 0) for s in those]):.0%}", part(those, lambda s: bool(s.inside))]
            for edit, those in sorted(by_edit.items())]  # fmt: skip
    return table(["edits", "n", "median error of the new time", "of the gain", "inside the interval"], rows)


def _recording(timed: Sequence[Score]) -> str:
    rows = [[s.name, s.split[:3], f"{s.call_ns / 1000:.1f}", f"{s.driver:.0%}"]
            for s in timed if s.call_ns is not None and s.driver is not None]  # fmt: skip
    return table(["program", "split", "a call, µs", "other host work left"], rows)


def _setting(name: str) -> float:
    return corpus.library().setting_values[name]


def _prices(timed: Sequence[Score]) -> str:
    rows = []
    for s in timed:
        blind = "" if s.blind_inside is None or s.kind != "expected" else "inside" if s.blind_inside else "**outside**"
        held = "" if s.inside is None or s.kind != "expected" else "inside" if s.inside else "**outside**"
        error = f"{s.error:+.0%}" if s.error is not None and s.kind == "expected" else ""
        gain = f"{s.gain_error:+.0%}" if s.gain_error is not None and s.kind == "expected" else ""
        if s.exceeded:
            held = "**exceeded**"
        rows.append([s.name, s.split[:3], s.first, str(s.kind).replace("_", " "), ms(s.before_ms), ms(s.predicted_ms),
                     interval(s), ms(s.measured_ms), error, gain, held, blind, s.other_fix or ""])  # fmt: skip
    head = ["program", "split", "finding", "price", "before, ms", "predicted, ms", "interval, ms", "measured, ms",
            "error", "error of the gain", "interval holds", "without", "the measured fix"]  # fmt: skip
    return table(head, rows)


def cells() -> list[Cell]:
    """Predictions for the programs that have two causes, each alone and both together."""
    found: list[Cell] = []
    for case in corpus.cases():
        if case.role != "slow" or not case.taken or case.kernel_page or len(case.expect.get("by_code", {})) < 2:
            continue
        # A cause that only counters show needs both files.
        if case.joined or not any(code[0] in corpus.KERNEL_FAMILIES for code in case.expect["by_code"]):
            found += _cells_of(case)
    return found


def _cells_of(case: corpus.Case) -> list[Cell]:
    both = corpus.iteration_ms(case.slug, "fixed")
    before, by_code = corpus.iteration_ms(case.slug, case.variant), case.expect["by_code"]
    if before is None or both is None or corpus.document(case.slug).get("cells", {}).get("both") != case.variant:
        return []
    findings = _findings(case, before)
    result: list[Cell] = []
    seen: set[str] = set()
    last: Finding | None = None
    for finding in findings:
        variant = by_code.get(finding.code)
        measured = corpus.iteration_ms(case.slug, variant) if variant and variant not in seen else None
        if measured is None or finding.gain.after_ms is None:
            continue
        seen.add(variant)
        result.append(Cell(case.slug, (finding.code,), finding.gain.after_ms, measured))
        last = finding
    if last and len(result) > 1:
        result.append(Cell(case.slug, tuple(c.fixes[0] for c in result), last.gain.cumulative_after_ms, both))
    return result


def stages() -> list[Stage]:
    """The training curve, stage by stage."""
    found = []
    for case in corpus.cases():
        if case.slug != CURVE or case.role != "slow" or not case.taken:
            continue
        before = corpus.iteration_ms(case.slug, case.variant)
        if before is None:
            continue
        findings = _findings(case, before)
        accepted = [case.expect["top"], *case.expect.get("alternates", [])]
        rank = next((number for number, f in enumerate(findings, 1) if f.code in accepted), None)
        end = findings[-1].gain.cumulative_after_ms if findings else None
        found.append(Stage(case.variant, case.expect["top"], rank, before, end))
    return found


def _findings(case: corpus.Case, before_ms: float) -> Sequence[Finding]:
    return kept_reports.report_of(*case.captures, iteration_ms=before_ms).findings


def interval(score: Score) -> str:
    """`1.2–3.4` where the price is an expectation."""
    return f"{ms(score.low_ms)}–{ms(score.high_ms)}" if score.kind == "expected" else ""


def part(scores: Sequence[Score], right: Callable[[Score], bool]) -> str:
    """`3 of 4 (75%)`."""
    hits = sum(map(right, scores))
    return f"{hits} of {len(scores)}" + (f" ({hits / len(scores):.0%})" if scores else "")


def ms(value: float | None) -> str:
    """A time in ms, to three digits."""
    return "" if value is None else f"{value:.3g}"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    assert all(len(row) == len(head) for row in rows), head
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in lines)
