"""The machine that a benchmark runs on, in words."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path


def size(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:,.1f} MB"


def machine() -> str:
    """Describe the machine and the versions that the figures were measured with."""
    cpu = first_line("/proc/cpuinfo", lambda line: line.startswith("model name")).partition(":")[2].strip()
    total = first_line("/proc/meminfo", lambda line: line.startswith("MemTotal"))
    memory = f"{int(total.split()[1]) / 1024**2:.0f} GiB" if total else "unknown memory"
    packages = ", ".join(f"{name} {version(name)}" for name in ("gpudiag", "duckdb", "polars", "pydantic"))
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores of {cpu or platform.machine()}, {memory}, Python {platform.python_version()}, {packages}"


def first_line(path: str, wanted: Callable[[str], bool]) -> str:
    """The first line of a file that is wanted; nothing when there is none."""
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as lines:
        return next((line for line in lines if wanted(line)), "")
