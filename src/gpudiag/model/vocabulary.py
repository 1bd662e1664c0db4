"""The words that all stages share: parts of an iteration's time budget, frameworks, severities. Each stands once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

Severity = Literal["info", "low", "medium", "high"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The mildest first."""
Framework = Literal["pytorch", "cupy", "jax", "numba", "triton", "python", "cuda", "any"]


class FrameworkWords(NamedTuple):
    """The name of a framework, whether programs use it from Python, and the host of its documentation."""

    name: str
    in_python: bool = False
    docs: str = ""


FRAMEWORKS: Mapping[Framework, FrameworkWords] = {
    "pytorch": FrameworkWords("PyTorch", in_python=True, docs="docs.pytorch.org"),
    "cupy": FrameworkWords("CuPy", in_python=True, docs="docs.cupy.dev"),
    "jax": FrameworkWords("JAX", in_python=True, docs="docs.jax.dev"),
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
        "idle, the host is launching work",
        "the CPU had not yet sent the next work, or it was just starting",
        "waits for launches",
    ),
    "idle_sync": CategoryWords(
        "idle after the host waited for the GPU",
        "the CPU stopped for a result, so nothing was queued",
        "idles after a wait of the CPU",
    ),
    "idle_input": CategoryWords("idle, waiting for input", "the next batch was not ready", "waits for input"),
    "idle_allocation": CategoryWords(
        "idle during allocation", "`cudaMalloc`, `cudaFree` or the like held the CPU", "waits for an allocation"
    ),
    "idle_other": CategoryWords(
        "idle, the CPU does other work", "it worked on something other than launching", "waits for work of the CPU"
    ),
}
"""In the order of the report. The views give each GPU's time one of these: see `gpu_time_slice`."""


class LeafWords(NamedTuple):
    """A leaf of the time tree in words: its label, what the host does meanwhile, what the GPU does, and the part of the
    budget that it belongs to.
    """

    label: str
    meaning: str
    does: str
    part: str


LEAVES: Mapping[str, LeafWords] = {
    "computing": LeafWords("computing", "kernels or graphs run", "computes", "compute"),
    "exposed_communication": LeafWords(
        "exchanging data between GPUs",
        "nothing else runs meanwhile",
        "exchanges data with other GPUs",
        "exposed_communication",
    ),
    "exposed_copy": LeafWords("copying memory", "nothing else runs meanwhile", "only copies memory", "exposed_copy"),
    "submitting": LeafWords(
        "idle, the host is launching work",
        "the host was preparing the next launch, or it was just starting",
        "waits for launches",
        "idle_launch",
    ),
    "host_work": LeafWords(
        "idle, the host does other work",
        "it worked on something other than launching",
        "waits for a host that is busy elsewhere",
        "idle_other",
    ),
    "compiling": LeafWords(
        "idle while code is compiled or loaded",
        "the host built or loaded code, a plan or a graph",
        "waits while code is compiled or loaded",
        "idle_other",
    ),
    "allocating": LeafWords(
        "idle during allocation",
        "`cudaMalloc`, `cudaFree` or the like held the host",
        "waits for an allocation",
        "idle_allocation",
    ),
    "input": LeafWords("idle, waiting for input", "the next batch was not ready", "waits for input", "idle_input"),
    "blocked": LeafWords(
        "idle, the host is blocked",
        "the launching thread waited for a lock, a file or another thread",
        "waits for a host that is blocked",
        "idle_other",
    ),
    "sync": LeafWords(
        "idle after the host waited for the GPU",
        "the host stopped for a result, so nothing was queued",
        "idles after a wait of the host",
        "idle_sync",
    ),
    "dependency": LeafWords(
        "idle, the work is held up",
        "it was launched and waited for another stream, device or rank, or for work that was not recorded",
        "waits for another stream, device or rank, or for work that was not recorded",
        "idle_launch",
    ),
    "outside": LeafWords("idle at the end", "the loop had submitted its last work", "has no work left", "idle_other"),
}
"""The time tree's leaves in the order of the report: disjoint, and all of a loop's time. See the view `loop_tree`."""


Also = Literal["host_ahead", "host_work", "copies", "calls", "followers", "launches", "ranks", "profiler"]
ALSO: Mapping[Also, str] = {
    "host_ahead": "the host then submits its next work sooner",
    "host_work": "the host's work for it goes too",
    "copies": "the copy goes too",
    "calls": "the calls and waits of the copies go too",
    "followers": "what waits for the copies starts earlier",
    "launches": "the launches go too",
    "ranks": "the other ranks then wait less",
    "profiler": "an iteration is shorter without the profiler, and this time a larger part of it",
}
"""What a fix shortens besides the time that its finding's rows show."""


def is_idle(category: str) -> bool:
    """Return whether the GPU does nothing in this part of the budget."""
    return category.startswith("idle_")
