"""Traces that hold no CUDA work: one sentence says whose work it is, or that there is none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb

from gpudiag.errors import GpudiagError
from gpudiag.ingest.torch.staging import EVENTS

_AGAIN = (
    "record again with `torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])` where CUDA is"
    " available"
)
_OTHERS = {
    "mtia": "Meta's MTIA accelerators",
    "xpu": "an Intel GPU (XPU)",
    "hpu": "Intel's Gaudi accelerators",
    "privateuse1": "an accelerator other than CUDA's",
}
"""What categories of another producer begin with."""


def refuse(con: duckdb.DuckDBPyConnection, stated: Mapping[str, Any], shown: Path) -> None:
    """Raise GpudiagError, with one sentence, for a trace in which no CUDA call and no work of an NVIDIA GPU is."""
    kinds: dict[str, int] = dict(
        con.execute(f"select cat, count(*) from {EVENTS} where ph = 'X' group by cat").fetchall()
    )
    if _is_amd(con, stated):
        raise GpudiagError(
            f"{shown}: this torch.profiler trace was recorded on an AMD GPU (ROCm), and gpudiag knows NVIDIA's only;"
            " there is nothing in it that it could explain."
        )
    cuda = {"cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset"} & kinds.keys()
    for beginning, what in _OTHERS.items():
        if not cuda and any(kind.lower().startswith(beginning) for kind in kinds):
            raise GpudiagError(
                f"{shown}: this torch.profiler trace was recorded on {what}, and gpudiag knows NVIDIA GPUs only; there"
                " is nothing in it that it could explain."
            )
    if cuda:
        _refuse_merged(con, shown)
        return
    if {"cpu_op", "python_function", "user_annotation", "Trace"} & kinds.keys():
        raise GpudiagError(
            f"{shown}: this torch.profiler trace holds work of the CPU only, no CUDA call and no GPU operation;"
            f" {_AGAIN}."
        )
    if kinds:
        raise GpudiagError(f"{shown}: this is a trace for Chrome, but not one that torch.profiler wrote; {_AGAIN}.")
    raise GpudiagError(f"{shown}: this trace holds no event of torch.profiler; {_AGAIN}.")


def _is_amd(con: duckdb.DuckDBPyConnection, stated: Mapping[str, Any]) -> bool:
    if any(key.startswith(("roctracer", "hip_", "rocprof")) for key in stated):
        return True
    devices = stated.get("deviceProperties")
    names = [str(one.get("name")) for one in devices if isinstance(one, dict)] if isinstance(devices, list) else []
    if any(name.startswith("AMD ") for name in names):
        return True
    row = con.execute(
        f"select count(*) filter (starts_with(name, 'hip')), count(*) from {EVENTS} where cat = 'cuda_runtime'"
    ).fetchone()
    return bool(row and 2 * row[0] > row[1])


def _refuse_merged(con: duckdb.DuckDBPyConnection, shown: Path) -> None:
    """Several processes in one file share numbers of streams and calls: nothing says whose kernel is whose."""
    row = con.execute(
        f"select count(distinct pid) from {EVENTS} where cat in ('cuda_runtime', 'cuda_driver') and ph = 'X'"
    ).fetchone()
    if row and row[0] > 1:
        raise GpudiagError(
            f"{shown}: this trace was put together from those of {row[0]} processes, which mixes up their kernels; give"
            " the traces of the ranks themselves, several files at once."
        )
