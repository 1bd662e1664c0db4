"""The command line that profiles one kernel with Nsight Compute, safe to paste into a shell whatever its name is."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

PROGRAM = "YOUR-COMMAND"
"""Stands for the program: how it was started is not read from captures, since it may hold secrets."""
REPORT = "YOUR-REPORT"
"""Stands for an input whose name no shell line can hold."""
SELECTED = "YOUR-SELECTION"
"""Stands for the name of a range or a process that no shell line can hold."""

LONGEST_PATTERN = 200
LONGEST_FILE = 60
_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")
_UNQUOTABLE = re.compile(r"(?:[^ -~]|['\"`!])+")  # no plain ASCII, or would end the quotes, or is a shell's inside them


def command(kernel: str, file: str, skip: int, count: int, *, tagged: bool = False) -> str:
    """Profile `count` launches of the kernel with that base name after the first `skip` ones.

    tagged: the base name may carry a tag in brackets (`relax[abi:v1…]`), as Numba's do.
    """
    words = [
        "ncu", "--set", "full", "--import-source", "yes", "-k", f"regex:{pattern(kernel, tagged=tagged)}",
        "--launch-skip", str(skip), "--launch-count", str(count), "--clock-control", "none", "-o", file,
    ]  # fmt: skip
    return f"{shlex.join(words)} {PROGRAM}"


def pattern(kernel: str, *, tagged: bool = False) -> str:
    """A regular expression for this base name alone; characters that cannot be quoted match as any."""
    end = "" if len(kernel) > LONGEST_PATTERN else r"(\[|$)" if tagged else "$"
    parts = (_SPECIAL.sub(r"\\\g<0>", part) for part in _UNQUOTABLE.split(kernel[:LONGEST_PATTERN]))
    return f"^{'.*'.join(parts)}{end}"


def files(kernels: Iterable[str]) -> list[str]:
    """A report name for each kernel, without a suffix: letters, digits and underscores, no two the same."""
    taken: list[str] = []
    for kernel in kernels:
        stem = re.sub(r"\W+", "_", kernel, flags=re.ASCII).strip("_")[:LONGEST_FILE] or "kernel"
        names = [stem, *(f"{stem}_{number}" for number in range(2, len(taken) + 2))]
        taken.append(next(name for name in names if name not in taken))
    return taken


def follow_up(inputs: Sequence[str], reports: Sequence[str], selecting: Sequence[str] = ()) -> str:
    """Explain the timeline again, the same part of it, with the profiles beside it."""
    named = [(f"./{path}" if path.startswith("-") else path) if path.isprintable() else REPORT for path in inputs]
    part = [word if word.isprintable() else SELECTED for word in selecting]
    return shlex.join(["gpudiag", "explain", *named, *(f"{file}.ncu-rep" for file in reports), *part])
