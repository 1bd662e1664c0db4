"""The first screen in words: a line and bar for each loop, a row for each finding, the caveat that counts most."""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

from gpudiag.model import SEVERITIES, Finding, Job, Kernel, Loop, Note, Remedy, Report, Run
from gpudiag.model.vocabulary import FRAMEWORKS
from gpudiag.report.code_review import locations
from gpudiag.report.wording import gain_words, words
from gpudiag.text import escape
from gpudiag.text.format import pct

BAR = 30
JOINT = " · "  # between the parts of a loop's time
NAMED = 4  # parts of a loop's time named beside the bar; the others are summed up
ROWS = 8  # findings that get a row
LISTED = 3  # places of a finding that are all listed; of more the first is, and the others are counted
KERNELS = 3  # named where there is no loop
PAUSED = 0.1  # part of a loop's time that its pauses take, from which on its line says so
GLYPHS = {"compute": "█", "exposed_communication": "▓", "exposed_copy": "▓", "pauses": "▒"}
IDLE = "░"
CELLS = {"█": "computing", "▓": "moving data", IDLE: "idle", "▒": "pauses between iterations"}
NO_PLACE = "not recorded"
COMPUTING = ("computing", "compute")  # in the time tree, and in the budget of older reports


class LoopLine(NamedTuple):
    """A loop at a glance; the texts are Markdown."""

    text: str
    bar: str
    rest: str


def lines(report: Report, loops: Sequence[Loop]) -> list[LoopLine]:
    """A line for each loop; where no timeline was recorded, for each of the longest kernels."""
    if loops or not report.run.kernels:
        above = lead(report)
        return [loop_line(loop, above) for loop in loops]
    several = len(report.run.kernels) > 1
    return [
        LoopLine(f"{escape.code(one.name)}: {words.duration(one.duration_ms)} a launch{_part(one, several)}", "", "")
        for one in _longest(report.run)
        if one.duration_ms
    ]


def _longest(run: Run) -> list[Kernel]:
    return sorted(run.kernels, key=lambda one: -one.duration_ms * one.launches)[:KERNELS]


def _part(kernel: Kernel, several: bool) -> str:
    """`, 12 % of the profiled time`; of a single kernel nothing, since that is all of it."""
    return f", {pct(kernel.share)} of the profiled time" if several and kernel.share is not None else ""


def legend(lines: Sequence[LoopLine]) -> str:
    """Explain the characters that the bars use: `█ computing · ░ idle`."""
    used = {cell for line in lines for cell in line.bar}
    return " · ".join(f"{cell} {meaning}" for cell, meaning in CELLS.items() if cell in used)


class FindingRow(NamedTuple):
    """A finding at a glance; the texts are Markdown."""

    finding: Finding
    title: str
    where: str
    fix: str
    saves: str
    seen: str


def heading(report: Report) -> str:
    """Name what the report is of, as Markdown: a job's ranks and the one shown in full, or else the files."""
    others = f" and {words.plural(len(report.inputs) - 1, 'more file')}" if len(report.inputs) > 1 else ""
    if report.job:
        return f"{of_job(report.job)}, {escape.code(report.job.reference)} in full{others}"
    return f"{escape.code(subject(report))}{others}"


def subject(report: Report) -> str:
    """The same in few words, as plain text: the ranks of a job, or the name of the first file."""
    if report.job:
        return of_job(report.job)
    return file_name(report.inputs[0].file) if report.inputs else "nothing"


def of_job(job: Job) -> str:
    """The number of ranks, and of hosts where that is known: `10 ranks on 5 hosts`."""
    hosts = f" on {words.plural(job.hosts, 'host')}" if job.hosts else ""
    return f"{words.plural(job.ranks, 'rank')}{hosts}"


def of_another_rank(job: Job) -> str:
    """The command that explains a rank alone of which there is no page, as Markdown; empty where there is none."""
    other = next((one for one in job.members if one.label != job.reference and not one.page), None)
    if other is None:
        return ""
    shared = sum(one.file == other.file for one in job.members) > 1
    which = f" --rank {other.rank}" if shared and other.rank is not None else ""
    return escape.code(f"gpudiag explain {shlex.quote(other.file)}{which}", escape.COMMAND_LIMIT)


def file_name(path: str) -> str:
    """A file's name without its folders."""
    return PurePath(path).name or path


def lead(report: Report) -> str:
    """The verdict, where the rows below do not say the same. Without timeline or kernels it says what is missing."""
    said = report.findings and report.verdict.state == "problems" and (report.run.loops or report.run.kernels)
    return "" if said else report.verdict.text


def loop_line(loop: Loop, above: str = "") -> LoopLine:
    """The time of an iteration, the part in which the GPU computes, and what the rest is.

    above: the sentence that stands above the line, whose figures it does not repeat.
    """
    parts = [(row.key, row.part, row.label) for row in words.budget_rows(loop)]
    busy = sum(loop.tree[key].share if loop.tree else loop.budget.get(key, 0.0) for key in COMPUTING if _has(loop, key))
    rest = sorted((one for one in parts if one[0] != "compute"), key=lambda one: -one[1])
    named = [one for one in rest[:NAMED] if one[1] >= words.LITTLE]
    texts = [f"{pct(share)} {label}" for _, share, label in named]
    if (other := sum(share for _, share, _ in rest) - sum(share for _, share, _ in named)) >= words.SMALLEST:
        texts.append(f"{pct(other)} {'other' if named else 'not computing'}")
    said = re.search(rf"computes (only )?{re.escape(f'{pct(busy)} of {escape.code(loop.name)}')}", above)
    text = _time(loop)
    joint, time = (";", "the time") if loop.median_ms else (",", "it")
    if parts and not said:
        text += f"{joint} the GPU computes {pct(busy)} of {time}"
    text += _guessed(loop)
    drawn = [("compute", busy), *((key, share) for key, share, _ in rest)]
    if (paused := loop.paused_share or 0.0) >= PAUSED:
        text += f"; pauses between iterations take {pct(paused)} of the loop's time"
        whole = sum(share for _, share in drawn)
        drawn.append(("pauses", whole * paused / (1 - paused) if paused < 1 else whole))
    return LoopLine(text, _bar(drawn), JOINT.join(texts))


def devices(run: Run) -> list[str]:
    """The devices by name; of several alike how many."""
    counts = Counter(run.devices)
    return [f"{count} × {device}" if count > 1 else device for device, count in counts.items()]


def _has(loop: Loop, key: str) -> bool:
    return key in (loop.tree or loop.budget)


def _time(loop: Loop) -> str:
    time = words.duration(loop.iteration_ms)
    if loop.source == "unknown":
        return f"The recorded work, in which nothing repeats: {time}"
    name = escape.code(loop.name) + (f" in {escape.code(loop.file)}" if loop.file else "")
    if loop.iteration_ms_unprofiled:
        real = words.duration(loop.iteration_ms_unprofiled)
        return f"{name}: {real} an iteration; under the profiler {time}{words.unlike_mean(loop)}"
    return f"{name}: {time} an iteration{words.unlike_mean(loop)}"


def _guessed(loop: Loop) -> str:
    """`; without the profiler perhaps 108 ms (75.4 ms to 157 ms)`; empty where it would take hardly less."""
    if loop.guessed is None:
        return ""
    usual, least, most = map(words.duration, (loop.guessed.usual_ms, loop.guessed.least_ms, loop.guessed.most_ms))
    mean = " on average" if loop.median_ms else ""
    return f"; without the profiler perhaps {usual}{mean} ({least} to {most})"


def _bar(parts: Sequence[tuple[str, float]]) -> str:
    """Block characters, as many for each part as its share: the ends are rounded, so that they never add up to more."""
    total = sum(share for _, share in parts)
    if not total:
        return ""
    cells, end, drawn = "", 0.0, 0
    for key, share in parts:
        end += share / total
        cells += GLYPHS.get(key, IDLE) * (round(end * BAR) - drawn)
        drawn = round(end * BAR)
    return cells


def rows(
    report: Report, remedies: Sequence[Sequence[Remedy]], loops: Mapping[int, Loop], folder: str
) -> list[FindingRow]:
    """A row for each finding. remedies: of each those that fit the reader's framework; folder: see `where`."""
    same, parts = same_lines(report.findings), _kernel_parts(report.run)
    made = []
    for finding, fitting in zip(report.findings, remedies, strict=True):
        above = "finding 1" if finding.rank == 2 else "those above"
        saves = gain_words.headline(finding, loops, above, ranged=True)
        kernel = next((place.kernel for place in finding.where if place.kernel), "")
        part = parts.get(kernel, "") if finding.gain.basis == "kernel" else ""
        doubt = ", with low confidence" if finding.confidence == "low" else ""
        fix = in_order(finding, report.findings, fix_line(fitting[0])) if fitting else "see below"
        place = where(finding, loops, folder, same.get(finding.rank)) or _unplaced(report.run)
        seen = escape.prose(_sentence(finding.message))
        made.append(FindingRow(finding, escape.prose(finding.title), place, fix, f"{saves}{part}{doubt}", seen))
    return made


def _sentence(text: str) -> str:
    """The first sentence: a message begins with what was seen, how often and how large."""
    return re.split(r"(?<=[.!?]) (?=[A-Z`])", text.strip(), maxsplit=1)[0]


def fix_line(remedy: Remedy) -> str:
    """The fix in one line, with what to write for it: ``Allow TF32: `torch.set_float32_matmul_precision("high")` ``."""
    return f"{remedy.title}: {remedy.hint}" if remedy.hint else remedy.title


def in_order(finding: Finding, findings: Sequence[Finding], fix: str) -> str:
    """Return the fix, behind `Once finding 1 is fixed,` where fixes of findings above it come first; Markdown."""
    first = [str(one.rank) for one in findings if one.code in finding.after and one.gain.loop == finding.gain.loop]
    if not first:
        return escape.prose(fix)
    noun = "finding" if len(first) == 1 else "findings"
    said = fix if fix[1:2].isupper() else f"{fix[:1].lower()}{fix[1:]}"  # an acronym stays one
    verb = "is" if len(first) == 1 else "are"
    return escape.prose(f"Once {noun} {' and '.join(first)} {verb} fixed, {said}")


def _unplaced(run: Run) -> str:
    """Say that no line is known, and what shows it where no note on the recording does."""
    if not run.loops:
        return NO_PLACE
    in_python = any(FRAMEWORKS[name].in_python for name in run.frameworks)
    return NO_PLACE if in_python else f"{NO_PLACE}: NVTX ranges around parts of the program would show it"


def _kernel_parts(run: Run) -> dict[str, str]:
    """The part of the profiled time that a kernel takes, in words, by its name; not of those that `lines` names."""
    several, named = len(run.kernels) > 1, () if run.loops else [one.name for one in _longest(run)]
    parts: dict[str, list[str]] = defaultdict(list)
    for one in run.kernels:
        parts[one.name].append("" if run.loops else _part(one, several))
    return {name: found[0] for name, found in parts.items() if len(found) == 1 and name not in named}


def same_lines(findings: Sequence[Finding]) -> dict[int, int]:
    """Return the rank of the finding whose first line a later finding's first line is, by rank of the later one."""
    first: dict[tuple[str, int], int] = {}
    found: dict[int, int] = {}
    for finding in findings:
        place = finding.where[0] if finding.where else None
        if place is None or place.file is None or place.line is None:
            continue
        rank = first.setdefault((place.file, place.line), finding.rank)
        if rank != finding.rank:
            found[finding.rank] = rank
    return found


def as_line_of(rank: int | None) -> str:
    """` (same line as finding 1)`; nothing without a rank."""
    return f" (same line as finding {rank})" if rank else ""


def where(finding: Finding, loops: Mapping[int, Loop], folder: str, same: int | None = None) -> str:
    """`a.py:31` in `step` and 4 other places; without places the CUDA call that the finding is about, or nothing.

    folder: left out of the files' names; same: the rank of a finding at the same line. Where cost
    belongs to no named line, the line's own part is said.
    """
    if not finding.where:
        call = finding.evidence.get("call_name")
        return f"calls of {escape.code(call)}; their lines are not recorded" if isinstance(call, str) else ""
    loop = words.loop_of(finding, loops)
    process = f"{escape.plain(finding.process)}: " if finding.process else ""
    count = words.places(finding, len(locations.spots(finding.where, loop)))
    if 1 < count <= LISTED and not same:
        return f"{process}{locations.brief(finding.where, loop, folder)}"
    first = f"{process}{locations.brief(finding.where[:1], loop, folder)}{as_line_of(same)}"
    if count > 1:
        return f"{first} and {words.plural(count - 1, 'other place')}"
    rest = words.left_over(finding, len(finding.where))
    return f"{first}, {pct(1 - rest)} of this cost" if rest >= words.LITTLE else first


def caveat(notes: Sequence[Note]) -> Note | None:
    """The note that takes most from the figures; None where none takes anything."""
    severe = [note for note in notes if note.severity != "info"]
    return max(severe, key=lambda note: (SEVERITIES.index(note.severity), note.share or 0.0), default=None)
