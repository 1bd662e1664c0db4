"""The words that all stages share: parts of an iteration's time budget, frameworks, severities. Each stands once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

Severity = Literal["info", "low", "medium", "high"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The mildest first."""
Framework = Literal["pytorch", "cupy", "jax", "numba", "triton", "python", "cuda", "any"]


class FrameworkWords(NamedTuple):
    """The name of a framework, and whether programs use it from Python."""

    name: str
    in_python: bool = False


FRAMEWORKS: Mapping[Framework, FrameworkWords] = {
    "pytorch": FrameworkWords("PyTorch", in_python=True),
    "cupy": FrameworkWords("CuPy", in_python=True),
    "jax": FrameworkWords("JAX", in_python=True),
    "numba": FrameworkWords("Numba", in_python=True),
    "triton": FrameworkWords("Triton", in_python=True),
    "python": FrameworkWords("Python"),
    "cuda": FrameworkWords("CUDA C++"),
    "any": FrameworkWords("Any framework"),
}
"""In the order in which reports name them."""


class CategoryWords(NamedTuple):
    """A part of the time budget in words: its label, what it means, and what the GPU does meanwhile.

    Pages colour it by the class `k-` and its key.
    """

    label: str
    meaning: str
    does: str


BUDGET: Mapping[str, CategoryWords] = {
    "compute": CategoryWords("computing", "kernels or graphs run", "computes"),
    "exposed_communication": CategoryWords(
        "exchanging data between GPUs", "nothing else runs meanwhile", "exchanges data with other GPUs"
    ),
    "exposed_copy": CategoryWords("copying memory", "nothing else runs meanwhile", "only copies memory"),
    "idle_launch": CategoryWords(
        "idle, waiting for a launch",
        "the CPU had not yet sent the next work, or it was just starting",
        "waits for launches",
    ),
    "idle_sync": CategoryWords(
        "idle after a wait", "the CPU stopped for a result, so nothing was queued", "idles after a wait of the CPU"
    ),
    "idle_input": CategoryWords("idle, waiting for input", "the next batch was not ready", "waits for input"),
    "idle_allocation": CategoryWords(
        "idle during allocation", "`cudaMalloc`, `cudaFree` or the like held the CPU", "waits for an allocation"
    ),
    "idle_other": CategoryWords(
        "idle, the CPU is busy elsewhere", "it worked on something other than launching", "waits for work of the CPU"
    ),
}
"""In the order of the report. The views give each GPU's time one of these: see `gpu_time_slice`."""


def is_idle(category: str) -> bool:
    """Return whether the GPU does nothing in this part of the budget."""
    return category.startswith("idle_")
