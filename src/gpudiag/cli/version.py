"""`gpudiag --version`: what a report of a problem should name."""

from __future__ import annotations

import platform
import shutil
from importlib import metadata

from gpudiag import __version__

PACKAGES = ("duckdb", "polars", "numba", "pydantic", "click")
READERS = {"nsys": ".nsys-rep", "ncu": ".ncu-rep"}
"""Programs that open what only they can, and what that is."""


def text() -> str:
    """Our own version on the first line; nothing is imported or run to tell the others."""
    packages = ", ".join(f"{name} {_installed(name) or 'missing'}" for name in PACKAGES)
    return "\n".join(
        [
            f"gpudiag {__version__}",
            f"{platform.python_implementation()} {platform.python_version()}, {platform.platform()}",
            packages,
            *(f"{program}: {_reader(program, suffix)}" for program, suffix in READERS.items()),
        ]
    )


def _reader(program: str, suffix: str) -> str:
    if found := shutil.which(program):
        return found
    if program == "ncu" and (version := _installed("ncu-report")):
        return f"not on the PATH; the package ncu-report {version} reads {suffix} files"
    return f"not on the PATH, so {suffix} files cannot be opened"


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
