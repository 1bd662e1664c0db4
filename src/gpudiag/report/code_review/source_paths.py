"""Recorded files matched to the checkout: a capture is made in one place, its report is read in another.

`/home/u/proj/train.py` of a capture is `train.py` to whoever reviews it. Only names are compared: no file is opened,
no linked folder entered, and no path that comes out leads above the checkout.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from gpudiag.model import Finding

LONGEST = 4096  # characters: no system opens a longer path
MOST_ENTRIES = 100_000  # of a checkout, nearest first: a third of a second
_PSEUDO = re.compile(r"<.*>|\[.*\]|", re.DOTALL)
_DRIVE = re.compile(r"[A-Za-z]:(?=[\\/])|\\\\[?.]\\[A-Za-z]:")
_INSTALLED = re.compile(r"(?:site-packages|dist-packages|lib(?:32|64)?/python\d\.\d+)/(?!.*-packages/)", re.IGNORECASE)
_SKIPPED = {"node_modules", "site-packages", "dist-packages", "__pycache__", "venv"}


class SourceFile(NamedTuple):
    """A recorded file: its path from the checkout's root, with `/`, and whether the checkout has it."""

    path: str
    present: bool


class Spot(NamedTuple):
    """A line of a finding that a reviewer can be shown; `place` counts in `Finding.where`."""

    path: str
    line: int
    present: bool
    place: int


def relative(files: Iterable[str], known: Iterable[str], root: str = "") -> dict[str, SourceFile]:
    """Recorded file → where it is in the checkout; what is no file (`<string>`) is left out.

    known: the checkout's files, relative to it. Of those that end like the recorded path, the one that shares most
    folders with it is meant; if several do, the one at the root, or none. What the checkout does not have keeps
    its path below the folder that all such files share. root: the checkout's own place; what was recorded below it
    needs no guess.
    """
    listed = {tuple(path.split("/")) for path in known}
    by_name: dict[str, list[tuple[str, ...]]] = {}
    for path in sorted(listed):
        by_name.setdefault(path[-1], []).append(path)
    base = _parts(root)
    found: dict[str, SourceFile] = {}
    foreign: dict[str, tuple[str, ...]] = {}
    for file in dict.fromkeys(files):
        parts = _parts(file)
        if not parts:
            continue
        if base and parts[: len(base)] == base and len(parts) > len(base):
            below = parts[len(base) :]
            found[file] = SourceFile("/".join(below), below in listed)
            continue
        installed = _library(parts)
        meant = None if installed else _meant(parts, by_name.get(parts[-1], ()))
        if meant:
            found[file] = SourceFile("/".join(meant), True)
        elif installed:
            found[file] = SourceFile("/".join(installed), False)
        else:
            foreign[file] = _below_home(parts)
    columns = zip(*(parts[:-1] for parts in foreign.values()), strict=False)
    shared = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))
    return found | {file: SourceFile("/".join(parts[shared:]), False) for file, parts in foreign.items()}


def _parts(file: str) -> tuple[str, ...]:
    """The path's parts without drive, `.` and `..`; none if that is no file."""
    if len(file) > LONGEST or _PSEUDO.fullmatch(file):
        return ()
    if file.startswith("file://"):
        file = unquote(file.removeprefix("file://"))
    drive = _DRIVE.match(file)
    if drive or file.startswith("\\\\") or ("\\" in file and "/" not in file):
        file = file[drive.end() if drive else 0 :].replace("\\", "/")
    parts: list[str] = []
    for part in file.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return tuple(parts)


def _below_home(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The path inside the home folder that it is in: where it is shown, nobody needs to know whose."""
    home = next((at + 2 for at, part in enumerate(parts[:3]) if part in ("home", "Users", "users")), 0)
    home = 1 if parts[0] == "root" else home
    return parts[home:] or parts[-1:]


def _library(parts: Sequence[str]) -> tuple[str, ...]:
    """The path inside the folder of installed packages; none if it is in no such folder."""
    path = "/".join(parts)
    folder = _INSTALLED.search(path)
    return tuple(path[folder.end() :].split("/")) if folder else ()


def _meant(parts: Sequence[str], candidates: Iterable[tuple[str, ...]]) -> tuple[str, ...] | None:
    scored = [(_common_end(parts, candidate), candidate) for candidate in candidates]
    best = max((score for score, _ in scored), default=0)
    leading = [candidate for score, candidate in scored if score == best]
    if len(leading) > 1:
        leading = [candidate for candidate in leading if len(candidate) == best]
    return leading[0] if len(leading) == 1 else None


def _common_end(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for a, b in zip(reversed(one), reversed(other), strict=False):
        if a != b:
            break
        count += 1
    return count


def in_checkout(files: Iterable[str], start: Path | None = None) -> dict[str, SourceFile]:
    """As `relative`, for the checkout around the folder `start` (the current one)."""
    wanted = list(files)
    try:
        root = checkout(start or Path.cwd())
    except OSError:  # the current folder is gone
        return relative(wanted, ())
    names = {parts[-1] for parts in map(_parts, wanted) if parts}
    return relative(wanted, listing(root, names), str(root))


def checkout(start: Path) -> Path:
    """The nearest folder upwards that git knows, else `start` itself: hosts count paths from there."""
    start = start.absolute()
    return next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), start)


def listing(root: Path, names: Collection[str]) -> list[str]:
    """The files below `root` with one of these names, as relative paths; hidden and installed folders are left out."""
    found: list[str] = []
    folders = deque([""] if names else [])
    left = MOST_ENTRIES
    while folders and left > 0:
        folder = folders.popleft()
        try:
            with os.scandir(root / folder) as entries:
                here = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        left -= len(here)
        if folder and any(entry.name == "pyvenv.cfg" for entry in here):
            continue
        for entry in here:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith(".") and entry.name not in _SKIPPED:
                    folders.append(path)
            elif entry.name in names and not entry.is_dir():
                found.append(path)
    return found


def spots(finding: Finding, sources: Mapping[str, SourceFile]) -> list[Spot]:
    """The finding's lines, each once, worst first; those that the checkout has come before all others."""
    found: dict[tuple[str, int], Spot] = {}
    for i, place in enumerate(finding.where):
        source = sources.get(place.file or "")
        if source and place.line and place.line > 0:
            found.setdefault((source.path, place.line), Spot(source.path, place.line, source.present, i))
    return sorted(found.values(), key=lambda spot: not spot.present)
