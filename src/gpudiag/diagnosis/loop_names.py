"""Names that a loop is known by: the report's own, its NVTX path, and the marker of one found by repetition.

Loops found by repetition were called by their markers before they had short names. Whoever still calls one so is
understood, and warned.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

from gpudiag.model import Loop, Report

_FORMER = "every "  # how a marker begins


def stable(loop: Loop) -> str:
    """The name that another recording of the same program gives the loop too."""
    return loop.nvtx_path or loop.marker or loop.name


def known(loop: Loop) -> tuple[str, ...]:
    """The names that the report may use of it, without former ones."""
    return (loop.name, loop.nvtx_path) if loop.nvtx_path else (loop.name,)


def marking(loop: Loop) -> str:
    """The kernel by which the loop was recognised; empty where its name says it already, or there is none."""
    return loop.marker.removeprefix(_FORMER) if loop.marker and loop.marker != loop.name else ""


def called(name: str, loops: Iterable[Loop], where: str) -> list[Loop]:
    """The loops of that name, or where none has it, those that it is the former name of, with a warning.

    where: what names the loop, such as an option.
    """
    loops = list(loops)
    found = [loop for loop in loops if name in known(loop)]
    if found or not name.startswith(_FORMER):
        return found
    found = [loop for loop in loops if loop.marker == name]
    if found:
        warn_former(name, found, where)
    return found


def warn_former(name: str, loops: Sequence[Loop], where: str) -> None:
    """Warn that loops were named as a former version did."""
    from gpudiag.library.former_names import FormerNameWarning

    present = ", ".join(dict.fromkeys(repr(loop.name) for loop in loops))
    warnings.warn(
        f"{where}: {name!r} is now called {present}; this version still knows the former name.",
        FormerNameWarning,
        stacklevel=3,
    )


def with_markers(report: Report) -> Report:
    """The report with the markers of loops that a former version saved under these names."""
    loops = tuple(
        loop.model_copy(update={"marker": loop.name})
        if loop.source == "period" and loop.marker is None and loop.name.startswith(_FORMER)
        else loop
        for loop in report.run.loops
    )
    return report.model_copy(update={"run": report.run.model_copy(update={"loops": loops})})
