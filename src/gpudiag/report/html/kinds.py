"""What pieces of a strip are: their kinds in words, in the order of their legend. The style sheet gives each a look."""

from __future__ import annotations

from gpudiag.report.words import BUDGET

WORDS = {
    "mark": "a finding points here",
    "idle_mark": "idle time that its fix could remove",
    "cold_start": "cold start",
    "steady_state": "steady state",
    "teardown": "teardown",
    "warm_up": "warm-up turn",
    "turn": "turn",
    "drawn": "drawn above",
    "range": "NVTX range",
    "launch": "launch",
    "wait": "wait",
    "copy_call": "copy or set",
    "memory": "allocate or free",
    "call": "other call",
    "kernel": "kernel",
    "graph": "CUDA graph",
    "communication": "exchange between GPUs",
    "to_gpu": "copy to the GPU",
    "to_host": "copy to the host",
    "copy": "copy within or between GPUs",
    "set": "memory set",
    "now": "an iteration now",
    "fixed": "after the fix",
    "interval": "where the new time probably lies",
}
GPU = {
    "compute": "computing",
    "exposed_communication": "exchanging data between GPUs",
    "exposed_copy": "copying memory",
    "idle_launch": "idle, waiting for a launch",
    "idle_sync": "idle after a wait",
    "idle_input": "idle, waiting for input",
    "idle_allocation": "idle during allocation",
    "idle_other": "idle, the CPU is busy elsewhere",
}
GAIN = {
    "saved": "what the fix would save",
    "now": "what remains",
    "interval": "where the new time probably ends",
}
ALL = {**WORDS, **GPU}
ORDER = tuple(ALL)

assert set(GPU) == set(BUDGET)
