"""The recorder as a single file, for a machine on which nothing but Python and Nsight Systems is installed."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from gpudiag.capture import thresholds
from gpudiag.errors import GpudiagError

_START = "from gpudiag.capture.__main__ import main\n\nmain()\n"


def _modules(folder: Traversable, name: str) -> Iterator[str]:
    """Yield the modules in a folder and in those below it, by their paths in the package."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _modules(entry, f"{name}{entry.name}/")
        elif entry.name.endswith(".py"):
            yield f"{name}{entry.name}"


def write(target: Path) -> None:
    """Write a file that `python FILE -- COMMAND` runs. Raises GpudiagError where it is there already or cannot be."""
    package = resources.files("gpudiag")
    modules = sorted(_modules(package.joinpath("capture"), "capture/"))
    try:
        with target.open("xb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("__main__.py", _START)
            archive.writestr("gpudiag/__init__.py", "")
            for name in ("errors.py", *modules):
                archive.writestr(f"gpudiag/{name}", package.joinpath(name).read_bytes())
            archive.writestr(f"gpudiag/capture/{thresholds.BUNDLED}", json.dumps(thresholds.load().named()))
    except FileExistsError:
        raise GpudiagError(f"{target} is there already and is not replaced: give another name, or remove it.") from None
    except OSError as error:
        if os.path.lexists(target):
            target.unlink()
        raise GpudiagError(f"{target} cannot be written ({error.strerror}): give another place.") from None
