"""Captures at an address, such as s3://bucket/run/rank0.sqlite: fsspec lists and fetches them, where it is installed.

An address travels as a Path, which drops one of the two slashes; it is no path that exists here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from gpudiag.errors import GpudiagError

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/+(?=[^/])")
_HERE = ("file", "local")
"""File systems of this computer, whose addresses have a third slash: the root of their path."""

_STATED = ("ETag", "etag", "md5Hash", "LastModified", "last_modified", "mtime", "updated", "created")
"""What file systems call that by which a file's content is known, besides its size."""


def address(path: Path) -> str | None:
    """The address that a path stands for; None where it is one of this computer's."""
    found = _ADDRESS.match(str(path))
    if found is None or path.exists():
        return None
    return f"{found[1]}:{'///' if found[1] in _HERE else '//'}{str(path)[found.end() :]}"


def names(path: Path) -> list[str]:
    """Names of the files in a folder at an address, sorted; none where it is a file. Raises GpudiagError."""
    files, inside = _opened(path)
    try:
        listed = files.ls(inside, detail=False) if files.isdir(inside) else []
    except Exception as error:  # whatever the file system's own library raises
        raise _unreadable(path, error) from error
    return sorted(str(one).rstrip("/").rpartition("/")[2] for one in listed)


def fetched(path: Path, folder: Path) -> Path:
    """A copy of the file at an address, under its own name in a new folder inside `folder`. Raises GpudiagError."""
    files, inside = _opened(path)
    copy = folder / "fetched" / path.name
    copy.parent.mkdir(exist_ok=True)
    try:
        files.get_file(inside, str(copy))
    except FileNotFoundError:
        raise GpudiagError(f"{address(path)}: there is no such file; check the address.") from None
    except Exception as error:  # whatever the file system's own library raises
        raise _unreadable(path, error) from error
    return copy


def identity(path: Path) -> str | None:
    """The text that changes when the file's content does; None where the file system states nothing of the kind.

    Raises GpudiagError.
    """
    files, inside = _opened(path)
    try:
        stated = dict(files.info(inside))
    except Exception as error:  # whatever the file system's own library raises
        raise _unreadable(path, error) from error
    known = [(name, str(stated[name])) for name in _STATED if stated.get(name)]
    return repr((address(path), stated.get("size"), known)) if known else None


def _opened(path: Path) -> tuple[Any, str]:
    """The file system of an address, and the address inside it. Raises GpudiagError."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        said = "addresses are read with fsspec, which is not installed: pip install fsspec, and what its system needs"
        raise GpudiagError(f"{address(path)}: {said}; or give a path on this computer.") from None
    try:
        files, inside = url_to_fs(address(path))
    except ImportError as error:  # says which package
        raise GpudiagError(
            f"{address(path)}: a package that reads such addresses is not installed ({_first_line(error)}); pip install"
            " it, or give a path on this computer."
        ) from None
    except ValueError as error:  # of a file system that is not known
        raise _unreadable(path, error) from None
    return files, str(inside)


def _unreadable(path: Path, error: Exception) -> GpudiagError:
    return GpudiagError(
        f"{address(path)}: cannot be read ({_first_line(error)}); check the address and your access to it."
    )


def _first_line(error: Exception) -> str:
    return (str(error).partition("\n")[0] or type(error).__name__)[:200]
