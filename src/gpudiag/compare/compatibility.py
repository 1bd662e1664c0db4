"""Checks before a comparison: reasons to refuse it, and remarks for its reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Literal

from gpudiag.compare.loop_matching import Pair, common_share
from gpudiag.compare.parts import kernel_times
from gpudiag.diagnosis.iteration_time_check import doubt
from gpudiag.model import LoopChange, Report, Side
from gpudiag.text.escape import short_name
from gpudiag.text.format import code, pct, plural

KINDS = {"timeline": "a timeline (Nsight Systems or torch.profiler)", "kernels": "kernel profiles (Nsight Compute)"}
RECORDERS = {"nsys": "Nsight Systems", "torch": "torch.profiler"}
NAMED = 3


def side(reports: Sequence[Report]) -> Side:
    return Side(
        files=tuple(item.file for report in reports for item in report.inputs),
        reports=len(reports),
        kind=_kind(reports),
        devices=_devices(reports),
        clocks_mhz=_clocks(reports),
    )


def _clocks(reports: Sequence[Report]) -> tuple[float, ...]:
    """The highest clocks of the devices; of kernel profiles the median clock while they were measured."""
    highest = {round(clock, 1) for report in reports for clock in report.run.clocks_mhz}
    if highest:
        return tuple(sorted(highest))
    measured = [kernel.facts.get("clock_mhz") for report in reports for kernel in report.run.kernels]
    known = [float(clock) for clock in measured if isinstance(clock, (int, float)) and clock > 0]
    return (round(median(known), 1),) if known else ()


def _kind(reports: Sequence[Report]) -> Literal["timeline", "kernels", "nothing"]:
    if all(report.run.loops for report in reports):
        return "timeline"
    return "kernels" if all(report.run.kernels for report in reports) else "nothing"


def _devices(reports: Sequence[Report]) -> tuple[str, ...]:
    return tuple(sorted({device for report in reports for device in report.run.devices}))


def of_recorders(settings: Mapping[str, float], reports: Sequence[Report]) -> Mapping[str, float]:
    """The settings, with what torch.profiler costs where any report is of a trace: it slows the host down more."""
    if not any("torch" in _recorders([report]) for report in reports):
        return settings
    return {
        **settings,
        "replay_call_ns": settings["replay_stacks_call_ns"],
        "diff_least_host": settings["replay_stacks_least_driver"],
        "diff_most_slowed": settings["diff_stacks_most_slowed"],
    }


def _recorders(reports: Sequence[Report]) -> set[str]:
    return {item.kind for report in reports for item in report.inputs if item.kind in RECORDERS}


def refusals(
    base: Side,
    head: Side,
    base_reports: Sequence[Report],
    head_reports: Sequence[Report],
    settings: Mapping[str, float],
    *,
    timed: bool = False,
) -> list[str]:
    """Return the reasons to conclude nothing, before any loop is looked at.

    timed: whether the times of both sides without a profiler are given, so that no profiler's cost is compared.
    """
    found = []
    for name, one, reports in (("base", base, base_reports), ("head", head, head_reports)):
        if one.kind == "nothing":
            empty = next((r for r in reports if not r.run.loops and not r.run.kernels), reports[0])
            mixed = "its reports differ in kind" if empty.run.loops or empty.run.kernels else empty.verdict.text
            found.append(f"{name} shows nothing to compare: {mixed.rstrip('.')}.")
    if found:
        return found
    if base.kind != head.kind:
        return [f"base holds {KINDS[base.kind]} and head {KINDS[head.kind]}: record both with the same tool."]
    made = _recorders(base_reports), _recorders(head_reports)
    if base.kind == "timeline" and all(made) and made[0] != made[1] and not timed:
        names = [" and ".join(RECORDERS[kind] for kind in sorted(kinds)) for kinds in made]
        text = f"base was recorded by {names[0]} and head by {names[1]}, which slow a program down differently: record"
        return [f"{text} both with one of them, or give unprofiled times of both (--base-time, --head-time)."]
    if base.devices and head.devices and base.devices != head.devices:
        models = f"base ran on {_named(base.devices)} and head on {_named(head.devices)}"
        return [f"{models}: times of different GPU models say nothing about the program."]
    counts = [max(len(report.run.devices) for report in reports) for reports in (base_reports, head_reports)]
    if all(counts) and counts[0] != counts[1]:
        gpus = f"base ran on {_gpus(counts[0])} and head on {_gpus(counts[1])}"
        return [f"{gpus}: an iteration does another part of the work."]
    return _other_clocks(base_reports, head_reports, settings["diff_measured_clock"])


def _other_clocks(base: Sequence[Report], head: Sequence[Report], most: float) -> list[str]:
    """Refuse sides whose GPUs ran at other clocks; known only where each report has a log of nvidia-smi."""
    if not all(report.run.measured_clocks_mhz for report in (*base, *head)):
        return []
    clocks = [median(clock for one in side for clock in one.run.measured_clocks_mhz) for side in (base, head)]
    apart = abs(clocks[0] - clocks[1]) / max(clocks)
    if apart <= most:
        return []
    ran = f"by the logs of nvidia-smi the GPUs ran at {clocks[0]:,.0f} MHz before and at {clocks[1]:,.0f} MHz now"
    how = "times follow the clock: record both at one clock (`nvidia-smi --lock-gpu-clocks`)"
    return [f"{ran}, {pct(apart)} apart, and {how}."]


def _gpus(count: int) -> str:
    return f"{count} GPU{'s' if count > 1 else ''}"


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(code(short_name(name)) for name in names[:NAMED]) + more


def unmatched(base: Report, head: Report, settings: Mapping[str, float]) -> str:
    """Explain why no loop of one side was found in the other."""
    both = [(one, other) for one in base.run.loops for other in head.run.loops]
    alike = next((pair for pair in both if common_share(*pair) >= settings["diff_common_work"]), None)
    if alike and "period" in (alike[0].source, alike[1].source):
        summary = [f"{code(loop.name)} with {plural(loop.launches, 'launch', 'launches')}" for loop in alike]
        return (
            f"the same kernels repeat in both, but an iteration of {summary[0]} before and one of {summary[1]} now do"
            " not show how much work each is: mark an iteration with an NVTX range of one name in both."
        )
    names = [_named([loop.name for loop in report.run.loops]) for report in (base, head)]
    if any(loop.source == "unknown" for report in (base, head) for loop in report.run.loops):
        return "no step was found that repeats in both, and without one, times say nothing: record more iterations."
    guessed = any(loop.source == "period" for report in (base, head) for loop in report.run.loops)
    why = "mark an iteration with an NVTX range of one name in both" if guessed else "name their NVTX ranges alike"
    return f"no loop of base ({names[0]}) was found in head ({names[1]}): are these two programs? If not, {why}."


def unrelated(base: Report, head: Report, pairs: Sequence[Pair]) -> str | None:
    """Loops may be called alike in unrelated programs: no kernel in common and no framework in common tell those."""
    if any(kernel_times.in_common(pair.base.kernels, pair.head.kernels) for pair in pairs):
        return None
    frameworks = set(base.run.frameworks), set(head.run.frameworks)
    programs = set(base.run.programs), set(head.run.programs)
    if frameworks[0] and frameworks[1] and not frameworks[0] & frameworks[1]:
        return (
            f"no kernel runs in both, and base uses {', '.join(sorted(frameworks[0]))} where head uses"
            f" {', '.join(sorted(frameworks[1]))}: these look like two programs."
        )
    if programs[0] and programs[1] and not programs[0] & programs[1]:
        # Processes may be named after their threads, and the sentence may be posted: their names stay out of it.
        return "no kernel runs in both, and the processes have other names: these look like two programs."
    return None


def parts(base: Report, head: Report) -> list[str]:
    """A sentence where the sides are not the same part of their runs. Times may differ: so do two runs."""
    summary = [_part(report) for report in (base, head)]
    same = "Not the same part of both was selected: {} before, {} now. These may not do the same work."
    return [same.format(*summary)] if summary[0] != summary[1] else []


def _part(report: Report) -> str:
    asked = report.run.selection
    if asked is None:
        return "all of it"
    words = ["a time"] if asked.start_ms is not None or asked.end_ms is not None else []
    words += [f"range {code(name)}" for name in asked.nvtx] + [f"GPU {number}" for number in asked.devices]
    words += [f"process {code(name)}" for name in asked.processes] + [f"rank {number}" for number in asked.ranks]
    return ", ".join(words)


def notes(base: Side, head: Side, pairs: Sequence[Pair], settings: Mapping[str, float]) -> list[str]:
    """Return the differences that are no reason to refuse."""
    found = []
    clocks = max(base.clocks_mhz, default=0.0), max(head.clocks_mhz, default=0.0)
    if all(clocks) and abs(clocks[0] - clocks[1]) > settings["diff_clock"] * max(clocks):
        said = f"{clocks[0]:,.0f} MHz before, {clocks[1]:,.0f} MHz now"
        what = (
            "The GPU ran the kernels at another clock" if base.kind == "kernels" else "The GPUs' highest clocks differ"
        )
        found.append(f"{what}: {said}. That alone changes times.")
    if not base.devices or not head.devices:
        found.append("The GPU's model was not recorded on both sides: whether it is the same is not known.")
    for pair in pairs:
        if pair.base.processes != pair.head.processes:
            counts = f"{pair.base.processes} before, {pair.head.processes} now"
            found.append(f"{code(pair.base.name)} runs in another number of processes: {counts}.")
        if pair.how == "kernels":
            names = f"{code(pair.base.name)} and {code(pair.head.name)}"
            found.append(f"{names} are taken for the same loop: they start the same kernels as often.")
        share = common_share(pair.base, pair.head)
        if pair.base.kernels and pair.head.kernels and share < settings["diff_common"]:
            much = f"only {pct(share)}" if share else "none"
            found.append(
                f"Of the kernel time of {code(pair.base.name)}, {much} is spent in kernels that run on both sides. A"
                " fix may do that; if these are two programs, nothing here means anything."
            )
    return found


def contradicted(pair: Pair, change: LoopChange, settings: Mapping[str, float]) -> list[str]:
    """Times given for an iteration that its recording speaks against, a sentence a side."""
    found = []
    for when, loop, times in (("before", pair.base, change.base), ("now", pair.head, change.head)):
        doubts = [doubt(loop, ms, settings) for ms in times.unprofiled_ms]
        first = next(filter(None, doubts), "")
        if first:
            found.append(f"The time given for {code(loop.name)} {when} cannot be right: {first}")
    return found
