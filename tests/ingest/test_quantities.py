"""More of anything than a program has: read, cut at a length that is named, or refused in a sentence. All synthetic."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from captures import named
from gpudiag.diagnosis import kernels, run_summary, verdict
from gpudiag.errors import GpudiagError
from gpudiag.ingest import ingest
from gpudiag.ingest.nsys import api, ids, lookup, nvtx
from gpudiag.loops import from_nvtx
from gpudiag.options import Options
from gpudiag.pipeline import explain
from gpudiag.replay.edges.stream_edges import by_stream
from gpudiag.store.database import create
from timelines import launched, library, opened, rows

PID = 100
GLOBAL = PID << 24
CALLS, KERNELS, RANGES = "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS"
TABLES = {
    "StringIds": "id integer primary key, value text",
    CALLS: "start, 'end', globalTid, correlationId, nameId",
    KERNELS: "start, 'end', deviceId, contextId, streamId, globalPid, correlationId, demangledName, shortName",
    RANGES: "start, 'end', eventType, globalTid, domainId, text, jsonText",
}


def export(path: Path, texts: Sequence[str] = ("cudaLaunchKernel", "void k()", "k"), **tables: Iterable[Any]) -> Path:
    con = sqlite3.connect(path)
    for name, columns in TABLES.items():
        con.execute(f"create table {name} ({columns})")
    con.executemany("insert into StringIds values (?, ?)", list(enumerate(texts)))
    names = {"calls": CALLS, "kernels": KERNELS, "ranges": RANGES}
    for name, given in tables.items():
        values = [tuple(row) for row in given]
        con.executemany(f"insert into {names[name]} values ({', '.join('?' * len(values[0]))})", values)
    con.commit()
    con.close()
    return path


def kernel(at: int, correlation: int, pid: int = GLOBAL, device: int = 0, stream: int = 7, name: int = 1) -> Any:
    return (10 * at + 4, 10 * at + 8, device, device + 1, stream, pid, correlation, name, 2)


def read(path: Path) -> duckdb.DuckDBPyConnection:
    con = create(small=True)
    ingest(path, con, path.parent)
    return con


def test_a_call_finds_its_thread_among_thousands(tmp_path: Path) -> None:
    many = 2 * lookup._LITERALS
    calls = [(10 * n, 10 * n + 2, GLOBAL | n + 1, n + 1, 0) for n in range(many)]
    con = read(export(tmp_path / "a.sqlite", calls=calls, kernels=(kernel(n, n + 1, stream=n) for n in range(many))))
    found = con.execute(
        "select a.start, t.tid, o.start, s.number from api_call a join thread t on t.id = a.thread"
        " join gpu_op o on o.api_call = a.id join stream s on s.id = o.stream order by 1"
    ).fetchall()
    assert found == [(10 * n, n + 1, 10 * n + 4, n) for n in range(many)]
    assert (
        con.execute("select table_name from duckdb_tables() where temporary and table_name like '%map%'").fetchall()
        == []
    )


def test_numbers_that_are_missing_stay_so_in_a_table() -> None:
    con = duckdb.connect()
    numbers = [(n, None if n % 2 else -n) for n in range(lookup._LITERALS + 1)]
    found = con.execute(f"from {lookup.relation(con, 'x', 'a, b', numbers)} order by a").fetchall()
    assert found == numbers
    lookup.drop(con)
    assert con.execute("show tables").fetchall() == []


def test_one_correlation_for_everything(tmp_path: Path) -> None:
    calls = [(10 * n, 10 * n + 2, GLOBAL | 1, 1, 0) for n in range(500)]
    con = read(export(tmp_path / "a.sqlite", calls=calls, kernels=(kernel(n, 1) for n in range(500))))
    assert con.execute("select count(*), count(distinct id), max(api_call) from gpu_op").fetchall() == [(500, 500, 0)]


def test_many_calls_within_one_call_have_it_as_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ("cudaGraphInstantiate", "void k()", "k", "cuInner", "cuInnermost")
    calls = [(0, 100, GLOBAL | 1, 1, 0), (10, 90, GLOBAL | 1, 2, 3), (20, 80, GLOBAL | 1, 3, 4)]
    parents = "select parent from api_call order by start"
    few = read(export(tmp_path / "a.sqlite", texts, calls=calls))
    assert few.execute(parents).fetchall() == [(None,), (0,), (1,)]
    monkeypatch.setattr(api, "_COMPARED", 1)
    many = read(tmp_path / "a.sqlite")
    assert many.execute(parents).fetchall() == [(None,), (0,), (0,)]


def test_ranges_nested_deeper_than_any_program_nests(tmp_path: Path) -> None:
    deep = nvtx.DEEPEST + 20
    ranges = [(n, 10_000 - n, 59, GLOBAL | 1, 0, f"level {n}", None) for n in range(deep)]
    con = read(export(tmp_path / "a.sqlite", ranges=ranges))
    assert con.execute("select count(*), max(depth) from nvtx_range").fetchall() == [(nvtx.DEEPEST, nvtx.DEEPEST - 1)]
    ((said,),) = con.execute("select text from diagnostic").fetchall()
    assert said.startswith("20 annotations nested more than")


def test_names_of_megabytes_are_cut(tmp_path: Path) -> None:
    texts = ("cudaLaunchKernel", "void k<" + "int, " * 400_000 + ">()", "k")
    ranges = [(n * 10, n * 10 + 9, 59, GLOBAL | 1, 0, "t" * 1_000_000, None) for n in range(3)]
    con = read(
        export(
            tmp_path / "a.sqlite",
            texts,
            calls=[(0, 2, GLOBAL | 1, 1, 0)],
            kernels=[kernel(0, 1)],
            ranges=ranges,
        )
    )
    assert con.execute("select max(length(text)) from name").fetchall() == [(ids.LONGEST,)]
    ((text,),) = con.execute("select n.text from gpu_op o join name n on n.id = o.name").fetchall()
    assert text.startswith("void k<int, int")


def test_a_stack_of_hundreds_keeps_its_innermost_frames(tmp_path: Path) -> None:
    frames = [{"Function": 0, "File": 1, "Line": line} for line in range(3 * nvtx._FRAMES)]
    body = json.dumps({"Python Periodic Sampling": {"Thread state": "on cpu", "Frames": frames}})
    con = read(export(tmp_path / "a.sqlite", ranges=[(5, None, 34, GLOBAL | 1, 0, None, body)]))
    ((found,),) = con.execute("select [f.line for f in frames] from py_sample").fetchall()
    assert found == list(range(nvtx._FRAMES))


def test_more_processes_or_gpus_than_there_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "USERS", 4)
    monkeypatch.setattr(ids, "DEVICES", 4)
    crowd = export(tmp_path / "crowd.sqlite", kernels=(kernel(n, 0, pid=(n + 1) << 24) for n in range(5)))
    with pytest.raises(GpudiagError, match=r"crowd\.sqlite: 5 of its processes used a GPU, and at most 4 are read"):
        read(crowd)
    farm = export(tmp_path / "farm.sqlite", kernels=(kernel(n, 0, device=n) for n in range(5)))
    with pytest.raises(GpudiagError, match=r"farm\.sqlite: one process used 5 GPUs in it, more than a machine has"):
        read(farm)
    fits = export(tmp_path / "fits.sqlite", kernels=(kernel(n, 0, pid=(n % 4 + 1) << 24, device=n) for n in range(8)))
    assert read(fits).execute("select count(distinct process), count(distinct device) from gpu_op").fetchall() == [
        (4, 8)
    ]
    monkeypatch.setattr(ids, "PROCESSES", 3)
    with pytest.raises(GpudiagError, match=r"fits\.sqlite: it is of more than 3 processes"):
        read(fits)


def test_more_kernels_than_any_program_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ("cudaLaunchKernel", *(f"kernel_{n}" for n in range(20)))
    path = export(tmp_path / "t.sqlite", texts, kernels=[kernel(n, n, name=1 + n) for n in range(20)])
    monkeypatch.setattr(ids, "KERNELS", 20)
    assert read(path).execute("select count(distinct name) from gpu_op").fetchall() == [(20,)]
    monkeypatch.setattr(ids, "KERNELS", 19)
    with pytest.raises(GpudiagError, match="it names more than 19 different kernels"):
        read(path)


def test_a_loop_among_hundreds_of_repeated_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    case = launched(30, 100, ("work", 5, 20, 60))
    case["nvtx_range"] = [{"start": 0, "duration": 99, "name": "step", "repeat": 30, "every": 100}] + [
        {"start": n, "duration": 0.01, "name": f"mark {chr(97 + n)}", "repeat": 30, "every": 100} for n in range(20)
    ]
    monkeypatch.setattr(from_nvtx, "COMPARED", 3)
    with opened(case) as con:
        (loop,) = rows(con, "select name from loop")
    assert "step" in loop["name"].split(" + ")


def test_the_middle_represents_millions_without_repetition() -> None:
    case = {"gpu_op": [{"name": f"kernel {n}", "start": n * n, "duration": 0.5} for n in range(60)]}
    with opened(case, settings={"min_ops": 10, "max_unrepeated_ops": 20}) as con:
        ((name, iterations),) = con.execute("select name, steady_iterations from loop").fetchall()
        ((start, end),) = con.execute('select start, "end" from iteration').fetchall()
        inside = con.execute("select count(*) from gpu_op where start between ? and ?", [start, end]).fetchall()
    assert (name, iterations, inside) == ("part of the run", 1, [(20,)])
    with opened(case, settings={"min_ops": 10}) as con:
        assert rows(con, "select name from loop") == [{"name": "whole run"}]


def test_operations_of_each_of_many_streams() -> None:
    stream = np.array([5, 3, 5, 9, 3, 3], dtype=np.int64)
    order = np.array([5, 4, 3, 2, 1, 0], dtype=np.int64)
    assert {s: own.tolist() for s, own in by_stream(stream, order).items()} == {3: [5, 4, 1], 5: [2, 0], 9: [3]}
    assert by_stream(stream[:0], order[:0]) == {}


@pytest.mark.capture
def test_a_page_of_more_kernels_than_a_report_describes(monkeypatch: pytest.MonkeyPatch) -> None:
    page = named("attention_materialised/slow.raw.csv")
    uncached = Options(cached=False)
    every = explain([page], uncached).run.kernels
    for module in (kernels, verdict):
        monkeypatch.setattr(module, "MOST", 2)
    report = explain([page], uncached)
    assert report.run.kernels == every[:2] and len(every) > 2
    assert "the longest 2 profiled kernels" in report.verdict.text


def test_a_file_that_lacks_what_another_has_is_named() -> None:
    con = create(small=True)
    con.execute("insert into input (id, kind, file) values (0, 'nsys', 'a'), (1, 'nsys', 'b'), (2, 'ncu', 'c')")
    states = [(0, "nvtx", "recorded"), (1, "nvtx", "not_recorded"), (2, "nvtx", "not_recorded"),
              (0, "os_calls", "unknown"), (1, "os_calls", "recorded")]  # fmt: skip
    con.executemany("insert into capability (input, name, state) values (?, ?, ?)", states)
    (note,) = run_summary.uneven(con, library())
    assert note.text == "`b` did not record NVTX annotations of the program: what is said of these rests on the others."


@pytest.mark.parametrize(("offset_ns", "said"), [(0, False), (50, False), (5_000, True), (None, False)])
def test_files_of_different_times_are_named(offset_ns: int | None, said: bool) -> None:
    con = create(small=True)
    con.executemany("insert into input (id, kind, file, clock_offset_ns) values (?, 'nsys', ?, ?)",
                    [(0, "a", 0), (1, "b", offset_ns)])  # fmt: skip
    con.execute("insert into process (id, input) values (0, 0), (1, 1)")
    con.execute('insert into gpu_op (id, process, start, "end") values (0, 0, 0, 100), (1, 1, 10, 90)')
    notes = run_summary.apart(con)
    assert [note.severity for note in notes] == ["high"] * said
    assert all("`a`, `b`" in note.text for note in notes)
