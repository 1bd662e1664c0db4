"""Nsight Systems exports, old and new, through small databases made here (synthetic: the schema is nsys's own)."""

from __future__ import annotations

import gzip
import json
import lzma
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from gpudiag.errors import GpudiagError
from gpudiag.ingest import ingest
from gpudiag.ingest.nsys import api
from gpudiag.store.database import create

PID_A, PID_B = 100, 200


def tid(pid: int, thread: int | None = None) -> int:
    return (1 << 48) | (pid << 24) | (thread if thread is not None else pid)


RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
MEMCPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
SYNC = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
STRINGS = ["cudaLaunchKernel_v7000", "void kern<float>(int)", "kern", "cudaStreamSynchronize_v3020",
           "cuLaunchKernel_ptsz",           "cuKernelGetName", "outer", "cudaMemcpyAsync_v3020"]  # fmt: skip


class Export:
    """A synthetic export under construction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.con = sqlite3.connect(path)
        self.table("StringIds", "id, value", list(enumerate(STRINGS)))

    def table(self, name: str, columns: str, rows: Iterable[Sequence[Any]]) -> None:
        self.con.execute(f"create table {name} ({columns})")
        data = list(rows)
        if data:
            self.con.executemany(f"insert into {name} values ({', '.join('?' * len(data[0]))})", data)
        self.con.commit()

    def calls(self, rows: Iterable[tuple[int | None, int | None, int, int, int]]) -> None:
        self.table(RUNTIME, 'start, "end", globalTid, correlationId, nameId', rows)

    def kernels(self, rows: Iterable[tuple[int, int, int, int]]) -> None:
        """(start, end, pid, correlation)"""
        self.table(
            KERNEL,
            'start, "end", deviceId, contextId, streamId, globalPid, correlationId, demangledName, shortName,'
            " gridX, gridY, gridZ, blockX, blockY, blockZ",
            [(s, e, 0, 1, 7, tid(pid, 0), corr, 1, 2, 4, 2, 1, 32, 2, 1) for s, e, pid, corr in rows],
        )

    def read(self, tmp_path: Path, path: Path | None = None) -> duckdb.DuckDBPyConnection:
        self.con.close()
        return read(path or self.path, tmp_path)


def read(path: Path, tmp_path: Path) -> duckdb.DuckDBPyConnection:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    con = create()
    ingest(path, con, work)
    return con


@pytest.fixture
def export(tmp_path: Path) -> Export:
    folder = tmp_path / "input"
    folder.mkdir()
    return Export(folder / "report.sqlite")


@pytest.mark.parametrize(
    ("damage", "kept"), [("gridX = 598435670", True), ("gridY = 70000", False), ("blockX = 900", False)]
)
def test_a_launch_that_cuda_cannot_make_has_no_size(export: Export, tmp_path: Path, damage: str, kept: bool) -> None:
    export.calls([(10, 20, tid(PID_A), 1, 0)])
    export.kernels([(25, 40, PID_A, 1)])
    export.con.execute(f"update {KERNEL} set {damage}")
    export.con.commit()
    ((grid, block),) = export.read(tmp_path).execute("select grid, block from gpu_op").fetchall()
    assert (grid is not None and block is not None) == kept


def test_a_numba_function_compiled_again_is_one_kernel(export: Export, tmp_path: Path) -> None:
    names = ["sweep[abi:v2,cw51](Array<int>)", "sweep[abi:v13,cw51](Array<int>)", "sweep", "sweep[abi:v13]"]
    export.con.executemany("insert into StringIds values (?, ?)", enumerate(names, 20))
    export.kernels([(0, 10, PID_A, 1), (20, 30, PID_A, 2)])
    export.con.execute(f"update {KERNEL} set demangledName = 20, shortName = 22 where correlationId = 1")
    export.con.execute(f"update {KERNEL} set demangledName = 21, shortName = 23 where correlationId = 2")
    export.con.commit()
    con = export.read(tmp_path)
    found = con.execute("select distinct n.text, n.short from gpu_op o join name n on n.id = o.name").fetchall()
    assert found == [("sweep[abi:v1,cw51](Array<int>)", "sweep")]


def test_a_call_and_its_kernel_without_any_other_table(export: Export, tmp_path: Path) -> None:
    export.calls([(10, 20, tid(PID_A), 1, 0)])
    export.kernels([(25, 40, PID_A, 1)])
    con = export.read(tmp_path)
    rows = con.execute(
        'select o.start, o."end", o.kind, n.text, n.short, o.grid, o.block, a.start, p.pid,'
        " d.ordinal, d.name, d.sm_count"
        " from gpu_op o join name n on n.id = o.name join api_call a on a.id = o.api_call"
        " join process p on p.id = o.process join device d on d.id = o.device"
    ).fetchall()
    # A GPU the file does not describe has its number and nothing made up.
    assert rows == [(25, 40, "kernel", "void kern<float>(int)", "kern", 8, 64, 10, PID_A, 0, None, None)]
    assert con.execute("select text from api_call join name on name.id = api_call.name").fetchall() == [
        ("cudaLaunchKernel",)
    ]
    assert con.execute("select kind, producer, file from input").fetchall() == [
        ("nsys", "Nsight Systems", "report.sqlite")
    ]


def test_correlations_belong_to_their_process(export: Export, tmp_path: Path) -> None:
    export.calls([(10, 20, tid(PID_A), 1, 0), (30, 40, tid(PID_B), 1, 0)])
    export.kernels([(50, 60, PID_B, 1), (70, 80, PID_A, 1)])
    con = export.read(tmp_path)
    rows = con.execute("select o.start, a.start from gpu_op o join api_call a on a.id = o.api_call").fetchall()
    assert sorted(rows) == [(50, 30), (70, 10)]


def test_a_driver_call_inside_a_runtime_call_is_its_child(export: Export, tmp_path: Path) -> None:
    export.calls([
        (10, 50, tid(PID_A), 1, 0), (20, 30, tid(PID_A), 2, 4), (35, 36, tid(PID_A), 3, 5),
        (60, 70, tid(PID_A), 4, 4), (22, 24, tid(PID_A, 7), 5, 4),
    ])  # fmt: skip
    export.kernels([(55, 58, PID_A, 2)])
    con = export.read(tmp_path)
    rows = con.execute(
        "select a.start, text, p.start from api_call a join name on name.id = a.name"
        " left join api_call p on p.id = a.parent order by a.start"
    ).fetchall()
    # cuKernelGetName is the collection's own call; the other thread's call is nobody's child.
    assert rows == [
        (10, "cudaLaunchKernel", None), (20, "cuLaunchKernel", 10), (22, "cuLaunchKernel", None),
        (60, "cuLaunchKernel", None),
    ]  # fmt: skip
    assert con.execute("select a.start from gpu_op o join api_call a on a.id = o.api_call").fetchall() == [(10,)]
    assert con.execute("select min(id), max(id), count(*) from api_call").fetchall() == [(0, 3, 4)]


def test_deep_nesting_keeps_nearest_parent_and_outermost_launch(export: Export, tmp_path: Path) -> None:
    export.calls([(10, 50, tid(PID_A), 1, 0), (12, 40, tid(PID_A), 2, 4), (15, 20, tid(PID_A), 3, 4)])
    export.kernels([(60, 70, PID_A, 3)])
    con = export.read(tmp_path)
    assert con.execute("select id, parent from api_call order by id").fetchall() == [(0, None), (1, 0), (2, 1)]
    assert con.execute("select api_call from gpu_op").fetchall() == [(0,)]


@pytest.mark.slow
def test_calls_are_nested_alike_however_few_are_sorted_at_a_time(
    export: Export, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    for iteration in range(40):  # on two threads, some inside, some beside, some beginning at the same moment
        begin = 100 * iteration
        calls += [
            (begin, begin + 60, tid(PID_A), 4 * iteration + 1, 0),
            (begin, begin + 20, tid(PID_A, 7), 4 * iteration + 2, 0),
        ]
        calls += [(begin + 10 * (iteration % 4), begin + 55, tid(PID_A), 4 * iteration + 3, 4)]
        calls += [(begin + 10, begin + 30, tid(PID_A, 7), 4 * iteration + 4, 4)]
    calls += [
        (10_000, 90_000, tid(PID_A), 500, 0),
        *((10_000 + i, 10_001 + i, tid(PID_A), 501 + i, 4) for i in range(9)),
    ]
    export.calls(calls)
    parents = "select id, parent from api_call order by id"
    whole = export.read(tmp_path).execute(parents).fetchall()
    assert 40 < sum(parent is not None for _, parent in whole) < len(calls) / 2
    for some in (1, 7, 60):
        monkeypatch.setattr(api, "_SORTED", some)
        assert export.read(tmp_path).execute(parents).fetchall() == whole


def copy_with(export: Export, kinds: tuple[int, int, int], size: int = 64) -> None:
    export.table(
        MEMCPY,
        'start, "end", deviceId, contextId, streamId, globalPid, correlationId, bytes, copyKind, srcKind, dstKind',
        [(1, 2, 0, 1, 7, tid(PID_A, 0), 1, size, *kinds)],
    )


KINDS = "select copy_kind, src_kind, dst_kind, bytes from gpu_op"


def test_enumerations_come_from_the_file(export: Export, tmp_path: Path) -> None:
    copy_with(export, (2, 0, 9))
    export.table(
        "ENUM_CUDA_MEMCPY_OPER",
        "id, name, label",
        [(2, "CUDA_MEMCPY_KIND_HTOD", "x"), (1, "CUDA_MEMCPY_KIND_DTOH", "y")],
    )
    export.table("ENUM_CUDA_MEM_KIND", "id, name, label",
                 [(0, "CUDA_MEM_KIND_PINNED", ""), (9, "CUDA_MEM_KIND_DEVICE_STATIC", "")])  # fmt: skip
    assert export.read(tmp_path).execute(KINDS).fetchall() == [("host_to_device", "pinned", "device", 64)]


@pytest.mark.parametrize("size", [-(2**31), 2**62])
def test_a_copy_that_no_memory_holds_has_no_size(export: Export, tmp_path: Path, size: int) -> None:
    copy_with(export, (1, 0, 2), size=size)
    assert export.read(tmp_path).execute("select kind, bytes from gpu_op").fetchall() == [("memcpy", None)]


def test_enumerations_without_tables_are_the_documented_numbers(export: Export, tmp_path: Path) -> None:
    copy_with(export, (2, 2, 0))
    assert export.read(tmp_path).execute(KINDS).fetchall() == [("device_to_host", "device", "pageable", 64)]


def test_an_unknown_number_is_unknown(export: Export, tmp_path: Path) -> None:
    copy_with(export, (99, 99, 1))
    assert export.read(tmp_path).execute(KINDS).fetchall() == [("unknown", "unknown", "pinned", 64)]


def test_a_wait_is_known_by_its_call_not_by_the_files_number(export: Export, tmp_path: Path) -> None:
    export.calls([(10, 90, tid(PID_A), 1, 3)])
    export.table(SYNC, 'start, "end", deviceId, contextId, streamId, correlationId, globalPid, syncType, eventId',
                 [(12, 88, 0, 1, 7, 1, tid(PID_A, 0), 2, 4294967295)])  # fmt: skip
    con = export.read(tmp_path)
    assert con.execute(
        'select y.kind, y.start, y."end", a.start, s.number from sync y join api_call a on a.id = y.api_call'
        " join stream s on s.id = y.stream"
    ).fetchall() == [("stream", 12, 88, 10, 7)]


def test_rows_with_impossible_times_are_left_out_and_counted(export: Export, tmp_path: Path) -> None:
    export.calls([(10, 20, tid(PID_A), 1, 0), (None, 20, tid(PID_A), 2, 0), (30, None, tid(PID_A), 3, 0),
                  (50, 40, tid(PID_A), 4, 0), (-5, 40, tid(PID_A), 5, 0)])  # fmt: skip
    con = export.read(tmp_path)
    assert con.execute("select count(*) from api_call").fetchall() == [(1,)]
    ((text,),) = con.execute("select text from diagnostic").fetchall()
    assert text == "report.sqlite: 4 rows without a process, or with impossible times"


NVTX = 'start, "end", eventType, text, textId, globalTid, domainId, jsonText'


def test_ranges_nest_by_thread_and_domain(export: Export, tmp_path: Path) -> None:
    a, b = tid(PID_A), tid(PID_A, 5)
    export.table("NVTX_EVENTS", NVTX, [
        (0, None, 75, "cuBLAS", None, a, 3, None),
        (0, 100, 59, None, 6, a, 0, None),
        (10, 40, 59, "step", None, a, 0, None),
        (10, 20, 59, "inner", None, a, 0, None),
        (20, 30, 59, "next", None, a, 0, None),
        (15, 18, 59, "gemm", None, a, 3, None),
        (12, 14, 59, "other thread", None, b, 0, None),
        (50, None, 59, "open", None, a, 0, None),
        (55, 300, 60, "crossing", None, a, 0, None),
        (60, None, 34, "mark", None, a, 0, None),
    ])  # fmt: skip
    con = export.read(tmp_path)
    rows = con.execute(
        'select n.text, r.depth, m.text, r.domain, r.kind, r."end" from nvtx_range r join name n on n.id = r.name'
        " left join nvtx_range p on p.id = r.parent left join name m on m.id = p.name order by r.id"
    ).fetchall()
    assert rows == [
        ("outer", 0, None, None, "push_pop", 100), ("step", 1, "outer", None, "push_pop", 40),
        ("inner", 2, "step", None, "push_pop", 20), ("next", 2, "step", None, "push_pop", 30),
        ("gemm", 0, None, "cuBLAS", "push_pop", 18), ("other thread", 0, None, None, "push_pop", 14),
        ("open", 1, "outer", None, "push_pop", 300), ("crossing", 0, None, None, "start_end", 300),
    ]  # fmt: skip
    assert con.execute("select time, text from nvtx_mark join name on name.id = nvtx_mark.name").fetchall() == [
        (60, "mark")
    ]


def test_event_types_come_from_the_file(export: Export, tmp_path: Path) -> None:
    export.table("NVTX_EVENTS", NVTX, [(0, 9, 41, "swapped", None, tid(PID_A), 0, None)])
    export.table("ENUM_NSYS_EVENT_TYPE", "id, name, label", [(41, "NvtxPushPopRange", ""), (59, "NvtxMark", "")])
    con = export.read(tmp_path)
    assert con.execute("select text from nvtx_range r join name n on n.id = r.name").fetchall() == [("swapped",)]


def test_python_samples_keep_their_frames_innermost_first(export: Export, tmp_path: Path) -> None:
    frames = [{"Function": 2, "File": 6, "Line": 7}, {"Function": 20, "File": 6, "Line": 1}]
    body = {"Python Periodic Sampling": {"Thread state": "Running", "Frames": frames}}
    export.con.execute("insert into StringIds values (20, '&lt;module&gt;')")
    export.table("NVTX_EVENTS", NVTX, [(5, None, 34, None, None, tid(PID_A), 1, json.dumps(body))])
    con = export.read(tmp_path)
    assert con.execute("select time, state, frames from py_sample").fetchall() == [
        (
            5,
            "Running",
            [
                {"function": "kern", "file": "outer", "line": 7},
                {"function": "<module>", "file": "outer", "line": 1},
            ],
        )
    ]
    assert con.execute("select count(*) from nvtx_mark").fetchall() == [(0,)]
    assert con.execute("select state from capability where name = 'python_samples'").fetchall() == [("recorded",)]


def test_a_function_whose_name_was_lost_has_none(export: Export, tmp_path: Path) -> None:
    body = {"Python Periodic Sampling": {"Thread state": "Running", "Frames": [{"Function": 20, "File": 6, "Line": 7}]}}
    export.con.execute("insert into StringIds values (20, '[Unknown]')")
    export.table("NVTX_EVENTS", NVTX, [(5, None, 34, None, None, tid(PID_A), 1, json.dumps(body))])
    [(frames,)] = export.read(tmp_path).execute("select frames from py_sample").fetchall()
    assert frames == [{"function": None, "file": "outer", "line": 7}]


def test_text_that_is_not_utf8_is_replaced(export: Export, tmp_path: Path) -> None:
    export.con.execute("insert into StringIds values (20, cast(x'6b65fffe726e' as text))")
    export.table("NVTX_EVENTS", NVTX, [(0, 9, 59, None, 20, tid(PID_A), 0, None)])
    export.con.execute("insert into NVTX_EVENTS values (1, 2, 59, cast(x'80' as text), null, ?, 0, null)", [tid(PID_A)])
    export.con.commit()
    con = export.read(tmp_path)
    texts = [
        row[0]
        for row in con.execute("select text from nvtx_range r join name n on n.id = r.name order by r.id").fetchall()
    ]
    assert texts[0].startswith("ke") and texts[0].endswith("rn") and len(texts) == 2 and texts[1]


GPU = "id, name, cuDevice, smCount, clockRate, memoryBandwidth, l2CacheSize, totalMemory, maxWarpsPerSm"


def test_a_cuda_number_finds_its_gpu(export: Export, tmp_path: Path) -> None:
    export.table(
        "TARGET_INFO_GPU",
        GPU,
        [(0, "far", 3, 10, 1500000000, 2000, 1, 1, 64), (3, "near", 0, 20, 1600000000, 3000, 1, 1, 48)],
    )
    export.kernels([(1, 2, PID_A, 1)])
    con = export.read(tmp_path)
    assert con.execute(
        "select ordinal, name, sm_count, clock_hz, dram_bytes_per_s, max_warps_per_sm, copy_engines from device"
    ).fetchall() == [(0, "near", 20, 1600000000, 3000, 48, None)]


def test_visible_devices_renumber_gpus_for_each_process(export: Export, tmp_path: Path) -> None:
    export.table("TARGET_INFO_GPU", GPU, [(0, "first", 0, 1, 1, 1, 1, 1, 1), (1, "second", 1, 1, 1, 1, 1, 1, 1)])
    export.table("TARGET_INFO_CUDA_DEVICE", "gpuId, cudaId, pid", [(0, 0, PID_A), (1, 0, PID_B)])
    export.kernels([(1, 2, PID_A, 1), (3, 4, PID_B, 1)])
    con = export.read(tmp_path)
    query = "select o.start, d.name from gpu_op o join device d on d.id = o.device order by 1"
    assert con.execute(query).fetchall() == [
        (1, "first"), (3, "second")
    ]  # fmt: skip


def test_gpus_of_2021_exports_state_kilohertz(export: Export, tmp_path: Path) -> None:
    export.table("TARGET_INFO_GPU", "vmId, deviceId, name", [(1, 0, "RTX")])
    export.table("TARGET_INFO_CUDA_GPU",
                 "deviceId, name, numMultiprocessors, coreClockRate, globalMemoryBandwidth, globalMemorySize",
                 [(0, "RTX", 68, 1740000, 760080000, 10495524864)])  # fmt: skip
    con = _with_kernel(export, tmp_path)
    assert con.execute("select name, sm_count, clock_hz, dram_bytes_per_s, memory_bytes from device").fetchall() == [
        ("RTX", 68, 1740000000, 760080000000, 10495524864)
    ]


@pytest.mark.parametrize(("names", "found"), [(["RTX", "RTX"], "RTX"), (["RTX", "GTX"], None), (["RTX"], "RTX")])
def test_gpus_without_cuda_numbers_are_named_if_alike(
    export: Export, tmp_path: Path, names: list[str], found: str | None
) -> None:
    # What a newer nsys writes of a capture of 2020 or 2021: no CUDA numbers, and no property but the name.
    export.table("TARGET_INFO_GPU", GPU, [(n, name, *[None] * 7) for n, name in enumerate(names)])
    con = _with_kernel(export, tmp_path)
    assert con.execute("select ordinal, name, sm_count from device").fetchall() == [(0, found, None)]


def _with_kernel(export: Export, tmp_path: Path) -> duckdb.DuckDBPyConnection:
    export.kernels([(1, 2, PID_A, 1)])
    return export.read(tmp_path)


def test_streams_know_their_kind(export: Export, tmp_path: Path) -> None:
    export.table("TARGET_INFO_CUDA_STREAM", "streamId, processId, contextId, priority, flag",
                 [(7, PID_A, 1, 4294967291, 2), (9, PID_A, 1, 0, 1)])  # fmt: skip
    con = _with_kernel(export, tmp_path)
    assert con.execute("select number, kind, priority from stream").fetchall() == [(7, "non_blocking", -5)]


def test_a_second_input_continues_the_numbers(export: Export, tmp_path: Path) -> None:
    export.calls([(10, 20, tid(PID_A), 1, 0)])
    export.kernels([(25, 40, PID_A, 1)])
    export.con.close()
    con = read(export.path, tmp_path)
    ingest(export.path, con, tmp_path / "work")
    assert con.execute("select id, api_call, stream, device, process from gpu_op order by id").fetchall() == [
        (0, 0, 0, 0, 0), (1, 1, 1, 1, 1)
    ]  # fmt: skip
    assert con.execute("select id, input from device order by id").fetchall() == [(0, 0), (1, 1)]
    assert con.execute("select count(*) = count(distinct text) from name").fetchall() == [(True,)]


def test_who_recorded_it_and_nothing_private(export: Export, tmp_path: Path) -> None:
    export.calls([(10, 20, tid(PID_A), 1, 0)])
    export.con.execute("insert into StringIds values (30, 'TOKEN=hunter2')")
    export.table("META_DATA_EXPORT", "name, value", [("EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"),
                 ("EXPORT_PRODUCT_VERSION", "2025.3.2"), ("EXPORT_SCHEMA_VERSION", "3.20.3"),
                 ("EXPORT_USER", "hunter2")])  # fmt: skip
    export.table("META_DATA_CAPTURE", "name, value", [("PROCESS_0:ENVIRONMENT_VARIABLE", "TOKEN=hunter2"),
                 ("PROCESS_0:COLLECT_NVTX_TRACE", "false")])  # fmt: skip
    export.table("PROCESSES", "globalPid, pid, name", [(tid(PID_A, 0), PID_A, "/home/hunter2/bin/python3")])
    con = export.read(tmp_path)
    assert con.execute("select producer, producer_version, schema_version from input").fetchall() == [
        ("Nsight Systems", "2025.3.2", "3.20.3")
    ]
    assert con.execute("select name from process").fetchall() == [("python3",)]
    assert con.execute("select state from capability where name = 'nvtx'").fetchall() == [("not_recorded",)]
    tables = [row[0] for row in con.execute("select table_name from duckdb_tables()").fetchall()]
    assert tables and not any("hunter2" in str(con.execute(f'from "{table}"').fetchall()) for table in tables)


@pytest.mark.parametrize(
    ("program", "advice"), [("/usr/bin/python3.12", "capture with --python-sampling"), ("/home/me/solver", "NVTX")]
)
def test_advice_to_sample_python_is_for_python_programs(
    export: Export, tmp_path: Path, program: str, advice: str
) -> None:
    export.calls([(10, 20, tid(PID_A), 1, 0)])
    export.table("META_DATA_CAPTURE", "name, value", [("PROCESS_0:COLLECT_NVTX_TRACE", "true")])
    export.table("PROCESSES", "globalPid, pid, name", [(tid(PID_A, 0), PID_A, program)])
    con = export.read(tmp_path)
    ((how,),) = con.execute("select how from capability where name = 'python_samples'").fetchall()
    assert advice in how


@pytest.mark.parametrize("stated", [(True, False), (False, True), (False, False)])
def test_tables_that_name_no_process_are_of_the_one(export: Export, tmp_path: Path, stated: tuple[bool, bool]) -> None:
    export.calls([(10, 20, tid(PID_A), 1, 0)])
    export.kernels([(25, 40, PID_A, 1)])
    for table, column, kept in zip((RUNTIME, KERNEL), ("globalTid", "globalPid"), stated, strict=True):
        if not kept:
            export.con.execute(f"alter table {table} drop column {column}")
    export.con.commit()
    con = export.read(tmp_path)
    found = con.execute(
        "select a.start, o.start, p.pid from gpu_op o join api_call a on a.id = o.api_call"
        " join process p on p.id = o.process and p.id = a.process"
    ).fetchall()
    assert found == [(10, 25, PID_A if any(stated) else 0)]
    assert con.execute("select state from capability where name = 'gpu_ops'").fetchall() == [("recorded",)]


def test_work_that_could_be_of_two_processes_is_kept(export: Export, tmp_path: Path) -> None:
    export.calls([(10, 20, tid(PID_A), 1, 0), (10, 20, tid(PID_B), 1, 0)])
    export.kernels([(25, 40, PID_A, 1)])
    export.con.execute(f"alter table {KERNEL} drop column globalPid")
    export.con.commit()
    con = export.read(tmp_path)
    assert con.execute("select pid, api_call from gpu_op o join process p on p.id = o.process").fetchall() == [
        (0, None)
    ]


def test_an_unrelated_warning_is_not_why_work_is_missing(export: Export, tmp_path: Path) -> None:
    export.calls([(10, 20, tid(PID_A), 1, 0)])
    export.table("DIAGNOSTIC_EVENT", "timestamp, severity, text, globalPid",
                 [(1, 2, "CUDA device 0: Unified Memory cannot be traced on devices", tid(PID_A, 0)),
                  (2, 2, "Not all CUDA events might have been collected.", tid(PID_A, 0))])  # fmt: skip
    con = export.read(tmp_path)
    ((how,),) = con.execute("select how from capability where name = 'gpu_ops'").fetchall()
    assert how == (
        "calls that start GPU work were traced, but none of the work is in the file"
        " (Nsight Systems warned: Not all CUDA events might have been collected)"
    )


@pytest.mark.parametrize("launches", [True, False])
def test_no_gpu_rows_means_failed_tracing_only_after_a_launch(export: Export, tmp_path: Path, launches: bool) -> None:
    export.calls([(10, 20, tid(PID_A), 1, 0 if launches else 3)])
    con = export.read(tmp_path)
    state = con.execute("select state from capability where name = 'gpu_ops'").fetchall()
    assert state == [("not_recorded" if launches else "recorded",)]


def test_a_capture_that_never_started_recorded_nothing(export: Export, tmp_path: Path) -> None:
    export.table(
        "META_DATA_CAPTURE",
        "name, value",
        [("CAPTURE_EVENT_TYPE", "Cuda"), ("PROCESS_0:COLLECT_CUDA_TRACE", "true")],
    )
    export.table("DIAGNOSTIC_EVENT", "timestamp, severity, text, globalPid",
                 [(1, 2, "No CUDA events collected. Does the process use CUDA?", tid(PID_A, 0))])  # fmt: skip
    con = export.read(tmp_path)
    ((state, how),) = con.execute("select state, how from capability where name = 'cuda_api'").fetchall()
    assert state == "not_recorded" and "No CUDA events collected" in how


def test_nccl_kernels_are_collectives_in_order(export: Export, tmp_path: Path) -> None:
    export.con.execute("update StringIds set value = 'ncclDevKernel_AllReduce_Sum_f32_RING_LL' where id in (1, 2)")
    export.kernels([(1, 2, PID_A, 1), (5, 6, PID_A, 2)])
    con = export.read(tmp_path)
    assert con.execute("select gpu_op, sequence, op from collective").fetchall() == [
        (0, 0, "all_reduce"),
        (1, 1, "all_reduce"),
    ]


def test_a_collective_has_the_size_that_its_own_call_states(export: Export, tmp_path: Path) -> None:
    """Two kernels of one call, and one that was launched when a group ended, have none."""
    export.con.execute("update StringIds set value = 'ncclDevKernel_AllReduce_Sum_f32_RING_LL' where id in (1, 2)")
    starts = (12, 32, 52, 54, 75)
    export.calls([(start, start + 1, tid(PID_A), n, 0) for n, start in enumerate(starts, 1)])
    export.kernels([(start + 2, start + 9, PID_A, n) for n, start in enumerate(starts, 1)])
    created = {"NCCL communicator ID": 2**64 - 1, "No. of ranks": 8, "Rank": 0, "CUDA device": 0}
    sent = {"NCCL communicator ID": 2**64 - 1, "Message size [bytes]": 4096, "Reduction operation": "Sum"}
    ranges = [(0, 5, created), (10, 20, sent), (30, 40, {"Message size [bytes]": 77}), (50, 60, sent), (70, 72, sent)]
    export.table("NVTX_EVENTS", NVTX, [
        (start, end, 59, "nccl", None, tid(PID_A), 2, json.dumps(said)) for start, end, said in ranges
    ] + [(80, 90, 59, "nccl", None, tid(PID_A), 2, '{"Message size [bytes]": ')])  # fmt: skip
    con = export.read(tmp_path)
    assert con.execute('select bytes, "group", ranks from collective order by gpu_op').fetchall() == [
        (4096, "18446744073709551615", 8),
        (77, None, None),
        (None, None, None),
        (None, None, None),
        (None, None, None),
    ]


def test_an_event_joins_two_streams(export: Export, tmp_path: Path) -> None:
    export.con.executemany(
        "insert into StringIds values (?, ?)",
        [(40, "cudaEventRecord_v3020"), (41, "cudaStreamWaitEvent_v3020")],
    )
    export.calls([(1, 2, tid(PID_A), 1, 0), (3, 4, tid(PID_A), 2, 40), (5, 6, tid(PID_A), 3, 41)])
    export.kernels([(10, 20, PID_A, 1)])
    export.table("CUPTI_ACTIVITY_KIND_CUDA_EVENT", "deviceId, contextId, streamId, correlationId, globalPid, eventId",
                 [(0, 1, 7, 2, tid(PID_A, 0), 5)])  # fmt: skip
    export.table(SYNC, 'start, "end", deviceId, contextId, streamId, correlationId, globalPid, syncType, eventId',
                 [(5, 6, 0, 1, 13, 3, tid(PID_A, 0), 2, 5)])  # fmt: skip
    con = export.read(tmp_path)
    assert con.execute(
        "select from_op, f.number, t.number, time from event_edge e join stream f on f.id = from_stream"
        " join stream t on t.id = to_stream"
    ).fetchall() == [(0, 7, 13, 5)]


def test_a_wait_of_the_host_names_what_its_event_followed(export: Export, tmp_path: Path) -> None:
    """Two kernels, the event between them: the wait is for the first, and joins no streams."""
    names = [(40, "cudaEventRecord_v3020"), (41, "cudaEventSynchronize_v3020")]
    export.con.executemany("insert into StringIds values (?, ?)", names)
    export.calls([
        (1, 2, tid(PID_A), 1, 0), (3, 4, tid(PID_A), 2, 40), (5, 6, tid(PID_A), 3, 0), (7, 30, tid(PID_A), 4, 41)
    ])  # fmt: skip
    export.kernels([(10, 20, PID_A, 1), (20, 40, PID_A, 3)])
    export.table("CUPTI_ACTIVITY_KIND_CUDA_EVENT", "deviceId, contextId, streamId, correlationId, globalPid, eventId",
                 [(0, 1, 7, 2, tid(PID_A, 0), 5)])  # fmt: skip
    export.table(SYNC, 'start, "end", deviceId, contextId, streamId, correlationId, globalPid, syncType, eventId',
                 [(7, 30, 0, 1, 0xFFFFFFFF, 4, tid(PID_A, 0), 2, 5)])  # fmt: skip
    con = export.read(tmp_path)
    assert con.execute("select y.kind, o.start from sync y join gpu_op o on o.id = y.after_op").fetchall() == [
        ("event", 10)
    ]
    assert con.execute("select count(*) from event_edge").fetchall() == [(0,)]


def test_an_event_recorded_again_covers_up_to_its_latest_record(export: Export, tmp_path: Path) -> None:
    """One event object, as loops use it: launch, record, wait, three times over; then a wait without a new record."""
    names = [(40, "cudaEventRecord_v3020"), (41, "cudaStreamWaitEvent_v3020")]
    export.con.executemany("insert into StringIds values (?, ?)", names)
    iterations = (0, 100, 200)
    export.calls([
        call for iteration, start in enumerate(iterations) for call in (
            (start + 1, start + 2, tid(PID_A), 10 * iteration + 1, 0),
            (start + 3, start + 4, tid(PID_A), 10 * iteration + 2, 40),
            (start + 5, start + 6, tid(PID_A), 10 * iteration + 3, 41),
        )
    ] + [(250, 251, tid(PID_A), 30, 0), (260, 261, tid(PID_A), 31, 41)])  # fmt: skip
    export.kernels([
        (start + 10, start + 20, PID_A, 10 * iteration + 1) for iteration, start in enumerate(iterations)
    ] + [(255, 259, PID_A, 30)])  # fmt: skip
    export.table("CUPTI_ACTIVITY_KIND_CUDA_EVENT", "deviceId, contextId, streamId, correlationId, globalPid, eventId",
                 [(0, 1, 7, 10 * iteration + 2, tid(PID_A, 0), 5) for iteration in range(3)])  # fmt: skip
    export.table(SYNC, 'start, "end", deviceId, contextId, streamId, correlationId, globalPid, syncType, eventId',
                 [(start + 5, start + 6, 0, 1, 13, 10 * iteration + 3, tid(PID_A, 0), 2, 5)
                  for iteration, start in enumerate(iterations)]
                 + [(260, 261, 0, 1, 13, 31, tid(PID_A, 0), 2, 5)])  # fmt: skip
    con = export.read(tmp_path)
    assert con.execute(
        "select time, o.start from event_edge e join gpu_op o on o.id = e.from_op order by time"
    ).fetchall() == [(5, 10), (105, 110), (205, 210), (260, 210)]


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress], ids=["gz", "xz"])
def test_compressed_exports_are_unpacked_elsewhere(export: Export, tmp_path: Path, compress: Any) -> None:
    export.calls([(10, 20, tid(PID_A), 1, 0)])
    export.con.close()
    packed = tmp_path / "packed"
    packed.mkdir()
    file = packed / "report.bin"  # The name says nothing: content decides.
    file.write_bytes(compress(export.path.read_bytes()))
    con = read(file, tmp_path)
    assert con.execute("select count(*) from api_call").fetchall() == [(1,)]
    assert con.execute("select file from input").fetchall() == [("report.bin",)]
    assert [entry.name for entry in packed.iterdir()] == ["report.bin"]


@pytest.mark.parametrize(
    "statement",
    [
        f"create view {KERNEL} as with recursive r(start) as (select 1 union all select 1 from r) select * from r",
        f"create virtual table {KERNEL} using rtree(id, start, finish)",
    ],
    ids=["endless view", "virtual table"],
)
def test_only_stored_tables_are_read(export: Export, tmp_path: Path, statement: str) -> None:
    export.calls([(10, 20, tid(PID_A), 1, 0)])
    export.con.execute(statement)
    if "virtual" in statement:
        export.con.execute(f"insert into {KERNEL} values (1, 2, 3)")
    export.con.commit()
    con = export.read(tmp_path)
    assert con.execute("select count(*) from api_call").fetchall() == [(1,)]
    assert con.execute("select count(*) from gpu_op").fetchall() == [(0,)]


def test_the_users_file_and_folder_stay_as_they_were(export: Export, tmp_path: Path) -> None:
    export.calls([(10, 20, tid(PID_A), 1, 0)])
    export.con.close()
    export.path.chmod(0o444)
    before = export.path.read_bytes()
    con = read(export.path, tmp_path)
    assert con.execute("select count(*) from api_call").fetchall() == [(1,)]
    assert export.path.read_bytes() == before
    assert [entry.name for entry in export.path.parent.iterdir()] == ["report.sqlite"]


@pytest.mark.slow
@pytest.mark.parametrize("marked", ["varchar", "blob"])
@pytest.mark.parametrize("text", ["kernel()", "Größe 日本語", r"C:\new\x41", "\\"])
def test_a_parquet_folder_gives_the_same_rows(export: Export, tmp_path: Path, text: str, marked: str) -> None:
    export.con.execute("update StringIds set value = ? where id = 1", (text,))
    export.calls([(10, 20, tid(PID_A), 1, 0)])
    export.kernels([(25, 40, PID_A, 1)])
    folder = tmp_path / "parquet"
    folder.mkdir()
    writer = duckdb.connect()
    for table in ("StringIds", RUNTIME, KERNEL):
        cursor = export.con.execute(f"select * from {table}")
        names = [column[0] for column in cursor.description]
        typed = ", ".join(f'"{name}" {marked if name == "value" else "bigint"}' for name in names)
        writer.execute(f"create table {table} ({typed})")
        rows = [[value.encode() if marked == "blob" and isinstance(value, str) else value for value in row]
                for row in cursor]  # fmt: skip
        writer.executemany(f"insert into {table} values ({', '.join('?' * len(names))})", rows)
        writer.execute(f"copy {table} to '{folder / (table + '.parquet')}' (format parquet)")
    query = (
        'select o.start, o."end", n.text, a.start from gpu_op o join name n on n.id = o.name'
        " join api_call a on a.id = o.api_call"
    )
    found = read(folder, tmp_path).execute(query).fetchall()
    assert found == export.read(tmp_path).execute(query).fetchall() != []
    assert found[0][2] == text


def test_the_remains_of_a_failed_export_are_refused(export: Export, tmp_path: Path) -> None:
    export.table("ProcessStreams", "a", [(1,)])
    with pytest.raises(GpudiagError, match="failed export"):
        export.read(tmp_path)


def test_damaged_pages_give_one_sentence(export: Export, tmp_path: Path) -> None:
    export.calls((10 * i, 10 * i + 5, tid(PID_A), i, 0) for i in range(5000))
    export.con.close()
    data = bytearray(export.path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 20000] = b"\xa5" * 20000
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(bytes(data))
    with pytest.raises(GpudiagError, match=r"^[^\n]*broken\.sqlite: [^\n]*$"):
        read(broken, tmp_path)


@pytest.mark.parametrize("facts", [{"Hostname": "node7"}, {"CpuCores": "8"}])
def test_of_a_machine_its_name_is_kept_and_nothing_else(tmp_path: Path, facts: dict[str, str]) -> None:
    export = Export(tmp_path / "a.sqlite")
    secret = {"DeviceEnvironment": "TOKEN=canary"}
    columns = "globalVid, devStateName, name TEXT, nameEnum, value TEXT"
    export.table("TARGET_INFO_SYSTEM_ENV", columns, [(1, "", name, 1, text) for name, text in (secret | facts).items()])
    export.calls([(100, 120, tid(PID_A), 1, 0)])
    export.kernels([(130, 180, PID_A, 1)])
    con = create()
    ingest(export.path, con, tmp_path)
    assert con.execute("select host from input").fetchall() == [(facts.get("Hostname"),)]
    tables = [name for (name,) in con.execute("select table_name from duckdb_tables()").fetchall()]
    assert not [name for name in tables if "canary" in str(con.execute(f'from "{name}"').fetchall())]
