"""Nsight Compute reports. All synthetic: a stand-in for NVIDIA's package, a script in place of ncu, an invented kernel.

The real package only sees a made-up report here, and only where it is installed.
"""

from __future__ import annotations

import importlib.util
import lzma
import stat
from pathlib import Path

import duckdb
import pytest

from gpudiag.errors import GpudiagError
from gpudiag.ingest import ingest
from gpudiag.ingest.file_kind import detect
from gpudiag.ingest.ncu import report as ncu_rep
from gpudiag.ingest.ncu import report_blocks, report_worker
from gpudiag.store import database

KERNEL = "scale(float *, int)"
HEADER = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device",'
    '"CC"'
)
LAUNCH = f'"0","4711","app","127.0.0.1","{KERNEL}","1","7","(32, 8, 1)","(64, 16, 1)","0","9.0"'
SAID = "This kernel is slow. Check the Launch Statistics section and the Guide (https://example.org/a) on it."
# Name, unit and value on a raw page; kind, value and number of instances as the package gives them.
METRICS = [
    ("gpu__time_duration.sum", "usecond", "84.480000", "DOUBLE", 84480.0, 0),
    ("dram__bytes.sum.per_second", "Gbyte/second", "31.494031", "DOUBLE", 31494031000.0, 0),
    ("launch__grid_size", "", "1024", "DOUBLE", 1024.0, 0),
    ("launch__block_size", "", "256", "UINT64", 256, 0),
    ("launch__stream_id", "", "7", "DOUBLE", 7.0, 0),
    ("launch__waves_per_multiprocessor", "", "1.50", "DOUBLE", 1.5, 0),
    ("launch__func_cache_config", "", "CachePreferNone", "STRING", "CachePreferNone", 0),
    ("device__attribute_display_name", "", "Some GPU", "STRING", "Some GPU", 0),
    ("device__attribute_compute_capability_major", "", "9", "UINT64", 9, 0),
    ("device__attribute_compute_capability_minor", "", "0", "UINT64", 0, 0),
    ("sm__pipe.ratio", "", "nan", "DOUBLE", float("nan"), 0),
    ("nvlink__source_ports", "", "no data", "UNKNOWN", None, 0),
    ("memory_type", "", "", "UINT64", None, 1),  # instances without a sum: ncu prints nothing
]

# What the stand-in's samples add up to, as the raw page prints it.
SAMPLES = [
    (f"smsp__pcsamp_warps_issue_stalled_{reason}", "warp", f"{count}.000000")
    for reason, count in {
        "barrier": 0, "wait": 14520, "wait_not_issued": 60, "long_scoreboard": 58080, "long_scoreboard_not_issued": 60,
    }.items()
]  # fmt: skip

# A stand-in for NVIDIA's module, as far as it is used. What the report holds says how it behaves.
STAND_IN = f"""
import os, sys, time

nan = float("nan")
METRICS = {[(name, value, many) for name, _, _, _, value, many in METRICS]!r}


class Metric:
    def __init__(self, value, many=0, instances=None):
        self.stored, self.many, self.instances = value, many, instances or {{}}

    def has_value(self): return self.stored is not None
    def value(self): return self.stored
    def num_instances(self): return len(self.instances) or self.many
    def has_correlation_ids(self): return bool(self.instances)
    def correlation_ids(self): return Metric(None, 0, {{at: pc for at, pc in enumerate(self.instances)}})
    def as_uint64(self, at=None): return self.stored if at is None else list(self.instances.values())[at]


class Source:
    def __init__(self, line): self.at = line
    def file_name(self): return "/src/scale.cu"
    def line(self): return self.at


class Rule:
    def __init__(self, text, kind): self.text, self.kind = text, kind
    def has_rule_message(self): return self.text is not None
    def rule_message(self): return {{"title": "", "message": self.text, "type": self.kind}}
    def section_identifier(self): return "Occupancy"
    def rule_identifier(self): return "Slow"
    def has_speedup_estimation(self): return self.kind == 2
    def speedup_estimation(self): return {{"type": 2, "speedup": 12.345678}}


class Action:
    NameBase_DEMANGLED = 1

    def __init__(self, content):
        self.content = content
        self.metrics = {{name: Metric(value, many) for name, value, many in METRICS}}
        self.metrics["breakdown:sm__throughput"] = Metric("a,b")
        stalled = "smsp__pcsamp_warps_issue_stalled_"
        self.metrics[stalled + "barrier"] = Metric(0, 0, {{16: 0}})
        for reason, share in (("wait", 2), ("long_scoreboard", 8)):
            samples = {{pc * 16: pc * share for pc in range(1, 121)}}
            self.metrics[stalled + reason] = Metric(sum(samples.values()), 0, samples)
            self.metrics[stalled + reason + "_not_issued"] = Metric(60, 0, {{120 * 16: 60}})
        if b"lost" in content:
            self.metrics = {{}}

    def name(self, base=0): return {KERNEL!r}
    def metric_names(self): return tuple(self.metrics)
    def metric_by_name(self, name): return self.metrics[name]
    def sass_by_pc(self, pc): return f"      FADD   R{{pc // 16}}, R1"
    def source_info(self, pc): return None if b"no lines" in self.content else Source(pc // 32)

    def rule_results(self):
        return (
            Rule("This kernel is slow. Check the @section:LaunchStats:Launch Statistics@ section and the"
                 " @url:Guide:https://example.org/a@ on it.", 2),
            Rule("", 0),
            Rule(None, 0),
        )


class Range:
    def __init__(self, actions): self.actions = actions
    def num_actions(self): return len(self.actions)
    def action_by_idx(self, at): return self.actions[at]


class Context:
    def __init__(self, ranges): self.ranges = ranges
    def num_ranges(self): return len(self.ranges)
    def range_by_idx(self, at): return self.ranges[at]


def load_report(path):
    content = open(path, "rb").read()
    if b"crash" in content:
        os.abort()
    if b"hang" in content:
        time.sleep(60)
    if b"refuse" in content:
        raise RuntimeError("no such report")
    print("words of its own on the way")
    return Context([] if b"empty" in content else [Range([Action(content)])])
"""


def report(payload: bytes = b"whole") -> bytes:
    """A file in the layout of a report: a header of version 7, and two blocks that state their lengths."""
    block = b"\x08\x00\x10\x01\x22\x03abc\x28" + bytes([len(payload)])
    chain = len(block).to_bytes(4, "little") + block + payload
    return b"NVR\x00\x02\x00\x00\x00\x08\x07" + chain + chain


def page(kind: str) -> str:
    if kind == "raw":
        columns = [(name, unit, text) for name, unit, text, *_ in METRICS] + SAMPLES
        names, units, values = (",".join(f'"{cell}"' for cell in cells) for cells in zip(*columns, strict=True))
        return f"{HEADER},{names}\n" + '"",' * 11 + f"{units}\n{LAUNCH},{values}\n"
    return (
        f'{HEADER},"Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type",'
        '"Rule Description","Estimated Speedup Type","Estimated Speedup"\n'
        f'{LAUNCH},"Launch Statistics","Grid Size","","1,024",\n'
        f'{LAUNCH},"Occupancy","","","","Slow","OPT","{SAID}","global","12.35"\n'
    )


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which neither way is open: no package, and no tool on the PATH."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (tmp_path / "bin").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return tmp_path


def with_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "site").mkdir()
    (folder / "site" / "ncu_report.py").write_text(STAND_IN)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.syspath_prepend(folder / "site")


def with_ncu(folder: Path, body: str = "") -> None:
    for kind in ("raw", "details"):
        (folder / f"{kind}.csv").write_text(page(kind))
    tool = folder / "bin" / "ncu"
    body = body or f'[ "$1" = --import ] && [ -f "$2" ] && [ "$3 $4" = "--csv --page" ] && cat "{folder}/$5.csv"'
    tool.write_text(f"#!/bin/sh\n[ \"$1\" = --version ] && echo 'Version 2020.1.0.0 (build 1)' && exit\n{body}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)


def read(folder: Path, content: bytes = report(), name: str = "kernels.ncu-rep") -> duckdb.DuckDBPyConnection:
    file = folder / name
    file.write_bytes(content)
    con = database.create()
    ingest(file, con, folder / "work")
    return con


def rows(con: duckdb.DuckDBPyConnection, query: str) -> list[tuple[object, ...]]:
    return con.execute(query).fetchall()


TABLES = (
    "select p.* exclude (process), n.text from kernel_profile p join name n on n.id = p.name",
    "select * from kernel_metric order by metric",
    "select * from kernel_rule",
    "select name, state from capability where name != 'ncu_lines' order by name",
    "select * from input",
)


def test_both_ways_give_the_tables_of_the_raw_page_and_the_rules(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_ncu(work)
    by_ncu = read(work)
    (work / "bin" / "ncu").unlink()
    with_package(work, monkeypatch)
    by_package = read(work)
    for query in TABLES:
        assert rows(by_ncu, query) == rows(by_package, query)
    (work / "kernels.ncu-rep").unlink()
    by_csv = read(work, page("raw").encode())  # recognised by its content
    for query in (TABLES[0], TABLES[1], TABLES[3], TABLES[4]):
        assert rows(by_csv, query) == rows(by_package, query)
    assert rows(by_package, "select section, rule, kind, text, estimate, estimate_kind from kernel_rule") == [
        ("Occupancy", "Slow", "OPT", SAID, 12.35, "global")
    ]
    values = dict(by_package.execute("select metric, coalesce(text, value::varchar) from kernel_metric").fetchall())
    assert values["gpu__time_duration.sum"] == "84480.0" and values["dram__bytes.sum.per_second"] == "31494031000.0"
    assert values["nvlink__source_ports"] == "no data" and values["sm__pipe.ratio"] == "nan"
    assert "memory_type" not in values and "breakdown:sm__throughput" not in values


def test_the_worst_lines_are_kept(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_package(work, monkeypatch)
    con = read(work)
    found = rows(con, "from kernel_line order by samples desc, line desc")
    # Two instructions a line: the last line has one, so the one before is the worst.
    assert found[:2] == [(0, "/src/scale.cu", 59, "FADD R119, R1", 2370, 0),
                         (0, "/src/scale.cu", 58, "FADD R117, R1", 2330, 0)]  # fmt: skip
    assert (0, "/src/scale.cu", 60, "FADD R120, R1", 1200, 120) in found
    assert len(found) == report_worker.MOST_LINES
    assert rows(con, "select state from capability where name = 'ncu_lines'") == [("recorded",)]


def test_without_lines_the_instructions_are_named(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_package(work, monkeypatch)
    con = read(work, report(b"no lines"))
    assert rows(con, "select file, line, sass, samples from kernel_line order by 4 desc limit 1") == [
        (None, None, "FADD R120, R1", 1200)
    ]
    assert rows(con, "select state from capability where name = 'ncu_lines'") == [("not_recorded",)]


def test_a_compressed_report_is_read_and_named_as_given(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_package(work, monkeypatch)
    con = read(work, lzma.compress(report()), "a.ncu-rep.xz")
    assert rows(con, "select file from input") == [("a.ncu-rep.xz",)]
    with pytest.raises(GpudiagError, match=r"/b\.ncu-rep\.xz: the report is cut short"):
        read(work, lzma.compress(report()[:-1]), "b.ncu-rep.xz")


def test_without_either_way_both_are_named(work: Path) -> None:
    with pytest.raises(
        GpudiagError,
        match=r"kernels\.ncu-rep: .*`pip install ncu-report`.*"
        r"`ncu --import kernels\.ncu-rep --csv --page raw > kernels\.csv`",
    ):
        read(work)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"crash", r"ncu-report crashed on it with signal 6"),
        (b"refuse", r"ncu-report says: RuntimeError: no such report\)"),
        (b"empty", r"ncu-report found no profiled kernel in it"),
        (b"lost", r"ncu-report says: a launch in it has no metrics"),
    ],
)
def test_what_the_package_cannot_read_is_one_sentence(
    work: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, words: str
) -> None:
    with_package(work, monkeypatch)
    with pytest.raises(GpudiagError, match=words) as error:
        read(work, report(content))
    assert "\n" not in str(error.value) and "pip install --upgrade ncu-report" in str(error.value)
    assert not list(work.rglob("core*"))
    with_ncu(work)  # the tool may know what the package does not
    assert rows(read(work, report(content)), "select count(*) from kernel_profile") == [(1,)]


@pytest.mark.slow
def test_a_hung_reader_is_given_up(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_package(work, monkeypatch)
    with_ncu(work, f"sleep 60 & echo $! > {work}/pid; wait")
    file = work / "a.ncu-rep"
    file.write_bytes(report(b"hang"))
    with pytest.raises(GpudiagError, match=r"ncu-report did not finish within 1 s; `ncu` .*did not finish within 1 s"):
        ncu_rep.read(file, database.create(), work / "work", file, timeout_s=0.7)
    status = Path(f"/proc/{(work / 'pid').read_text().strip()}/stat")
    assert not status.exists() or status.read_text().split()[2] == "Z"  # what the tool started is gone, too


def test_what_an_old_ncu_says_is_passed_on_with_its_version(work: Path) -> None:
    with_ncu(work, "echo \"==ERROR== Failed to load report file '$2'.\"; exit 1")
    with pytest.raises(
        GpudiagError, match=r"`ncu` 2020\.1\.0\.0 says: Failed to load report file 'kernels\.ncu-rep'\)"
    ):
        read(work)


def test_a_report_without_sections_has_no_rules(work: Path) -> None:
    with_ncu(work)
    (work / "details.csv").write_text("==WARNING== nothing to show\n")
    con = read(work)
    assert rows(con, "select count(*) from kernel_rule") == [(0,)]
    assert rows(con, "select duration_ns, process from kernel_profile") == [(84480.0, 4711)]


def test_ncu_writes_only_into_the_work_folder(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "home").mkdir()
    monkeypatch.setenv("HOME", str(work / "home"))
    monkeypatch.chdir(work / "home")
    with_ncu(work, f'echo x > "$HOME/settings"; echo x > here; cat "{work}/$5.csv"')
    read(work)
    assert list((work / "home").iterdir()) == []


def test_a_report_cut_anywhere_is_noticed(tmp_path: Path) -> None:
    whole, file = report(), tmp_path / "a.ncu-rep"
    blocks = {10 + (len(whole) - 10) // 2}  # between its blocks a report may end
    for length in range(len(whole) + 1):
        file.write_bytes(whole[:length])
        assert report_blocks.is_cut(file) == (length < len(whole) and length not in blocks), length


@pytest.mark.parametrize(
    "content",
    [
        report().replace(b"\x08\x07", b"\x08\x09"),  # a later version of the layout
        report().replace(b"\x10\x01", b"\x50\x01") + b"more",  # a block with a field that none has so far
    ],
    ids=["version", "field"],
)
def test_an_unknown_layout_is_left_to_its_reader(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.ncu-rep"
    file.write_bytes(content)
    assert not report_blocks.is_cut(file)
    assert detect(file) == "ncu_rep"


def test_the_real_package_survives_a_made_up_report(tmp_path: Path) -> None:
    pytest.importorskip("ncu_report")
    file = tmp_path / "a.ncu-rep"
    file.write_bytes(report())
    with pytest.raises(GpudiagError, match=r"a\.ncu-rep: cannot be read \(ncu-report "):
        ingest(file, database.create(), tmp_path)
