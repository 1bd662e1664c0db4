"""Metrics that a details page holds only inside the sentences of ncu's own rules.

The page prints no table metrics: excessive sectors, bank conflicts and stall reasons are there only as words, such
as "a total of 25165824 excessive sectors (75% of the total 33554432 sectors)". The sentences are English, and their
numbers have a point, in every locale.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudiag.ingest.ncu.labels import stall

_NUMBER = r"([0-9][0-9,]*(?:\.[0-9]+)?)"

# Rule → (pattern, metric of each group). The texts' own spacing is uneven.
_COUNTS: dict[str, tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]] = {
    "UncoalescedGlobalAccess": (
        (
            re.compile(rf"total of {_NUMBER} excessive sectors \(\d+% of the total {_NUMBER} sectors\)"),
            (
                "derived__memory_l2_theoretical_sectors_global_excessive",
                "memory_l2_theoretical_sectors_global",
            ),
        ),
    ),
    "UncoalescedSharedAccess": (
        (
            re.compile(rf"total of {_NUMBER} excessive wavefronts \(\d+% of the total {_NUMBER} wavefronts\)"),
            ("derived__memory_l1_wavefronts_shared_excessive", "memory_l1_wavefronts_shared"),
        ),
    ),
    "SharedMemoryConflicts": tuple(
        (
            re.compile(
                rf"(?<![0-9,.]){_NUMBER}\s+bank\s+conflicts,\s+which\s+represent\s+[0-9.]+%\s+of\s+the\s+overall\s+"
                rf"{_NUMBER}\s+wavefronts\s+for\s+shared\s+{word}"
            ),
            (
                f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum",
                f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum",
            ),
        )
        for word, op in (("loads", "ld"), ("stores", "st"))
    ),
    "MemoryCacheAccessPattern": tuple(
        (
            re.compile(rf"for {space} {word} .{{0,200}}?only {_NUMBER} of the 32 bytes transmitted per sector"),
            (f"smsp__sass_average_data_bytes_per_sector_mem_{space}_op_{op}.ratio",),
        )
        for space in ("global", "local")
        for word, op in (("loads", "ld"), ("stores", "st"))
    ),
    "HighPipeUtilization": tuple(
        (
            re.compile(rf"FP64 is the highest-utilized pipeline \({_NUMBER}%\) based on {basis} cycles"),
            (f"sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_{basis}",),
        )
        for basis in ("active", "elapsed")
    ),
}

# How the CPIStall rule words each state. Order matters: the first that fits is taken.
_STALLS = (
    ("dependency on a L1TEX", "long_scoreboard"),
    ("dependency on a MIO", "short_scoreboard"),
    ("dependency on an MIO", "short_scoreboard"),
    ("instruction queue for local and global", "lg_throttle"),
    ("instruction queue for texture", "tex_throttle"),
    ("MIO (memory input/output) instruction queue", "mio_throttle"),
    ("sibling warps at a CTA barrier", "barrier"),
    ("on a memory barrier", "membar"),
    ("execution pipe to be available", "math_pipe_throttle"),
    ("fixed latency execution dependency", "wait"),
    ("to be selected to fetch an instruction", "no_instruction"),
    ("branch target to be computed", "branch_resolving"),
    ("immediate constant cache", "imc_miss"),
    ("dispatch stall", "dispatch_stall"),
    ("after EXIT", "drain"),
    ("blocked, yielded, or sleep state", "sleeping"),
    ("micro scheduler to select", "not_selected"),
)
_CPI_STALL = re.compile(r"spends ([0-9]+(?:\.[0-9]+)?) cycles being stalled (.*)", re.DOTALL)


def facts(rule: str, text: str) -> Iterator[tuple[str, float]]:
    """(metric, value) pairs that a rule's sentence states; nothing for other rules or other words."""
    for pattern, metrics in _COUNTS.get(rule, ()):
        if found := pattern.search(text):
            yield from (
                (metric, float(value.replace(",", ""))) for metric, value in zip(metrics, found.groups(), strict=True)
            )
    if rule == "CPIStall" and (found := _CPI_STALL.search(text)):
        reason = found.group(2)[:120]
        state = next((state for words, state in _STALLS if words in reason), None)
        if state:
            yield stall(state), float(found.group(1))
