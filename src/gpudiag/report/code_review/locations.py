"""The place of a finding in one short line: for a checklist, and for a comment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from posixpath import commonpath

from gpudiag.model import Loop, Place
from gpudiag.report.wording import words
from gpudiag.text import escape

SPOTS = 4  # places named; more are counted


def brief(places: Sequence[Place], loop: Loop | None, folder: str = "") -> str:
    """`step.py:31`, `:33` in `forward`; `:55` in `loss`; kernel `gemm`. folder: left out of the files' names."""
    files: dict[str, dict[str, list[int | None]]] = defaultdict(lambda: defaultdict(list))
    unique = spots(places, loop)
    for file, group, line in unique[:SPOTS]:
        files[file][group].append(line)
    said: list[str] = []
    for file, groups in files.items():
        if not file:
            said += groups
            continue
        name = escape.middle(file.removeprefix(folder), escape.NAME_LIMIT)
        for function, lines in groups.items():
            named: list[str] = []
            for line in lines:
                # Only the file's first spot carries its name.
                first = not named and function == next(iter(groups))
                named.append(escape.code(f"{name if first or not line else ''}{f':{line}' if line else ''}"))
            said.append(", ".join(named) + (f" in {escape.code(function)}" if function else ""))
    more = f" and {words.plural(len(unique) - SPOTS, 'more place')}" if len(unique) > SPOTS else ""
    return "; ".join(said) + more


def spots(places: Iterable[Place], loop: Loop | None) -> list[tuple[str, str, int | None]]:
    """Return the places that differ in what is reported about them: file, function or other name, line."""
    return list(dict.fromkeys(_spot(place, loop) for place in places))


def _spot(place: Place, loop: Loop | None) -> tuple[str, str, int | None]:
    """Return all that is reported about a place: two places that differ in nothing else are one."""
    if place.file:
        return place.file, words.named_function(place), place.line
    return "", _elsewhere(place, loop), None


def _elsewhere(place: Place, loop: Loop | None) -> str:
    """Return the text for a place of which no file is known."""
    loops = (loop.name, loop.nvtx_path) if loop else ()
    named = {"": place.function, "kernel ": place.kernel, "range ": place.nvtx}
    parts = [
        f"{kind}{escape.code(name, words.BRIEF if name == place.kernel else escape.NAME_LIMIT)}"
        for kind, name in named.items()
        if name and name not in loops
    ]
    if not parts and place.nvtx:
        return f"range {escape.code(place.nvtx)}"
    return ", ".join(parts) or "place not recorded"


def common_folder(places: Iterable[Place]) -> str:
    """The folder that all named files lie in, with its last slash; empty if that is none or the root."""
    files = {place.file for place in places if place.file}
    if not files or not all(file.startswith("/") for file in files):
        return ""
    folder = commonpath([str(PurePosixPath(file).parent) for file in files])
    return f"{folder}/" if folder != "/" else ""
