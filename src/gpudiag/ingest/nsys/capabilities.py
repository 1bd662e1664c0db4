"""Capabilities of an Nsight Systems capture: what it could have recorded, and how that is known.

Exports leave empty tables out, so a missing table proves nothing: capture options, the profiler's own diagnostics and
sister tables decide, and `unknown` is an honest answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from gpudiag.ingest.nsys.ids import Capture
from gpudiag.ingest.rows import append
from gpudiag.ingest.sources.base import quoted, texts

State = Literal["recorded", "not_recorded", "unknown"]
Verdict = tuple[State, str]

# The only capture options that are read: the others hold environments, command lines and names of people.
_OPTIONS = re.compile(
    r"(.*:)?(COLLECT_[A-Z_0-9]+|CAPTURE_EVENT_TYPE|MODE|SAMPLING_FREQUENCY|COLLECT_SAMPLES|CUDA_EVENT[A-Z_]*)"
)

# The profiler's own words for a CUDA trace that failed, the plainest first.
_FAILED = tuple(
    map(
        re.compile,
        (
            "CUDA profiling might (?:have not|not have) been started",
            "No CUDA events",
            "CUDA injection initialization failed|CUDA tracing is not supported",
            "Cannot initialize CUDA event collection",
            "Could not load the CUPTI|Could not find CUPTI|Could not parse .*CUPTI|CUDA event processing was stopped",
            "GPU events were discarded|Not all CUDA events",
        ),
    )
)
_GPU_TABLES = tuple(f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE"))
_JSON = "EXPORT_PARAM_INCLUDE_JSON"
_CANNOT = "the nsys that wrote this export cannot write Python stacks; export it with a newer one"


@dataclass(frozen=True)
class _Facts:
    """The file's own account of how it was captured."""

    options: Mapping[str, frozenset[str]]
    has_options: bool
    warnings: tuple[str, ...]
    counts: Mapping[str, int]
    launches: bool
    graph_nodes: bool
    python: bool  # whether a process is named after Python, or none is named
    has: Callable[[str], bool]

    def option(self, name: str) -> bool | None:
        """On in any process, off in all, or not stated."""
        values = {value for key, found in self.options.items() if key.endswith(name) for value in found}
        return "true" in values if values else None

    def failure(self) -> str | None:
        """Return the profiler's own message about a failed CUDA trace; other warnings about CUDA are no reason."""
        return next((text for pattern in _FAILED for text in self.warnings if pattern.search(text)), None)

    def event_type(self, name: str) -> bool | None:
        types = self.options.get("CAPTURE_EVENT_TYPE")
        return None if types is None else name in types


def write(capture: Capture) -> None:
    """Fill `capability` for this input; every other table has been read."""
    facts = _facts(capture)
    deciders: dict[str, Callable[[_Facts], Verdict]] = {
        "cuda_api": _cuda_api, "gpu_ops": _gpu_ops, "graph_nodes": _graph_nodes, "sync": _sync, "events": _events,
        "nvtx": _nvtx, "python_samples": _python_samples, "os_calls": _os_calls, "um_faults": _um_faults,
        "gpu_metrics": _gpu_metrics, "memory": _memory,
    }  # fmt: skip
    rows = [(capture.input, name, *decide(facts)) for name, decide in deciders.items()]
    append(capture.con, "capability", ("input", "name", "state", "how"), rows)


def _facts(capture: Capture) -> _Facts:
    source, options = capture.source, dict[str, set[str]]()
    # Names first: the values of other options are not even read.
    names = {name for (name,) in source.rows("META_DATA_CAPTURE", texts("name")) if name and _OPTIONS.fullmatch(name)}
    wanted = {"META_DATA_CAPTURE": names, "META_DATA_EXPORT": {_JSON}}
    for table, listed in wanted.items():
        condition = f"name in ({', '.join(map(quoted, sorted(listed)))})" if listed else "false"
        for name, value in source.rows(table, texts("name", "value"), condition):
            options.setdefault(name, set()).add(value or "")
    functions = [function for _, function in capture.api_names.values()]
    launches = any(part in function for function in functions for part in ("Launch", "Memcpy", "Memset"))
    counts = {table: capture.found(table) for table in ("api_call", "gpu_op", "nvtx_range", "py_sample")}
    programs = capture.con.execute("select name from process where input = ?", [capture.input]).fetchall()
    python = all(name is None for (name,) in programs) or any("python" in (name or "").lower() for (name,) in programs)
    return _Facts(
        {name: frozenset(values) for name, values in options.items()}, source.has("META_DATA_CAPTURE"),
        tuple(capture.warnings), counts, launches, capture.graph_nodes, python, source.has,
    )  # fmt: skip


def _cuda_api(facts: _Facts) -> Verdict:
    if facts.counts["api_call"]:
        return "recorded", "CUDA calls are in the file"
    if facts.option("COLLECT_CUDA_TRACE") is False and facts.event_type("Cuda") is not True:
        return "not_recorded", "CUDA tracing was off; capture with --trace=cuda"
    if warning := facts.failure():
        return "not_recorded", f"Nsight Systems warned: {warning}"
    if facts.event_type("Cuda") or facts.option("COLLECT_CUDA_TRACE"):
        if facts.has("DIAGNOSTIC_EVENT"):
            return "recorded", "CUDA tracing was on and no call was made"
        return "unknown", "CUDA tracing was asked for, but the file holds no CUDA call"
    return "unknown", "the file holds no CUDA call and does not say whether tracing was on"


def _gpu_ops(facts: _Facts) -> Verdict:
    if facts.counts["gpu_op"]:
        return "recorded", "GPU operations are in the file"
    state, how = _cuda_api(facts)
    if not facts.counts["api_call"]:
        return state, how
    if any(map(facts.has, _GPU_TABLES)):
        return "not_recorded", "no row of GPU work in the file has usable times"
    if facts.launches:
        warning = facts.failure()
        said = f" (Nsight Systems warned: {warning.rstrip('.')})" if warning else ""
        return "not_recorded", f"calls that start GPU work were traced, but none of the work is in the file{said}"
    if warning := facts.failure():  # what starts the work may be among the lost events
        return "unknown", f"Nsight Systems warned: {warning}"
    return "recorded", "CUDA calls were traced and none of them starts GPU work"


def _graph_nodes(facts: _Facts) -> Verdict:
    if facts.graph_nodes:
        return "recorded", "operations carry the graph node they came from"
    if facts.has("CUPTI_ACTIVITY_KIND_GRAPH_TRACE"):
        return "not_recorded", "graphs were traced as whole launches; capture with --cuda-graph-trace=node"
    modes = {value.lower() for key, found in facts.options.items() if key.endswith(":MODE") for value in found}
    if "node" in modes:
        return "recorded", "--cuda-graph-trace=node was on"
    if "graph" in modes:
        return "not_recorded", "--cuda-graph-trace=graph was on; capture with --cuda-graph-trace=node"
    return "unknown", "the file does not say how graphs were traced"


def _sync(facts: _Facts) -> Verdict:
    if facts.has("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"):
        return "recorded", "waits are in the file"
    if facts.counts["api_call"]:
        return "recorded", "waits are recorded with CUDA calls, and there was none"
    return _cuda_api(facts)


def _events(facts: _Facts) -> Verdict:
    if facts.has("CUPTI_ACTIVITY_KIND_CUDA_EVENT"):
        return "recorded", "event records are in the file"
    return "unknown", "the file holds no event record; capture with --cuda-event-trace=true to be sure"


def _nvtx(facts: _Facts) -> Verdict:
    if facts.counts["nvtx_range"]:
        return "recorded", "annotations are in the file"
    if facts.option("COLLECT_NVTX_TRACE") or facts.event_type("NvtxEvents"):
        return "recorded", "NVTX tracing was on and the program has no annotation"
    if facts.option("COLLECT_NVTX_TRACE") is False:
        return "not_recorded", "NVTX tracing was off; capture with --trace=cuda,nvtx"
    return "unknown", "the file does not say whether NVTX tracing was on"


def _python_samples(facts: _Facts) -> Verdict:
    if facts.counts["py_sample"]:
        return "recorded", "Python stacks are in the file"
    asked = facts.option("PYTHON_BACKTRACE_SAMPLING_OPTIONS:COLLECT_SAMPLES")
    included = facts.options.get(_JSON)
    if asked and included is None:  # the version that exported it has no such option
        return "not_recorded", _CANNOT
    if asked and "false" in (included or ()):
        return (
            "not_recorded",
            "Python was sampled, but the export left the stacks out; add --include-json=true",
        )
    if asked:
        return "recorded", "Python sampling was on and saw no stack"
    if facts.has_options and not facts.python:
        how = "Python sampling was off; add --python-sampling=true for a Python program, NVTX ranges to another one"
        return "not_recorded", how
    if facts.has_options:
        return "not_recorded", "Python sampling was off; capture with --python-sampling=true"
    return "unknown", "the file does not say whether Python was sampled"


def _os_calls(facts: _Facts) -> Verdict:
    if facts.has("OSRT_API"):
        return "recorded", "operating system calls are in the file"
    asked = facts.event_type("OSRuntime")
    if asked is None:
        return "unknown", "the file does not say whether operating system calls were traced"
    if asked:
        return "recorded", "operating system tracing was on and saw no call above its threshold"
    return "not_recorded", "operating system tracing was off; capture with --trace=cuda,nvtx,osrt"


def _um_faults(facts: _Facts) -> Verdict:
    if facts.has("CUDA_UM_GPU_PAGE_FAULT_EVENTS") or facts.has("CUDA_UM_CPU_PAGE_FAULT_EVENTS"):
        return "recorded", "page faults are in the file"
    asked = (facts.option("COLLECT_UVM_GPU_PAGE_FAULTS"), facts.option("COLLECT_UVM_CPU_PAGE_FAULTS"))
    if any(asked):
        return "recorded", "page fault tracing was on and saw none"
    if asked == (None, None):
        return "unknown", "the file does not say whether page faults were traced"
    return "not_recorded", "page fault tracing was off; capture with --cuda-um-gpu-page-faults=true"


def _gpu_metrics(facts: _Facts) -> Verdict:
    if facts.has("GPU_METRICS"):
        return "recorded", "metric samples are in the file"
    if facts.has_options:
        return "not_recorded", "GPU metrics were not sampled; capture with --gpu-metrics-devices=0"
    return "unknown", "the file does not say whether GPU metrics were sampled"


def _memory(facts: _Facts) -> Verdict:
    if facts.has("CUDA_GPU_MEMORY_USAGE_EVENTS"):
        return "recorded", "allocations are in the file"
    asked = facts.option("COLLECT_GPU_MEMORY_USAGE")
    if asked is None:
        return "unknown", "the file does not say whether memory use was traced"
    if asked:
        return "recorded", "memory tracing was on and saw no allocation"
    return "not_recorded", "memory tracing was off; capture with --cuda-memory-usage=true"
