"""Folder at the front of a program's PYTHONPATH, from which Python itself loads our hooks: the program's code stays."""

from __future__ import annotations

import json
import os
import pkgutil
from collections.abc import Mapping
from pathlib import Path

_FILES = {"step_hook.py": "sitecustomize.py", "trace_hook.py": "gpudiag_trace_hook.py"}
"""Module of ours → the name under which the program finds it."""


def install(folder: Path) -> Path:
    """Make the folder, and return it."""
    folder.mkdir()
    for name, target in _FILES.items():
        source = pkgutil.get_data("gpudiag.capture.pytorch", name)
        assert source is not None
        (folder / target).write_bytes(source)
    return folder


def environment(folder: Path, variable: str, wishes: Mapping[str, object]) -> dict[str, str]:
    """Return our environment, in which Python also looks there. variable: where the hook finds what is asked for."""
    before = os.environ.get("PYTHONPATH")
    path = f"{folder}{os.pathsep}{before}" if before else str(folder)
    return {**os.environ, "PYTHONPATH": path, variable: json.dumps(wishes)}
