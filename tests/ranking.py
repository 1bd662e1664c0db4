"""A program whose findings are ranked, and rules that find something in it. Synthetic."""

from __future__ import annotations

from typing import Any

from gpudiag.model import Rule
from timelines import Case, iterations, launched

VIEWS = (
    "kernel_match", "kernel_roofline", "kernel_waves", "kernel_use", "kernel_filling", "kernel_wait",
    "idle_interval", "work", "transfer", "loop_budget", "loop_facts", "device_state", "readback_range", "device_link",
    "call_sample", "backward_stretch", "loop_sample", "call_place", "framework_seen", "kernel_facts",
    "loop_phase", "call_phase", "loop_extent", "loop_pause", "pause_first_use", "smi_gpu", "python_function_time",
)  # fmt: skip


def program(stretch: float = 1, line: int = 31) -> Case:
    """Ten iterations of 100 µs: 40 µs of a kernel, then idle while a user's line runs. Idle intervals are 0 to 9."""
    case = launched(10, 100 * stretch, ("gemm()", 0, 0, 40 * stretch))
    for row in case["api_call"]:
        row["duration"] = 3 * stretch
    frames = [
        {"function": "to", "file": "/v/site-packages/torch/_tensor.py", "line": line + 400},
        {"function": "step", "file": "/home/u/train.py", "line": line},
    ]
    return {
        "iteration": [iterations(10, 100 * stretch)], **case,
        "py_sample": [{"time": 70 * stretch, "repeat": 9, "every": 100 * stretch, "frames": frames}],
    }  # fmt: skip


def rule(code: str, severity: str = "high", **changes: Any) -> Rule:
    price = {"kind": "upper_bound", "on": "idle_intervals", "high": ["overlap_collective"]}  # is not replayed
    return Rule.model_validate({
        "code": code, "kind": "finding", "id": "x", "title": f"Title {code}", "severity": severity, "query": "select 1",
        "message": "m", "why": "w", "what": "x", "not_a_problem_when": "n",
        "price": price, "locate": ("python",), **changes,
    })  # fmt: skip
