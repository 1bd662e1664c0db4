"""Folders of traces, as torch.profiler's handler for TensorBoard writes them: a file for each rank."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from gpudiag.errors import GpudiagError

_TRACES = (".json", ".json.gz", ".json.xz", ".json.zst")


def expanded(paths: Iterable[Path]) -> list[Path]:
    """The paths, a folder of traces replaced by those in it, by name. Raises GpudiagError for an unreadable one."""
    found: list[Path] = []
    for path in paths:
        found += _traces(path) or [path]
    return found


def _traces(path: Path) -> list[Path]:
    """The traces in a folder; none where it is no folder, or one of tables."""
    try:
        names = sorted(os.listdir(path)) if path.is_dir() else []
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise GpudiagError(f"{path}: cannot be read ({reason}); check the path.") from None
    if any(name.endswith(".parquet") for name in names):
        return []
    return [path / name for name in names if name.endswith(_TRACES)]
