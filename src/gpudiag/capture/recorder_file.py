"""The recorder as a single file, for a machine on which nothing but Python and Nsight Systems is installed."""

from __future__ import annotations

import os
import zipfile
from importlib import resources
from pathlib import Path

from gpudiag.errors import GpudiagError

_START = "from gpudiag.capture.__main__ import main\n\nmain()\n"


def write(target: Path) -> None:
    """Write a file that `python FILE -- COMMAND` runs. Raises GpudiagError where it is there already or cannot be."""
    package = resources.files("gpudiag")
    modules = sorted(module.name for module in package.joinpath("capture").iterdir() if module.name.endswith(".py"))
    try:
        with target.open("xb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("__main__.py", _START)
            archive.writestr("gpudiag/__init__.py", "")
            for name in ("errors.py", *(f"capture/{module}" for module in modules)):
                archive.writestr(f"gpudiag/{name}", package.joinpath(name).read_bytes())
    except FileExistsError:
        raise GpudiagError(f"{target} is there already and is not replaced: give another name, or remove it.") from None
    except OSError as error:
        if os.path.lexists(target):
            target.unlink()
        raise GpudiagError(f"{target} cannot be written ({error.strerror}): give another place.") from None
