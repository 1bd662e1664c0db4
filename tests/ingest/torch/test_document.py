"""The list of events is cut out of whatever object holds it, exact and repaired."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from gpudiag.errors import GpudiagError
from gpudiag.ingest.torch import document as cutting
from torch_traces import call, document, event, launched, of, read, work, written

NAMES = "select text from name order by 1"


def test_times_are_exact_nanoseconds_after_the_first_event(tmp_path: Path) -> None:
    con = of(
        tmp_path, call("cudaLaunchKernel", 4459115948608.038, 1.25, 1), work("kernel", "k", 4459115948610.123, 2, 1)
    )
    assert con.execute('select start, "end" from api_call').fetchall() == [(0, 1250)]
    assert con.execute('select start, "end" from gpu_op').fetchall() == [(2085, 4085)]


def test_microseconds_since_1970_keep_their_decimals(tmp_path: Path) -> None:
    text = json.dumps(document([call("cudaLaunchKernel", 1, 2, 1), work("kernel", "k", 3, 2, 1)]))
    text = text.replace('"ts": 1,', '"ts": 1712195495519689.047,').replace('"ts": 3,', '"ts": 1712195495519689.301,')
    (tmp_path / "trace.json").write_text(text)
    assert read(tmp_path / "trace.json").execute("select start from gpu_op").fetchall() == [(254,)]


@pytest.mark.parametrize("indent", [None, 2])
def test_lists_after_the_events_do_not_end_them(tmp_path: Path, indent: int | None) -> None:
    events = [*launched(2), call("odd ] name", 5000, 1, 90, dims=[[1, 2], []])]
    text = json.dumps(
        {**document(events), "INFO": ["a ] b", ["c"]], "distributedInfo": {"ranks": [0, 1]}}, indent=indent
    )
    (tmp_path / "trace.json").write_text(text)
    con = read(tmp_path / "trace.json")
    assert con.execute("select count(*) from api_call").fetchall() == [(9,)]


def test_a_list_alone_is_a_trace(tmp_path: Path) -> None:
    (tmp_path / "trace.json.gz").write_bytes(gzip.compress(json.dumps(launched(2)).encode()))
    assert read(tmp_path / "trace.json.gz").execute("select count(*) from gpu_op").fetchall() == [(8,)]


def test_what_is_no_json_is_repaired(tmp_path: Path) -> None:
    events = [
        call("one", 1, 2, 1),
        call("two", 4, 2, 2),
        call("three", 7, 2, 3),
        work("kernel", "k", 9, 3, 1, est="INF"),
    ]
    text = json.dumps(document(events)).encode()
    text = text.replace(b'"INF"', b"inf").replace(b'"one"', b'"o\nn\x01e"')
    text = text.replace(b'"two"', b'"t\xffwo"').replace(b'"three"', rb'"C:\Users\me \ud800 \\n \"q\""')
    (tmp_path / "trace.json").write_bytes(text)
    names = [name for (name,) in read(tmp_path / "trace.json").execute(NAMES).fetchall()]
    assert names == ['C:\\Users\\me � \\n "q"', "k", "o n e", "t�wo"]


@pytest.mark.parametrize("kept", [0.3, 0.9, 0.999])
def test_a_trace_cut_short_is_refused_in_a_sentence(tmp_path: Path, kept: float) -> None:
    text = json.dumps({"deviceProperties": [], "traceEvents": launched(50)})
    path = tmp_path / "trace.json"
    path.write_text(text[: int(len(text) * kept)])
    with pytest.raises(GpudiagError, match="cut short") as error:
        read(path)
    assert str(error.value).startswith(f"{path}: ") and "\n" not in str(error.value)


def test_damage_inside_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = written(tmp_path / "trace.json", launched(3))
    path.write_text(path.read_text().replace('"dur": 990', '"dur" 990', 1))
    with pytest.raises(GpudiagError, match="the trace is damaged") as error:
        read(path)
    assert "\n" not in str(error.value)


def test_an_event_of_another_shape_is_refused_in_a_sentence(tmp_path: Path) -> None:
    events = launched(4)
    file = written(tmp_path / "trace.json", events)
    file.write_text(json.dumps(document([*events, {**events[-1], "args": 3}])))
    with pytest.raises(GpudiagError, match="the trace is damaged") as error:
        read(file)
    assert "events-" not in str(error.value) and "record/value" in str(error.value)


def test_numbers_may_be_texts_as_in_early_versions(tmp_path: Path) -> None:
    events = [
        {**event("Runtime", "cudaLaunchKernel", 10, 5, "4242", correlation=3), "pid": "4242"},
        {**event("Kernel", "k", 20, 5, "stream 7", correlation=3, stream=7, device=0, context=1), "pid": 0},
        {**event("Operator", "ProfilerStep#3", 0, 40, "4242"), "pid": "4242"},
    ]
    con = of(tmp_path, *events, schemaVersion=1)
    assert con.execute("select number from stream").fetchall() == [(7,)]
    assert con.execute("select tid from thread").fetchall() == [(4242,)]
    assert con.execute("select text from nvtx_range join name on name.id = nvtx_range.name").fetchall() == [
        ("ProfilerStep#3",)
    ]


def test_a_long_list_is_cut_between_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "_SMALL", 2000)
    monkeypatch.setattr(cutting, "_CHUNK", 300)
    events = [*launched(20), call('"},{"ph":', 30_000, 1, 900)]
    con = of(tmp_path, *events)
    assert con.execute("select count(*) from api_call").fetchall() == [(81,)]
    assert con.execute("select count(*) from gpu_op").fetchall() == [(80,)]
    assert not list(tmp_path.rglob("events-*"))
