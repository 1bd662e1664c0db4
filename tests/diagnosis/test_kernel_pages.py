"""Nsight Compute pages of many kernels, of few sections, and damaged ones: what the report says of each kernel."""

from __future__ import annotations

import csv
import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gpudiag.model import Kernel, Report
from gpudiag.pipeline import explain
from gpudiag.report import markdown
from paths import CAPTURES

HEAD = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
        "Device", "CC")  # fmt: skip
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
L1 = "l1tex__throughput.avg.pct_of_peak_sustained_active"
EXCESS = "derived__memory_l2_theoretical_sectors_global_excessive"
SECTORS = "memory_l2_theoretical_sectors_global"
STALL = "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"
UNITS = {"gpu__time_duration.sum": "us"}
BASE: Mapping[str, Any] = {
    "gpu__time_duration.sum": 900, SM: 30, MEMORY: 50, DRAM: 50, L1: 30, "launch__sm_count": 132,
    "launch__waves_per_multiprocessor": 4, "launch__registers_per_thread": 32,
    "sm__maximum_warps_per_active_cycle_pct": 100, "sm__warps_active.avg.pct_of_peak_sustained_active": 80,
}  # fmt: skip
FULL: Mapping[str, Any] = {**BASE, SECTORS: 1000, EXCESS: 0, STALL: 1}
SCATTERED: Mapping[str, Any] = {**FULL, EXCESS: 800, MEMORY: 85, DRAM: 12}


def launch(name: str, metrics: Mapping[str, Any], grid: int = 4096, block: int = 256) -> dict[str, Any]:
    identity = {"Kernel Name": f"{name}(float *)", "Grid Size": f"({grid}, 1, 1)", "Block Size": f"({block}, 1, 1)"}
    return {**identity, **metrics}


def page(folder: Path, *launches: Mapping[str, Any]) -> Path:
    """A raw page as `ncu --csv --page raw` writes it."""
    names = [*HEAD, *dict.fromkeys(name for one in launches for name in one if name not in HEAD)]
    file = folder / "page.csv"
    with file.open("w", newline="") as out:
        write = csv.writer(out, quoting=csv.QUOTE_ALL)
        write.writerow(names)
        write.writerow([UNITS.get(name, "%" if "pct" in name else "") for name in names])
        for number, one in enumerate(launches):
            given = {"ID": number, "Process ID": 1, "CC": "9.0", "Device": 0, "Stream": 7, "Context": 1, **one}
            write.writerow([given.get(name, "") for name in names])
    return file


def codes(kernel: Kernel) -> list[str]:
    return [cause.code for cause in kernel.causes]


def named(report: Report, name: str) -> list[Kernel]:
    return [kernel for kernel in report.run.kernels if kernel.name == name]


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"launch__shared_mem_per_block_dynamic": 100_000},
        {"launch__shared_mem_per_block_static": 8_192},
        {"launch__registers_per_thread": 168},
    ],
)
def test_launches_of_another_shape_stay_apart(tmp_path: Path, change: Mapping[str, Any]) -> None:
    plain = {**FULL, "launch__shared_mem_per_block_dynamic": 0, "launch__shared_mem_per_block_static": 0}
    report = explain([page(tmp_path, launch("window", plain), launch("window", {**plain, **SCATTERED, **change}))])
    assert sorted(codes(kernel) for kernel in named(report, "window")) == [[], ["K01"]]


@pytest.mark.slow
def test_launches_of_one_shape_are_one_kernel(tmp_path: Path) -> None:
    [kernel] = explain([page(tmp_path, launch("window", FULL), launch("window", FULL))]).run.kernels
    assert kernel.launches == 2


def many(faulty: int, healthy: int) -> list[dict[str, Any]]:
    scattered = [launch(f"scatter{at}", {**SCATTERED, "gpu__time_duration.sum": 900 - 20 * at}) for at in range(faulty)]
    return [*scattered, *(launch(f"triad{at}", {**FULL, DRAM: 91, MEMORY: 91}) for at in range(healthy))]


@pytest.mark.slow
def test_each_kernel_of_a_long_page_shows_its_cause(tmp_path: Path) -> None:
    report = explain([page(tmp_path, *many(15, 10))])
    for kernel in report.run.kernels:
        assert codes(kernel) == (["K01"] if kernel.name.startswith("scatter") else [])
    text = markdown.render(report)
    for at in range(15):
        assert f"| `scatter{at}` | Neighbouring threads read or write memory that is far apart (K01) |" in text
        assert f"### `scatter{at}`" in text


@pytest.mark.slow
def test_a_cause_of_one_kernel_among_many_is_a_finding(tmp_path: Path) -> None:
    report = explain([page(tmp_path, *many(1, 20))])
    assert [finding.code for finding in report.findings] == ["K01"]


@pytest.mark.slow
def test_a_kernel_with_hardly_any_time_gets_one_line(tmp_path: Path) -> None:
    small = launch("tiny", {**SCATTERED, "gpu__time_duration.sum": 20})
    text = markdown.render(explain([page(tmp_path, small, *many(0, 12))]))
    assert "### `tiny`" not in text
    lines = [line for line in text.splitlines() if line.startswith("- `tiny`, 20.0 µs")]
    assert len(lines) == 1 and "K01" in lines[0]


@pytest.mark.slow
def test_causes_of_a_kernel_come_worth_most_first(tmp_path: Path) -> None:
    slow = {**SCATTERED, "launch__waves_per_multiprocessor": 0.1}
    [kernel] = explain([page(tmp_path, launch("scatter", slow, grid=66, block=64))]).run.kernels
    shares = [cause.gain.share for cause in kernel.causes]
    assert codes(kernel) == ["L01", "K01"] and shares == sorted(shares, reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["nan", ""])
def test_a_kernel_without_its_counter_is_not_clear(tmp_path: Path, damage: str) -> None:
    report = explain([page(tmp_path, launch("whole", FULL), launch("gather", {**SCATTERED, EXCESS: damage}))])
    assert "K01" not in report.clear
    [missing] = [item for item in report.not_evaluated if item.code == "K01"]
    assert missing.kernels == ("gather",) and "`gather` lacks" in missing.reason
    assert [kernel.not_evaluated for kernel in report.run.kernels if "K01" in kernel.not_evaluated]
    assert "Not evaluated for this kernel" in markdown.render(report)


@pytest.mark.slow
def test_a_rule_still_fires_beside_a_damaged_kernel(tmp_path: Path) -> None:
    report = explain([page(tmp_path, launch("scatter", SCATTERED), launch("gather", {**SCATTERED, EXCESS: "nan"}))])
    assert codes(named(report, "scatter")[0]) == ["K01"]
    assert [item.kernels for item in report.not_evaluated if item.code == "K01"] == [("gather",)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ({L1: 99, MEMORY: 99, DRAM: 11}, "limited by the L1 cache or shared memory, 99 % of its peak"),
        ({SM: 92, MEMORY: 9, DRAM: 9, L1: 3}, "SM throughput"),
        ({SM: 30, MEMORY: 20, DRAM: 12, L1: 14}, "limited by latency"),
        ({DRAM: 91, MEMORY: 91}, "limited by DRAM bandwidth, 91 % of its peak"),
    ],
)
def test_default_sections_still_name_the_limit(tmp_path: Path, metrics: Mapping[str, Any], said: str) -> None:
    report = explain([page(tmp_path, launch("stencil", {**BASE, **metrics}))])
    assert said in report.verdict.text and report.verdict.state != "healthy"


@pytest.mark.slow
def test_sm_throughput_alone_is_no_roof(tmp_path: Path) -> None:
    conflicts = {
        **FULL, SM: 94, L1: 89, MEMORY: 89, DRAM: 33, "memory_l1_wavefronts_shared": 1000,
        "derived__memory_l1_wavefronts_shared_excessive": 900,
        "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active": 94,
    }  # fmt: skip
    report = explain([page(tmp_path, launch("tile", conflicts))])
    assert [finding.code for finding in report.findings] == ["K02"]


# Measured on an H100 with one kernel in several launch configurations: grid, block, duration (µs), DRAM %, warps there
# in % of those that fit at most, instructions executed, and the part of the time that the best configuration saved.
MEASURED = {
    "16 × 32": (16, 32, 5170, 0.112, 1.56, 15_524_000, 0.9938),
    "66 × 256": (66, 256, 163, 3.44, 12.4, 15_563_000, 0.799),
    "120 × 32": (120, 32, 699, 0.8, 1.56, 15_480_000, 0.9519),
    "120 × 1024": (120, 1024, 31.1, 17.9, 47.2, 15_649_000, 0.1158),
    "1082402 × 31": (1_082_402, 31, 653, 11.6, 14.4, 154_783_486, 0.699),
    "1048576 × 32": (1_048_576, 32, 633, 11.9, 14.3, 149_946_368, 0.6893),
    "699051 × 48": (699_051, 48, 423, 17.9, 31.8, 199_930_000, 0.536),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", MEASURED)
def test_no_fix_gained_more_than_at_most(tmp_path: Path, shape: str) -> None:
    grid, block, us, dram, warps, instructions, gained = MEASURED[shape]
    metrics = {
        **FULL, "gpu__time_duration.sum": us, DRAM: dram, MEMORY: dram, SM: 25, "smsp__inst_executed.sum": instructions,
        "smsp__issue_active.avg.pct_of_peak_sustained_active": 22, "launch__occupancy_limit_blocks": 32,
        "sm__cycles_elapsed.avg.per_second": 1_980_000_000, "launch__waves_per_multiprocessor": grid / 132 / 32,
        "sm__warps_active.avg.pct_of_peak_sustained_active": warps, "launch__occupancy_limit_warps": 64 * 32 // block,
        "launch__occupancy_limit_registers": 64, "launch__occupancy_limit_shared_mem": 32,
        "sm__maximum_warps_per_active_cycle_pct": 50 if block <= 32 else 100,
    }  # fmt: skip
    report = explain([page(tmp_path, launch("poly", metrics, grid, block))])
    bounds = [found.gain for found in (*report.findings, *report.minor) if found.code in ("L01", "L03")]
    assert [gain.kind for gain in bounds] == ["upper_bound"]
    assert bounds[0].share >= gained


L2, HITS = "lts__throughput.avg.pct_of_peak_sustained_elapsed", "lts__t_sector_hit_rate.pct"
WAIT = "smsp__average_warp_latency_per_inst_issued.ratio"
ISSUE = "smsp__issue_active.avg.pct_of_peak_sustained_active"
THROTTLE = "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio"
# 67 million threads read an index and a result's place side by side (4 + 4 sectors a warp), and an element anywhere
# (32 sectors, of which 4 would do): synthetic, on the page of a GPU with 4.8 TB/s.
GATHER: Mapping[str, Any] = {
    SECTORS: 84e6, EXCESS: 58.8e6, WAIT: 250, STALL: 240, ISSUE: 6, THROTTLE: 0, SM: 12, "gpu__time_duration.sum": 900,
    "launch__waves_per_multiprocessor": 248, "sm__warps_active.avg.pct_of_peak_sustained_active": 90,
}  # fmt: skip


@pytest.mark.capture
@pytest.mark.parametrize(
    ("place", "metrics"),
    [
        ("device memory", {DRAM: 62, MEMORY: 70, L2: 87, L1: 22, HITS: 10, "dram__bytes_read.sum": 2400}),
        ("L2 cache", {DRAM: 12, MEMORY: 93, L2: 93, L1: 40, HITS: 80, "dram__bytes_read.sum": 270}),
        ("L1 cache", {DRAM: 12, MEMORY: 95, L2: 40, L1: 95, HITS: 50, "dram__bytes_read.sum": 270, SM: 94}),
        ("a full queue", {DRAM: 12, MEMORY: 93, L2: 93, L1: 60, HITS: 80, STALL: 120, THROTTLE: 115}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_gather_is_first_of_all_scattered(tmp_path: Path, place: str, metrics: Mapping[str, Any]) -> None:
    """Wherever the elements come from, warps wait for them too: that follows from how far apart they are."""
    text = lzma.decompress((CAPTURES / "dependent_gather" / "fixed.raw.csv.xz").read_bytes()).decode()
    names, units, measured, *_ = [row for row in csv.reader(text.splitlines()) if len(row) > len(HEAD)]
    cells = {**dict(zip(names, measured, strict=True)), **launch("gather", {**GATHER, **metrics}, 262_144)}
    cells |= {"launch__grid_size": 262_144, "launch__block_size": 256}
    cells["lts__throughput.max.pct_of_peak_sustained_elapsed"] = metrics[L2]
    file = tmp_path / "gather.csv"
    with file.open("w", newline="") as out:
        rows = [names, units, [cells[name] for name in names]]
        csv.writer(out, quoting=csv.QUOTE_ALL).writerows(rows)
    report = explain([file])
    assert report.findings[0].code == "K01", place
    assert report.findings[0].gain.share > 0.3
    assert codes(report.run.kernels[0])[0] == "K01"


@pytest.mark.slow
def test_a_librarys_block_size_is_not_the_readers_to_choose(tmp_path: Path) -> None:
    small = {
        **FULL, MEMORY: 35, DRAM: 35, "sm__cycles_elapsed.avg.per_second": 1_980_000_000, "gpu__time_duration.sum": 640,
        "launch__waves_per_multiprocessor": 496, "sm__warps_active.avg.pct_of_peak_sustained_active": 41,
    }  # fmt: skip
    own, library = launch("add", small, 1_048_576, 128), launch("cupy_add__float32", small, 1_048_576, 128)
    report = explain([page(tmp_path, own, library)])
    [finding] = [finding for finding in report.findings if finding.code == "L03"]
    assert [place.kernel for place in finding.where] == ["add"]


def test_busy_caches_without_their_counters_are_not_healthy(tmp_path: Path) -> None:
    without = {name: value for name, value in FULL.items() if name not in (SECTORS, EXCESS)}
    report = explain([page(tmp_path, launch("naive_gemm", {**without, L1: 96, MEMORY: 96, DRAM: 8}))])
    assert report.verdict.state == "cannot_tell" and "96 % of its peak" in report.verdict.text
