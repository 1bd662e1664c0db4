"""Folders of timelines, a file for each rank: as torch.profiler's handler for TensorBoard writes them, or as nsys
wrote them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from gpudiag import remote
from gpudiag.errors import GpudiagError

_TRACES = (".json", ".json.gz", ".json.xz", ".json.zst")
_EXPORTS = (".sqlite", ".sqlite.gz", ".sqlite.xz", ".sqlite.zst")
_REPORTS = (".nsys-rep", ".qdrep")


def expanded(paths: Iterable[Path]) -> list[Path]:
    """The paths, a folder of timelines replaced by those in it, by name. Raises GpudiagError for an unreadable one."""
    found: list[Path] = []
    for path in paths:
        found += _traces(path) or [path]
    return found


def _traces(path: Path) -> list[Path]:
    """The timelines in a folder; none where it is no folder, or one of tables."""
    names = remote.names(path) if remote.address(path) else _names(path)
    if any(name.endswith(".parquet") for name in names):
        return []
    if any(name.endswith(".columns") for name in names) and not any(map(_is_recording, names)):
        raise GpudiagError(
            f"{path}: holds recordings as gpudiag's repository packs them; run `python -m evaluation.packed unpack"
            " FILE… --to FOLDER` there, and give that folder."
        )
    exported = {name.partition(".sqlite")[0] for name in names if name.endswith(_EXPORTS)}
    return [
        path / name
        for name in names
        # nsys leaves the export of a report beside it: the same recording, and faster to read
        if (name.endswith((*_TRACES, *_EXPORTS)) and not _is_other_json(path / name))
        or (name.endswith(_REPORTS) and name.rpartition(".")[0] not in exported)
    ]


def _is_other_json(path: Path) -> bool:
    """Return whether a file is JSON that no profiler wrote, such as settings beside the recordings."""
    if path.suffix != ".json" or path.name.endswith(".trace.json") or remote.address(path):
        return False
    from gpudiag.ingest import registry
    from gpudiag.ingest.file_kind import HEAD

    try:
        with path.open("rb") as file:
            return registry.kind_of(file.read(HEAD)) is None
    except OSError:
        return False  # it is named when it is read


def _is_recording(name: str) -> bool:
    """Return whether a name is a timeline's; a plain .json may be anything."""
    return name.endswith((*_TRACES[1:], *_EXPORTS, *_REPORTS, ".trace.json"))


def _names(path: Path) -> list[str]:
    try:
        return sorted(os.listdir(path)) if path.is_dir() else []
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise GpudiagError(f"{path}: cannot be read ({reason}); check the path.") from None


def is_timeline_by_name(path: Path) -> bool:
    """Return whether a file is one of those that a folder of timelines is made of, by its name."""
    return path.name.endswith((*_TRACES, *_EXPORTS, *_REPORTS))
