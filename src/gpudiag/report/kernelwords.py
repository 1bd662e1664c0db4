"""A profiled kernel in words: its shape, the roof it is nearest to, and what its warps wait for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpudiag.model import Kernel
from gpudiag.report.words import duration
from gpudiag.templating import byte_size, num, pct

UNITS = {
    "dram": "DRAM bandwidth",
    "l2": "L2 cache",
    "l1": "L1 and shared memory",
    "pipe": "a compute pipe",
    "tensor": "tensor cores",
    "issue": "instruction issue",
}
PRECISIONS = {"fp32": "single-precision", "fp64": "double-precision"}
STALLS = 3
SPREAD = 1.1  # longest over shortest launch: less is what launches differ by
AWAKE = 0.05  # operations a byte below which saying their number tells nothing


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
    """What holds it back, a line each: roof, operations a byte, warps on a multiprocessor, waits and their cures."""
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
        return f"Nearest roof: {UNITS[facts['limit']]}, {busy} of the peak."
    same = "moving these bytes" if facts["limit"] == "dram" else "written as it is"
    least = duration(facts["floor_ms"])
    return f"Nearest roof: {UNITS[facts['limit']]}, {busy} of the peak; {same}, it cannot take less than {least}."


def _roofline(facts: Mapping[str, Any]) -> str:
    what = PRECISIONS.get(facts["precision"], facts["precision"])
    said = f"{num(facts['intensity'])} {what} operations for each byte of DRAM"
    if "ridge" not in facts:
        return f"{said}."
    below = facts["intensity"] < facts["ridge"]
    would = "is" if facts["limit"] in UNITS else "would be"  # nothing is the roof yet
    side = f"{'memory' if below else 'compute'} {would} the roof"
    return f"{said}: {'below' if below else 'above'} {num(facts['ridge'])}, {side}."


def _occupancy(kernel: Kernel) -> list[str]:
    fit, reached = (kernel.facts.get(f"{name}_occupancy_pct") for name in ("theoretical", "achieved"))
    if fit is None:
        return []
    because = f", limited by {kernel.occupancy_limit}" if kernel.occupancy_limit else ""
    there = f"; {pct(reached / 100)} were there on average" if reached is not None else ""
    return [f"Occupancy: {pct(fit / 100)} of the warps that a multiprocessor can hold fit{because}{there}."]


def _waits(kernel: Kernel, cures: bool) -> list[str]:
    cycles = kernel.facts.get("warp_cycles_per_issue")
    if not cycles or not kernel.stalls:
        return []
    cures = cures and not kernel.facts.get("library")  # its inside is not the reader's to change
    waits = [f"{pct(s.share)} for {s.means} (*{s.name}*)" + f": {s.cure}" * cures for s in kernel.stalls[:STALLS]]
    told = "; ".join(waits)
    return [f"Of the {num(cycles)} cycles from one instruction of a warp to its next, it waits {told}."]
