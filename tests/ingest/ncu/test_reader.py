"""Nsight Compute pages, all synthetic: written here in the layout of ncu's, for one invented kernel."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from gpudiag.errors import GpudiagError
from gpudiag.ingest.ncu import reader
from gpudiag.store import database

KERNEL = "void app::scale<float, (int)4>(float *, int)"
DETAILS_HEADER = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name", "Rule Type",
    "Rule Description", "Estimated Speedup Type", "Estimated Speedup",
)  # fmt: skip
LAUNCH = ("4711", "app", "127.0.0.1", KERNEL, "1", "7", "(32, 32, 1)", "(64, 16, 1)", "0", "9.0")

# Section, label, unit, raw name, value as de_DE and en_US write it on a details page.
METRICS = [
    ("GPU Speed Of Light Throughput", "Duration", "msecond", "gpu__time_duration.sum", "4,79", "4.79"),
    ("GPU Speed Of Light Throughput", "Elapsed Cycles", "cycle", "gpc__cycles_elapsed.max", "7.372.078", "7,372,078"),
    ("GPU Speed Of Light Throughput", "Memory Throughput", "%",
     "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "83,14", "83.14"),
    ("Memory Workload Analysis", "Memory Throughput", "Gbyte/second", "dram__bytes.sum.per_second", "31,49", "31.49"),
    ("Launch Statistics", "Grid Size", "", "launch__grid_size", "1.024", "1,024"),
    ("Launch Statistics", "Registers Per Thread", "register/thread", "launch__registers_per_thread", "51", "51"),
    ("Launch Statistics", "Function Cache Configuration", "", "launch__func_cache_config", "CachePreferNone",
     "CachePreferNone"),
    ("Occupancy", "Theoretical Occupancy", "%", "sm__maximum_warps_per_active_cycle_pct", "12,50", "12.50"),
]  # fmt: skip
EXPECTED = {
    "gpu__time_duration.sum": 4_790_000.0,
    "gpc__cycles_elapsed.max": 7_372_078.0,
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 83.14,
    "dram__bytes.sum.per_second": 31_490_000_000.0,
    "launch__grid_size": 1024.0,
    "launch__registers_per_thread": 51.0,
    "launch__func_cache_config": None,
    "sm__maximum_warps_per_active_cycle_pct": 12.5,
}


def line(*cells: str) -> str:
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)


def metric_row(section: str, label: str, unit: str, value: str, at: str = "0") -> str:
    return line(at, *LAUNCH, section, label, unit, value) + ","  # ncu leaves the rule's cells out


def rule_row(section: str, rule: str, text: str, scope: str = "", estimate: str = "", at: str = "0") -> str:
    return line(at, *LAUNCH, section, "", "", "", rule, "OPT", text, scope, estimate)


def details(*rows: str) -> str:
    return "\n".join((line(*DETAILS_HEADER), *rows)) + "\n"


def details_in(locale: str) -> str:
    rows = []
    for section, label, unit, _, german, english in METRICS:
        value = {"de": german, "en": english, "fr": german.replace(".", "\u202f")}[locale]
        rows.append(metric_row(section, label, unit, value))
    return details(*rows)


def raw(columns: dict[str, tuple[str, str]]) -> str:
    """A raw page of one launch: name → (unit, value)."""
    return "\n".join((
        line("ID", *DETAILS_HEADER[1:11], *columns),
        line("", *[""] * 10, *(unit for unit, _ in columns.values())),
        line("0", *LAUNCH, *(value for _, value in columns.values())),
    ))  # fmt: skip


@pytest.fixture
def con() -> duckdb.DuckDBPyConnection:
    return database.create()


def read(con: duckdb.DuckDBPyConnection, folder: Path, text: str | bytes, name: str = "page.csv") -> None:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    reader.read(path, con)


def values(con: duckdb.DuckDBPyConnection, profile: int = 0) -> dict[str, float | None]:
    query = "select metric, value from kernel_metric where profile = ?"
    return dict(con.execute(query, [profile]).fetchall())


@pytest.mark.parametrize("locale", ["de", "en", "fr"])
def test_a_details_page_is_read_alike_in_every_locale(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, locale: str
) -> None:
    read(con, tmp_path, details_in(locale))
    assert values(con) == EXPECTED


@pytest.mark.parametrize(("group", "decimal"), [(".", ","), (",", "."), (" ", ",")])
def test_a_raw_page_reads_local_integers_and_pointed_decimals(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, group: str, decimal: str
) -> None:
    page = raw({
        "gpu__time_duration.sum": ("msecond", "4.790000"),
        "gpc__cycles_elapsed.max": ("cycle", "7372078.000000"),
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": ("%", "83.140000"),
        "dram__bytes.sum.per_second": ("Gbyte/second", "31.490000"),
        "launch__grid_size": ("", f"1{group}024"),
        "launch__registers_per_thread": ("register/thread", "51.000000"),
        "launch__func_cache_config": ("", "CachePreferNone"),
        "launch__waves_per_multiprocessor": ("", f"46{decimal}55"),
        "sm__maximum_warps_per_active_cycle_pct": ("%", "12.500000"),
        "sm__unused.sum": ("inst", ""),
    })  # fmt: skip
    read(con, tmp_path, page)
    assert values(con) == {**EXPECTED, "launch__waves_per_multiprocessor": 46.55}


def test_a_launch_is_described(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    read(con, tmp_path, details_in("en"))
    query = """
        select i.kind, i.producer, i.file, n.text, n.short, p.cc, p.grid, p.block, p.duration_ns, p.process, p.stream
        from kernel_profile p join name n on n.id = p.name join input i on i.id = p.input
    """
    assert con.execute(query).fetchall() == [
        ("ncu", "Nsight Compute", "page.csv", KERNEL, "scale", "9.0", 1024, 1024, 4_790_000.0, 4711, 7)
    ]


def test_a_second_file_continues_ids_and_shares_names(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    read(con, tmp_path, details_in("en"), "one.csv")
    read(con, tmp_path, details_in("de"), "two.csv")
    assert con.execute("select id, input, ordinal, name from kernel_profile order by id").fetchall() == [
        (0, 0, 0, 0),
        (1, 1, 0, 0),
    ]
    assert values(con, 0) == values(con, 1)


def test_launches_keep_the_files_order_and_their_own_metrics(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    section = "Launch Statistics"
    rows = [metric_row(section, "Registers Per Thread", "", str(n), at=str(n)) for n in (10, 2, 7)]
    read(con, tmp_path, details(*rows))
    assert con.execute("select profile, value from kernel_metric order by profile").fetchall() == [
        (0, 10.0), (1, 2.0), (2, 7.0),
    ]  # fmt: skip


def test_an_unknown_label_is_kept_as_a_label(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    read(con, tmp_path, details(metric_row("My Section", "Shiny Things", "", "3")))
    assert values(con) == {"label:My Section/Shiny Things": 3.0}


def test_a_metric_printed_by_its_name_needs_no_label(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    name = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
    read(con, tmp_path, details(metric_row("Command line profiler metrics", name, "sector", "8,192")))
    assert values(con) == {name: 8192.0}


def test_rules_carry_their_estimate_from_columns_or_words(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    rows = (
        metric_row("Occupancy", "Theoretical Occupancy", "%", "12,50"),
        rule_row("Occupancy", "TheoreticalOccupancy", "limited by registers", "global", "40.7"),
        rule_row("SchedulerStats", "IssueSlotUtilization", "Est. Local Speedup: 15.2%\nIssue more."),
        rule_row("SpeedOfLight", "SOLBottleneck", "Estimated Speedup: 7,5%"),
        rule_row("LaunchStats", "LaunchConfiguration", "no number"),
    )
    read(con, tmp_path, details(*rows))
    query = "select section, rule, kind, estimate, estimate_kind from kernel_rule order by rule"
    assert con.execute(query).fetchall() == [
        ("SchedulerStats", "IssueSlotUtilization", "OPT", 15.2, "local"),
        ("LaunchStats", "LaunchConfiguration", "OPT", None, None),
        ("SpeedOfLight", "SOLBottleneck", "OPT", 7.5, "global"),
        ("Occupancy", "TheoreticalOccupancy", "OPT", 40.7, "global"),
    ]


def test_what_only_rules_say_becomes_metrics(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    rows = (
        metric_row("Occupancy", "Theoretical Occupancy", "%", "12,50"),
        rule_row("SourceCounters", "UncoalescedGlobalAccess", "This kernel has uncoalesced global accesses resulting "
                 "in a total of 25165824 excessive sectors (75% of the total 33554432 sectors). Check …"),
        rule_row("MemoryWorkloadAnalysis_Tables", "SharedMemoryConflicts", "a 32.3 - way bank conflict across all "
                 "2097152 shared load requests.This results in 65567431 bank conflicts,  which represent 96.90% of the "
                 "overall 67664583 wavefronts for shared loads."),
        rule_row("MemoryWorkloadAnalysis_Tables", "MemoryCacheAccessPattern", "The memory access pattern for global "
                 "stores to L1TEX might not be optimal. On average, only 4.0 of the 32 bytes transmitted per sector"),
        rule_row("WarpStateStats", "CPIStall", "On average, each warp of this kernel spends 491.9 cycles being stalled "
                 "waiting for a scoreboard dependency on a L1TEX (local, global, surface, texture) operation."),
        rule_row("WarpStateStats", "CPIStall", "On average, each warp of this kernel spends 2.5 cycles being stalled "
                 "waiting on a fixed latency execution dependency."),
        rule_row("WarpStateStats", "CPIStall", "Check the Warp Stall Sampling table"),
    )  # fmt: skip
    read(con, tmp_path, details(*rows))
    shared = "l1tex__data_{}_pipe_lsu{}_mem_shared_op_ld.sum"
    assert values(con) == {
        "sm__maximum_warps_per_active_cycle_pct": 12.5,
        "derived__memory_l2_theoretical_sectors_global_excessive": 25165824.0,
        "memory_l2_theoretical_sectors_global": 33554432.0,
        shared.format("bank_conflicts", ""): 65567431.0,
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 67664583.0,
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio": 4.0,
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": 491.9,
        "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio": 2.5,
    }


def test_names_of_other_versions_are_brought_to_one(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    page = raw({
        "gpu__time_duration.max": ("us", "10.000000"),
        "lts__t_sectors_srcunit_tex_op_atom_dot_alu.sum": ("sector", "3.000000"),
        "lts__t_sectors_srcunit_tex_op_atom_dot_cas.sum": ("sector", "4.000000"),
        "memory_l1_wavefronts_shared": ("", "100"),
        "memory_l1_wavefronts_shared_ideal": ("", "60"),
        "sass__inst_executed_register_spilling": ("inst", "no data"),
    })  # fmt: skip
    read(con, tmp_path, page)
    found = values(con)
    assert found["gpu__time_duration.sum"] == found["gpu__time_duration.max"] == 10_000.0
    assert found["lts__t_sectors_srcunit_tex_op_atom.sum"] == 7.0
    assert found["derived__memory_l1_wavefronts_shared_excessive"] == 40.0
    assert "inst_executed_register_spilling" not in found
    assert con.execute("select text from kernel_metric where text is not null").fetchall() == [("no data",)]


def test_capabilities_tell_what_the_page_could_show(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    rows = (
        metric_row("Warp State Statistics", "Warp Cycles Per Issued Instruction", "cycle", "30"),
        rule_row("SpeedOfLight", "SOLBottleneck", "…"),
    )
    read(con, tmp_path, details(*rows), "rules.csv")
    read(con, tmp_path, details(rows[0]), "no_rules.csv")
    read(con, tmp_path, raw({"launch__waves_per_multiprocessor": ("", "1")}), "raw.csv")
    states: dict[tuple[int, str], str] = {
        (at, name): state for at, name, state in con.execute("select input, name, state from capability").fetchall()
    }
    assert all(states[at, "kernel_profiles"] == "recorded" for at in range(3))
    # With rules, a silent CPIStall means that no stall stands out; without them nothing is known of stalls.
    assert [states[at, "ncu_stalls"] for at in range(3)] == ["recorded", "not_recorded", "not_recorded"]
    assert [states[at, "ncu_WarpStateStats"] for at in range(3)] == ["recorded", "recorded", "not_recorded"]
    assert [states[at, "ncu_LaunchStats"] for at in range(3)] == ["not_recorded", "not_recorded", "recorded"]
    assert [states[at, "ncu_raw"] for at in range(3)] == ["not_recorded", "not_recorded", "recorded"]


def test_output_around_the_table_is_skipped(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    header, *rows = details_in("en").splitlines()
    noisy = "\r\n".join(["==PROF== Connected to process 1", "loss 0.5", header, rows[0], "epoch 2", *rows[1:],
                         "==PROF== Disconnected from process 1"])  # fmt: skip
    assert reader.looks_like(noisy.encode())
    read(con, tmp_path, noisy)
    assert values(con) == EXPECTED


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_encodings_of_a_redirected_page(con: duckdb.DuckDBPyConnection, tmp_path: Path, encoding: str) -> None:
    text = details_in("fr").replace("\u202f", "\u00a0").encode(encoding)
    assert reader.looks_like(text)
    read(con, tmp_path, text)
    assert values(con) == EXPECTED


def test_other_files_are_not_taken_for_pages() -> None:
    assert not reader.looks_like(b"timestamp, name, utilization.gpu [%]\n")
    assert not reader.looks_like(b"SQLite format 3\0")
    assert not reader.looks_like(b"")
    assert reader.looks_like(raw({"sm__cycles_active.avg": ("cycle", "1")})[:130].encode())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (details(), "no kernel was profiled"),
        (raw({"sm__cycles_active.avg": ("cycle", "1")}).rsplit("\n", 1)[0], "no kernel was profiled"),
        (details(rule_row("SpeedOfLight", "SOLBottleneck", "…")), "no metrics"),
        (line("ID", *DETAILS_HEADER[1:11]) + "\n" + line("0", *LAUNCH), "no metrics"),
        (details()[:-30], "cut off in its header"),
        (details_in("en")[:-20], "cut off"),
        (details_in("en").rsplit(',"', 1)[0], "cut off"),
        (raw({"a__b.sum": ("cycle", "1"), "c__d.sum": ("cycle", "2")})[:-5], "cut off"),
        (details_in("en") + raw({"sm__cycles_active.avg": ("cycle", "1")}), "several"),
        (details_in("en") + details_in("en"), "several"),
        (details_in("en") + metric_row("Occupancy", "Achieved Occupancy", "%", "99,58"), "more than one locale"),
        (line("Process ID", "Process Name", "Host Name", "Kernel Name", "Invocations") + "\n", "summary"),
        ("no table here\n", "no Nsight Compute table"),
        ("", "no Nsight Compute table"),
    ],
)
def test_damaged_pages_are_refused_in_one_sentence(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(GpudiagError, match=words) as refused:
        read(con, tmp_path, text)
    message = str(refused.value)
    assert message.startswith("page.csv: ")
    assert "\n" not in message
    assert con.execute("select count(*) from input").fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("kernel", "short"),
    [
        ("naive_gemm(const float *, int)", "naive_gemm"),
        ("void at::native::<unnamed>::reduce<(int)4, at::Op<float>>(T1, at::Op<T2>)", "reduce"),
        ("copy_blocked[v1,cw51](Array<long long, 1, C>, long long)", "copy_blocked"),
        ("(anonymous namespace)::tile(float*)", "tile"),
        ("plain", "plain"),
    ],
)
def test_short_names(kernel: str, short: str) -> None:
    assert reader.short_name(kernel) == short


LEFT_OUT = "select text from diagnostic where severity = 'left_out'"
TIME, SECTORS = "gpu__time_duration.sum", "memory_l2_theoretical_sectors_global"
WAVES = "launch__waves_per_multiprocessor"


def launches_of(*rows: tuple[str, ...]) -> str:
    """A raw page with a row for each launch: time, sectors, waves."""
    head = raw({TIME: ("ns", "1"), SECTORS: ("sector", "1"), WAVES: ("", "1")}).split("\n")[:2]
    return "\n".join((*head, *(line(str(at), *LAUNCH, *row) for at, row in enumerate(rows)))) + "\n"


def test_a_row_cut_in_the_middle_of_a_page_is_reported(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    read(con, tmp_path, launches_of(("100", "8"), ("200", "16", "2"), ("300", "16", "2")))
    assert con.execute("select count(*) from kernel_profile").fetchall() == [(3,)]
    cut, missing = con.execute(f"{LEFT_OUT} order by text").fetchall()
    assert cut == ("page.csv: 1 row cut short",)
    assert missing == (f"page.csv: missing, unlike in other launches: {WAVES} of scale",)


def test_a_row_whose_beginning_is_lost_is_reported(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    page = launches_of(("100", "8", "1"), ("200", "16", "2")).split("\n")
    page[2] = page[2][30:].lstrip('"')
    read(con, tmp_path, "\n".join(page))
    assert ("page.csv: 1 row cut short",) in con.execute(LEFT_OUT).fetchall()


@pytest.mark.parametrize("cell", ["nan", "inf", "no data"])
def test_a_counter_without_a_number_is_reported(con: duckdb.DuckDBPyConnection, tmp_path: Path, cell: str) -> None:
    read(con, tmp_path, launches_of(("100", cell, "1")))
    ((text,),) = con.execute(LEFT_OUT).fetchall()
    assert text.startswith(f"page.csv: no number: {SECTORS} of ")


def test_an_impossible_number_is_reported(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    read(con, tmp_path, launches_of(("-100", "8", "1")))
    ((text,),) = con.execute(LEFT_OUT).fetchall()
    assert text.startswith(f"page.csv: cannot be right: {TIME} of ")


def test_a_counter_that_one_launch_lacks_is_reported(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    read(con, tmp_path, launches_of(("100", "", "1"), ("200", "16", "2")))
    ((text,),) = con.execute(LEFT_OUT).fetchall()
    assert text.startswith(f"page.csv: missing, unlike in other launches: {SECTORS} of ")


def test_of_several_lost_counters_the_first_is_named(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """The first by name: polars joins them in another order on every run."""
    read(con, tmp_path, launches_of(("", "", ""), ("200", "16", "2")))
    ((text,),) = con.execute(LEFT_OUT).fetchall()
    assert text == f"page.csv: missing, unlike in other launches: {min(TIME, SECTORS, WAVES)} and 2 more of scale"


def test_a_whole_page_loses_nothing(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    read(con, tmp_path, "==PROF== Connected\n" + launches_of(("100", "8", "1"), ("200", "16", "2")) + "loss, 0.5, 3\n")
    assert con.execute(LEFT_OUT).fetchall() == []
