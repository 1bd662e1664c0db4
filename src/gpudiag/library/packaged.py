"""Folder of the packaged rules."""

from __future__ import annotations

from pathlib import Path

from gpudiag.errors import GpudiagError


def packaged_dir() -> Path:
    """The folder of the packaged rules: inside the installed package, else the checkout's own.

    An editable install leaves a stale copy elsewhere; only these two places are ever looked at.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "rules", package.parents[1] / "rules"):
        if folder.is_dir():
            return folder
    raise GpudiagError(f"{package / 'rules'}: the packaged rules are missing; reinstall gpudiag.")
