"""Capabilities of a torch.profiler trace: what it could have recorded, by its options and by what is in it."""

from __future__ import annotations

from gpudiag.ingest.rows import append
from gpudiag.ingest.torch.staging import EVENTS
from gpudiag.ingest.torch.trace import Trace

_OF_NSYS = "torch.profiler does not record {}; record them with Nsight Systems: nsys profile {} …"
_NEVER = {
    "os_calls": _OF_NSYS.format("calls of the operating system", "--trace=cuda,nvtx,osrt"),
    "um_faults": _OF_NSYS.format("page faults of unified memory", "--cuda-um-gpu-page-faults=true"),
    "gpu_metrics": _OF_NSYS.format("sampled GPU metrics", "--gpu-metrics-devices=all"),
}
_RECORDED, _NOT = "recorded", "not_recorded"


def write(trace: Trace) -> None:
    """Fill `capability` for this input; every other table has been read."""
    kinds: dict[str, int] = dict(
        trace.con.execute(f"select cat, count(*) from {EVENTS} where ph = 'X' group by cat").fetchall()
    )
    host = bool({"cpu_op", "user_annotation", "python_function"} & kinds.keys())
    found = {
        "cuda_api": _cuda_api(trace),
        "gpu_ops": _gpu_ops(trace, kinds),
        "graph_nodes": (_RECORDED, "torch.profiler records the kernels of graphs one by one"),
        "sync": _sync(trace),
        "events": _events(kinds),
        "nvtx": _annotations(trace, host=host),
        "python_samples": _stacks(trace, host=host),
        "python_calls": _calls(trace),
        "memory": _memory(trace),
        "allocator": _memory(trace),
        **{name: (_NOT, how) for name, how in _NEVER.items()},
    }
    rows = [(trace.input, name, state, how) for name, (state, how) in found.items()]
    append(trace.con, "capability", ("input", "name", "state", "how"), rows)


def _cuda_api(trace: Trace) -> tuple[str, str]:
    if trace.found["api_call"]:
        return _RECORDED, "CUDA calls are in the file"
    return _NOT, "the trace holds GPU operations without the CUDA calls that started them"


def _gpu_ops(trace: Trace, kinds: dict[str, int]) -> tuple[str, str]:
    if trace.found["gpu_op"]:
        return _RECORDED, "GPU operations are in the file"
    if "cuda_profiler_range" in kinds:
        return _NOT, "hardware counters were measured instead of kernels; record again without CUPTI profiler metrics"
    return _NOT, "CUDA calls were traced, but no GPU operation is in the file"


def _sync(trace: Trace) -> tuple[str, str]:
    if not trace.found["api_call"]:
        return _cuda_api(trace)
    if trace.found["cuda_sync"]:
        return _RECORDED, "waits are in the file"
    return (
        _RECORDED,
        "which calls wait follows from their names; a wait for a stream is for the one last used before it",
    )


def _events(kinds: dict[str, int]) -> tuple[str, str]:
    if "cuda_sync" in kinds:
        return _RECORDED, "waits for events are in the file"
    return _NOT, (
        "waits for CUDA events were not recorded; record with"
        " experimental_config=torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)"
    )


def _annotations(trace: Trace, *, host: bool) -> tuple[str, str]:
    if trace.found["nvtx_range"]:
        return _RECORDED, "annotations are in the file"
    if host:
        return _RECORDED, "annotations are recorded with operators, and there was none"
    return _NOT, "nothing of the CPU was recorded; record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"


def _calls(trace: Trace) -> tuple[str, str]:
    if trace.found["python_function"]:
        return _RECORDED, "calls of Python functions are in the file"
    return _NOT, "the trace holds no call of a Python function"


def _stacks(trace: Trace, *, host: bool) -> tuple[str, str]:
    if trace.found["py_sample"]:
        read = "calls of Python functions" if trace.found["python_function"] else "Python stacks of operators"
        return _RECORDED, f"{read} are in the file"
    if str(trace.stated.get("with_stack", "")) == "1" and host:
        return _NOT, "stacks were asked for, and the trace holds none on a thread that calls CUDA"
    return _NOT, "Python calls were not recorded; record with torch.profiler.profile(with_stack=True, …)"


def _memory(trace: Trace) -> tuple[str, str]:
    if trace.found["memory_event"]:
        return _RECORDED, "what PyTorch's allocator gave out and took back is in the file"
    if trace.found["memory_change"]:
        return _NOT, "this version of PyTorch wrote the size of each allocation, but not how much is in use"
    if str(trace.stated.get("profile_memory", "")) == "1":
        return _NOT, "memory was asked for, and PyTorch's allocator neither gave out nor took back any on a GPU"
    return _NOT, "memory was not recorded; record with torch.profiler.profile(profile_memory=True, …)"
