"""Synthetic events of memory, as Kineto writes them when it was asked for memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpudiag.ingest.torch import memory
from gpudiag.options import Options
from gpudiag.pipeline import explain
from torch_traces import PID, TID, Event, event, launched, of, written


def change(ts: float, size: int, device: int = 0, tid: int = TID, **totals: int) -> Event:
    """An event as PyTorch 2 writes it: totals stand where they are given."""
    args: dict[str, Any] = {"Bytes": size, "Device Id": device, "Device Type": 0 if device < 0 else 1, "Addr": 4096}
    keys = {"allocated": "Total Allocated", "reserved": "Total Reserved"}
    args |= {keys[name]: value for name, value in totals.items()}
    event = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": PID, "tid": tid}
    return {**event, "ts": ts, "args": args}


def states(con: Any) -> set[tuple[str, str]]:
    found: list[tuple[str, str]] = con.execute(
        "select state, how from capability where name in ('memory', 'allocator')"
    ).fetchall()
    return set(found)


def test_changes_of_the_pool_with_its_totals(tmp_path: Path) -> None:
    con = of(
        tmp_path, *launched(1),
        change(3.5, 512, allocated=1536, reserved=2048), change(7.25, -1024, allocated=512, reserved=2048),
        change(8, 64, device=-1, allocated=64, reserved=0), profile_memory=1,
    )  # fmt: skip
    found = con.execute(
        "select m.time, t.tid, d.ordinal, op, kind, bytes, address, allocated, reserved from memory_event m"
        " join thread t on t.id = m.thread join device d on d.id = m.device order by m.time"
    ).fetchall()
    assert found == [
        (3500, TID, 0, "allocate", "pool", 512, 4096, 1536, 2048),
        (7250, TID, 0, "free", "pool", 1024, 4096, 512, 2048),
    ]  # memory of the CPU is none of the GPU's
    assert {state for state, _ in states(con)} == {"recorded"}


def test_changes_at_one_moment_keep_their_order(tmp_path: Path) -> None:
    sizes = [100, 200, -100, 400, -200]
    events = [change(5, size, allocated=sum(sizes[: at + 1])) for at, size in enumerate(sizes)]
    con = of(tmp_path, *launched(1), *events)
    held = con.execute("select allocated from memory_event order by rowid").fetchall()
    assert [row[0] for row in held] == [100, 300, 200, 600, 400]


def test_an_event_on_the_border_of_what_is_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_CHUNK", 97)
    monkeypatch.setattr(memory, "_LONGEST", 300)
    con = of(tmp_path, *launched(1), *[change(number, number, allocated=number) for number in range(1, 60)])
    assert con.execute("select bytes from memory_event order by time").fetchall() == [(n,) for n in range(1, 60)]


def test_sizes_without_totals_are_not_enough(tmp_path: Path) -> None:
    con = of(tmp_path, *launched(1), change(3, 512), change(4, -512))
    assert con.execute("select count(*) from memory_event").fetchall() == [(0,)]
    ((state, how),) = states(con)
    assert state == "not_recorded" and "this version of PyTorch" in how


def test_without_profile_memory_the_flag_is_named(tmp_path: Path) -> None:
    ((state, how),) = states(of(tmp_path, *launched(1)))
    assert state == "not_recorded" and "profile_memory=True" in how


def test_memory_asked_for_and_never_touched(tmp_path: Path) -> None:
    ((state, how),) = states(of(tmp_path, *launched(1), profile_memory=1))
    assert state == "not_recorded" and "neither gave out nor took back" in how


def test_events_of_memory_that_make_no_sense_are_left_out(tmp_path: Path) -> None:
    odd = [
        change(3, 512, device=9, allocated=1, reserved=1),  # a device that does not exist
        {**change(4, 512, allocated=1, reserved=1), "args": {"Bytes": "much", "Device Type": 1}},
        {**change(5, 512, allocated=1, reserved=1), "ts": "soon"},
        {**launched(1)[0], "ts": 900, "args": {"note": "[memory]"}},
    ]
    con = of(tmp_path, *launched(1), *odd, change(6, 512, allocated=512, reserved=2048))
    assert con.execute("select time, bytes from memory_event").fetchall() == [(6000, 512)]
    assert con.execute("select text from diagnostic").fetchall() == [("trace.json: 1 events with impossible times",)]


def leaking() -> list[Event]:
    """Iterations that keep 50 MB each, allocated in `forward`, and free what `backward` needed."""
    events, held = launched(8), 2_000_000_000
    for number in range(8):
        begin, own = 1000.0 * number, 100 * number
        for at, (name, since, length) in enumerate((("<module>", 0, 995), ("forward", 1, 500), ("backward", 505, 400))):
            ids = {"Python id": own + at + 1, "Python parent id": own + 1 if at else None}
            events.append(event("python_function", f"train.py({at}): {name}", begin + since, length, **ids))
        for moment, size, address in ((201, 50_000_000, own + 1), (601, 10**9, 7), (901, -(10**9), 7)):
            held += size
            events.append(change(begin + moment, size, allocated=held, reserved=8 * 10**9))
            events[-1]["args"]["Addr"] = address
    return events


@pytest.mark.slow
def test_a_leak_is_reported_where_its_memory_was_allocated(tmp_path: Path) -> None:
    trace = written(tmp_path / "trace.json", leaking(), with_stack=1, profile_memory=1)
    (found,) = [finding for finding in explain([trace], Options(cached=False)).findings if finding.code == "A07"]
    assert "holds 47.7 MiB more than before it" in found.message
    assert [(place.file, place.function) for place in found.where] == [("train.py", "forward")]


@pytest.mark.slow
def test_without_memory_its_rules_are_not_evaluated(tmp_path: Path) -> None:
    report = explain([written(tmp_path / "trace.json", launched(8))], Options(cached=False))
    missing = {one.code: (one.reason, one.hint) for one in report.not_evaluated if one.code in ("A06", "A07")}
    said = ("memory use was not recorded", "torch.profiler.profile(profile_memory=True, …)")
    assert missing == {"A06": said, "A07": said}
