"""Synthetic traces of torch.profiler: events as Kineto writes them, made up here. No recording is among them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb

from gpudiag.ingest import ingest
from gpudiag.store.database import create

Event = dict[str, Any]
PID, TID = 4242, 4242
BASE = 1_700_000_000_000_000_000
DEVICE = {
    "id": 0, "name": "NVIDIA Toy", "totalGlobalMem": 16_000_000_000, "computeMajor": 9, "computeMinor": 0, "numSms": 40,
    "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536, "sharedMemPerMultiprocessor": 233472,
}  # fmt: skip


def event(cat: str, name: str, ts: float, dur: float, tid: Any = TID, **args: Any) -> Event:
    pid: Any = 0 if cat in ("kernel", "gpu_memcpy", "gpu_memset") else PID
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def call(name: str, ts: float, dur: float, correlation: int, **more: Any) -> Event:
    cat = "cuda_driver" if name.startswith("cu") and not name.startswith("cuda") else "cuda_runtime"
    return event(cat, name, ts, dur, correlation=correlation, **more)


def work(cat: str, name: str, ts: float, dur: float, correlation: int, **more: Any) -> Event:
    return event(cat, name, ts, dur, 7, correlation=correlation, device=0, context=1, stream=7, **more)


def launched(count: int, *, steps: bool = True, gap: float = 100.0) -> list[Event]:
    """Iterations of 1 ms: four kernels of 200 µs one after another; a step of the profiler around each iteration."""
    events: list[Event] = []
    for number in range(count):
        begin = 1000.0 * number
        if steps:
            events.append(event("user_annotation", f"ProfilerStep#{number + 5}", begin, 990))
        for kernel in range(4):
            correlation = number * 4 + kernel + 1
            at = begin + kernel * (200 + gap / 4)
            events.append(call("cudaLaunchKernel", at, 5, correlation))
            more = {"grid": [4, 2, 1], "block": [128, 1, 1], "registers per thread": 32, "shared memory": 16}
            events.append(work("kernel", "void ns::gemm<float, 4>(int, float*)", at + 8, 190, correlation, **more))
    return events


def document(events: list[Event], **stated: Any) -> dict[str, Any]:
    known = {"schemaVersion": 1, "deviceProperties": [DEVICE], "baseTimeNanoseconds": BASE, **stated}
    return {**known, "traceEvents": events, "traceName": "trace.json"}


def written(path: Path, events: list[Event], **stated: Any) -> Path:
    path.write_text(json.dumps(document(events, **stated)))
    return path


def read(path: Path) -> duckdb.DuckDBPyConnection:
    """A store of this trace."""
    con = create()
    work_folder = path.parent / f"work-{path.name}"
    work_folder.mkdir()
    ingest(path, con, work_folder)
    return con


def of(folder: Path, *events: Event, **stated: Any) -> duckdb.DuckDBPyConnection:
    return read(written(folder / "trace.json", list(events), **stated))
