"""Traces packed as columns: the same events in the same order, each with its keys in their order."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.packed import __main__ as command
from evaluation.packed import fileformat, plain, recording, recordings, stored, traces, traces_of
from evaluation.packed.database import CannotPackError
from paths import CAPTURES

SMALL = st.integers(0, 5)
MICROSECONDS = st.integers(0, 2**50).map(lambda thousandths: thousandths / 1000)
TEXT = st.text(max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | MICROSECONDS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=4,
)
KEYS = st.sampled_from(["name", "pid", "tid", "ts", "dur", "id", "args"]) | TEXT
ARGS = st.dictionaries(st.sampled_from(["correlation", "External id", "cbid"]) | TEXT, SMALL | VALUES, max_size=4)
KINDS = st.fixed_dictionaries({
    "ph": st.sampled_from(["X", "s", "f", "M"]), "cat": st.sampled_from(["cuda_runtime", "kernel", "cpu_op", "ac2g"]),
})  # fmt: skip
EVENTS = st.one_of(
    st.tuples(KINDS, st.dictionaries(KEYS, VALUES, max_size=5)).map(lambda both: both[0] | both[1]),
    st.tuples(KINDS, MICROSECONDS, MICROSECONDS, SMALL, ARGS).map(
        lambda one: one[0] | {"id": one[3], "ts": one[1], "dur": one[2], "args": one[4]}
    ),
    VALUES,
)
TRACES = st.one_of(
    st.lists(EVENTS, max_size=20),
    st.tuples(
        st.dictionaries(TEXT, VALUES, max_size=2), st.lists(EVENTS, max_size=20), st.dictionaries(TEXT, VALUES)
    ).map(lambda all_of_it: all_of_it[0] | {"traceEvents": all_of_it[1]} | all_of_it[2]),
)


def loops(steps: int) -> dict[str, Any]:
    """A made-up trace of calls, kernels and the arrows between them, long enough for every way of coding."""
    events: list[dict[str, Any]] = []
    for number in range(steps):
        ts = 4734352177658.66 + number * 12.125 + number % 7 / 1000
        call = {"External id": number // 2, "cbid": 211, "correlation": 3 * number}
        kernel = {"External id": number // 2, "correlation": 3 * number, "grid": [number % 5, 1, 1], "part": 0.1 / 3}
        events += [
            {
                "ph": "X",
                "cat": "cuda_runtime",
                "name": "cudaLaunchKernel",
                "tid": 9,
                "ts": ts,
                "dur": 4.5,
                "args": call,
            },
            {"ph": "s", "id": 3 * number, "tid": 9, "ts": ts, "cat": "ac2g"},
            {"ph": "X", "cat": "kernel", "name": f"k{number % 3}", "tid": 7, "ts": ts + 5, "dur": 2.0, "args": kernel},
            {"ph": "f", "id": 3 * number, "tid": 7, "ts": ts + 5, "cat": "ac2g", "bp": "e"},
        ]
    return {"schemaVersion": 1, "traceEvents": events, "traceName": "made-up"}


@given(TRACES)
def test_any_trace_comes_back_as_it_was(document: Any) -> None:
    document = json.loads(json.dumps(document))
    packed = traces.dump(document)
    assert json.dumps(traces.load(packed)) == json.dumps(document)


def test_a_long_trace_comes_back_small() -> None:
    document = loops(1500)
    packed = traces.dump(document)
    assert packed == traces.dump(document)
    assert json.dumps(traces.load(packed)) == json.dumps(document)
    assert len(packed) < len(lzma.compress(json.dumps(document).encode())) / 4


def test_a_trace_packed_by_the_command_comes_back(tmp_path: Path) -> None:
    file = tmp_path / "captures" / "some_program" / "slow.pt.trace.json.xz"
    file.parent.mkdir(parents=True)
    file.write_bytes((CAPTURES / "rollout_eager" / "fixed.pt.trace.json.xz").read_bytes())
    before = json.loads(plain(file).read_bytes())
    target, _, size = command.pack(file)
    assert (target.name, target.stat().st_size, file.exists()) == ("slow.pt.trace.columns", size, False)
    assert (traces_of(tmp_path), recordings(tmp_path), stored(file.with_name("slow.pt.trace"))) == (
        [target],
        [],
        target,
    )
    again = recording(file.with_name("slow.pt.trace"))
    assert again.name == "slow.pt.trace.json"
    assert json.dumps(json.loads(again.read_bytes())) == json.dumps(before)
    written = command.unpack(target, tmp_path)
    assert written.name == "slow.pt.trace.json.xz"
    assert json.dumps(json.loads(plain(written).read_bytes())) == json.dumps(before)


def test_json_without_events_is_refused() -> None:
    documents: list[Any] = [{"events": []}, {"traceEvents": {}}, 7]
    for document in documents:
        with pytest.raises(CannotPackError, match="no list of events"):
            traces.dump(document)


def test_a_packed_timeline_is_not_read_as_a_trace() -> None:
    timeline = next(one for one in recordings(CAPTURES) if one.suffix == ".columns").read_bytes()
    with pytest.raises(fileformat.DamagedError, match="no file of packed columns"):
        traces.load(timeline)
