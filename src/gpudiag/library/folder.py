"""The files of a folder of rules, which may be untrusted: a bounded number of them, and none outside of it."""

from __future__ import annotations

import os
from pathlib import Path

from gpudiag.errors import GpudiagError
from gpudiag.library.yaml_file import MAX_BYTES as LONGEST

# Safety constants: the packaged rules are a hundred, in some three hundred files.
MAX_RULES = 200  # that one run may have of the user's own
MAX_FILES = 5_000
MAX_BYTES = 4 << 20
_READ = (".yaml", ".sql", ".md")


def files(root: Path) -> list[Path]:
    """Every file below `root`, by name; hidden ones and what is in hidden folders are left out. Raises GpudiagError."""
    found: list[Path] = []
    for folder, folders, names in os.walk(root, onerror=_unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        # A link to a folder is never entered, and a folder called like a rule is a mistake: both are reported.
        names += [name for name in folders if os.path.islink(os.path.join(folder, name)) or name.endswith(_READ)]
        found += [Path(folder, name) for name in names if not name.startswith(".")]
        if len(found) + len(folders) > MAX_FILES:
            raise GpudiagError(f"{root}: holds more than {MAX_FILES:,} files; name a folder of rules alone.")
    size = sum(map(_size, found))
    if size > MAX_BYTES:
        raise GpudiagError(f"{root}: holds {size >> 20} MiB of rules, more than {MAX_BYTES >> 20}; split it.")
    return sorted(found)


def state(root: Path) -> tuple[tuple[Path, int, int], ...]:
    """Name, last change (ns) and size of every file below `root`: equal while nothing changes. Raises GpudiagError."""
    found = ((path, path.stat()) for path in files(root) if path.is_file())
    return tuple((path, about.st_mtime_ns, about.st_size) for path, about in found)


def check(path: Path, root: Path) -> None:
    """Refuse a link that leads out of the folder: what it shows is not of the rules' author. Raises GpudiagError."""
    if not path.is_symlink():
        return
    if path.is_dir():
        raise GpudiagError(f"{path}: is a link to a folder, which is not followed; copy the folder.")
    if leads_out(path, root):
        raise GpudiagError(f"{path}: is a link that leads out of the folder; copy the file.")


def leads_out(path: Path, root: Path) -> bool:
    """Return whether a name leads to a file outside the folder."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def _size(path: Path) -> int:
    """Bytes that would be read of it."""
    try:
        return min(path.stat().st_size, LONGEST + 1) if path.name.endswith(_READ) else 0
    except OSError:  # gone, or a link in a circle: reading it says so
        return 0


def _unreadable(error: OSError) -> None:
    raise GpudiagError(f"{error.filename}: cannot be read ({error.strerror}); check its permissions.")
