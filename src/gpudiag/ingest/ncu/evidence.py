"""Capabilities of a page of Nsight Compute: what it recorded of each section, and how that is known."""

from __future__ import annotations

import polars as pl

from gpudiag.ingest.ncu import labels
from gpudiag.ingest.ncu.csv_page import Page

# Evidence within a section that a page may lack: capability → metrics that prove it, and the rule of ncu's that
# speaks for it on a details page.
EVIDENCE: dict[str, tuple[tuple[str, ...], str]] = {
    "ncu_stalls": ((labels.stall("long_scoreboard"), labels.stall("wait")), "CPIStall"),
    "ncu_coalescing": (("memory_l2_theoretical_sectors_global",), "UncoalescedGlobalAccess"),
    "ncu_bank_conflicts": (
        ("memory_l1_wavefronts_shared", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"),
        "UncoalescedSharedAccess",
    ),
    "ncu_pipes": (("sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active",
                   "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active"), ""),
    "ncu_atomics": (("lts__t_sectors_srcunit_tex_op_red.sum",), ""),
    "ncu_spills": (("derived__local_spilling_requests_pct", "inst_executed_register_spilling"), ""),
}  # fmt: skip


_SECTION_OF = {
    "CPIStall": "WarpStateStats",
    "UncoalescedGlobalAccess": "SourceCounters",
    "UncoalescedSharedAccess": "SourceCounters",
    "HighPipeUtilization": "ComputeWorkloadAnalysis",
}


def capabilities(page: Page, metrics: pl.DataFrame, lines: pl.DataFrame | None) -> dict[str, tuple[str, str]]:
    """Return what the page could show: name → (state, how that is known)."""
    names = set(metrics["metric"].unique().to_list())
    if page.kind == "details":
        listed = pl.concat([page.metrics["section"], page.rules["section"]]).drop_nulls().unique()
        present = {labels.section(name) for name in listed}
        how = "named on the details page"
    else:
        present = {name for name, witnesses in labels.WITNESSES.items() if names & set(witnesses)}
        how = "its metrics are on the raw page"
    found = {"kernel_profiles": ("recorded", f"{page.kind} page")}
    found["ncu_raw"] = ("recorded" if page.kind == "raw" else "not_recorded", f"{page.kind} page")
    for section in sorted({*labels.WITNESSES, *present}):
        here = section in present
        found[f"ncu_{section}"] = ("recorded", how) if here else ("not_recorded", "not in the file")
    for capability, (witnesses, rule) in EVIDENCE.items():
        if names & set(witnesses):
            found[capability] = ("recorded", "its metrics are in the file")
        elif page.kind == "details" and len(page.rules) and _SECTION_OF.get(rule) in present:
            found[capability] = ("recorded", f"ncu's own rule {rule} ran and says it when it applies")
        else:
            found[capability] = ("not_recorded", "its metrics are not in the file")
    if lines is None:
        found["ncu_lines"] = ("not_recorded", "a CSV page names no lines of the source")
    elif lines["file"].null_count() < len(lines):
        found["ncu_lines"] = ("recorded", "the report ties samples to lines of the source")
    else:
        found["ncu_lines"] = ("not_recorded", "no samples, or compiled without -lineinfo")
    return found
