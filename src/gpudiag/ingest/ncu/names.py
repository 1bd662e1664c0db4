"""Metric names that differ between versions and GPUs, brought to the names that views use. The original stays.

A name is added only when the launch lacks it, and only by exact arithmetic: a rename, a sum, a difference.
"""

from __future__ import annotations

import polars as pl

# Wanted name ← names that mean the same for one launch, best first.
_SAME: dict[str, tuple[str, ...]] = {
    # One launch has one duration: sum, max and avg are equal.
    "gpu__time_duration.sum": ("gpu__time_duration.max", "gpu__time_duration.avg", "gpu__time_duration.min"),
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": ("dram__throughput.avg.pct_of_peak_sustained_elapsed",),
    "lts__average_gcomp_input_sector_success_rate.pct": ("lrc__average_ilc_input_sector_success_rate.pct",),
    "lts__gcomp_input_sectors.sum": ("lrc__ilc_input_sectors.sum",),
    "dram__bytes_read.sum": ("dram__bytes_op_read.sum",),
    "dram__bytes_write.sum": ("dram__bytes_op_write.sum",),
    "inst_executed_register_spilling": ("sass__inst_executed_register_spilling",),
}

# Wanted name ← sum of all of these.
_SUMS: dict[str, tuple[str, ...]] = {
    "launch__shared_mem_per_block": (
        "launch__shared_mem_per_block_driver",
        "launch__shared_mem_per_block_dynamic",
        "launch__shared_mem_per_block_static",
    ),
    "lts__t_sectors_srcunit_tex_op_atom.sum": (
        "lts__t_sectors_srcunit_tex_op_atom_dot_alu.sum",
        "lts__t_sectors_srcunit_tex_op_atom_dot_cas.sum",
    ),
    "lts__t_requests_srcunit_tex_op_atom.sum": (
        "lts__t_requests_srcunit_tex_op_atom_dot_alu.sum",
        "lts__t_requests_srcunit_tex_op_atom_dot_cas.sum",
    ),
}

# Wanted name ← first less second.
_DIFFERENCES: dict[str, tuple[str, str]] = {
    "derived__memory_l2_theoretical_sectors_global_excessive": (
        "memory_l2_theoretical_sectors_global",
        "memory_l2_theoretical_sectors_global_ideal",
    ),
    "derived__memory_l1_wavefronts_shared_excessive": (
        "memory_l1_wavefronts_shared",
        "memory_l1_wavefronts_shared_ideal",
    ),
}


def complete(metrics: pl.DataFrame) -> pl.DataFrame:
    """`metrics` (launch, metric, value, text; a name once a launch) with the names that views use."""
    concerned = {*_SAME, *_SUMS, *_DIFFERENCES}
    for names in (*_SAME.values(), *_SUMS.values(), *_DIFFERENCES.values()):
        concerned.update(names)
    apart = pl.col("metric").is_in(sorted(concerned))
    return pl.concat([metrics.filter(~apart), _added(metrics.filter(apart))])


def _added(metrics: pl.DataFrame) -> pl.DataFrame:
    for wanted, sources in _SAME.items():
        for source in sources:
            metrics = _add(metrics, metrics.filter(pl.col("metric") == source, pl.col("value").is_not_null()), wanted)
    for wanted, parts in _SUMS.items():
        rows = metrics.filter(pl.col("metric").is_in(parts))
        total = rows.group_by("launch", maintain_order=True).agg(pl.col("value").sum(), pl.len().alias("n"))
        metrics = _add(metrics, total.filter(pl.col("n") == len(parts)), wanted)
    for wanted, (whole, part) in _DIFFERENCES.items():
        both = metrics.filter(pl.col("metric") == whole).join(
            metrics.filter(pl.col("metric") == part), on="launch", suffix="_part"
        )
        metrics = _add(metrics, both.with_columns(pl.col("value") - pl.col("value_part")), wanted)
    return metrics


def _add(metrics: pl.DataFrame, rows: pl.DataFrame, wanted: str) -> pl.DataFrame:
    """Append `rows` under the name `wanted` for the launches that lack it."""
    present = metrics.filter(pl.col("metric") == wanted).select("launch")
    new = rows.join(present, on="launch", how="anti").select(
        "launch", pl.lit(wanted).alias("metric"), "value", pl.lit(None, pl.String).alias("text")
    )
    return pl.concat([metrics, new]) if len(new) else metrics
