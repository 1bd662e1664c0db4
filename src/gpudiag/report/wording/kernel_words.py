"""Kernels in words: of a profiled one its shape, nearest roofline limit and stall reasons; of a loop the longest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpudiag.model import Cause, Kernel, Loop, Stall
from gpudiag.report.wording.gain_words import SIZES
from gpudiag.report.wording.words import duration
from gpudiag.text import escape, kernel_names
from gpudiag.text.format import byte_size, num, pct

UNITS = {
    "dram": "DRAM bandwidth",
    "l2": "L2 cache",
    "l1": "L1 and shared memory",
    "memory": "the memory system",
    "pipe": "a compute pipe",
    "tensor": "tensor cores",
    "issue": "instruction issue",
    "sm": "the multiprocessors (SM throughput)",
}
PRECISIONS = {"fp32": "single-precision", "fp64": "double-precision"}
STALLS = 3
GRAPHS = "CUDA graphs, recorded as one block each"
LONGEST = 5  # kernels of a loop that are listed
SPREAD = 1.1  # longest over shortest launch: less is what launches differ by
AWAKE = 0.05  # operations a byte below which saying their number tells nothing


class LongestKernel(NamedTuple):
    """A kernel of a loop: how often it is launched, what its launches take together, and their part of all kernels."""

    name: str
    launches: str
    time: str
    share: str


def longest(loop: Loop) -> list[LongestKernel]:
    """The kernels that take most of an iteration, longest first, those of one name and operation together; Markdown.

    One alone is no list. Graphs that were recorded as a whole are one line, and count among all kernels.
    """
    listed = sum(use.ms for use in (*loop.kernels, loop.graphs) if use)
    total = max(listed, loop.budget.get("compute", 0.0) * loop.iteration_ms)
    times: dict[str, tuple[float, float]] = {}
    for use in loop.kernels:
        if use.name:
            name = kernel_names.with_operation(use.name)
            launches, ms = times.get(name, (0.0, 0.0))
            times[name] = launches + use.launches, ms + use.ms
    named = [(escape.code(name), *used) for name, used in times.items()]
    if loop.graphs:
        named.append((GRAPHS, loop.graphs.launches, loop.graphs.ms))
    if len(named) < 2 or not total:
        return []
    return [
        LongestKernel(name, num(launches), duration(ms), pct(ms / total))
        for name, launches, ms in sorted(named, key=lambda one: (-one[2], one[0]))[:LONGEST]
    ]


def divided(kernels: Sequence[Kernel], most: int) -> tuple[list[Kernel], list[Kernel]]:
    """Kernels that get a section, and those that get a line: with causes by their part of the time, else the first.

    Reports of older versions hold no causes; of them the first `most` get one.
    """
    large = [k for at, k in enumerate(kernels) if (k.causes and not k.brief) or at < most]
    return large, [kernel for kernel in kernels if kernel not in large]


def launch(kernel: Kernel, kernels: Sequence[Kernel]) -> str:
    """Return what distinguishes a kernel from another of its name: ` (16 × 256, 40 registers)`; empty where the name is
    enough.
    """
    alike = [other for other in kernels if other.name == kernel.name]
    if len(alike) < 2 or kernel.grid is None or kernel.block is None:
        return ""
    parts = [f"{kernel.grid:,} × {kernel.block:,}"]
    same = [other for other in alike if (other.grid, other.block) == (kernel.grid, kernel.block)]
    for key, word in (("registers", "registers"), ("shared_own", "")):
        values = {other.facts.get(key) for other in same}
        if len(values) > 1 and (value := kernel.facts.get(key)) is not None:
            parts.append(f"{num(value)} {word}" if word else f"{byte_size(value)} shared")
    return f" ({', '.join(parts)})"


def top_cause(kernel: Kernel) -> str:
    """The cause that is worth most, and how many more there are; Markdown."""
    if not kernel.causes:
        return "not all counters there" if kernel.not_evaluated else "none found"
    more = f", and {len(kernel.causes) - 1} more" if len(kernel.causes) > 1 else ""
    return f"{escape.plain(kernel.causes[0].title)} ({kernel.causes[0].code}){more}"


def worth(cause: Cause) -> str:
    """`about 86 % of a launch`; Markdown."""
    if cause.gain.kind == "test_needed":
        return "gain to be tested"
    return f"{SIZES[cause.gain.kind]} {pct(cause.gain.share)} of a launch"


def limit(kernel: Kernel) -> str:
    """`DRAM bandwidth, 91 %`."""
    unit = kernel.facts.get("limit")
    if unit is None:
        return "not measured"
    busy = pct(kernel.facts["busy_pct"] / 100)
    far = {"latency": "none: latency", "empty": "none: an empty GPU"}.get(unit)
    return f"{far} (busiest unit {busy})" if far else f"{UNITS[unit]}, {busy}"


def shape(kernel: Kernel) -> str:
    """`: 65,536 blocks of 256 threads (62 waves), 24 registers a thread, 4.2 KiB of shared memory a block.`"""
    facts = kernel.facts
    parts = []
    if kernel.grid and kernel.block:
        waves = _waves(facts.get("waves"))
        blocks = f"{kernel.grid:,} block{'s' if kernel.grid > 1 else ''}"
        parts.append(f"{blocks} of {kernel.block:,} threads{waves}")
    if facts.get("registers"):
        parts.append(f"{num(facts['registers'])} registers a thread")
    if facts.get("shared_own"):
        parts.append(f"{byte_size(facts['shared_own'])} of shared memory a block")
    if kernel.range_ms and kernel.range_ms[1] > SPREAD * kernel.range_ms[0]:
        parts.append(f"launches from {duration(kernel.range_ms[0])} to {duration(kernel.range_ms[1])}")
    if facts.get("library"):
        parts.append("from a library")
    return f": {', '.join(parts)}." if parts else ""


def _waves(waves: float | None) -> str:
    if not waves:
        return ""
    return " (all fit at once)" if waves <= 1 else f" ({num(waves)} times what fits at once)"


def explained(kernel: Kernel, cures: bool = True) -> list[str]:
    """Return the kernel's limits as Markdown, a line each: roofline limit, operations a byte, resident warps, stalls
    and their fixes.
    """
    lines = [_nearest(kernel.facts)] if "limit" in kernel.facts else []
    lines += [_roofline(kernel.facts)] if kernel.facts.get("intensity", 0) >= AWAKE else []
    lines += _occupancy(kernel)
    lines += _waits(kernel, cures)
    return [line for line in lines if line]


def _nearest(facts: Mapping[str, Any]) -> str:
    busy = pct(facts["busy_pct"] / 100)
    if facts["limit"] == "empty":
        active = pct(facts["active_share"])
        return f"An average multiprocessor has work {active} of the time: most of the GPU is empty."
    if facts["limit"] == "latency":
        return (
            f"No unit is near its peak (the busiest reaches {busy}): the kernel waits for latency, so more work in"
            " flight helps, not more bandwidth."
        )
    if "floor_ms" not in facts:
        return f"Nearest roofline limit: {UNITS[facts['limit']]}, {busy} of the peak."
    same = "moving these bytes" if facts["limit"] == "dram" else "written as it is"
    least = duration(facts["floor_ms"])
    nearest = f"Nearest roofline limit: {UNITS[facts['limit']]}, {busy} of the peak"
    return f"{nearest}; {same}, it cannot take less than {least}."


def _roofline(facts: Mapping[str, Any]) -> str:
    what = PRECISIONS.get(facts["precision"], escape.plain(str(facts["precision"])))
    said = f"{num(facts['intensity'])} {what} operations for each byte of DRAM"
    if "ridge" not in facts:
        return f"{said}."
    below = facts["intensity"] < facts["ridge"]
    would = "is" if facts["limit"] in UNITS else "would be"  # nothing is at its limit yet
    side = f"{'memory' if below else 'compute'} {would} the limit"
    return f"{said}: {'below' if below else 'above'} {num(facts['ridge'])}, {side}."


def _occupancy(kernel: Kernel) -> list[str]:
    fit, reached = (kernel.facts.get(f"{name}_occupancy_pct") for name in ("theoretical", "achieved"))
    if fit is None:
        return []
    because = f", limited by {escape.plain(kernel.occupancy_limit)}" if kernel.occupancy_limit else ""
    there = f"; {pct(reached / 100)} were there on average" if reached is not None else ""
    return [f"Occupancy: {pct(fit / 100)} of the warps that a multiprocessor can hold fit{because}{there}."]


def _waits(kernel: Kernel, cures: bool) -> list[str]:
    if not kernel.facts.get("warp_cycles_per_issue") or not kernel.stalls:
        return []
    cures = cures and not kernel.facts.get("library")  # its inside is not the reader's to change
    summary = "; ".join(_wait(stall, cures, number == 0) for number, stall in enumerate(kernel.stalls[:STALLS]))
    return [f"Warps stall {summary}."]


def _wait(stall: Stall, cure: bool, first: bool) -> str:
    """Return one stall reason as Markdown; a saved report may say anything in its place."""
    cured = f": {escape.prose(stall.cure)}" if cure else ""
    part = f"{pct(stall.share)} of the time" if first else pct(stall.share)
    return f"{part} for {escape.prose(stall.means)} (*{escape.plain(stall.name)}*){cured}"
