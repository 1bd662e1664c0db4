"""Timelines for laws: drawn at random, and two by hand that several tests share. Synthetic."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from timelines import Case, iterations, launched

EXAMPLES = 60 if settings.get_current_profile_name() == "thorough" else 6  # each is a store or more
LAW = settings(
    max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), derandomize=True,
    phases=[Phase.explicit, Phase.generate],  # a store an example: shrinking takes minutes
)  # fmt: skip


def waiting(wait: float, until_launch: float) -> Case:
    """One iteration of 1 ms: a kernel, a wait of that length, nothing until the next launch, then a full GPU."""
    return {
        "iteration": [iterations(1, 1000)],
        "api_call": [
            {"label": "a", "name": "cudaLaunchKernel", "start": 0, "duration": 5},
            {"name": "cudaDeviceSynchronize", "start": 5, "duration": wait},
            {"label": "b", "name": "cudaLaunchKernel", "start": 5 + wait + until_launch, "duration": 5},
        ],
        "gpu_op": [
            {"api_call": "a", "name": "gemm()", "start": 5, "end": 5 + wait},
            {"api_call": "b", "name": "gemm()", "start": 10 + wait + until_launch, "end": 1000},
        ],
    }


def read_blocks(launches: int) -> Case:
    """Iterations `step` with a part `log` of so many launches and one read-back; the loop's own range is no block."""
    made = launched(6, 100, *[(f"k{n}()", 10 + 3 * n, 12 + 3 * n, 2) for n in range(launches)])
    made["api_call"].append(
        {"label": "read", "name": "cudaMemcpy", "start": 75, "duration": 15, "repeat": 6, "every": 100}
    )
    made["gpu_op"].append({
        "api_call": "read", "kind": "memcpy", "copy_kind": "device_to_host", "src_kind": "device",
        "dst_kind": "pageable", "bytes": 4, "start": 85, "duration": 1, "repeat": 6, "every": 100,
    })  # fmt: skip
    ranges = [{"name": "run", "start": -5, "duration": 1}]
    ranges += [{"name": "step", "start": 0, "duration": 98, "label": "step", "repeat": 6, "every": 100}]
    ranges += [{"name": "log", "start": 8, "duration": 84, "parent": "step", "repeat": 6, "every": 100}]
    return {"loop": [{"id": 0, "nvtx_path": "step"}], "iteration": [iterations(6)], "nvtx_range": ranges, **made}


@st.composite
def timelines(draw: st.DrawFn) -> Case:
    """A host thread that calls CUDA, and what two devices do about it; iterations with a pause between them."""
    calls: list[Case] = []
    ops: list[Case] = []
    free: dict[int, int] = defaultdict(int)
    clock = 0
    for number in range(draw(st.integers(3, 22))):
        clock += draw(st.sampled_from([0, 1, 3, 10, 60, 400, 1200]))
        name = draw(st.sampled_from([
            "cudaLaunchKernel", "cudaLaunchKernel", "cudaLaunchKernel", "cudaMemcpy", "cudaMemcpyAsync",
            "cudaStreamSynchronize", "cudaMalloc", "cudaFree", "cuModuleLoadData", "cudaGraphLaunch", "cudaMallocAsync",
        ]))  # fmt: skip
        length = draw(st.integers(1, 60))
        kind = {"cudaLaunchKernel": "kernel", "cudaGraphLaunch": "graph"}.get(
            name, "memcpy" if "Memcpy" in name else ""
        )
        if kind:
            stream = draw(st.integers(0, 2))
            begins = max(free[stream], clock + draw(st.integers(0, 30)))
            ends = free[stream] = begins + draw(st.integers(1, 120))
            op: Case = {"kind": kind, "device": stream // 2, "stream": stream, "start": begins, "end": ends}
            if kind == "memcpy":
                direction = draw(st.sampled_from(["host_to_device", "device_to_host"]))
                op |= {"copy_kind": direction, "src_kind": "pageable", "bytes": draw(st.integers(1, 1 << 22))}
            else:
                op["name"] = draw(st.sampled_from(["gemm()", "relu()", "ncclDevKernel_AllReduce()"]))
            if draw(st.integers(0, 9)):
                op["api_call"] = f"call {number}"
            ops.append(op)
            if name == "cudaMemcpy":
                length = max(length, ends - clock)
        if name == "cudaStreamSynchronize":
            length = max(length, max(free.values(), default=0) - clock)
        calls.append({"label": f"call {number}", "name": name, "start": clock, "duration": length})
        clock += length
    cuts = sorted(set(draw(st.lists(st.integers(0, clock + 50), min_size=2, max_size=5, unique=True))))
    bounds = list(pairwise(cuts))
    if len(bounds) > 2:
        del bounds[draw(st.integers(0, len(bounds) - 1))]
    drained = [(_drained(ops, a), b) for a, b in bounds]
    wanted = [{"start": a, "end": b} for a, b in drained if a < b]
    return {"api_call": calls, "gpu_op": ops, "iteration": wanted or [{"start": clock + 500, "duration": 10}]}


def _drained(ops: list[Case], start: int) -> int:
    """Iterations begin when the GPU has finished what was queued before, as loops/iteration_bounds.py makes them."""
    while running := [op["end"] for op in ops if op["start"] < start < op["end"]]:
        start = max(running)
    return start
