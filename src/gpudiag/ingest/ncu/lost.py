"""Content that a page or report of Nsight Compute should have and lacks: reported as diagnostics, so that nothing is
missing silently.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import polars as pl

from gpudiag.ingest.ncu import labels as ncu_labels
from gpudiag.ingest.ncu.csv_page import Page

_NO_NUMBER = ("nan", "-nan", "inf", "-inf", "n/a", "no data", "(no data)", "")
_KNOWN = frozenset(name for labels in ncu_labels.LABELS.values() for name in labels.values())


def sentences(
    file: str,
    page: Page,
    read: pl.DataFrame,
    kept: pl.DataFrame,
    witnesses: Collection[str],
) -> list[str]:
    """One sentence for each way in which a file lacks what it should have.

    read, kept: metrics (launch, metric, value, text) before and after values that cannot be
    were taken out. witnesses: metrics that rules judge by, beside those that ncu labels.
    """
    found, lost, launches = [], page.lost, page.launches
    if lost:
        found.append(f"{lost} {'row' if lost == 1 else 'rows'} cut short")
    known = pl.col("metric").is_in(sorted(_KNOWN | set(witnesses)))
    numbers = pl.col("value").is_not_null()
    words = pl.col("text").fill_null("").str.to_lowercase().is_in(_NO_NUMBER)
    empty = read.filter(known, ~numbers, words).select("launch", "metric")
    if without := _of_kernels(launches, empty):
        found.append(f"no number: {without}")
    gone = read.filter(known, numbers).join(kept.filter(numbers), on=["launch", "metric"], how="anti")
    if impossible := _of_kernels(launches, gone.select("launch", "metric")):
        found.append(f"cannot be right: {impossible}")
    # What every other launch of a raw page has: a cell of this one is empty or was cut away. On a details page the
    # sentences of rules state more of one launch than of another.
    everywhere = read.filter(known, numbers).select("launch", "metric").unique()
    common = everywhere.group_by("metric").len().filter(pl.col("len") == len(launches) - 1)
    if page.kind == "raw" and len(launches) > 1 and len(common):
        whole = launches.select("launch").join(common.select("metric"), how="cross")
        absent = whole.join(everywhere, on=["launch", "metric"], how="anti").join(
            empty, on=["launch", "metric"], how="anti"
        )
        absent = absent.join(gone.select("launch", "metric"), on=["launch", "metric"], how="anti")
        if lacking := _of_kernels(launches, absent):
            found.append(f"missing, unlike in other launches: {lacking}")
    return [f"{file}: {what}" for what in found]


def _of_kernels(launches: pl.DataFrame, rows: pl.DataFrame) -> str:
    """Metrics and kernels in words, the first of each by name; nothing where there are none. Reports shorten what is
    longer than a name.
    """
    if rows.is_empty():
        return ""
    named = rows.join(launches.select("launch", "kernel"), on="launch", how="left")
    metrics = named["metric"].unique().sort().to_list()  # joins keep no order
    kernels = sorted({_short(kernel or "(unnamed kernel)") for kernel in named["kernel"].to_list()})
    return f"{_first(metrics)} of {_first(kernels)}"


def _short(kernel: str) -> str:
    """A kernel without return type, namespaces, template arguments and parameters, where there is such a name."""
    words = re.split(r"[<(\[]", kernel, maxsplit=1)[0].split("::")[-1].split()
    return (words[-1] if words else kernel)[:40]


def _first(names: list[str]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
